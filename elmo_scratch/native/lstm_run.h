// How the steps of an LSTM are shared among threads.

#pragma once

#include "panel_products.h"
#include "sixteen.h"

#ifdef HAS_SIMD_CODE

namespace elmo_scratch {
inline namespace OF_INSTRUCTIONS {

// Sentences that a thread reads together.
constexpr ptrdiff_t FEWEST = 8, MOST = 64;
// So many bytes of weights stay near a processor core, for the most part, from one step to the
// next.
constexpr ptrdiff_t NEAR_BYTES = 1 << 22;

// The rows of a panel lie too far apart for the processor to guess what is needed next.
template <typename Number>
INLINE void fetch(const Number *numbers, ptrdiff_t count) {
    constexpr ptrdiff_t line = 64 / sizeof(Number);
    for (ptrdiff_t k = 0; k < count; k += line) __builtin_prefetch(numbers + k);
}

// The sizes of a run: positions are laid step by step, `batch_sizes` of each.
struct Sizes {
    const ptrdiff_t *batch_sizes;
    ptrdiff_t steps, batch, cells, dim;

    // How many sentences are read together, so that threads are done at about the same time.
    ptrdiff_t group(int threads) const {
        const bool is_ragged = steps > 0 && batch_sizes[steps - 1] < batch;
        const ptrdiff_t parts = threads * (is_ragged ? 2 : 1);
        const ptrdiff_t groups = (batch + parts * MOST - 1) / (parts * MOST) * parts;
        return std::clamp((batch + groups - 1) / groups, FEWEST, MOST);
    }
};

// Some of the sentences, and a thread among those that read them: each of these makes some of the
// numbers of every step.
struct Share {
    ptrdiff_t first, end;
    ptrdiff_t number, threads;

    // The first of `count` numbers, so many at once, that the thread makes; those of the next begin
    // where its own end.
    ptrdiff_t from(ptrdiff_t count, ptrdiff_t at_once) const {
        return (count + at_once - 1) / at_once * number / threads * at_once;
    }
    ptrdiff_t to(ptrdiff_t count, ptrdiff_t at_once) const {
        return std::min((count + at_once - 1) / at_once * (number + 1) / threads * at_once, count);
    }
    // Goes on when the others are here too.
    void wait() const {
        if (threads > 1) {
#pragma omp barrier
        }
    }
};

// Small weights are read by each thread for sentences of its own, so that none waits for another.
// Large ones, which come from afar at each step, come once for all sentences: each thread reads
// some of them; and so it does of any where there are too few sentences for all threads.
template <typename Number, typename Run>
void read_shares(const Sizes &sizes, const Run &run,
                 void (*read)(const Sizes &, const Run &, const Share &, Tiles &), int threads,
                 int has_tiles) {
    const bool are_near = 5 * sizes.cells * sizes.dim * ptrdiff_t(sizeof(Number)) <= NEAR_BYTES &&
                          sizes.batch >= threads * FEWEST;
    const ptrdiff_t group = sizes.group(threads), groups = (sizes.batch + group - 1) / group;
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
        Tiles tiles(has_tiles && sizeof(Number) == 2);
        if (are_near) {
            // The longest sentences come first.
#pragma omp for schedule(dynamic)
            for (ptrdiff_t number = 0; number < groups; number++)
                read(sizes, run,
                     {number * group, std::min((number + 1) * group, sizes.batch), 0, 1}, tiles);
        } else {
            read(sizes, run, {0, sizes.batch, omp_get_thread_num(), omp_get_num_threads()}, tiles);
        }
    }
}

}  // namespace OF_INSTRUCTIONS
}  // namespace elmo_scratch

#endif
