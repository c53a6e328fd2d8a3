// How the steps of an LSTM are divided among threads.

#pragma once

#include "panel_products.h"
#include "structs.h"

#ifdef HAS_SIMD_CODE

namespace elmo_scratch {
inline namespace OF_INSTRUCTIONS {

// Sentences that one thread reads together.
constexpr ptrdiff_t MIN_GROUP = 8, MAX_GROUP = 64;
// Weights of up to so many bytes mostly stay in a core's own cache from one step to the next.
constexpr ptrdiff_t MAX_CACHED_BYTES = 1 << 22;

// Rows of a panel lie too far apart for the processor to predict what comes next.
template <typename Number>
INLINE void prefetch(const Number *numbers, ptrdiff_t count) {
    constexpr ptrdiff_t line = 64 / sizeof(Number);
    for (ptrdiff_t k = 0; k < count; k += line) __builtin_prefetch(numbers + k);
}

// How many sentences are read together, so that threads finish at about the same time.
inline ptrdiff_t group_size(const LstmSizes &sizes, int threads) {
    const bool is_ragged = sizes.steps > 0 && sizes.batch_sizes[sizes.steps - 1] < sizes.batch;
    const ptrdiff_t parts = threads * (is_ragged ? 2 : 1);
    const ptrdiff_t groups = (sizes.batch + parts * MAX_GROUP - 1) / (parts * MAX_GROUP) * parts;
    return std::clamp((sizes.batch + groups - 1) / groups, MIN_GROUP, MAX_GROUP);
}

// One of the threads that read the sentences from `first` to `end`. At every step each of these
// threads computes its own slice of the numbers.
struct ThreadSlice {
    ptrdiff_t first, end;
    ptrdiff_t thread, threads;
    // Whether weights stay in a core's own cache.
    bool are_cached;

    // Where the slice of `count` numbers begins and ends. Slices consist of whole blocks.
    ptrdiff_t from(ptrdiff_t count, ptrdiff_t block) const {
        return (count + block - 1) / block * thread / threads * block;
    }
    ptrdiff_t to(ptrdiff_t count, ptrdiff_t block) const {
        return std::min((count + block - 1) / block * (thread + 1) / threads * block, count);
    }
    // Returns when the other threads have arrived too.
    void wait() const {
        if (threads > 1) {
#pragma omp barrier
        }
    }
};

// Where weights are small, each thread reads all of them for sentences of its own, and no thread
// waits for another. Large weights come from memory at each step: each thread then reads a slice of
// them for all sentences, so that they come once. It also does so where there are too few sentences
// for all threads.
template <typename Number, typename Run>
void run_slices(const LstmSizes &sizes, const Run &run,
                void (*run_slice)(const LstmSizes &, const Run &, const ThreadSlice &, Tiles &),
                int threads, int has_tiles) {
    const ptrdiff_t bytes = 5 * sizes.cells * sizes.dim * ptrdiff_t(sizeof(Number));
    const bool are_cached = bytes <= MAX_CACHED_BYTES && sizes.batch >= threads * MIN_GROUP;
    const ptrdiff_t group = group_size(sizes, threads);
    const ptrdiff_t groups = (sizes.batch + group - 1) / group;
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
        Tiles tiles(has_tiles && sizeof(Number) == 2);
        if (are_cached) {
            // The longest sentences come first.
#pragma omp for schedule(dynamic)
            for (ptrdiff_t k = 0; k < groups; k++)
                run_slice(sizes, run,
                          {k * group, std::min((k + 1) * group, sizes.batch), 0, 1, true}, tiles);
        } else {
            run_slice(sizes, run,
                      {0, sizes.batch, omp_get_thread_num(), omp_get_num_threads(), false}, tiles);
        }
    }
}

}  // namespace OF_INSTRUCTIONS
}  // namespace elmo_scratch

#endif
