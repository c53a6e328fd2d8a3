// The way back through the steps of an LSTM: steps_backward.py says the same with PyTorch's
// operations.

#pragma once

#include "lstm_run.h"
#include "wide_memory_cell.h"

#ifdef HAS_SIMD_CODE

namespace elmo_scratch {
inline namespace OF_INSTRUCTIONS {

// What a run's way back reads and writes, with the names and shapes of compiled_run.py.
template <typename Number>
struct Backward {
    const Number *from_gates, *projection;  // panels
    const Number *gates;
    const float *scale, *cell, *after;
    const Number *projected;
    const float *d_outputs;
    Number *d_gates, *d_projected;
    float *d_hidden, *d_cell;
    float cell_clip, projection_clip;
};

// The gradients of a thread's own outputs, before they were clipped.
template <typename Number>
void unproject_step(const Sizes &sizes, const Backward<Number> &run, const Share &share,
                    ptrdiff_t rows, ptrdiff_t place, float clip) {
    const ptrdiff_t dim = sizes.dim;
    for (ptrdiff_t row = 0; row < rows; row++) {
        const ptrdiff_t own = (place + row) * dim, sentence = (share.first + row) * dim;
        for (ptrdiff_t k = share.from(dim, PANEL); k < share.to(dim, PANEL); k++) {
            float d = run.d_hidden[sentence + k] + run.d_outputs[own + k];
            if (run.scale) d *= run.scale[sentence + k];
            const float output = run.projected[own + k];
            run.d_projected[own + k] = (output <= -clip) | (output >= clip) ? 0.0f : d;
        }
    }
}

template <typename Number>
void open_panel_backward(ptrdiff_t rows, ptrdiff_t own, const float *sums, ptrdiff_t cells,
                         float clip, const Number *gates, const float *before, const float *after,
                         float *d_cell, Number *d_gates) {
    const Sixteen bound = all(clip);
    for (ptrdiff_t row = 0; row < rows; row++) {
        for (ptrdiff_t gate = 0; gate < 4; gate++) {
            fetch(gates + gate * cells + PANEL, PANEL);
            fetch(d_gates + gate * cells + PANEL, PANEL);
        }
        fetch(before + PANEL, PANEL);
        fetch(after + PANEL, PANEL);
        for (ptrdiff_t k = 0; k < own; k += REGISTER) {
            const WideGates opened = {load(gates + k), load(gates + cells + k),
                                      load(gates + 2 * cells + k), load(gates + 3 * cells + k)};
            Sixteen d_c = load(d_cell + k);
            const WideGates d = open_cells_backward(opened, load(before + k), load(after + k),
                                                    bound, load(sums + k), d_c);
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

// Those of the gates of a thread's own cells.
template <typename Number>
void open_step_backward(const Sizes &sizes, const Backward<Number> &run, const Share &share,
                        ptrdiff_t rows, ptrdiff_t place, const float *before, float *sums,
                        Tiles &tiles) {
    const ptrdiff_t cells = sizes.cells, dim = sizes.dim;
    for (ptrdiff_t k = share.from(cells, PANEL); k < share.to(cells, PANEL); k += PANEL)
        for (ptrdiff_t row = 0; row < rows; row += MOST) {
            const ptrdiff_t some = std::min(rows - row, MOST);
            const ptrdiff_t gates = (place + row) * 4 * cells + k;
            multiply(some, run.d_projected + (place + row) * dim, dim, run.projection + k * dim,
                     dim, sums, tiles);
            open_panel_backward(some, std::min(PANEL, cells - k), sums, cells, run.cell_clip,
                                run.gates + gates, before + row * cells + k,
                                run.after + (place + row) * cells + k,
                                run.d_cell + (share.first + row) * cells + k, run.d_gates + gates);
        }
}

// Those of a thread's own numbers of what the step began with.
template <typename Number>
void begin_step_backward(const Sizes &sizes, const Backward<Number> &run, const Share &share,
                         ptrdiff_t rows, ptrdiff_t place, float *sums, Tiles &tiles) {
    const ptrdiff_t gates = 4 * sizes.cells, dim = sizes.dim;
    for (ptrdiff_t k = share.from(dim, PANEL); k < share.to(dim, PANEL); k += PANEL)
        for (ptrdiff_t row = 0; row < rows; row += MOST) {
            const ptrdiff_t some = std::min(rows - row, MOST);
            multiply(some, run.d_gates + (place + row) * gates, gates, run.from_gates + k * gates,
                     gates, sums, tiles);
            for (ptrdiff_t r = 0; r < some; r++)
                std::copy_n(sums + r * PANEL, std::min(PANEL, dim - k),
                            run.d_hidden + (share.first + row + r) * dim + k);
        }
}

template <typename Number>
void read_share_backward(const Sizes &sizes, const Backward<Number> &run, const Share &share,
                         Tiles &tiles) {
    alignas(64) float sums[MOST * PANEL];
    Number bound;
    bound = run.projection_clip;
    ptrdiff_t start = 0;
    for (ptrdiff_t step = 0; step < sizes.steps; step++) start += sizes.batch_sizes[step];
    for (ptrdiff_t step = sizes.steps - 1; step >= 0; step--) {
        start -= sizes.batch_sizes[step];
        const ptrdiff_t rows = std::min(sizes.batch_sizes[step], share.end) - share.first;
        const ptrdiff_t place = start + share.first;
        if (rows <= 0) continue;
        const float *before = step > 0
                                  ? run.after + (place - sizes.batch_sizes[step - 1]) * sizes.cells
                                  : run.cell + share.first * sizes.cells;
        unproject_step(sizes, run, share, rows, place, float(bound));
        share.wait();
        open_step_backward(sizes, run, share, rows, place, before, sums, tiles);
        share.wait();
        begin_step_backward(sizes, run, share, rows, place, sums, tiles);
    }
}

}  // namespace OF_INSTRUCTIONS
}  // namespace elmo_scratch

#endif
