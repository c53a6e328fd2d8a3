// Products of rows with weights in bfloat16 by the processor's tiles (AMX).

#pragma once

#include "instructions.h"
#include "numbers.h"

#ifdef HAS_WIDE_CODE

namespace elmo_scratch {

constexpr ptrdiff_t REGISTER = 16, REGISTERS = 4, PANEL = REGISTER * REGISTERS;
constexpr ptrdiff_t TILE = 16;

// Shapes of the processor's tiles: of up to 16 rows with 64 bytes.
struct alignas(64) TileShapes {
    std::uint8_t palette = 0, start = 0, reserved[14] = {};
    std::uint16_t bytes[16] = {};
    std::uint8_t rows[16] = {};
};

// How the tiles of weights lie: the bytes from one row to the next, and the numbers to the tile
// beside it and to the next 16 lanes.
struct TileOrder {
    ptrdiff_t row, column, step;
};
constexpr TileOrder IN_PANELS = {PANEL * 4, REGISTER * 2, TILE * PANEL * 2};

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

    // The products of up to 32 rows with 32 columns, in the same columns of a panel's `sums`.
    TILED void multiply(ptrdiff_t num_rows, const Bfloat16 *rows, ptrdiff_t stride,
                        const Bfloat16 *weights, TileOrder order, ptrdiff_t lanes, float *sums) {
        constexpr ptrdiff_t row = PANEL * 4;  // in bytes
        const ptrdiff_t above = num_rows < TILE ? num_rows : TILE, below = num_rows - above;
        shape(above, below);
        _tile_zero(0);
        _tile_zero(1);
        if (below > 0) {
            _tile_zero(2);
            _tile_zero(3);
        }
        for (ptrdiff_t lane = 0; lane < lanes; lane += TILE) {
            _tile_loadd(4, rows + lane * 2, stride * 2);
            _tile_loadd(6, weights, order.row);
            _tile_loadd(7, weights + order.column, order.row);
            _tile_dpbf16ps(0, 4, 6);
            _tile_dpbf16ps(1, 4, 7);
            if (below > 0) {
                _tile_loadd(5, rows + TILE * stride + lane * 2, stride * 2);
                _tile_dpbf16ps(2, 5, 6);
                _tile_dpbf16ps(3, 5, 7);
            }
            weights += order.step;
        }
        _tile_stored(0, sums, row);
        _tile_stored(1, sums + TILE, row);
        if (below > 0) {
            _tile_stored(2, sums + TILE * PANEL, row);
            _tile_stored(3, sums + TILE * PANEL + TILE, row);
        }
    }

    // The products of any number of rows with a panel.
    TILED void multiply_panel(ptrdiff_t num_rows, const Bfloat16 *rows, ptrdiff_t stride,
                              const Bfloat16 *panel, ptrdiff_t lanes, float *sums) {
        for (ptrdiff_t row = 0; row < num_rows; row += 2 * TILE)
            for (ptrdiff_t column = 0; column < PANEL; column += 2 * TILE)
                multiply(num_rows - row < 2 * TILE ? num_rows - row : 2 * TILE, rows + row * stride,
                         stride, panel + column * 2, IN_PANELS, lanes, sums + row * PANEL + column);
    }

   private:
    // Tiles 0, 1 and 4 have the upper, 2, 3 and 5 the lower rows, 6 and 7 the weights.
    TILED void shape(ptrdiff_t above, ptrdiff_t below) {
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
        _tile_loadconfig(&shapes);
    }

    TileShapes before_;
    const bool is_used_;
    ptrdiff_t above_ = 0, below_ = 0;
};

}  // namespace elmo_scratch

#endif
