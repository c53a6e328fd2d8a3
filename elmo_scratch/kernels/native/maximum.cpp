// The maximum over a word's windows, and where it was. char_convolution.py says the same with
// PyTorch's operations. Convolutions that convolution.h can't compute need it: those on other
// processors than x86-64, under autocast, with hooks, or with other sizes.

#include "numbers.h"

using namespace elmo_scratch;

namespace {

constexpr ptrdiff_t MIN_NUMBERS_OF_A_THREAD = 16384;

template <typename Number>
WITH_AVX512_CLONE void maximum(const Number *__restrict row, ptrdiff_t window, ptrdiff_t filters,
                               Number *__restrict highest, std::int32_t *__restrict place) {
    for (ptrdiff_t k = 0; k < filters; k++) {
        const Wide<Number> number = row[k], before = highest[k];
        // NaN compares as largest; the first NaN wins (as in `torch.max`).
        const bool is_higher = (number > before) | ((number != number) & (before == before));
        highest[k] = is_higher ? number : before;
        place[k] = is_higher ? std::int32_t(window) : place[k];
    }
}

template <typename Number>
WITH_AVX512_CLONE void maximum_backward(const Number *__restrict gradient,
                                        const std::int32_t *__restrict place, ptrdiff_t window,
                                        ptrdiff_t filters, Number *__restrict row) {
    for (ptrdiff_t k = 0; k < filters; k++) {
        const Wide<Number> number = gradient[k];
        row[k] = place[k] == std::int32_t(window) ? number : 0;
    }
}

template <typename Number>
void maxima(const Number *numbers, ptrdiff_t words, ptrdiff_t windows, ptrdiff_t filters,
            Number *highest, std::int32_t *places, int threads) {
    const int num_threads =
        threads_for(words * windows * filters, MIN_NUMBERS_OF_A_THREAD, words, threads);
#pragma omp parallel for num_threads(num_threads) if (num_threads > 1)
    for (ptrdiff_t word = 0; word < words; word++) {
        const Number *rows = numbers + word * windows * filters;
        std::memcpy(highest + word * filters, rows, filters * sizeof(Number));
        std::memset(places + word * filters, 0, filters * sizeof(std::int32_t));
        for (ptrdiff_t window = 1; window < windows; window++)
            maximum(rows + window * filters, window, filters, highest + word * filters,
                    places + word * filters);
    }
}

template <typename Number>
void maxima_backward(const Number *gradients, const std::int32_t *places, ptrdiff_t words,
                     ptrdiff_t windows, ptrdiff_t filters, Number *numbers, int threads) {
    const int num_threads =
        threads_for(words * windows * filters, MIN_NUMBERS_OF_A_THREAD, words, threads);
#pragma omp parallel for num_threads(num_threads) if (num_threads > 1)
    for (ptrdiff_t word = 0; word < words; word++)
        for (ptrdiff_t window = 0; window < windows; window++)
            maximum_backward(gradients + word * filters, places + word * filters, window, filters,
                             numbers + (word * windows + window) * filters);
}

}  // namespace

// char_convolution.py calls these with tensors of its own.
#define FUNCTIONS(NAME, NUMBER)                                                                    \
    void maxima_##NAME(const NUMBER *numbers, ptrdiff_t words, ptrdiff_t windows,                  \
                       ptrdiff_t filters, NUMBER *highest, std::int32_t *places, int threads) {    \
        maxima(numbers, words, windows, filters, highest, places, threads);                        \
    }                                                                                              \
    void maxima_backward_##NAME(const NUMBER *gradients, const std::int32_t *places,               \
                                ptrdiff_t words, ptrdiff_t windows, ptrdiff_t filters,             \
                                NUMBER *numbers, int threads) {                                    \
        maxima_backward(gradients, places, words, windows, filters, numbers, threads);             \
    }

extern "C" {

FUNCTIONS(float32, float)
FUNCTIONS(float64, double)
FUNCTIONS(bfloat16, Bfloat16)

}  // extern "C"
