// What Python hands to compiled code. library.py mirrors each of these structs by its name,
// and compares sizes and offsets with those that library.cpp tells when the library is loaded.

#pragma once

#include "numbers.h"

namespace elmo_scratch {
inline namespace OF_INSTRUCTIONS {

// The sizes of an LSTM's run. Positions lie step by step, `batch_sizes` of each step. From a
// position to the next one there are `gate_stride` numbers in the gates, and `opened_stride` in the
// cells' outputs. The backward pass reads both without gaps.
struct LstmSizes {
    const ptrdiff_t *batch_sizes;
    ptrdiff_t steps, batch, cells, dim, gate_stride, opened_stride;
};

// native.py has the shapes. `Number` is the precision of products.
template <typename Number>
struct LstmForward {
    const Number *to_gates, *projection;  // panels
    const float *bias;
    Number *gates;
    const float *scale;
    const Number *hidden;
    const float *cell;
    float *after;
    Number *opened, *projected, *outputs;
    float *last_hidden, *last_cell;
    float cell_clip, projection_clip;
};

// One layer of a stack of LSTMs: weights in panels. stack.py has the shapes.
template <typename Number>
struct LstmLayer {
    const Number *from_inputs, *to_gates, *projection;
    const float *bias;
};

// All layers of a stack. stack.py has the shapes.
template <typename Number>
struct LstmLayers {
    const LstmLayer<Number> *layers;
    ptrdiff_t num_layers, positions_at_once;
    const float *inputs;
    float *outputs, *last_hidden, *last_cell;
    // Memory for the work: a layer's inputs and outputs as products round them, its gates, the
    // memory cells' outputs, the outputs before these steps; and memory after each step.
    Number *rounded_inputs, *rounded_outputs, *gates, *opened, *hidden;
    float *after;
    float cell_clip, projection_clip;
    int adds_inputs;
};

// native.py has the shapes.
template <typename Number>
struct LstmBackward {
    const Number *from_gates, *projection;  // panels
    const Number *gates;
    const float *scale, *cell, *after;
    const Number *projected;
    const float *d_outputs;
    Number *d_gates, *d_projected;
    float *d_hidden, *d_cell;
    float cell_clip, projection_clip;
};

// The characters of words: char_convolution.py has the shapes.
template <typename Number>
struct ConvolutionWords {
    const Number *characters;
    const std::int64_t *lengths;
    ptrdiff_t number, positions, dim, most_characters, filters;
};

// The filters of one width. `first` filters of other widths come before them.
template <typename Number>
struct ConvolutionFilters {
    const Number *panels;
    const float *weights, *bias;
    float *d_weights;
    ptrdiff_t inputs, width, number, first;
};

// A matrix of shape `(rows, columns)` for panels. Its rows are outputs, or its columns are if it is
// turned. With `is_of_gates` a panel has all four gates of 16 memory cells.
struct PanelMatrix {
    const float *numbers;
    ptrdiff_t rows, columns;
    int is_turned, is_of_gates;
};

// A product by AMX: amx.py has the shapes. Sizes are padded.
struct AmxProduct {
    const Bfloat16 *rows, *weights, *bias, *summand;
    Bfloat16 *result;
    ptrdiff_t num_rows, inputs, outputs;
};

// Weights in an ordinary layout: a row for each output, or for each input if they are turned.
template <typename Number>
struct AmxWeights {
    const Number *numbers;
    ptrdiff_t outputs, inputs;
    int is_turned;
};

// The gradient of one matrix of weights: weight_gradients.py has the shapes.
template <typename Number>
struct GradientPart {
    const Number *vectors;
    ptrdiff_t inputs;
    Number *packed;
    float *result;
};

// The gradients of several matrices with the same outputs, and of their bias.
template <typename Number>
struct GradientProducts {
    const Number *gradients;
    ptrdiff_t rows, outputs;
    float *sums;
    const GradientPart<Number> *parts;
    ptrdiff_t num_parts;
};

}  // namespace OF_INSTRUCTIONS
}  // namespace elmo_scratch
