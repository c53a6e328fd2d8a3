// All steps of an LSTM: steps.py says the same with PyTorch's operations.

#pragma once

#include "lstm_run.h"
#include "wide_memory_cell.h"

#ifdef HAS_SIMD_CODE

namespace elmo_scratch {
inline namespace OF_INSTRUCTIONS {

// Cells that are opened together, of as many panels: of narrow numbers a whole line of the caches.
constexpr ptrdiff_t PANELS = 2, TOGETHER = PANELS * REGISTER;

// What a run reads and writes, with the names and shapes of compiled_run.py.
template <typename Number>
struct Forward {
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

template <typename Number>
INLINE void open_register(const float *sums, ptrdiff_t cells, Sixteen clip, const float *bias,
                          const float *before, Number *gates, float *after, Number *opened) {
    Sixteen own[4];
    for (ptrdiff_t gate = 0; gate < 4; gate++) {
        Number *place = gates + gate * cells;
        const Sixteen share = load(place) + load(bias + gate * cells);
        own[gate] = store_rounded(share + load(sums + gate * REGISTER), place);
    }
    const WideOpenedCells opened_cells =
        open_cells({own[0], own[1], own[2], own[3]}, load(before), clip);
    store(opened_cells.after, after);
    store(opened_cells.output, opened);
}

template <typename Number>
void open_panels(ptrdiff_t rows, const float *sums, ptrdiff_t cells, float clip, const float *bias,
                 const float *before, Number *gates, float *after, Number *opened) {
    const Sixteen bound = all(clip);
    for (ptrdiff_t row = 0; row < rows; row++) {
        for (ptrdiff_t gate = 0; gate < 4; gate++) fetch(gates + gate * cells + TOGETHER, TOGETHER);
        fetch(before + TOGETHER, TOGETHER);
        fetch(after + TOGETHER, TOGETHER);
        fetch(opened + TOGETHER, TOGETHER);
        for (ptrdiff_t panel = 0; panel < PANELS; panel++) {
            const ptrdiff_t k = panel * REGISTER;
            open_register(sums + (panel * rows + row) * PANEL, cells, bound, bias + k, before + k,
                          gates + k, after + k, opened + k);
        }
        gates += 4 * cells, before += cells, after += cells, opened += cells;
    }
}

// Of a panel's outputs, of which the last one has fewer.
template <typename Number>
void project_panel(ptrdiff_t rows, ptrdiff_t own, const float *sums, ptrdiff_t dim, float clip,
                   const float *scale, Number *projected, Number *outputs) {
    for (ptrdiff_t row = 0; row < rows; row++)
        for (ptrdiff_t k = 0; k < own; k++) {
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

// The gates of all cells of a thread, and what they let through.
template <typename Number>
void open_step(const Sizes &sizes, const Forward<Number> &run, const Share &share, ptrdiff_t rows,
               ptrdiff_t place, const Number *hidden, const float *before, float *sums,
               Tiles &tiles) {
    const ptrdiff_t cells = sizes.cells, dim = sizes.dim;
    for (ptrdiff_t k = share.from(cells, TOGETHER); k < share.to(cells, TOGETHER); k += TOGETHER)
        for (ptrdiff_t row = 0; row < rows; row += MOST) {
            const ptrdiff_t some = std::min(rows - row, MOST), own = (place + row) * cells + k;
            for (ptrdiff_t panel = 0; panel < PANELS; panel++)
                multiply(some, hidden + row * dim, dim,
                         run.to_gates + (k + panel * REGISTER) * 4 * dim, dim,
                         sums + panel * some * PANEL, tiles);
            open_panels(some, sums, cells, run.cell_clip, run.bias + k, before + row * cells + k,
                        run.gates + (place + row) * 4 * cells + k, run.after + own,
                        run.opened + own);
        }
}

// All outputs of a thread.
template <typename Number>
void project_step(const Sizes &sizes, const Forward<Number> &run, const Share &share,
                  ptrdiff_t rows, ptrdiff_t place, float *sums, Tiles &tiles) {
    const ptrdiff_t cells = sizes.cells, dim = sizes.dim;
    for (ptrdiff_t k = share.from(dim, PANEL); k < share.to(dim, PANEL); k += PANEL)
        for (ptrdiff_t row = 0; row < rows; row += MOST) {
            const ptrdiff_t some = std::min(rows - row, MOST), own = (place + row) * dim + k;
            multiply(some, run.opened + (place + row) * cells, cells, run.projection + k * cells,
                     cells, sums, tiles);
            project_panel(some, std::min(PANEL, dim - k), sums, dim, run.projection_clip,
                          run.scale ? run.scale + (share.first + row) * dim + k : nullptr,
                          run.projected + own, run.outputs + own);
        }
}

// What sentences that end at a step leave, of a thread's own cells and outputs.
template <typename Number>
void leave(const Sizes &sizes, const Forward<Number> &run, const Share &share, ptrdiff_t row,
           ptrdiff_t place) {
    const ptrdiff_t cells = sizes.cells, dim = sizes.dim, cell = share.from(cells, TOGETHER);
    std::copy(run.after + place * cells + cell,
              run.after + place * cells + share.to(cells, TOGETHER),
              run.last_cell + row * cells + cell);
    for (ptrdiff_t k = share.from(dim, PANEL); k < share.to(dim, PANEL); k++)
        run.last_hidden[row * dim + k] = run.outputs[place * dim + k];
}

template <typename Number>
void read_share(const Sizes &sizes, const Forward<Number> &run, const Share &share, Tiles &tiles) {
    alignas(64) float sums[PANELS * MOST * PANEL];
    const Number *hidden = run.hidden + share.first * sizes.dim;
    const float *before = run.cell + share.first * sizes.cells;
    ptrdiff_t start = 0;
    for (ptrdiff_t step = 0; step < sizes.steps; step++) {
        const ptrdiff_t active = sizes.batch_sizes[step];
        const ptrdiff_t rows = std::min(active, share.end) - share.first;
        const ptrdiff_t place = start + share.first;
        if (rows <= 0) break;
        open_step(sizes, run, share, rows, place, hidden, before, sums, tiles);
        share.wait();
        project_step(sizes, run, share, rows, place, sums, tiles);
        const ptrdiff_t next = step + 1 < sizes.steps ? sizes.batch_sizes[step + 1] : 0;
        for (ptrdiff_t row = std::max(next - share.first, ptrdiff_t(0)); row < rows; row++)
            leave(sizes, run, share, share.first + row, place + row);
        share.wait();
        hidden = run.outputs + place * sizes.dim;
        before = run.after + place * sizes.cells;
        start += active;
    }
}

}  // namespace OF_INSTRUCTIONS
}  // namespace elmo_scratch

#endif
