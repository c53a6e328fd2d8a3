// Products of a few rows with weights, on processors with AVX-512 for bfloat16.
//
// Weights are kept in panels of 64 columns, and of those in lanes: four bytes of each column, which
// are one float or two numbers in bfloat16, the products of which are added to one sum. A sum is
// made in the order of the lanes, whatever other rows there are.

#pragma once

#include "numbers.h"

#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__clang__) && __GNUC__ >= 12
#define HAS_PANEL_PRODUCTS 1

#include <immintrin.h>

#define WIDE __attribute__((target("arch=x86-64-v4,avx512bf16")))
#define TILED __attribute__((target("arch=x86-64-v4,avx512bf16,amx-tile,amx-bf16")))

namespace elmo_scratch {

constexpr ptrdiff_t REGISTER = 16, REGISTERS = 4, PANEL = REGISTER * REGISTERS;
// So many lanes of a panel stay in the cache next to the processor while rows pass.
constexpr ptrdiff_t LANES_AT_ONCE = 128;
// Rows that pass together: their sums fill the registers.
constexpr int ROWS_AT_ONCE = 6;
constexpr ptrdiff_t TILE = 16;

template <typename Number>
constexpr ptrdiff_t NUMBERS_OF_A_LANE = 4 / sizeof(Number);

// Where the weights of a column lie: column `16 r + c` of panel `p` is row (or column) `p *
// of_panel
// + r * of_register + c` of the matrix.
struct Columns {
    ptrdiff_t of_panel, of_register;
};

// The panels of `weights`, in which a column's numbers lie `step` and the columns `stride` apart.
template <typename Number>
void pack(const Number *weights, ptrdiff_t stride, ptrdiff_t step, ptrdiff_t panels,
          ptrdiff_t lanes, Columns columns, Number *packed, int threads) {
    constexpr ptrdiff_t depth = NUMBERS_OF_A_LANE<Number>;
    const int worth = threads_worth(panels * PANEL * lanes, 16384, panels, threads);
#pragma omp parallel for num_threads(worth) if (worth > 1)
    for (ptrdiff_t panel = 0; panel < panels; panel++)
        for (ptrdiff_t lane = 0; lane < lanes; lane++)
            for (ptrdiff_t r = 0; r < REGISTERS; r++) {
                const ptrdiff_t first = panel * columns.of_panel + r * columns.of_register;
                Number *place = packed + ((panel * lanes + lane) * PANEL + r * REGISTER) * depth;
                for (ptrdiff_t c = 0; c < REGISTER; c++)
                    for (ptrdiff_t n = 0; n < depth; n++)
                        place[c * depth + n] =
                            weights[(first + c) * stride + (lane * depth + n) * step];
            }
}

WIDE INLINE __m512 with_product(__m512 sum, const float *lane, __m512 weights) {
    return _mm512_fmadd_ps(_mm512_set1_ps(*lane), weights, sum);
}

WIDE INLINE __m512 with_product(__m512 sum, const Bfloat16 *lane, __m512 weights) {
    std::uint32_t bits;
    std::memcpy(&bits, lane, sizeof bits);
    return _mm512_dpbf16_ps(sum, (__m512bh)_mm512_set1_epi32(int(bits)), (__m512bh)weights);
}

template <int ROWS, typename Number>
WIDE void add_rows(const Number *rows, ptrdiff_t stride, const Number *panel, ptrdiff_t lanes,
                   float *sums) {
    constexpr ptrdiff_t depth = NUMBERS_OF_A_LANE<Number>;
    __m512 own[ROWS][REGISTERS];
    for (int row = 0; row < ROWS; row++)
        for (int r = 0; r < REGISTERS; r++)
            own[row][r] = _mm512_loadu_ps(sums + row * PANEL + r * REGISTER);
    for (ptrdiff_t lane = 0; lane < lanes; lane++) {
        __m512 weights[REGISTERS];
        for (int r = 0; r < REGISTERS; r++)
            weights[r] = _mm512_loadu_ps(panel + (lane * PANEL + r * REGISTER) * depth);
        for (int row = 0; row < ROWS; row++)
            for (int r = 0; r < REGISTERS; r++)
                own[row][r] =
                    with_product(own[row][r], rows + row * stride + lane * depth, weights[r]);
    }
    for (int row = 0; row < ROWS; row++)
        for (int r = 0; r < REGISTERS; r++)
            _mm512_storeu_ps(sums + row * PANEL + r * REGISTER, own[row][r]);
}

// Shapes of the processor's tiles: of up to 16 rows with 64 bytes.
struct alignas(64) TileShapes {
    std::uint8_t palette = 0, start = 0, reserved[14] = {};
    std::uint16_t bytes[16] = {};
    std::uint8_t rows[16] = {};
};

// The tiles of a thread. What used them before finds their shapes again.
class Tiles {
   public:
    TILED explicit Tiles(bool is_used) : is_used_(is_used) {
        if (is_used_) _tile_storeconfig(&before_);
    }
    TILED ~Tiles() {
        if (is_used_) _tile_loadconfig(&before_);
    }
    Tiles(const Tiles &) = delete;
    Tiles &operator=(const Tiles &) = delete;

