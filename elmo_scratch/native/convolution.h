// Convolutions over the characters of words, and of each filter the maximum over a word's windows:
// character_convolution.py says the same with PyTorch's operations.

#pragma once

#include "panel_products.h"
#include "sixteen.h"

#ifdef HAS_SIMD_CODE

namespace elmo_scratch {
inline namespace OF_INSTRUCTIONS {

// Words whose windows pass while a panel of filters is in the nearest cache.
constexpr ptrdiff_t WORDS_AT_ONCE = 16;
// Windows that pass together.
constexpr ptrdiff_t WINDOWS_AT_ONCE = 32;
// Numbers behind a word's last that are multiplied with weights of zero.
constexpr ptrdiff_t BEHIND = 2 * REGISTER;
// Words whose characters' gradients are added up by turns.
constexpr ptrdiff_t WORDS_WRITTEN = 4;
// So many registers hold a filter's gradient at once.
constexpr ptrdiff_t HELD = INSTRUCTIONS == AVX2 ? 4 : 8;

// The shapes are those of compiled_convolution.py.
template <typename Number>
struct Words {
    const Number *characters;
    const std::int64_t *lengths;
    ptrdiff_t number, positions, dim, most_characters, filters;

    ptrdiff_t size() const { return positions * dim; }
    // Those that start in the word, and one behind it: all others lie in the padding, too.
    ptrdiff_t windows(ptrdiff_t word, ptrdiff_t width) const {
        return std::min(ptrdiff_t(lengths[word]) + 1, most_characters - width + 1);
    }
};

// Filters of one width, of which `first` others come before.
template <typename Number>
struct Filters {
    const Number *panels;
    const float *weights, *bias;
    float *d_weights;
    ptrdiff_t inputs, width, number, first;
};

// The maxima of a panel's filters over a word's windows, and where they are.
template <typename Number>
void panel_maxima(const Number *word, ptrdiff_t dim, ptrdiff_t windows, const Number *panel,
                  ptrdiff_t inputs, const float *bias, ptrdiff_t filters, float *maxima,
                  std::uint8_t *places, Tiles &tiles) {
    alignas(64) float sums[WINDOWS_AT_ONCE * PANEL];
    Sixteen highest[REGISTERS], place[REGISTERS];
    for (ptrdiff_t window = 0; window < windows; window++) {
        const ptrdiff_t row = window % WINDOWS_AT_ONCE;
        if (row == 0)
            multiply(std::min(windows - window, WINDOWS_AT_ONCE), word + window * dim, dim, panel,
                     inputs, sums, tiles);
        for (ptrdiff_t r = 0; r < REGISTERS; r++) {
            const Sixteen own = load(sums + row * PANEL + r * REGISTER);
            if (window == 0) {
                highest[r] = own;
                place[r] = all(0.0f);
                continue;
            }
            const Mask higher = is_higher(own, highest[r]);
            highest[r] = where(higher, own, highest[r]);
            place[r] = where(higher, all(float(window)), place[r]);
        }
    }
    for (ptrdiff_t r = 0; r < REGISTERS; r++) {
        const ptrdiff_t k = r * REGISTER;
        if (k >= filters) break;
        store_first(highest[r] + load_first(bias + k, filters - k), maxima + k, filters - k);
        store_first(place[r], places + k, filters - k);
    }
}

template <typename Number>
void words_maxima(const Words<Number> &words, const Filters<Number> *filters, ptrdiff_t kinds,
                  ptrdiff_t start, ptrdiff_t end, float *maxima, std::uint8_t *places,
                  Number *copies, Tiles &tiles) {
    const ptrdiff_t stride = words.size() + BEHIND;
    for (ptrdiff_t word = start; word < end; word++)
        std::copy_n(words.characters + word * words.size(), words.size(),
                    copies + (word - start) * stride);
    for (const Filters<Number> *own = filters; own < filters + kinds; own++)
        for (ptrdiff_t k = 0; k < own->number; k += PANEL)
            for (ptrdiff_t word = start; word < end; word++) {
                const ptrdiff_t place = word * words.filters + own->first + k;
                panel_maxima(copies + (word - start) * stride, words.dim,
                             words.windows(word, own->width), own->panels + k * own->inputs,
                             own->inputs, own->bias + k, own->number - k, maxima + place,
                             places + place, tiles);
            }
}

template <typename Number>
void maxima(const Words<Number> &words, const Filters<Number> *filters, ptrdiff_t kinds,
            float *highest, std::uint8_t *places, int threads, int has_tiles) {
    const ptrdiff_t groups = (words.number + WORDS_AT_ONCE - 1) / WORDS_AT_ONCE;
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
        Tiles tiles(has_tiles && sizeof(Number) == 2);
        std::vector<Number> copies(WORDS_AT_ONCE * (words.size() + BEHIND), Number{});
#pragma omp for schedule(dynamic)
        for (ptrdiff_t group = 0; group < groups; group++)
            words_maxima(words, filters, kinds, group * WORDS_AT_ONCE,
                         std::min((group + 1) * WORDS_AT_ONCE, words.number), highest, places,
                         copies.data(), tiles);
    }
}

// The gradients of 16 filters: those of their maxima, and where these were, by words.
struct Gradients {
    std::vector<float> numbers;
    std::vector<std::int32_t> places;
};

// Some numbers of a filter's gradient: of all windows in which it was highest.
template <int REGISTERS_HELD, typename Number>
void add_windows(const Words<Number> &words, const Gradients &gradients, ptrdiff_t filter,
                 ptrdiff_t from, float *d_weights) {
    Sixteen sums[REGISTERS_HELD];
    for (auto &sum : sums) sum = all(0.0f);
    for (ptrdiff_t word = 0; word < words.number; word++) {
        const ptrdiff_t k = word * REGISTER + filter;
        const Sixteen gradient = all(gradients.numbers[k]);
        const Number *window =
            words.characters + word * words.size() + gradients.places[k] * words.dim + from;
        for (int r = 0; r < REGISTERS_HELD; r++)
            sums[r] = fused(gradient, load(window + r * REGISTER), sums[r]);
    }
    for (int r = 0; r < REGISTERS_HELD; r++) store(sums[r], d_weights + from + r * REGISTER);
}

template <typename Number>
void add_windows(const Words<Number> &words, const Gradients &gradients, ptrdiff_t filter,
                 ptrdiff_t inputs, float *d_weights) {
    ptrdiff_t k = 0;
    for (; k + HELD * REGISTER <= inputs; k += HELD * REGISTER)
        add_windows<HELD>(words, gradients, filter, k, d_weights);
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

// Those of the weights and the bias of up to 16 filters.
template <typename Number>
void filters_backward(const Words<Number> &words, const Filters<Number> &filters, ptrdiff_t filter,
                      const float *d_maxima, const std::uint8_t *places, float *d_bias,
                      Gradients &gradients) {
    const ptrdiff_t some = std::min(filters.number - filter, REGISTER);
    const ptrdiff_t inputs = filters.width * words.dim;
    Sixteen sum = all(0.0f);
    for (ptrdiff_t word = 0; word < words.number; word++) {
        const ptrdiff_t place = word * words.filters + filters.first + filter;
        const Sixteen own = load_first(d_maxima + place, some);
        sum = sum + own;
        store(own, gradients.numbers.data() + word * REGISTER);
        std::int32_t *where = gradients.places.data() + word * REGISTER;
        if (some == REGISTER)
            std::copy_n(places + place, REGISTER, where);
        else
            std::copy_n(places + place, some, where);
    }
    store_first(sum, d_bias + filters.first + filter, some);
    for (ptrdiff_t k = 0; k < some; k++)
        add_windows(words, gradients, k, inputs, filters.d_weights + (filter + k) * inputs);
}

// Those of some words' characters. A filter adds to what the one before has just written, which a
// processor waits for: meanwhile it adds to other words.
template <typename Number>
void words_backward(const Words<Number> &words, const Filters<Number> *filters, ptrdiff_t kinds,
                    ptrdiff_t start, ptrdiff_t end, const float *d_maxima,
                    const std::uint8_t *places, float *d_characters) {
    std::fill(d_characters + start * words.size(), d_characters + end * words.size(), 0.0f);
    for (const Filters<Number> *own = filters; own < filters + kinds; own++) {
        const ptrdiff_t inputs = own->width * words.dim;
        for (ptrdiff_t filter = 0; filter < own->number; filter++) {
            const float *weights = own->weights + filter * inputs;
            for (ptrdiff_t word = start; word < end; word++) {
                const ptrdiff_t place = word * words.filters + own->first + filter;
                const Sixteen gradient = all(d_maxima[place]);
                float *window = d_characters + word * words.size() + places[place] * words.dim;
                for (ptrdiff_t k = 0; k < inputs; k += REGISTER)
                    store(fused(gradient, load(weights + k), load(window + k)), window + k);
            }
        }
    }
}

template <typename Number>
void maxima_backward(const Words<Number> &words, const Filters<Number> *filters, ptrdiff_t kinds,
                     const float *d_maxima, const std::uint8_t *places, float *d_characters,
                     float *d_bias, int threads) {
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
        Gradients gradients{std::vector<float>(words.number * REGISTER),
                            std::vector<std::int32_t>(words.number * REGISTER)};
        for (const Filters<Number> *own = filters; own < filters + kinds; own++)
#pragma omp for schedule(dynamic) nowait
            for (ptrdiff_t filter = 0; filter < own->number; filter += REGISTER)
                filters_backward(words, *own, filter, d_maxima, places, d_bias, gradients);
#pragma omp for schedule(dynamic)
        for (ptrdiff_t word = 0; word < words.number; word += WORDS_WRITTEN)
            words_backward(words, filters, kinds, word,
                           std::min(word + WORDS_WRITTEN, words.number), d_maxima, places,
                           d_characters);
    }
}

}  // namespace OF_INSTRUCTIONS
}  // namespace elmo_scratch

#endif
