// The pointwise part of an LSTM's step in one pass over its numbers: plain.py says the same with
// PyTorch's operations.

#include "numbers.h"

using namespace elmo_scratch;

namespace {

// So many cells are worth a thread of their own.
constexpr ptrdiff_t CELLS_OF_A_THREAD = 4096;

INLINE float fused(float a, float b, float c) { return __builtin_fmaf(a, b, c); }

// e^x, of x between -87 and 87: 2^n e^r with |r| <= ln(2) / 2, and e^r by the polynomial of expf in
// Moshier's Cephes library.
INLINE float exponential(float x) {
    x = x < -87.0f ? -87.0f : x;
    x = x > 87.0f ? 87.0f : x;
    // This addition rounds to a whole number, which its last bits then hold.
    const float shifted = fused(x, 1.44269504f, 12582912.0f);
    const float n = shifted - 12582912.0f;
    const float r = fused(n, 2.12194440e-4f, fused(n, -0.693359375f, x));
    float p = 1.9875691500e-4f;
    p = fused(p, r, 1.3981999507e-3f);
    p = fused(p, r, 8.3334519073e-3f);
    p = fused(p, r, 4.1665795894e-2f);
    p = fused(p, r, 1.6666665459e-1f);
    p = fused(p, r, 5.0000001201e-1f);
    p = fused(p, r * r, r) + 1.0f;
    return p * as_float((as_bits(shifted) << 23) + 0x3F800000u);
}

INLINE float sigmoid(float x) { return 1.0f / (1.0f + exponential(-x)); }

// Near zero, where the general formula loses digits, by the polynomial of that library's tanhf.
INLINE float hyperbolic_tangent(float x) {
    const float square = x * x;
    float p = -5.70498872745e-3f;
    p = fused(p, square, 2.06390887954e-2f);
    p = fused(p, square, -5.37397155531e-2f);
    p = fused(p, square, 1.33314422036e-1f);
    p = fused(p, square, -3.33332819422e-1f);
    const float near_zero = fused(p * square, x, x);
    const float elsewhere = 1.0f - 2.0f / (exponential(2.0f * x) + 1.0f);
    return square < 0.390625f ? near_zero : elsewhere;
}

// Where nothing is clipped, `clip` is no number, to which no other compares.
template <typename Number>
WIDER_TOO void open_row(const Number *__restrict gates, const float *__restrict before,
                        ptrdiff_t cells, float clip, float *__restrict after,
                        Number *__restrict output) {
    for (ptrdiff_t k = 0; k < cells; k++) {
        const float gate_i = gates[k], gate_j = gates[cells + k];
        const float gate_f = gates[2 * cells + k], gate_o = gates[3 * cells + k];
        const float entering = sigmoid(gate_i) * hyperbolic_tangent(gate_j);
        float c = fused(sigmoid(gate_f), before[k], entering);
        c = c < -clip ? -clip : c;
        c = c > clip ? clip : c;
        after[k] = c;
        output[k] = sigmoid(gate_o) * hyperbolic_tangent(c);
    }
}

template <typename Number>
WIDER_TOO void open_row_backward(const Number *__restrict gates, const float *__restrict before,
                                 const float *__restrict after, ptrdiff_t cells, float clip,
                                 const Number *__restrict d_output, float *__restrict d_cell,
                                 Number *__restrict d_gates) {
    for (ptrdiff_t k = 0; k < cells; k++) {
        const float gate_i = gates[k], gate_j = gates[cells + k];
        const float gate_f = gates[2 * cells + k], gate_o = gates[3 * cells + k];
        const float i = sigmoid(gate_i), j = hyperbolic_tangent(gate_j);
        const float f = sigmoid(gate_f), o = sigmoid(gate_o);
        const float c = after[k], t = hyperbolic_tangent(c), d_out = d_output[k];
        float d_c = fused(d_out * o, fused(-t, t, 1.0f), d_cell[k]);
        d_c = (c <= -clip) | (c >= clip) ? 0.0f : d_c;
        d_gates[k] = d_c * j * ((1.0f - i) * i);
        d_gates[cells + k] = d_c * i * fused(-j, j, 1.0f);
        d_gates[2 * cells + k] = d_c * before[k] * ((1.0f - f) * f);
        d_gates[3 * cells + k] = d_out * t * ((1.0f - o) * o);
        d_cell[k] = d_c * f;
    }
}

template <typename Number>
void open_gates(const Number *gates, const float *before, ptrdiff_t rows, ptrdiff_t cells,
                float clip, float *after, Number *output, int threads) {
    const int worth = threads_worth(rows * cells, CELLS_OF_A_THREAD, rows, threads);
#pragma omp parallel for num_threads(worth) if (worth > 1)
    for (ptrdiff_t row = 0; row < rows; row++)
        open_row(gates + 4 * row * cells, before + row * cells, cells, clip, after + row * cells,
                 output + row * cells);
}

template <typename Number>
void open_gates_backward(const Number *gates, const float *before, const float *after,
                         ptrdiff_t rows, ptrdiff_t cells, float clip, const Number *d_output,
                         float *d_cell, Number *d_gates, int threads) {
    const int worth = threads_worth(rows * cells, CELLS_OF_A_THREAD, rows, threads);
#pragma omp parallel for num_threads(worth) if (worth > 1)
    for (ptrdiff_t row = 0; row < rows; row++)
        open_row_backward(gates + 4 * row * cells, before + row * cells, after + row * cells, cells,
                          clip, d_output + row * cells, d_cell + row * cells,
                          d_gates + 4 * row * cells);
}

}  // namespace

// compiled.py calls these by their names, without a check of what they take.
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