    bool is_used() const { return is_used_; }

    // Adds up to 16 rows' products to their sums.
    TILED void add_rows(ptrdiff_t num_rows, const Bfloat16 *rows, ptrdiff_t stride,
                        const Bfloat16 *panel, ptrdiff_t lanes, float *sums) {
        shape(num_rows);
        constexpr ptrdiff_t row = PANEL * 4;  // in bytes
        _tile_loadd(0, sums, row);
        _tile_loadd(1, sums + REGISTER, row);
        _tile_loadd(2, sums + 2 * REGISTER, row);
        _tile_loadd(3, sums + 3 * REGISTER, row);
        for (ptrdiff_t lane = 0; lane < lanes; lane += TILE) {
            const Bfloat16 *weights = panel + lane * PANEL * 2;
            _tile_loadd(4, rows + lane * 2, stride * 2);
            _tile_loadd(5, weights, row);
            _tile_loadd(6, weights + REGISTER * 2, row);
            _tile_dpbf16ps(0, 4, 5);
            _tile_loadd(7, weights + 2 * REGISTER * 2, row);
            _tile_dpbf16ps(1, 4, 6);
            _tile_loadd(5, weights + 3 * REGISTER * 2, row);
            _tile_dpbf16ps(2, 4, 7);
            _tile_dpbf16ps(3, 4, 5);
        }
        _tile_stored(0, sums, row);
        _tile_stored(1, sums + REGISTER, row);
        _tile_stored(2, sums + 2 * REGISTER, row);
        _tile_stored(3, sums + 3 * REGISTER, row);
    }

   private:
    TILED void shape(ptrdiff_t num_rows) {
        if (num_rows == num_rows_) return;
        num_rows_ = num_rows;
        TileShapes shapes;
        shapes.palette = 1;
        for (int tile = 0; tile < 8; tile++) {
            shapes.bytes[tile] = 64;
            shapes.rows[tile] = std::uint8_t(tile < 5 ? num_rows : TILE);
        }
        _tile_loadconfig(&shapes);
    }

    TileShapes before_;
    const bool is_used_;
    ptrdiff_t num_rows_ = 0;
};

template <typename Number>
WIDE void add_in_registers(ptrdiff_t num_rows, const Number *rows, ptrdiff_t stride,
                           const Number *panel, ptrdiff_t lanes, float *sums) {
    for (; num_rows >= ROWS_AT_ONCE; num_rows -= ROWS_AT_ONCE) {
        add_rows<ROWS_AT_ONCE>(rows, stride, panel, lanes, sums);
        rows += ROWS_AT_ONCE * stride;
        sums += ROWS_AT_ONCE * PANEL;
    }
    switch (num_rows) {
        case 5:
            return add_rows<5>(rows, stride, panel, lanes, sums);
        case 4:
            return add_rows<4>(rows, stride, panel, lanes, sums);
        case 3:
            return add_rows<3>(rows, stride, panel, lanes, sums);
        case 2:
            return add_rows<2>(rows, stride, panel, lanes, sums);
        case 1:
            return add_rows<1>(rows, stride, panel, lanes, sums);
    }
}

WIDE inline void add_group(ptrdiff_t num_rows, const float *rows, ptrdiff_t stride,
                           const float *panel, ptrdiff_t lanes, float *sums, Tiles &) {
    add_in_registers(num_rows, rows, stride, panel, lanes, sums);
}

WIDE inline void add_group(ptrdiff_t num_rows, const Bfloat16 *rows, ptrdiff_t stride,
                           const Bfloat16 *panel, ptrdiff_t lanes, float *sums, Tiles &tiles) {
    if (!tiles.is_used()) return add_in_registers(num_rows, rows, stride, panel, lanes, sums);
    for (ptrdiff_t row = 0; row < num_rows; row += TILE)
        tiles.add_rows(num_rows - row < TILE ? num_rows - row : TILE, rows + row * stride, stride,
                       panel, lanes, sums + row * PANEL);
}

// The products of rows, which lie `stride` apart, with a panel, in `sums` of 64 columns.
template <typename Number>
WIDE void multiply(ptrdiff_t num_rows, const Number *rows, ptrdiff_t stride, const Number *panel,
                   ptrdiff_t lanes, float *sums, Tiles &tiles) {
    constexpr ptrdiff_t depth = NUMBERS_OF_A_LANE<Number>;
    std::memset(sums, 0, num_rows * PANEL * sizeof(float));
    for (ptrdiff_t lane = 0; lane < lanes; lane += LANES_AT_ONCE) {
        const ptrdiff_t count = lanes - lane < LANES_AT_ONCE ? lanes - lane : LANES_AT_ONCE;
        add_group(num_rows, rows + lane * depth, stride, panel + lane * PANEL * depth, count, sums,
                  tiles);
    }
}

}  // namespace elmo_scratch

#endif
