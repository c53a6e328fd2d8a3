// The instructions for tiles (AMX) that elmo_scratch/kernels/native uses, by ordinary ones, for
// processors without them. It is included before everything else.

#pragma once

#include <immintrin.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>

namespace emulated_tiles {

constexpr int TILES = 8, ROWS = 16, BYTES = 64, LANES = BYTES / 4;

// As `_tile_loadconfig` reads them.
struct Shapes {
    std::uint8_t palette, start, reserved[14];
    std::uint16_t bytes[16];
    std::uint8_t rows[16];
};
static_assert(sizeof(Shapes) == 64, "that is what the processor reads");

struct State {
    Shapes shapes;
    std::uint8_t tiles[TILES][ROWS][BYTES];
};

inline thread_local State state{};

inline void load_config(const void *shapes) {
    std::memcpy(&state.shapes, shapes, sizeof(Shapes));
    std::memset(state.tiles, 0, sizeof state.tiles);
}

inline void store_config(void *shapes) { std::memcpy(shapes, &state.shapes, sizeof(Shapes)); }

inline void zero(int tile) { std::memset(state.tiles[tile], 0, sizeof state.tiles[tile]); }

inline void load(int tile, const void *numbers, std::ptrdiff_t stride) {
    zero(tile);
    for (int row = 0; row < state.shapes.rows[tile]; row++)
        std::memcpy(state.tiles[tile][row], static_cast<const char *>(numbers) + row * stride,
                    state.shapes.bytes[tile]);
}

inline void store(int tile, void *numbers, std::ptrdiff_t stride) {
    for (int row = 0; row < state.shapes.rows[tile]; row++)
        std::memcpy(static_cast<char *>(numbers) + row * stride, state.tiles[tile][row],
                    state.shapes.bytes[tile]);
}

// What reads and writes nothing but tiles, many times over, has nothing for sanitizers to find.
#define UNCHECKED __attribute__((no_sanitize("address", "undefined")))

UNCHECKED inline float as_float(std::uint16_t upper_half) {
    const std::uint32_t bits = std::uint32_t(upper_half) << 16;
    float number;
    std::memcpy(&number, &bits, sizeof number);
    return number;
}

// Adds the products of the rows of one tile with the lanes of another, which are pairs of numbers.
UNCHECKED inline void add_products(int sums, int rows, int weights) {
    const Shapes &shapes = state.shapes;
    for (int row = 0; row < shapes.rows[sums]; row++) {
        float own[LANES];
        std::uint16_t left[2 * LANES], right[2 * LANES];
        std::memcpy(own, state.tiles[sums][row], BYTES);
        std::memcpy(left, state.tiles[rows][row], BYTES);
        for (int lane = 0; lane < shapes.bytes[rows] / 4; lane++) {
            std::memcpy(right, state.tiles[weights][lane], BYTES);
            for (int column = 0; column < shapes.bytes[sums] / 4; column++)
                for (int half = 0; half < 2; half++)
                    own[column] +=
                        as_float(left[2 * lane + half]) * as_float(right[2 * column + half]);
        }
        std::memcpy(state.tiles[sums][row], own, BYTES);
    }
}

}  // namespace emulated_tiles

#undef _tile_loadd
#undef _tile_stored
#undef _tile_zero
#undef _tile_dpbf16ps
#define _tile_loadconfig(shapes) emulated_tiles::load_config(shapes)
#define _tile_storeconfig(shapes) emulated_tiles::store_config(shapes)
#define _tile_loadd(tile, numbers, stride) emulated_tiles::load(tile, numbers, stride)
#define _tile_stored(tile, numbers, stride) emulated_tiles::store(tile, numbers, stride)
#define _tile_zero(tile) emulated_tiles::zero(tile)
#define _tile_dpbf16ps(sums, rows, weights) emulated_tiles::add_products(sums, rows, weights)

// library.cpp asks the processor and Linux whether there are tiles.
#define __builtin_cpu_supports(instructions) 1
#define syscall(...) 0
