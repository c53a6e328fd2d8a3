// Layers of LSTMs, one after the other, without gradients.

#pragma once

#include "lstm_forward.h"

#ifdef HAS_SIMD_CODE

namespace elmo_scratch {
inline namespace OF_INSTRUCTIONS {

// Rounds `count` numbers, a multiple of a register's.
template <typename Number>
void round_numbers(const float *numbers, ptrdiff_t count, Number *rounded) {
    for (ptrdiff_t k = 0; k < count; k += REGISTER) store(load(numbers + k), rounded + k);
}

// The share of a layer's inputs in the gates of some positions. Each thread reads a part of the
// weights, for all positions.
template <typename Number>
void multiply_inputs(const LstmSizes &sizes, const Number *inputs, ptrdiff_t positions,
                     const Number *weights, Number *gates, int threads, int has_tiles) {
    const ptrdiff_t cells = sizes.cells, dim = sizes.dim;
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
        Tiles tiles(has_tiles && sizeof(Number) == 2);
        alignas(64) float sums[MAX_GROUP * PANEL];
#pragma omp for
        for (ptrdiff_t k = 0; k < cells; k += REGISTER)
            for (ptrdiff_t first = 0; first < positions; first += MAX_GROUP) {
                const ptrdiff_t some = std::min(positions - first, MAX_GROUP);
                multiply(some, inputs + first * dim, dim, weights + k * 4 * dim, dim, sums, tiles);
                for (ptrdiff_t row = 0; row < some; row++)
                    for (ptrdiff_t gate = 0; gate < 4; gate++)
                        store(load(sums + row * PANEL + gate * REGISTER),
                              gates + (first + row) * sizes.gate_stride + gate * cells + k);
            }
    }
}

// One layer reads `run.rounded_inputs`. Gates are computed for some steps at a time, and then these
// steps.
template <typename Number>
void read_layer(const LstmSizes &sizes, const LstmLayers<Number> &run,
                const LstmLayer<Number> &layer, float *hidden, float *cell, int threads,
                int has_tiles) {
    ptrdiff_t step = 0, place = 0;
    while (step < sizes.steps) {
        const ptrdiff_t active = sizes.batch_sizes[step];
        ptrdiff_t end = step, positions = 0;
        do positions += sizes.batch_sizes[end++];
        while (end < sizes.steps && positions + sizes.batch_sizes[end] <= run.positions_at_once);
        multiply_inputs(sizes, run.rounded_inputs + place * sizes.dim, positions, layer.from_inputs,
                        run.gates, threads, has_tiles);
        round_numbers(hidden, active * sizes.dim, run.hidden);
        Number *outputs = run.rounded_outputs + place * sizes.dim;
        LstmSizes some = sizes;
        some.batch_sizes += step, some.steps = end - step, some.batch = active;
        // Threads read a sentence's state before they write it.
        const LstmForward<Number> steps{
            layer.to_gates, layer.projection, layer.bias,         run.gates, nullptr, run.hidden,
            cell,           run.after,        run.opened,         outputs,   outputs, hidden,
            cell,           run.cell_clip,    run.projection_clip};
        run_slices<Number>(some, steps, run_forward<Number>, threads, has_tiles);
        step = end, place += positions;
    }
}

template <typename Number>
void read_layers(const LstmSizes &sizes, const LstmLayers<Number> &run, int threads,
                 int has_tiles) {
    ptrdiff_t positions = 0;
    for (ptrdiff_t step = 0; step < sizes.steps; step++) positions += sizes.batch_sizes[step];
    const ptrdiff_t count = positions * sizes.dim;
    const float *inputs = run.inputs;
    for (ptrdiff_t number = 0; number < run.num_layers; number++) {
        round_numbers(inputs, count, run.rounded_inputs);
        read_layer(sizes, run, run.layers[number],
                   run.last_hidden + number * sizes.batch * sizes.dim,
                   run.last_cell + number * sizes.batch * sizes.cells, threads, has_tiles);
        float *outputs = run.outputs + number * count;
        const bool is_skipped = run.adds_inputs && number > 0;
        for (ptrdiff_t k = 0; k < count; k += REGISTER) {
            const Vec16f made = load(run.rounded_outputs + k);
            store(is_skipped ? made + load(inputs + k) : made, outputs + k);
        }
        inputs = outputs;
    }
}

}  // namespace OF_INSTRUCTIONS
}  // namespace elmo_scratch

#endif
