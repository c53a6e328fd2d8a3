// The gradients of matrices of weights in float32: sums over the rows of a batch.
//
// Some inputs and some outputs are copied so that the numbers of a row lie behind those of the row
// before, 16 inputs in a panel and 6 outputs in a strip. Their 96 sums stay in registers while
// ROWS_OF_A_SUM rows pass. Each sum is added to those of the rows before, so that it depends
// neither on the number of threads nor on the other inputs and outputs.

#pragma once

#include "structs.h"
#include "vec16f.h"

#ifdef HAS_SIMD_CODE

namespace elmo_scratch {
inline namespace OF_INSTRUCTIONS {

constexpr ptrdiff_t MAX_ROWS_OF_A_SUM = 256;
// Outputs of a strip, and its numbers. Copying writes a few behind the last.
constexpr ptrdiff_t OUTPUTS_OF_A_STRIP = 6, STRIP = MAX_ROWS_OF_A_SUM * OUTPUTS_OF_A_STRIP + 8;
// So many outputs stay in the L2 cache while inputs pass.
constexpr ptrdiff_t MAX_OUTPUTS_AT_ONCE = 192;
// Panels that are copied together, because neighbouring lines of memory come faster.
constexpr ptrdiff_t INPUTS_COPIED = 4 * REGISTER;
constexpr ptrdiff_t MIN_PRODUCTS_OF_A_SHARE = 1 << 18;

// Copies some inputs of all rows.
inline void pack_inputs(const GradientProducts<float> &all, const GradientPart<float> &part,
                        ptrdiff_t first) {
    const ptrdiff_t end = std::min(first + INPUTS_COPIED, part.inputs);
    for (ptrdiff_t row = 0; row < all.rows; row++)
        for (ptrdiff_t input = first; input < end; input += REGISTER)
            store(load_first(part.vectors + row * part.inputs + input, part.inputs - input),
                  part.packed + input * all.rows + row * REGISTER);
}

// Copies some outputs of some rows, and adds them to `sums`.
inline void pack_outputs(const float *gradients, ptrdiff_t stride, ptrdiff_t rows,
                         ptrdiff_t outputs, float *strips, float *sums) {
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
        for (k = 0; k < outputs; k++) sums[k] += own[k];
    }
}

// Sums up some rows' products of the 6 outputs of a strip and the 16 inputs of a panel. Inlined,
// compilers run out of registers and read the inputs again for each output.
static __attribute__((noinline)) void sum_products(ptrdiff_t rows, const float *strip,
                                                   const float *panel, float *sums) {
    Vec16f own[OUTPUTS_OF_A_STRIP];
    for (auto &sum : own) sum = broadcast(0.0f);
    for (ptrdiff_t row = 0; row < rows; row++) {
        const Vec16f inputs = load(panel + row * REGISTER);
        for (ptrdiff_t k = 0; k < OUTPUTS_OF_A_STRIP; k++)
            own[k] = fma(broadcast(strip[row * OUTPUTS_OF_A_STRIP + k]), inputs, own[k]);
    }
    for (ptrdiff_t k = 0; k < OUTPUTS_OF_A_STRIP; k++) store(own[k], sums + k * REGISTER);
}

// Adds such sums to what the rows before have made, for up to 6 outputs and 16 inputs.
inline void add_products(ptrdiff_t rows, bool are_first, const float *strip, const float *panel,
                         float *place, ptrdiff_t stride, ptrdiff_t outputs, ptrdiff_t inputs) {
    alignas(64) float sums[OUTPUTS_OF_A_STRIP * REGISTER];
    outputs = std::min(outputs, OUTPUTS_OF_A_STRIP);
    for (ptrdiff_t k = 0; k < outputs; k++) __builtin_prefetch(place + k * stride, 1);
    sum_products(rows, strip, panel, sums);
    for (ptrdiff_t k = 0; k < outputs; k++) {
        float *own = place + k * stride;
        const Vec16f sum = load(sums + k * REGISTER);
        store_first(are_first ? sum : load_first(own, inputs) + sum, own, inputs);
    }
}

// The gradients of the weights of the outputs from `first` to `end`, and of their bias. `strips` is
// memory for the work.
inline void some_weights(const GradientProducts<float> &all, ptrdiff_t first, ptrdiff_t end,
                         float *strips) {
    const ptrdiff_t parts = (all.rows + MAX_ROWS_OF_A_SUM - 1) / MAX_ROWS_OF_A_SUM;
    const ptrdiff_t at_once = (all.rows + parts - 1) / parts;
    std::fill(all.sums + first, all.sums + end, 0.0f);
    for (ptrdiff_t row = 0; row < all.rows; row += at_once) {
        const ptrdiff_t rows = std::min(all.rows - row, at_once);
        pack_outputs(all.gradients + row * all.outputs + first, all.outputs, rows, end - first,
                     strips, all.sums + first);
        for (const auto *part = all.parts; part < all.parts + all.num_parts; part++)
            for (ptrdiff_t input = 0; input < part->inputs; input += REGISTER)
                for (ptrdiff_t k = first; k < end; k += OUTPUTS_OF_A_STRIP)
                    add_products(rows, row == 0, strips + (k - first) / OUTPUTS_OF_A_STRIP * STRIP,
                                 part->packed + input * all.rows + row * REGISTER,
                                 part->result + k * part->inputs + input, part->inputs, end - k,
                                 part->inputs - input);
    }
}

// Both `rows` and `outputs` are at least 1.
inline void multiply_gradients(const GradientProducts<float> &all, int threads) {
    ptrdiff_t inputs = 1;
    for (ptrdiff_t p = 0; p < all.num_parts; p++) inputs += all.parts[p].inputs;
    const int num_threads =
        threads_for(all.rows * all.outputs * inputs, MIN_PRODUCTS_OF_A_SHARE, all.outputs, threads);
    // The same number of shares for each thread.
    const ptrdiff_t most = MAX_OUTPUTS_AT_ONCE * num_threads;
    const ptrdiff_t shares = (all.outputs + most - 1) / most * num_threads;
    const ptrdiff_t at_once = round_up((all.outputs + shares - 1) / shares, OUTPUTS_OF_A_STRIP);
#pragma omp parallel num_threads(num_threads) if (num_threads > 1)
    {
        std::vector<float> strips(at_once / OUTPUTS_OF_A_STRIP * STRIP);
        for (ptrdiff_t p = 0; p < all.num_parts; p++)
#pragma omp for schedule(static)
            for (ptrdiff_t input = 0; input < all.parts[p].inputs; input += INPUTS_COPIED)
                pack_inputs(all, all.parts[p], input);
#pragma omp for schedule(dynamic)
        for (ptrdiff_t output = 0; output < all.outputs; output += at_once)
            some_weights(all, output, std::min(output + at_once, all.outputs), strips.data());
    }
}

}  // namespace OF_INSTRUCTIONS
}  // namespace elmo_scratch

#endif
