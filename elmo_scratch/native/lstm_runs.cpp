// All steps of an LSTM, by each thread for its own sentences, so that none waits for another:
// steps.py and steps_backward.py say the same with PyTorch's operations.

#include <algorithm>
#include <vector>

#include "memory_cell.h"
#include "panel_products.h"

#ifdef HAS_WIDE_CODE

using namespace elmo_scratch;

namespace {

// Sentences that a thread reads together.
constexpr ptrdiff_t FEWEST = 16, MOST = 64;
// So many cells ahead the steps' numbers are fetched.
constexpr ptrdiff_t AHEAD = 2 * REGISTER;

// The sizes of a run: positions are laid step by step, `batch_sizes` of each.
struct Sizes {
    const ptrdiff_t *batch_sizes;
    ptrdiff_t steps, batch, cells, dim;

    // How many sentences are read together, so that threads are done at about the same time.
    ptrdiff_t group(int threads) const {
        const bool is_ragged = steps > 0 && batch_sizes[steps - 1] < batch;
        const ptrdiff_t even = batch / (threads * (is_ragged ? 2 : 1));
        return std::clamp((even + FEWEST - 1) / FEWEST * FEWEST, FEWEST, MOST);
    }
};

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

// The rows of a panel lie too far apart for the processor to guess what is needed next.
template <typename Number>
INLINE void fetch(const Number *numbers, ptrdiff_t count) {
    constexpr ptrdiff_t line = 64 / sizeof(Number);
    for (ptrdiff_t k = 0; k < count; k += line) __builtin_prefetch(numbers + k);
}

template <typename Number>
WIDE void open_panel(ptrdiff_t rows, const float *__restrict sums, ptrdiff_t cells, float clip,
                     const float *__restrict bias, const float *__restrict before,
                     Number *__restrict gates, float *__restrict after, Number *__restrict opened) {
    for (ptrdiff_t row = 0; row < rows; row++) {
        float own[PANEL];
        Number *place = gates + row * 4 * cells;
        for (ptrdiff_t gate = 0; gate < 4; gate++) fetch(place + gate * cells + AHEAD, REGISTER);
        fetch(before + row * cells + AHEAD, REGISTER);
        fetch(after + row * cells + AHEAD, REGISTER);
        fetch(opened + row * cells + AHEAD, REGISTER);
        for (ptrdiff_t gate = 0; gate < 4; gate++)
            for (ptrdiff_t k = 0; k < REGISTER; k++) {
                Number rounded;
                rounded = place[gate * cells + k] + bias[gate * cells + k] +
                          sums[row * PANEL + gate * REGISTER + k];
                place[gate * cells + k] = rounded;
                own[gate * REGISTER + k] = rounded;
            }
        for (ptrdiff_t k = 0; k < REGISTER; k++) {
            const Gates all = {own[k], own[REGISTER + k], own[2 * REGISTER + k],
                               own[3 * REGISTER + k]};
            const OpenedCell cell = open_cell(all, before[row * cells + k], clip);
            after[row * cells + k] = cell.after;
            opened[row * cells + k] = cell.output;
        }
    }
}

template <typename Number>
WIDE void project_panel(ptrdiff_t rows, const float *sums, ptrdiff_t dim, float clip,
                        const float *scale, Number *projected, Number *outputs) {
    for (ptrdiff_t row = 0; row < rows; row++)
        for (ptrdiff_t k = 0; k < PANEL; k++) {
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

template <typename Number>
WIDE void read_group(const Sizes &sizes, const Forward<Number> &run, ptrdiff_t first, ptrdiff_t end,
                     Tiles &tiles) {
    const ptrdiff_t cells = sizes.cells, dim = sizes.dim;
    constexpr ptrdiff_t depth = NUMBERS_OF_A_LANE<Number>;
    alignas(64) float sums[MOST * PANEL];
    const Number *hidden = run.hidden + first * dim;
    const float *before = run.cell + first * cells;
    ptrdiff_t start = 0;
    for (ptrdiff_t step = 0; step < sizes.steps; step++) {
        const ptrdiff_t active = sizes.batch_sizes[step];
        const ptrdiff_t rows = std::min(active, end) - first, place = start + first;
        if (rows <= 0) break;
        float *after = run.after + place * cells;
        Number *opened = run.opened + place * cells, *outputs = run.outputs + place * dim;
        for (ptrdiff_t k = 0; k < cells; k += REGISTER) {
            multiply(rows, hidden, dim, run.to_gates + k * 4 * dim, dim / depth, sums, tiles);
            open_panel(rows, sums, cells, run.cell_clip, run.bias + k, before + k,
                       run.gates + place * 4 * cells + k, after + k, opened + k);
        }
        for (ptrdiff_t k = 0; k < dim; k += PANEL) {
            multiply(rows, opened, cells, run.projection + k * cells, cells / depth, sums, tiles);
            project_panel(rows, sums, dim, run.projection_clip,
                          run.scale ? run.scale + first * dim + k : nullptr,
                          run.projected + place * dim + k, outputs + k);
        }
        const ptrdiff_t next = step + 1 < sizes.steps ? sizes.batch_sizes[step + 1] : 0;
        for (ptrdiff_t row = std::max(next - first, ptrdiff_t(0)); row < rows; row++) {
            std::copy_n(after + row * cells, cells, run.last_cell + (first + row) * cells);
            for (ptrdiff_t k = 0; k < dim; k++)
                run.last_hidden[(first + row) * dim + k] = outputs[row * dim + k];
        }
        hidden = outputs;
        before = after;
        start += active;
    }
}

template <typename Number>
WIDE void unproject_rows(ptrdiff_t rows, ptrdiff_t dim, float clip, const float *scale,
                         const Number *projected, const float *d_outputs, const float *d_hidden,
                         Number *__restrict d_projected) {
    for (ptrdiff_t k = 0; k < rows * dim; k++) {
        float d = d_hidden[k] + d_outputs[k];
        if (scale) d *= scale[k];
        const float output = projected[k];
        d_projected[k] = (output <= -clip) | (output >= clip) ? 0.0f : d;
    }
}

template <typename Number>
WIDE void open_panel_backward(ptrdiff_t rows, const float *__restrict sums, ptrdiff_t cells,
                              float clip, const Number *__restrict gates,
                              const float *__restrict before, const float *__restrict after,
                              float *__restrict d_cell, Number *__restrict d_gates) {
    for (ptrdiff_t row = 0; row < rows; row++) {
        const Number *own = gates + row * 4 * cells;
        Number *d_own = d_gates + row * 4 * cells;
        for (ptrdiff_t gate = 0; gate < 4; gate++) {
            fetch(own + gate * cells + PANEL, PANEL);
            fetch(d_own + gate * cells + PANEL, PANEL);
        }
        fetch(before + row * cells + PANEL, PANEL);
        fetch(after + row * cells + PANEL, PANEL);
        for (ptrdiff_t k = 0; k < PANEL; k++) {
            const Gates all = {own[k], own[cells + k], own[2 * cells + k], own[3 * cells + k]};
            float d_c = d_cell[row * cells + k];
            const Gates d = open_cell_backward(all, before[row * cells + k], after[row * cells + k],
                                               clip, sums[row * PANEL + k], d_c);
            d_own[k] = d.i;
            d_own[cells + k] = d.j;
            d_own[2 * cells + k] = d.f;
            d_own[3 * cells + k] = d.o;
            d_cell[row * cells + k] = d_c;
        }
    }
}

template <typename Number>
WIDE void read_group_backward(const Sizes &sizes, const Backward<Number> &run, ptrdiff_t first,
                              ptrdiff_t end, Tiles &tiles) {
    const ptrdiff_t cells = sizes.cells, dim = sizes.dim;
    constexpr ptrdiff_t depth = NUMBERS_OF_A_LANE<Number>;
    alignas(64) float sums[MOST * PANEL];
    Number bound;
    bound = run.projection_clip;
    ptrdiff_t start = 0;
    for (ptrdiff_t step = 0; step < sizes.steps; step++) start += sizes.batch_sizes[step];
    for (ptrdiff_t step = sizes.steps - 1; step >= 0; step--) {
        start -= sizes.batch_sizes[step];
        const ptrdiff_t rows = std::min(sizes.batch_sizes[step], end) - first;
        const ptrdiff_t place = start + first;
        if (rows <= 0) continue;
        float *d_hidden = run.d_hidden + first * dim, *d_cell = run.d_cell + first * cells;
        Number *d_projected = run.d_projected + place * dim;
        Number *d_gates = run.d_gates + place * 4 * cells;
        const float *before =
            step > 0 ? run.after + (start - sizes.batch_sizes[step - 1] + first) * cells
                     : run.cell + first * cells;
        unproject_rows(rows, dim, float(bound), run.scale ? run.scale + first * dim : nullptr,
                       run.projected + place * dim, run.d_outputs + place * dim, d_hidden,
                       d_projected);
        for (ptrdiff_t k = 0; k < cells; k += PANEL) {
            multiply(rows, d_projected, dim, run.projection + k * dim, dim / depth, sums, tiles);
            open_panel_backward(rows, sums, cells, run.cell_clip, run.gates + place * 4 * cells + k,
                                before + k, run.after + place * cells + k, d_cell + k, d_gates + k);
        }
        for (ptrdiff_t k = 0; k < dim; k += PANEL) {
            multiply(rows, d_gates, 4 * cells, run.from_gates + k * 4 * cells, 4 * cells / depth,
                     sums, tiles);
            for (ptrdiff_t row = 0; row < rows; row++)
                std::copy_n(sums + row * PANEL, PANEL, d_hidden + row * dim + k);
        }
    }
}

template <typename Number, typename Run>
void read_groups(const Sizes &sizes, const Run &run,
                 void (*read)(const Sizes &, const Run &, ptrdiff_t, ptrdiff_t, Tiles &),
                 int threads, int has_tiles) {
    const ptrdiff_t group = sizes.group(threads), groups = (sizes.batch + group - 1) / group;
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
        Tiles tiles(has_tiles && sizeof(Number) == 2);
        // The longest sentences come first.
#pragma omp for schedule(dynamic)
        for (ptrdiff_t number = 0; number < groups; number++)
            read(sizes, run, number * group, std::min((number + 1) * group, sizes.batch), tiles);
    }
}

template <typename Number>
void pack_weights(const Number *weights, ptrdiff_t rows, ptrdiff_t columns, int of_gates,
                  Number *packed, Number *packed_backward, int threads) {
    constexpr ptrdiff_t depth = NUMBERS_OF_A_LANE<Number>;
    // A panel of gates has all four of 16 memory cells.
    const Columns own = of_gates ? Columns{REGISTER, rows / 4} : Columns{PANEL, REGISTER};
    pack(weights, columns, 1, rows / PANEL, columns / depth, own, packed, threads);
    pack(weights, 1, columns, columns / PANEL, rows / depth, {PANEL, REGISTER}, packed_backward,
         threads);
}

}  // namespace

// compiled_run.py calls these by their names, and checks what they are given.
#define FUNCTIONS(NAME, NUMBER)                                                                    \
    void pack_weights_##NAME(const NUMBER *weights, ptrdiff_t rows, ptrdiff_t columns,             \
                             int of_gates, NUMBER *packed, NUMBER *packed_backward, int threads) { \
        pack_weights(weights, rows, columns, of_gates, packed, packed_backward, threads);          \
    }                                                                                              \
    void read_forward_##NAME(const Sizes *sizes, const Forward<NUMBER> *run, int threads,          \
                             int has_tiles) {                                                      \
        read_groups<NUMBER>(*sizes, *run, read_group<NUMBER>, threads, has_tiles);                 \
    }                                                                                              \
    void read_backward_##NAME(const Sizes *sizes, const Backward<NUMBER> *run, int threads,        \
                              int has_tiles) {                                                     \
        read_groups<NUMBER>(*sizes, *run, read_group_backward<NUMBER>, threads, has_tiles);        \
    }

extern "C" {

FUNCTIONS(float32, float)
FUNCTIONS(bfloat16, Bfloat16)

}  // extern "C"

#endif
