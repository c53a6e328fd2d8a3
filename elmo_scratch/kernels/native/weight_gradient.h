// The gradients of matrices of weights in float32: sums over the rows of a batch.
//
// Inputs and outputs are first copied so that the numbers of a row lie behind those of the row
// before: 16 inputs in a column, and 6 outputs in a strip. Their 96 sums stay in registers while a
// block of up to MAX_ROWS_OF_A_BLOCK rows passes, and are then added to those of the blocks before.
// A sum therefore depends neither on the number of threads nor on the other inputs and outputs.

#pragma once

#include "structs.h"
#include "vec16f.h"

#ifdef HAS_SIMD_CODE

namespace elmo_scratch {
inline namespace OF_INSTRUCTIONS {

constexpr ptrdiff_t MAX_ROWS_OF_A_BLOCK = 256;
constexpr ptrdiff_t OUTPUTS_OF_A_STRIP = 6;
// Numbers of a strip. Copying writes two numbers behind the last row.
constexpr ptrdiff_t STRIP = MAX_ROWS_OF_A_BLOCK * OUTPUTS_OF_A_STRIP + 8;
// Strips that stay in the L2 cache while columns pass.
constexpr ptrdiff_t MAX_STRIPS_AT_ONCE = 32;
// Inputs that are copied together, because neighbouring lines of memory come faster.
constexpr ptrdiff_t INPUTS_COPIED = 4 * REGISTER;
constexpr ptrdiff_t MIN_GRADIENT_PRODUCTS_OF_A_THREAD = 1 << 18;

// Copies some inputs of all rows to columns.
inline void pack_inputs(const GradientProducts<float> &all, const GradientPart<float> &part,
                        ptrdiff_t first) {
    const ptrdiff_t end = std::min(first + INPUTS_COPIED, part.inputs);
    for (ptrdiff_t row = 0; row < all.rows; row++)
        for (ptrdiff_t input = first; input < end; input += REGISTER)
            store(load_first(part.vectors + row * part.inputs + input, part.inputs - input),
                  part.packed + input * all.rows + row * REGISTER);
}

// Copies some outputs of a block to strips.
inline void pack_outputs(const float *gradients, ptrdiff_t stride, ptrdiff_t rows,
                         ptrdiff_t outputs, float *strips) {
    for (ptrdiff_t row = 0; row < rows; row++) {
        const float *own = gradients + row * stride;
        float *place = strips + row * OUTPUTS_OF_A_STRIP;
        ptrdiff_t k = 0;
        // Two numbers too many, over which the next row is written.
        for (; k + 8 <= outputs; k += OUTPUTS_OF_A_STRIP, place += STRIP)
            std::memcpy(place, own + k, 8 * sizeof(float));
        for (; k < outputs; k += OUTPUTS_OF_A_STRIP, place += STRIP)
            for (ptrdiff_t j = 0; j < OUTPUTS_OF_A_STRIP; j++)
                place[j] = k + j < outputs ? own[k + j] : 0.0f;
    }
}

// Adds up some outputs of a block, and adds that to `sums`.
inline void add_rows_of_block(const float *gradients, ptrdiff_t stride, ptrdiff_t rows,
                              ptrdiff_t outputs, float *sums) {
    float own[MAX_STRIPS_AT_ONCE * OUTPUTS_OF_A_STRIP] = {};
    for (ptrdiff_t row = 0; row < rows; row++)
        for (ptrdiff_t k = 0; k < outputs; k++) own[k] += gradients[row * stride + k];
    for (ptrdiff_t k = 0; k < outputs; k++) sums[k] += own[k];
}

// The sums of a block's products for the 6 outputs of a strip and the 16 inputs of a column. If
// this is inlined, GCC runs out of registers and reads the inputs again for each output.
static __attribute__((noinline)) void sum_products(ptrdiff_t rows, const float *strip,
                                                   const float *column, float *sums) {
    Vec16f own[OUTPUTS_OF_A_STRIP];
    for (auto &sum : own) sum = broadcast(0.0f);
    for (ptrdiff_t row = 0; row < rows; row++) {
        const Vec16f inputs = load(column + row * REGISTER);
        for (ptrdiff_t k = 0; k < OUTPUTS_OF_A_STRIP; k++)
            own[k] = fma(broadcast(strip[row * OUTPUTS_OF_A_STRIP + k]), inputs, own[k]);
    }
    for (ptrdiff_t k = 0; k < OUTPUTS_OF_A_STRIP; k++) store(own[k], sums + k * REGISTER);
}

// Adds a block's products to those of the blocks before, for up to 6 outputs and 16 inputs.
inline void add_products(ptrdiff_t rows, bool is_first, const float *strip, const float *column,
                         float *place, ptrdiff_t stride, ptrdiff_t outputs, ptrdiff_t inputs) {
    alignas(64) float sums[OUTPUTS_OF_A_STRIP * REGISTER];
    outputs = std::min(outputs, OUTPUTS_OF_A_STRIP);
    for (ptrdiff_t k = 0; k < outputs; k++) __builtin_prefetch(place + k * stride, 1);
    sum_products(rows, strip, column, sums);
    for (ptrdiff_t k = 0; k < outputs; k++) {
        float *own = place + k * stride;
        const Vec16f sum = load(sums + k * REGISTER);
        store_first(is_first ? sum : load_first(own, inputs) + sum, own, inputs);
    }
}

// Computes the gradients of the weights of the outputs from `first` to `end`, and of their bias.
// `strips` is memory for the work.
inline void multiply_outputs(const GradientProducts<float> &all, ptrdiff_t first, ptrdiff_t end,
                             float *strips) {
    const ptrdiff_t num_blocks = (all.rows + MAX_ROWS_OF_A_BLOCK - 1) / MAX_ROWS_OF_A_BLOCK;
    const ptrdiff_t rows_of_a_block = (all.rows + num_blocks - 1) / num_blocks;
    std::fill(all.sums + first, all.sums + end, 0.0f);
    for (ptrdiff_t row = 0; row < all.rows; row += rows_of_a_block) {
        const ptrdiff_t rows = std::min(all.rows - row, rows_of_a_block);
        const float *gradients = all.gradients + row * all.outputs + first;
        pack_outputs(gradients, all.outputs, rows, end - first, strips);
        add_rows_of_block(gradients, all.outputs, rows, end - first, all.sums + first);
        for (const auto *part = all.parts; part < all.parts + all.num_parts; part++)
            for (ptrdiff_t input = 0; input < part->inputs; input += REGISTER)
                for (ptrdiff_t k = first; k < end; k += OUTPUTS_OF_A_STRIP)
                    add_products(rows, row == 0, strips + (k - first) / OUTPUTS_OF_A_STRIP * STRIP,
                                 part->packed + input * all.rows + row * REGISTER,
                                 part->result + k * part->inputs + input, part->inputs, end - k,
                                 part->inputs - input);
    }
}

// There is at least one row, and at least one output.
inline void multiply_gradients(const GradientProducts<float> &all, int threads) {
    ptrdiff_t inputs = 1;
    for (ptrdiff_t p = 0; p < all.num_parts; p++) inputs += all.parts[p].inputs;
    const ptrdiff_t strips = round_up(all.outputs, OUTPUTS_OF_A_STRIP) / OUTPUTS_OF_A_STRIP;
    const int num_threads = threads_for(all.rows * all.outputs * inputs,
                                        MIN_GRADIENT_PRODUCTS_OF_A_THREAD, strips, threads);
    // Shares are as equal as whole strips allow.
    const ptrdiff_t most = MAX_STRIPS_AT_ONCE * num_threads;
    const ptrdiff_t shares = (strips + most - 1) / most * num_threads;
    const ptrdiff_t strips_at_once = (strips + shares - 1) / shares;
    const ptrdiff_t outputs_at_once = strips_at_once * OUTPUTS_OF_A_STRIP;
#pragma omp parallel num_threads(num_threads) if (num_threads > 1)
    {
        std::vector<float> own(strips_at_once * STRIP);
        for (ptrdiff_t p = 0; p < all.num_parts; p++)
#pragma omp for schedule(static)
            for (ptrdiff_t input = 0; input < all.parts[p].inputs; input += INPUTS_COPIED)
                pack_inputs(all, all.parts[p], input);
#pragma omp for schedule(dynamic)
        for (ptrdiff_t output = 0; output < all.outputs; output += outputs_at_once)
            multiply_outputs(all, output, std::min(output + outputs_at_once, all.outputs),
                             own.data());
    }
}

}  // namespace OF_INSTRUCTIONS
}  // namespace elmo_scratch

#endif
