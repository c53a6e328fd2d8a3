// The backward pass of all steps of an LSTM. reference.py says the same with PyTorch's
// operations.

#pragma once

#include "lstm_run.h"
#include "memory_cell.h"

#ifdef HAS_SIMD_CODE

namespace elmo_scratch {
inline namespace OF_INSTRUCTIONS {

// Computes `d_projected`, the gradient before clipping, for this thread's slice of the outputs.
template <typename Number>
void project_step_backward(const LstmSizes &sizes, const LstmBackward<Number> &run,
                           const ThreadSlice &slice, ptrdiff_t rows, ptrdiff_t place, float clip) {
    const ptrdiff_t dim = sizes.dim;
    for (ptrdiff_t row = 0; row < rows; row++) {
        const ptrdiff_t own = (place + row) * dim, sentence = (slice.first + row) * dim;
        for (ptrdiff_t k = slice.from(dim, PANEL); k < slice.to(dim, PANEL); k++) {
            float d = run.d_hidden[sentence + k] + run.d_outputs[own + k];
            if (run.scale) d *= run.scale[sentence + k];
            const float output = run.projected[own + k];
            run.d_projected[own + k] = (output <= -clip) | (output >= clip) ? 0.0f : d;
        }
    }
}

// Computes the gradients of the first `count` cells of a panel, from the gradients of their outputs
// in `sums`.
template <typename Number>
void open_panel_backward(ptrdiff_t rows, ptrdiff_t count, const float *sums, ptrdiff_t cells,
                         float clip, const Number *gates, const float *before, const float *after,
                         float *d_cell, Number *d_gates) {
    const Vec16f bound = broadcast(clip);
    for (ptrdiff_t row = 0; row < rows; row++) {
        for (ptrdiff_t gate = 0; gate < 4; gate++) {
            prefetch(gates + gate * cells + PANEL, PANEL);
            prefetch(d_gates + gate * cells + PANEL, PANEL);
        }
        prefetch(before + PANEL, PANEL);
        prefetch(after + PANEL, PANEL);
        for (ptrdiff_t k = 0; k < count; k += REGISTER) {
            const Gates<Vec16f> own = {load(gates + k), load(gates + cells + k),
                                       load(gates + 2 * cells + k), load(gates + 3 * cells + k)};
            Vec16f d_c = load(d_cell + k);
            const Gates<Vec16f> d = open_cell_backward<Vec16f>(
                own, load(before + k), load(after + k), bound, load(sums + k), d_c);
            store(d.i, d_gates + k);
            store(d.j, d_gates + cells + k);
            store(d.f, d_gates + 2 * cells + k);
            store(d.o, d_gates + 3 * cells + k);
            store(d_c, d_cell + k);
        }
        sums += PANEL, gates += 4 * cells, d_gates += 4 * cells;
        before += cells, after += cells, d_cell += cells;
    }
}

// Computes `d_gates` and `d_cell` for this thread's slice of the cells.
template <typename Number>
void open_step_backward(const LstmSizes &sizes, const LstmBackward<Number> &run,
                        const ThreadSlice &slice, ptrdiff_t rows, ptrdiff_t place,
                        const float *before, float *sums, Tiles &tiles) {
    const ptrdiff_t cells = sizes.cells, dim = sizes.dim;
    for (ptrdiff_t k = slice.from(cells, PANEL); k < slice.to(cells, PANEL); k += PANEL)
        for (ptrdiff_t row = 0; row < rows; row += MAX_GROUP) {
            const ptrdiff_t some = std::min(rows - row, MAX_GROUP);
            const ptrdiff_t gates = (place + row) * 4 * cells + k;
            multiply(some, run.d_projected + (place + row) * dim, dim, run.projection + k * dim,
                     dim, sums, tiles, slice.are_cached);
            open_panel_backward(some, std::min(PANEL, cells - k), sums, cells, run.cell_clip,
                                run.gates + gates, before + row * cells + k,
                                run.after + (place + row) * cells + k,
                                run.d_cell + (slice.first + row) * cells + k, run.d_gates + gates);
        }
}

// Computes `d_hidden` of the previous step for this thread's slice of the outputs.
template <typename Number>
void hidden_step_backward(const LstmSizes &sizes, const LstmBackward<Number> &run,
                          const ThreadSlice &slice, ptrdiff_t rows, ptrdiff_t place, float *sums,
                          Tiles &tiles) {
    const ptrdiff_t gates = 4 * sizes.cells, dim = sizes.dim;
    for (ptrdiff_t k = slice.from(dim, PANEL); k < slice.to(dim, PANEL); k += PANEL)
        for (ptrdiff_t row = 0; row < rows; row += MAX_GROUP) {
            const ptrdiff_t some = std::min(rows - row, MAX_GROUP);
            multiply(some, run.d_gates + (place + row) * gates, gates, run.from_gates + k * gates,
                     gates, sums, tiles, slice.are_cached);
            for (ptrdiff_t r = 0; r < some; r++)
                std::copy_n(sums + r * PANEL, std::min(PANEL, dim - k),
                            run.d_hidden + (slice.first + row + r) * dim + k);
        }
}

template <typename Number>
void run_backward(const LstmSizes &sizes, const LstmBackward<Number> &run, const ThreadSlice &slice,
                  Tiles &tiles) {
    alignas(64) float sums[MAX_GROUP * PANEL];
    Number bound;
    bound = run.projection_clip;
    ptrdiff_t start = 0;
    for (ptrdiff_t step = 0; step < sizes.steps; step++) start += sizes.batch_sizes[step];
    for (ptrdiff_t step = sizes.steps - 1; step >= 0; step--) {
        start -= sizes.batch_sizes[step];
        const ptrdiff_t rows = std::min(sizes.batch_sizes[step], slice.end) - slice.first;
        const ptrdiff_t place = start + slice.first;
        if (rows <= 0) continue;
        const float *before = step > 0
                                  ? run.after + (place - sizes.batch_sizes[step - 1]) * sizes.cells
                                  : run.cell + slice.first * sizes.cells;
        project_step_backward(sizes, run, slice, rows, place, float(bound));
        slice.wait();
        open_step_backward(sizes, run, slice, rows, place, before, sums, tiles);
        slice.wait();
        hidden_step_backward(sizes, run, slice, rows, place, sums, tiles);
    }
}

}  // namespace OF_INSTRUCTIONS
}  // namespace elmo_scratch

#endif
