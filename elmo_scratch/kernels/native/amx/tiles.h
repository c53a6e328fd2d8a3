// Products in bfloat16 by AMX: tiles are registers of 16 rows with 64 bytes each.

#pragma once

#include "../vec16f.h"

#ifdef HAS_SIMD_CODE

namespace elmo_scratch {
inline namespace OF_INSTRUCTIONS {

// A tile has as many lanes as rows. A lane is a pair of numbers in bfloat16.
constexpr ptrdiff_t TILE = 16, NUMBERS_OF_A_TILE = 2 * TILE * TILE;

// The configuration of all tiles, as the processor reads it.
struct alignas(64) TileShapes {
    std::uint8_t palette = 0, start = 0, reserved[14] = {};
    std::uint16_t bytes[16] = {};
    std::uint8_t rows[16] = {};
};

// Where a matrix has its tiles: `row` bytes lead to the next row of a tile, `beside` numbers to the
// tile beside it (below it, in a matrix that is multiplied by weights), and `step` numbers to the
// next 16 lanes.
struct Tiled {
    const Bfloat16 *numbers;
    ptrdiff_t row, beside, step;

    // Rows in an ordinary layout, `stride` apart.
    static Tiled rows(const Bfloat16 *numbers, ptrdiff_t stride) {
        return {numbers, stride * 2, TILE * stride, TILE * 2};
    }
    // Packed tiles, in pairs that lie beside each other.
    static Tiled pairs(const Bfloat16 *tiles) {
        return {tiles, TILE * 4, NUMBERS_OF_A_TILE, 2 * NUMBERS_OF_A_TILE};
    }
};

// The compiler doesn't know which memory instructions for tiles read and write.
INLINE void compiler_barrier() { asm volatile("" ::: "memory"); }

// The tiles of a thread. The destructor restores the configuration of before.
class Tiles {
   public:
    explicit Tiles(bool is_used) : is_used_(is_used) {
        if (is_used_) _tile_storeconfig(&before_);
        compiler_barrier();
    }
    ~Tiles() {
        compiler_barrier();
        if (is_used_) _tile_loadconfig(&before_);
    }
    Tiles(const Tiles &) = delete;
    Tiles &operator=(const Tiles &) = delete;

    bool is_used() const { return is_used_; }

    // Multiplies up to 32 rows by 32 columns. The rows of `sums` lie `stride` apart. With
    // `are_added` the products are added to the sums, with the same result as in one call.
    void multiply(ptrdiff_t num_rows, Tiled rows, Tiled weights, ptrdiff_t lanes, float *sums,
                  ptrdiff_t stride, bool are_added = false) {
        const ptrdiff_t above = num_rows < TILE ? num_rows : TILE, below = num_rows - above;
        shape(above, below);
        compiler_barrier();
        if (are_added) {
            _tile_loadd(0, sums, stride * 4);
            _tile_loadd(1, sums + TILE, stride * 4);
            if (below > 0) {
                _tile_loadd(2, sums + TILE * stride, stride * 4);
                _tile_loadd(3, sums + TILE * stride + TILE, stride * 4);
            }
        } else {
            _tile_zero(0);
            _tile_zero(1);
            if (below > 0) {
                _tile_zero(2);
                _tile_zero(3);
            }
        }
        for (ptrdiff_t lane = 0; lane < lanes; lane += TILE) {
            _tile_loadd(4, rows.numbers, rows.row);
            _tile_loadd(6, weights.numbers, weights.row);
            _tile_loadd(7, weights.numbers + weights.beside, weights.row);
            _tile_dpbf16ps(0, 4, 6);
            _tile_dpbf16ps(1, 4, 7);
            if (below > 0) {
                _tile_loadd(5, rows.numbers + rows.beside, rows.row);
                _tile_dpbf16ps(2, 5, 6);
                _tile_dpbf16ps(3, 5, 7);
            }
            rows.numbers += rows.step;
            weights.numbers += weights.step;
        }
        _tile_stored(0, sums, stride * 4);
        _tile_stored(1, sums + TILE, stride * 4);
        if (below > 0) {
            _tile_stored(2, sums + TILE * stride, stride * 4);
            _tile_stored(3, sums + TILE * stride + TILE, stride * 4);
        }
        compiler_barrier();
    }

    // Multiplies any number of rows by a panel of 64 columns.
    void multiply_panel(ptrdiff_t num_rows, const Bfloat16 *rows, ptrdiff_t stride,
                        const Bfloat16 *panel, ptrdiff_t inputs, float *sums) {
        constexpr ptrdiff_t panel_size = 4 * TILE;
        for (ptrdiff_t row = 0; row < num_rows; row += 2 * TILE)
            for (ptrdiff_t column = 0; column < panel_size; column += 2 * TILE)
                multiply(num_rows - row < 2 * TILE ? num_rows - row : 2 * TILE,
                         Tiled::rows(rows + row * stride, stride),
                         Tiled::pairs(panel + column * inputs), inputs / 2,
                         sums + row * panel_size + column, panel_size);
    }

   private:
    // Tiles 0 to 3 are sums, 4 and 5 rows, 6 and 7 weights. Tiles 0, 1 and 4 have the upper 16
    // rows; tiles 2, 3 and 5 have the lower ones.
    void shape(ptrdiff_t above, ptrdiff_t below) {
        if (above == above_ && below == below_) return;
        above_ = above, below_ = below;
        TileShapes shapes;
        shapes.palette = 1;
        for (int tile = 0; tile < 8; tile++) {
            const bool is_above = tile == 0 || tile == 1 || tile == 4;
            shapes.bytes[tile] = 64;
            shapes.rows[tile] = std::uint8_t(tile > 5 || (!is_above && below == 0) ? TILE
                                             : is_above                            ? above
                                                                                   : below);
        }
        compiler_barrier();
        _tile_loadconfig(&shapes);
    }

    TileShapes before_;
    const bool is_used_;
    ptrdiff_t above_ = 0, below_ = 0;
};

}  // namespace OF_INSTRUCTIONS
}  // namespace elmo_scratch

#endif
