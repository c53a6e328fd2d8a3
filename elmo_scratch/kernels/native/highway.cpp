// A highway layer without its products, in one pass. highway.py says the same with PyTorch's
// operations.

#include "activations.h"

using namespace elmo_scratch;

namespace {

constexpr ptrdiff_t MIN_NUMBERS_OF_A_THREAD = 8192;

template <typename Number>
WITH_AVX512_CLONE void carry_row(const float *__restrict vectors,
                                 const Number *__restrict transformed,
                                 const Number *__restrict carried, ptrdiff_t dim,
                                 float *__restrict outputs) {
    for (ptrdiff_t k = 0; k < dim; k++) {
        const float gate = sigmoid(carried[k]), t = transformed[k];
        // NaN stays.
        const float positive = t < 0.0f ? 0.0f : t;
        outputs[k] = fma(gate, positive - vectors[k], vectors[k]);
    }
}

template <typename Number>
WITH_AVX512_CLONE void carry_row_backward(
    const float *__restrict vectors, const Number *__restrict transformed,
    const Number *__restrict carried, const float *__restrict d_outputs, ptrdiff_t dim,
    float *__restrict d_vectors, Number *__restrict d_transformed, Number *__restrict d_carried) {
    for (ptrdiff_t k = 0; k < dim; k++) {
        const float gate = sigmoid(carried[k]), t = transformed[k], d = d_outputs[k];
        const float positive = t < 0.0f ? 0.0f : t;
        const float opened = d * gate;
        d_vectors[k] = d - opened;
        d_transformed[k] = t <= 0.0f ? 0.0f : opened;
        d_carried[k] = opened * (1.0f - gate) * (positive - vectors[k]);
    }
}

template <typename Number>
void carry(const float *vectors, const Number *transformed, const Number *carried, ptrdiff_t rows,
           ptrdiff_t dim, float *outputs, int threads) {
    const int num_threads = threads_for(rows * dim, MIN_NUMBERS_OF_A_THREAD, rows, threads);
#pragma omp parallel for num_threads(num_threads) if (num_threads > 1)
    for (ptrdiff_t row = 0; row < rows; row++)
        carry_row(vectors + row * dim, transformed + row * dim, carried + row * dim, dim,
                  outputs + row * dim);
}

template <typename Number>
void carry_backward(const float *vectors, const Number *transformed, const Number *carried,
                    const float *d_outputs, ptrdiff_t rows, ptrdiff_t dim, float *d_vectors,
                    Number *d_transformed, Number *d_carried, int threads) {
    const int num_threads = threads_for(rows * dim, MIN_NUMBERS_OF_A_THREAD, rows, threads);
#pragma omp parallel for num_threads(num_threads) if (num_threads > 1)
    for (ptrdiff_t row = 0; row < rows; row++)
        carry_row_backward(vectors + row * dim, transformed + row * dim, carried + row * dim,
                           d_outputs + row * dim, dim, d_vectors + row * dim,
                           d_transformed + row * dim, d_carried + row * dim);
}

}  // namespace

// highway.py calls these, and checks what they are given.
#define FUNCTIONS(NAME, NUMBER)                                                                    \
    void carry_##NAME(const float *vectors, const NUMBER *transformed, const NUMBER *carried,      \
                      ptrdiff_t rows, ptrdiff_t dim, float *outputs, int threads) {                \
        carry(vectors, transformed, carried, rows, dim, outputs, threads);                         \
    }                                                                                              \
    void carry_backward_##NAME(const float *vectors, const NUMBER *transformed,                    \
                               const NUMBER *carried, const float *d_outputs, ptrdiff_t rows,      \
                               ptrdiff_t dim, float *d_vectors, NUMBER *d_transformed,             \
                               NUMBER *d_carried, int threads) {                                   \
        carry_backward(vectors, transformed, carried, d_outputs, rows, dim, d_vectors,             \
                       d_transformed, d_carried, threads);                                         \
    }

extern "C" {

FUNCTIONS(float32, float)
FUNCTIONS(bfloat16, Bfloat16)

}  // extern "C"
