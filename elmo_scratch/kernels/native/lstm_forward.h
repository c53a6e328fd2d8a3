// All steps of an LSTM. reference.py says the same with PyTorch's operations.

#pragma once

#include "lstm_run.h"
#include "memory_cell.h"

#ifdef HAS_SIMD_CODE

namespace elmo_scratch {
inline namespace OF_INSTRUCTIONS {

// The cells of two panels are computed together: in bfloat16 they fill a cache line.
constexpr ptrdiff_t PANELS = 2, CELLS_TOGETHER = PANELS * REGISTER;

// One step of 16 cells, from the products of the last output with their weights.
template <typename Number>
INLINE void open_register(const float *sums, ptrdiff_t cells, Vec16f clip, const float *bias,
                          const float *before, Number *gates, float *after, Number *opened) {
    Vec16f own[4];
    for (ptrdiff_t gate = 0; gate < 4; gate++) {
        Number *place = gates + gate * cells;
        const Vec16f from_inputs = load(place) + load(bias + gate * cells);
        own[gate] = store_rounded(from_inputs + load(sums + gate * REGISTER), place);
    }
    const CellOutput<Vec16f> output =
        open_cell<Vec16f>({own[0], own[1], own[2], own[3]}, load(before), clip);
    store(output.after, after);
    store(output.output, opened);
}

template <typename Number>
void open_panels(const LstmSizes &sizes, ptrdiff_t rows, const float *sums, float clip,
                 const float *bias, const float *before, Number *gates, float *after,
                 Number *opened) {
    const Vec16f bound = broadcast(clip);
    const ptrdiff_t cells = sizes.cells;
    for (ptrdiff_t row = 0; row < rows; row++) {
        for (ptrdiff_t gate = 0; gate < 4; gate++)
            prefetch(gates + gate * cells + CELLS_TOGETHER, CELLS_TOGETHER);
        prefetch(before + CELLS_TOGETHER, CELLS_TOGETHER);
        prefetch(after + CELLS_TOGETHER, CELLS_TOGETHER);
        prefetch(opened + CELLS_TOGETHER, CELLS_TOGETHER);
        for (ptrdiff_t panel = 0; panel < PANELS; panel++) {
            const ptrdiff_t k = panel * REGISTER;
            open_register(sums + (panel * rows + row) * PANEL, cells, bound, bias + k, before + k,
                          gates + k, after + k, opened + k);
        }
        gates += sizes.gate_stride, before += cells, after += cells, opened += sizes.opened_stride;
    }
}

// Clips and scales the first `count` outputs of a panel.
template <typename Number>
void project_panel(ptrdiff_t rows, ptrdiff_t count, const float *sums, ptrdiff_t dim, float clip,
                   const float *scale, Number *projected, Number *outputs) {
    for (ptrdiff_t row = 0; row < rows; row++)
        for (ptrdiff_t k = 0; k < count; k++) {
            Number rounded, bound;
            rounded = sums[row * PANEL + k];
            bound = clip;
            float sum = rounded;
            sum = sum < -float(bound) ? -float(bound) : sum;
            sum = sum > float(bound) ? float(bound) : sum;
            projected[row * dim + k] = sum;
            if (scale) outputs[row * dim + k] = sum * scale[row * dim + k];
        }
}

// Computes one step of this thread's slice of the cells.
template <typename Number>
void open_step(const LstmSizes &sizes, const LstmForward<Number> &run, const ThreadSlice &slice,
               ptrdiff_t rows, ptrdiff_t place, const Number *hidden, const float *before,
               float *sums, Tiles &tiles) {
    const ptrdiff_t cells = sizes.cells, dim = sizes.dim;
    const ptrdiff_t end = slice.to(cells, CELLS_TOGETHER);
    for (ptrdiff_t k = slice.from(cells, CELLS_TOGETHER); k < end; k += CELLS_TOGETHER)
        for (ptrdiff_t row = 0; row < rows; row += MAX_GROUP) {
            const ptrdiff_t some = std::min(rows - row, MAX_GROUP), own = (place + row) * cells + k;
            for (ptrdiff_t panel = 0; panel < PANELS; panel++)
                multiply(some, hidden + row * dim, dim,
                         run.to_gates + (k + panel * REGISTER) * 4 * dim, dim,
                         sums + panel * some * PANEL, tiles, slice.are_cached);
            open_panels(sizes, some, sums, run.cell_clip, run.bias + k, before + row * cells + k,
                        run.gates + (place + row) * sizes.gate_stride + k, run.after + own,
                        run.opened + (place + row) * sizes.opened_stride + k);
        }
}

// Computes one step of this thread's slice of the outputs.
template <typename Number>
void project_step(const LstmSizes &sizes, const LstmForward<Number> &run, const ThreadSlice &slice,
                  ptrdiff_t rows, ptrdiff_t place, float *sums, Tiles &tiles) {
    const ptrdiff_t cells = sizes.cells, dim = sizes.dim;
    for (ptrdiff_t k = slice.from(dim, PANEL); k < slice.to(dim, PANEL); k += PANEL)
        for (ptrdiff_t row = 0; row < rows; row += MAX_GROUP) {
            const ptrdiff_t some = std::min(rows - row, MAX_GROUP), own = (place + row) * dim + k;
            multiply(some, run.opened + (place + row) * sizes.opened_stride, sizes.opened_stride,
                     run.projection + k * cells, cells, sums, tiles, slice.are_cached);
            project_panel(some, std::min(PANEL, dim - k), sums, dim, run.projection_clip,
                          run.scale ? run.scale + (slice.first + row) * dim + k : nullptr,
                          run.projected + own, run.outputs + own);
        }
}

// Saves the last state of a sentence that ends at this step: this thread's slice of it.
template <typename Number>
void save_final_state(const LstmSizes &sizes, const LstmForward<Number> &run,
                      const ThreadSlice &slice, ptrdiff_t row, ptrdiff_t place) {
    const ptrdiff_t cells = sizes.cells, dim = sizes.dim;
    const ptrdiff_t cell = slice.from(cells, CELLS_TOGETHER);
    std::copy(run.after + place * cells + cell,
              run.after + place * cells + slice.to(cells, CELLS_TOGETHER),
              run.last_cell + row * cells + cell);
    for (ptrdiff_t k = slice.from(dim, PANEL); k < slice.to(dim, PANEL); k++)
        run.last_hidden[row * dim + k] = run.outputs[place * dim + k];
}

template <typename Number>
void run_forward(const LstmSizes &sizes, const LstmForward<Number> &run, const ThreadSlice &slice,
                 Tiles &tiles) {
    alignas(64) float sums[PANELS * MAX_GROUP * PANEL];
    const Number *hidden = run.hidden + slice.first * sizes.dim;
    const float *before = run.cell + slice.first * sizes.cells;
    ptrdiff_t start = 0;
    for (ptrdiff_t step = 0; step < sizes.steps; step++) {
        const ptrdiff_t active = sizes.batch_sizes[step];
        const ptrdiff_t rows = std::min(active, slice.end) - slice.first;
        const ptrdiff_t place = start + slice.first;
        if (rows <= 0) break;
        open_step(sizes, run, slice, rows, place, hidden, before, sums, tiles);
        slice.wait();
        project_step(sizes, run, slice, rows, place, sums, tiles);
        const ptrdiff_t next = step + 1 < sizes.steps ? sizes.batch_sizes[step + 1] : 0;
        for (ptrdiff_t row = std::max(next - slice.first, ptrdiff_t(0)); row < rows; row++)
            save_final_state(sizes, run, slice, slice.first + row, place + row);
        slice.wait();
        hidden = run.outputs + place * sizes.dim;
        before = run.after + place * sizes.cells;
        start += active;
    }
}

}  // namespace OF_INSTRUCTIONS
}  // namespace elmo_scratch

#endif
