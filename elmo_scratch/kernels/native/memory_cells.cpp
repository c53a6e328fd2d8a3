// The gates of one step of an LSTM in one pass, for any processor and any sizes.

#include "memory_cell.h"

using namespace elmo_scratch;

namespace {

constexpr ptrdiff_t MIN_CELLS_OF_A_THREAD = 4096;

template <typename Number>
INLINE Gates<float> gates_of(const Number *gates, ptrdiff_t cells, ptrdiff_t k) {
    return {gates[k], gates[cells + k], gates[2 * cells + k], gates[3 * cells + k]};
}

template <typename Number>
WITH_AVX512_CLONE void open_row(const Number *__restrict gates, const float *__restrict before,
                                ptrdiff_t cells, float clip, float *__restrict after,
                                Number *__restrict output) {
    for (ptrdiff_t k = 0; k < cells; k++) {
        const CellOutput<float> opened = open_cell(gates_of(gates, cells, k), before[k], clip);
        after[k] = opened.after;
        output[k] = opened.output;
    }
}

template <typename Number>
WITH_AVX512_CLONE void open_row_backward(const Number *__restrict gates,
                                         const float *__restrict before,
                                         const float *__restrict after, ptrdiff_t cells, float clip,
                                         const Number *__restrict d_output,
                                         float *__restrict d_cell, Number *__restrict d_gates) {
    for (ptrdiff_t k = 0; k < cells; k++) {
        float d_c = d_cell[k];
        const Gates<float> d = open_cell_backward<float>(gates_of(gates, cells, k), before[k],
                                                         after[k], clip, d_output[k], d_c);
        d_gates[k] = d.i;
        d_gates[cells + k] = d.j;
        d_gates[2 * cells + k] = d.f;
        d_gates[3 * cells + k] = d.o;
        d_cell[k] = d_c;
    }
}

template <typename Number>
void open_gates(const Number *gates, const float *before, ptrdiff_t rows, ptrdiff_t cells,
                float clip, float *after, Number *output, int threads) {
    const int num_threads = threads_for(rows * cells, MIN_CELLS_OF_A_THREAD, rows, threads);
#pragma omp parallel for num_threads(num_threads) if (num_threads > 1)
    for (ptrdiff_t row = 0; row < rows; row++)
        open_row(gates + 4 * row * cells, before + row * cells, cells, clip, after + row * cells,
                 output + row * cells);
}

template <typename Number>
void open_gates_backward(const Number *gates, const float *before, const float *after,
                         ptrdiff_t rows, ptrdiff_t cells, float clip, const Number *d_output,
                         float *d_cell, Number *d_gates, int threads) {
    const int num_threads = threads_for(rows * cells, MIN_CELLS_OF_A_THREAD, rows, threads);
#pragma omp parallel for num_threads(num_threads) if (num_threads > 1)
    for (ptrdiff_t row = 0; row < rows; row++)
        open_row_backward(gates + 4 * row * cells, before + row * cells, after + row * cells, cells,
                          clip, d_output + row * cells, d_cell + row * cells,
                          d_gates + 4 * row * cells);
}

}  // namespace

// cells.py calls these, and checks what they are given.
#define FUNCTIONS(NAME, NUMBER)                                                                    \
    void open_gates_##NAME(const NUMBER *gates, const float *before, ptrdiff_t rows,               \
                           ptrdiff_t cells, float clip, float *after, NUMBER *output,              \
                           int threads) {                                                          \
        open_gates(gates, before, rows, cells, clip, after, output, threads);                      \
    }                                                                                              \
    void open_gates_backward_##NAME(const NUMBER *gates, const float *before, const float *after,  \
                                    ptrdiff_t rows, ptrdiff_t cells, float clip,                   \
                                    const NUMBER *d_output, float *d_cell, NUMBER *d_gates,        \
                                    int threads) {                                                 \
        open_gates_backward(gates, before, after, rows, cells, clip, d_output, d_cell, d_gates,    \
                            threads);                                                              \
    }

extern "C" {

FUNCTIONS(float32, float)
FUNCTIONS(bfloat16, Bfloat16)

}  // extern "C"
