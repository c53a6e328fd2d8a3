// Convolutions over the characters of words, and the maximum of each filter over a word's windows.
// char_convolution.py says the same with PyTorch's operations.

#pragma once

#include "panel_products.h"
#include "structs.h"

#ifdef HAS_SIMD_CODE

namespace elmo_scratch {
inline namespace OF_INSTRUCTIONS {

// Words that pass while a panel of filters is in the L1 cache.
constexpr ptrdiff_t WORDS_AT_ONCE = 16;
// Windows of a word that are multiplied together.
constexpr ptrdiff_t WINDOWS_AT_ONCE = 32;
// A product may read so many numbers behind a word's last, and multiplies them by zero.
constexpr ptrdiff_t NUMBERS_BEHIND = 2 * REGISTER;
// Words whose characters get their gradients in turn.
constexpr ptrdiff_t WORDS_IN_TURN = 4;
// Registers that hold part of a filter's gradient.
constexpr ptrdiff_t MAX_REGISTERS = INSTRUCTIONS == AVX2 ? 4 : 8;

template <typename Number>
using Words = ConvolutionWords<Number>;

template <typename Number>
using Filters = ConvolutionFilters<Number>;

// How many numbers a word has.
template <typename Number>
ptrdiff_t word_size(const Words<Number> &words) {
    return words.positions * words.dim;
}

// How many windows of a word are computed: those that start in the word, and one that starts behind
// it. All later ones lie in the padding, as that one does.
template <typename Number>
ptrdiff_t num_windows(const Words<Number> &words, ptrdiff_t word, ptrdiff_t width) {
    return std::min(ptrdiff_t(words.lengths[word]) + 1, words.most_characters - width + 1);
}

// The maxima of a panel's filters over a word's windows, and the windows where they are.
template <typename Number>
void panel_maxima(const Number *word, ptrdiff_t dim, ptrdiff_t windows, const Number *panel,
                  ptrdiff_t inputs, const float *bias, ptrdiff_t filters, float *maxima,
                  std::uint8_t *places, Tiles &tiles) {
    alignas(64) float sums[WINDOWS_AT_ONCE * PANEL];
    Vec16f highest[REGISTERS], place[REGISTERS];
    for (ptrdiff_t window = 0; window < windows; window++) {
        const ptrdiff_t row = window % WINDOWS_AT_ONCE;
        if (row == 0)
            multiply(std::min(windows - window, WINDOWS_AT_ONCE), word + window * dim, dim, panel,
                     inputs, sums, tiles, /*are_cached=*/true);
        for (ptrdiff_t r = 0; r < REGISTERS; r++) {
            const Vec16f own = load(sums + row * PANEL + r * REGISTER);
            if (window == 0) {
                highest[r] = own;
                place[r] = broadcast(0.0f);
                continue;
            }
            const Mask is_new = is_new_max(own, highest[r]);
            highest[r] = select(is_new, own, highest[r]);
            place[r] = select(is_new, broadcast(float(window)), place[r]);
        }
    }
    for (ptrdiff_t r = 0; r < REGISTERS; r++) {
        const ptrdiff_t k = r * REGISTER;
        if (k >= filters) break;
        store_first(highest[r] + load_first(bias + k, filters - k), maxima + k, filters - k);
        store_first(place[r], places + k, filters - k);
    }
}

// The maxima of all filters over the words from `start` to `end`.
template <typename Number>
void group_maxima(const Words<Number> &words, const Filters<Number> *filters, ptrdiff_t num_widths,
                  ptrdiff_t start, ptrdiff_t end, float *maxima, std::uint8_t *places,
                  Number *copies, Tiles &tiles) {
    const ptrdiff_t size = word_size(words), stride = size + NUMBERS_BEHIND;
    for (ptrdiff_t word = start; word < end; word++)
        std::copy_n(words.characters + word * size, size, copies + (word - start) * stride);
    for (const Filters<Number> *own = filters; own < filters + num_widths; own++)
        for (ptrdiff_t k = 0; k < own->number; k += PANEL)
            for (ptrdiff_t word = start; word < end; word++) {
                const ptrdiff_t place = word * words.filters + own->first + k;
                panel_maxima(copies + (word - start) * stride, words.dim,
                             num_windows(words, word, own->width), own->panels + k * own->inputs,
                             own->inputs, own->bias + k, own->number - k, maxima + place,
                             places + place, tiles);
            }
}

template <typename Number>
void convolved_maxima(const Words<Number> &words, const Filters<Number> *filters,
                      ptrdiff_t num_widths, float *maxima, std::uint8_t *places, int threads,
                      int has_tiles) {
    const ptrdiff_t groups = (words.number + WORDS_AT_ONCE - 1) / WORDS_AT_ONCE;
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
        Tiles tiles(has_tiles && sizeof(Number) == 2);
        std::vector<Number> copies(WORDS_AT_ONCE * (word_size(words) + NUMBERS_BEHIND), Number{});
#pragma omp for schedule(dynamic)
        for (ptrdiff_t group = 0; group < groups; group++)
            group_maxima(words, filters, num_widths, group * WORDS_AT_ONCE,
                         std::min((group + 1) * WORDS_AT_ONCE, words.number), maxima, places,
                         copies.data(), tiles);
    }
}

// The gradients of 16 filters' maxima, and the windows where these were, for each word.
struct MaximaGradients {
    std::vector<float> numbers;
    std::vector<std::int32_t> places;
};

// Adds up a part of a filter's gradient, which holds `NUM` registers, from the windows where the
// filter had its maxima.
template <int NUM, typename Number>
void add_windows(const Words<Number> &words, const MaximaGradients &gradients, ptrdiff_t filter,
                 ptrdiff_t from, float *d_weights) {
    Vec16f sums[NUM];
    for (auto &sum : sums) sum = broadcast(0.0f);
    for (ptrdiff_t word = 0; word < words.number; word++) {
        const ptrdiff_t k = word * REGISTER + filter;
        const Vec16f gradient = broadcast(gradients.numbers[k]);
        const Number *window =
            words.characters + word * word_size(words) + gradients.places[k] * words.dim + from;
        for (int r = 0; r < NUM; r++) sums[r] = fma(gradient, load(window + r * REGISTER), sums[r]);
    }
    for (int r = 0; r < NUM; r++) store(sums[r], d_weights + from + r * REGISTER);
}

template <typename Number>
void add_windows(const Words<Number> &words, const MaximaGradients &gradients, ptrdiff_t filter,
                 ptrdiff_t inputs, float *d_weights) {
    ptrdiff_t k = 0;
    for (; k + MAX_REGISTERS * REGISTER <= inputs; k += MAX_REGISTERS * REGISTER)
        add_windows<MAX_REGISTERS>(words, gradients, filter, k, d_weights);
    switch ((inputs - k) / REGISTER) {
        case 7:
            return add_windows<7>(words, gradients, filter, k, d_weights);
        case 6:
            return add_windows<6>(words, gradients, filter, k, d_weights);
        case 5:
            return add_windows<5>(words, gradients, filter, k, d_weights);
        case 4:
            return add_windows<4>(words, gradients, filter, k, d_weights);
        case 3:
            return add_windows<3>(words, gradients, filter, k, d_weights);
        case 2:
            return add_windows<2>(words, gradients, filter, k, d_weights);
        case 1:
            return add_windows<1>(words, gradients, filter, k, d_weights);
    }
}

// Computes the gradients of the weights and the bias of up to 16 filters.
template <typename Number>
void filters_backward(const Words<Number> &words, const Filters<Number> &filters, ptrdiff_t filter,
                      const float *d_maxima, const std::uint8_t *places, float *d_bias,
                      MaximaGradients &gradients) {
    const ptrdiff_t some = std::min(filters.number - filter, REGISTER);
    const ptrdiff_t inputs = filters.width * words.dim;
    Vec16f sum = broadcast(0.0f);
    for (ptrdiff_t word = 0; word < words.number; word++) {
        const ptrdiff_t place = word * words.filters + filters.first + filter;
        const Vec16f own = load_first(d_maxima + place, some);
        sum = sum + own;
        store(own, gradients.numbers.data() + word * REGISTER);
        std::int32_t *own_places = gradients.places.data() + word * REGISTER;
        if (some == REGISTER)
            std::copy_n(places + place, REGISTER, own_places);
        else
            std::copy_n(places + place, some, own_places);
    }
    store_first(sum, d_bias + filters.first + filter, some);
    for (ptrdiff_t k = 0; k < some; k++)
        add_windows(words, gradients, k, inputs, filters.d_weights + (filter + k) * inputs);
}

// Computes the gradients of some words' characters. A filter adds to what the one before it has
// just written, and a processor would wait for that: filters therefore add to several words in
// turn.
template <typename Number>
void words_backward(const Words<Number> &words, const Filters<Number> *filters,
                    ptrdiff_t num_widths, ptrdiff_t start, ptrdiff_t end, const float *d_maxima,
                    const std::uint8_t *places, float *d_characters) {
    const ptrdiff_t size = word_size(words);
    std::fill(d_characters + start * size, d_characters + end * size, 0.0f);
    for (const Filters<Number> *own = filters; own < filters + num_widths; own++) {
        const ptrdiff_t inputs = own->width * words.dim;
        for (ptrdiff_t filter = 0; filter < own->number; filter++) {
            const float *weights = own->weights + filter * inputs;
            for (ptrdiff_t word = start; word < end; word++) {
                const ptrdiff_t place = word * words.filters + own->first + filter;
                const Vec16f gradient = broadcast(d_maxima[place]);
                float *window = d_characters + word * size + places[place] * words.dim;
                for (ptrdiff_t k = 0; k < inputs; k += REGISTER)
                    store(fma(gradient, load(weights + k), load(window + k)), window + k);
            }
        }
    }
}

template <typename Number>
void convolved_maxima_backward(const Words<Number> &words, const Filters<Number> *filters,
                               ptrdiff_t num_widths, const float *d_maxima,
                               const std::uint8_t *places, float *d_characters, float *d_bias,
                               int threads) {
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
        MaximaGradients gradients{std::vector<float>(words.number * REGISTER),
                                  std::vector<std::int32_t>(words.number * REGISTER)};
        for (const Filters<Number> *own = filters; own < filters + num_widths; own++)
#pragma omp for schedule(dynamic) nowait
            for (ptrdiff_t filter = 0; filter < own->number; filter += REGISTER)
                filters_backward(words, *own, filter, d_maxima, places, d_bias, gradients);
#pragma omp for schedule(dynamic)
        for (ptrdiff_t word = 0; word < words.number; word += WORDS_IN_TURN)
            words_backward(words, filters, num_widths, word,
                           std::min(word + WORDS_IN_TURN, words.number), d_maxima, places,
                           d_characters);
    }
}

}  // namespace OF_INSTRUCTIONS
}  // namespace elmo_scratch

#endif
