// Products of a few rows with weights in panels, which README.md shows.
//
// A panel has the weights of 64 outputs. With AMX it consists of tiles. Otherwise it consists of
// lanes: four bytes of each output, which are one float or two numbers in bfloat16. A sum is made
// in the order of the inputs, whatever other rows there are.

#pragma once

#include "vec16f.h"
#if INSTRUCTIONS == BFLOAT16
#include "amx/tiles.h"
#endif

#ifdef HAS_SIMD_CODE

namespace elmo_scratch {
inline namespace OF_INSTRUCTIONS {

// Outputs of a panel, and the vectors that hold their sums.
constexpr ptrdiff_t REGISTERS = 4, PANEL = REGISTER * REGISTERS;
// Lanes of a panel that stay in the L1 cache while rows pass, and how many of weights that come
// from further away: with AVX2 most of them pass in parts, and the next ones are fetched meanwhile.
constexpr ptrdiff_t LANES_AT_ONCE = 128, LANES_FETCHED = INSTRUCTIONS == AVX2 ? 64 : 128;
// Rows that pass together.
constexpr int ROWS_AT_ONCE = 6;

// Vectors of a panel whose sums for so many rows fill the registers. AVX2 has half as many
// registers, half as wide.
constexpr int registers_at_once(int rows) {
    if (INSTRUCTIONS != AVX2) return 4;
    return rows == 1 ? 4 : rows <= 3 ? 2 : 1;
}

// The numbers of a lane for each output.
template <typename Number>
constexpr ptrdiff_t NUMBERS_OF_A_LANE = 4 / sizeof(Number);

#if INSTRUCTIONS < BFLOAT16
// There are no tiles without bfloat16.
struct Tiles {
    explicit Tiles(bool) {}
};
#endif

INLINE Vec16f with_product(Vec16f sum, const float *lane, const float *weights) {
    return fma(broadcast(*lane), load(weights), sum);
}

#if INSTRUCTIONS == BFLOAT16
INLINE Vec16f with_product(Vec16f sum, const Bfloat16 *lane, const Bfloat16 *weights) {
    std::uint32_t bits;
    std::memcpy(&bits, lane, sizeof bits);
    return _mm512_dpbf16_ps(sum, (__m512bh)_mm512_set1_epi32(int(bits)),
                            (__m512bh)_mm512_loadu_ps(weights));
}
#endif

// Adds the products of rows with some lanes. Where these pass in parts, the `num_next` lanes at
// `next` are fetched into the L2 cache meanwhile, a share with each part: otherwise the processor
// would wait for all of them when their turn comes.
template <int ROWS, typename Number>
void add_rows(const Number *rows, ptrdiff_t stride, const Number *panel, ptrdiff_t lanes,
              float *sums, const Number *next, ptrdiff_t num_next) {
    constexpr ptrdiff_t depth = NUMBERS_OF_A_LANE<Number>, line = REGISTER * depth;
    constexpr int at_once = registers_at_once(ROWS);
    for (ptrdiff_t part = 0; part < REGISTERS; part += at_once) {
        if (at_once < REGISTERS)
            for (ptrdiff_t k = part * num_next; k < (part + at_once) * num_next; k++)
                __builtin_prefetch(next + k * line, 0, 2);
        Vec16f own[ROWS][at_once];
        for (int row = 0; row < ROWS; row++)
            for (int r = 0; r < at_once; r++)
                own[row][r] = load(sums + row * PANEL + (part + r) * REGISTER);
        for (ptrdiff_t lane = 0; lane < lanes; lane++) {
            const Number *weights = panel + (lane * PANEL + part * REGISTER) * depth;
            // The next passes over these lanes read the rest of each lane.
            if (part == 0)
                for (ptrdiff_t r = at_once; r < REGISTERS; r++)
                    __builtin_prefetch(weights + r * REGISTER * depth);
            for (int row = 0; row < ROWS; row++)
                for (int r = 0; r < at_once; r++)
                    own[row][r] = with_product(own[row][r], rows + row * stride + lane * depth,
                                               weights + r * REGISTER * depth);
        }
        for (int row = 0; row < ROWS; row++)
            for (int r = 0; r < at_once; r++)
                store(own[row][r], sums + row * PANEL + (part + r) * REGISTER);
    }
}

template <typename Number>
void add_in_registers(ptrdiff_t num_rows, const Number *rows, ptrdiff_t stride, const Number *panel,
                      ptrdiff_t lanes, float *sums, bool are_cached) {
    // All passes but one of a single row fetch a share. Behind the last panel there is nothing to
    // fetch, and nothing is done.
    const ptrdiff_t size = PANEL * NUMBERS_OF_A_LANE<Number>;
    const ptrdiff_t passes = std::max((num_rows + ROWS_AT_ONCE - 2) / ROWS_AT_ONCE, ptrdiff_t(1));
    const ptrdiff_t num_next = are_cached ? 0 : (lanes + passes - 1) / passes;
    const Number *next = panel + lanes * size;
    for (; num_rows >= ROWS_AT_ONCE; num_rows -= ROWS_AT_ONCE) {
        add_rows<ROWS_AT_ONCE>(rows, stride, panel, lanes, sums, next, num_next);
        rows += ROWS_AT_ONCE * stride;
        sums += ROWS_AT_ONCE * PANEL;
        next += num_next * size;
    }
    switch (num_rows) {
        case 5:
            return add_rows<5>(rows, stride, panel, lanes, sums, next, num_next);
        case 4:
            return add_rows<4>(rows, stride, panel, lanes, sums, next, num_next);
        case 3:
            return add_rows<3>(rows, stride, panel, lanes, sums, next, num_next);
        case 2:
            return add_rows<2>(rows, stride, panel, lanes, sums, next, num_next);
        case 1:
            return add_rows<1>(rows, stride, panel, lanes, sums, next, num_next);
    }
}

// Multiplies rows, which lie `stride` apart, by a panel. `sums` has 64 columns. Unless weights
// `are_cached`, those that follow in memory are fetched meanwhile.
template <typename Number>
void multiply(ptrdiff_t num_rows, const Number *rows, ptrdiff_t stride, const Number *panel,
              ptrdiff_t inputs, float *sums, Tiles &tiles, bool are_cached = false) {
    constexpr ptrdiff_t depth = NUMBERS_OF_A_LANE<Number>;
    const ptrdiff_t lanes = inputs / depth;
#if INSTRUCTIONS == BFLOAT16
    if constexpr (sizeof(Number) == 2)
        if (tiles.is_used())
            return tiles.multiply_panel(num_rows, rows, stride, panel, inputs, sums);
#endif
    std::memset(sums, 0, num_rows * PANEL * sizeof(float));
    const ptrdiff_t at_once = are_cached ? LANES_AT_ONCE : LANES_FETCHED;
    for (ptrdiff_t lane = 0; lane < lanes; lane += at_once) {
        const ptrdiff_t count = std::min(lanes - lane, at_once);
        add_in_registers(num_rows, rows + lane * depth, stride, panel + lane * PANEL * depth, count,
                         sums, are_cached);
    }
}

}  // namespace OF_INSTRUCTIONS
}  // namespace elmo_scratch

#endif
