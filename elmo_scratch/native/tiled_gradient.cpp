// The gradients of matrices of weights, by the processor's tiles.

#include <algorithm>
#include <vector>

#include "tile_packing.h"

#ifdef HAS_WIDE_CODE

using namespace elmo_scratch;

namespace {

// So many products of two numbers are worth a thread of their own.
constexpr ptrdiff_t PRODUCTS_OF_A_THREAD = 1 << 20;

// The shapes are those of tiled_gradient.py.
struct Part {
    const Bfloat16 *vectors;
    ptrdiff_t inputs;
    Bfloat16 *packed;
    float *result;
};

struct Gradients {
    const Bfloat16 *gradients;
    ptrdiff_t rows, outputs;
    float *sums;
    const Part *parts;
    ptrdiff_t num_parts;

    ptrdiff_t depth() const { return filled(rows, Block::SIZE); }
};

// Vectors as weights of `inputs` outputs, of which every row is an input.
WIDE void pack_columns(const Gradients &all, const Part &part, ptrdiff_t input) {
    for (ptrdiff_t row = 0; row < all.rows; row += Block::SIZE) {
        const Block block(part.vectors + row * part.inputs + input, part.inputs, all.rows - row,
                          part.inputs - input);
        block.store_columns(part.packed + input * all.depth() + row * Block::SIZE);
    }
}

WIDE INLINE __m512 even(__m512i lanes) { return _mm512_castsi512_ps(_mm512_slli_epi32(lanes, 16)); }

WIDE INLINE __m512 odd(__m512i lanes) {
    return _mm512_castsi512_ps(_mm512_and_si512(lanes, _mm512_set1_epi32(int(0xFFFF0000u))));
}

WIDE INLINE __m512 added(__m512 sum, const Lanes &lanes) {
    for (ptrdiff_t k = 0; k < TILE; k++)
        sum = _mm512_add_ps(sum, _mm512_add_ps(even(lanes.rows[k]), odd(lanes.rows[k])));
    return sum;
}

// Turns the gradients of 32 outputs to tiles, and adds them up.
WIDE void turn_columns(const Gradients &all, ptrdiff_t output, Bfloat16 *turned) {
    __m512 left = _mm512_setzero_ps(), right = left;
    for (ptrdiff_t row = 0; row < all.rows; row += Block::SIZE) {
        const Block block(all.gradients + row * all.outputs + output, all.outputs, all.rows - row,
                          all.outputs - output);
        Bfloat16 *tile = turned + row * Block::SIZE;
        const Lanes one = block.columns(0), other = block.columns(TILE);
        left = added(left, one), right = added(right, other);
        one.turned().store(tile);
        other.turned().store(tile + NUMBERS_OF_A_TILE);
    }
    _mm512_mask_storeu_ps(all.sums + output, first(all.outputs - output), left);
    _mm512_mask_storeu_ps(all.sums + output + TILE, first(all.outputs - output - TILE), right);
}

// The gradients of the weights to 32 outputs.
TILED void multiply_columns(const Gradients &all, const Part &part, ptrdiff_t output,
                            const Bfloat16 *turned, Tiles &tiles) {
    const ptrdiff_t count = std::min(all.outputs - output, Block::SIZE), inputs = part.inputs;
    for (ptrdiff_t input = 0; input < inputs; input += Block::SIZE) {
        const Tiled others = Tiled::pairs(part.packed + input * all.depth());
        float *place = part.result + output * inputs + input;
        if (input + Block::SIZE <= inputs) {
            tiles.multiply(count, Tiled::pairs(turned), others, all.depth() / 2, place, inputs);
            continue;
        }
        float sums[Block::SIZE * Block::SIZE];
        tiles.multiply(count, Tiled::pairs(turned), others, all.depth() / 2, sums, Block::SIZE);
        for (ptrdiff_t k = 0; k < count; k++)
            std::copy_n(sums + k * Block::SIZE, inputs - input, place + k * inputs);
    }
}

}  // namespace

// tiled_gradient.py calls this by its name, and checks what it is given.
extern "C" void multiply_gradients_bfloat16(const Gradients *all, int threads) {
    ptrdiff_t inputs = 0;
    for (ptrdiff_t k = 0; k < all->num_parts; k++) inputs += all->parts[k].inputs;
    const int worth = threads_worth(all->outputs * (inputs + Block::SIZE) * all->rows,
                                    PRODUCTS_OF_A_THREAD, all->outputs / Block::SIZE, threads);
#pragma omp parallel num_threads(worth) if (worth > 1)
    {
        Tiles tiles(true);
        std::vector<Lanes> turned(all->depth() * Block::SIZE / NUMBERS_OF_A_TILE);
        Bfloat16 *own = reinterpret_cast<Bfloat16 *>(turned.data());
        for (ptrdiff_t k = 0; k < all->num_parts; k++)
#pragma omp for schedule(static)
            for (ptrdiff_t input = 0; input < all->parts[k].inputs; input += Block::SIZE)
                pack_columns(*all, all->parts[k], input);
#pragma omp for schedule(static)
        for (ptrdiff_t output = 0; output < all->outputs; output += Block::SIZE) {
            turn_columns(*all, output, own);
            for (ptrdiff_t k = 0; k < all->num_parts; k++)
                multiply_columns(*all, all->parts[k], output, own, tiles);
        }
    }
}

#endif
