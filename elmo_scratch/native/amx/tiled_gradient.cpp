// The gradients of matrices of weights, by the processor's tiles.

#define INSTRUCTIONS BFLOAT16

#include "tile_packing.h"

#ifdef HAS_SIMD_CODE

using namespace elmo_scratch;

namespace {

// So many products of two numbers are worth a thread of their own.
constexpr ptrdiff_t PRODUCTS_OF_A_THREAD = 1 << 20;
// As long as vectors have no more numbers, the processor's second cache holds them; otherwise they
// pass for so many turned gradients together.
constexpr ptrdiff_t FEW_NUMBERS = 1 << 20, NUMBERS_AT_ONCE = 1 << 17;

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
void pack_columns(const Gradients &all, const Part &part, ptrdiff_t input) {
    for (ptrdiff_t row = 0; row < all.rows; row += Block::SIZE) {
        const Block block(part.vectors + row * part.inputs + input, part.inputs, all.rows - row,
                          part.inputs - input);
        block.store_columns(part.packed + input * all.depth() + row * Block::SIZE);
    }
}

INLINE __m512 even(__m512i lanes) { return _mm512_castsi512_ps(_mm512_slli_epi32(lanes, 16)); }

INLINE __m512 odd(__m512i lanes) {
    return _mm512_castsi512_ps(_mm512_and_si512(lanes, _mm512_set1_epi32(int(0xFFFF0000u))));
}

INLINE void add(const Lanes &lanes, float *sums, __mmask16 some) {
    __m512 sum = _mm512_maskz_loadu_ps(some, sums);
    for (ptrdiff_t k = 0; k < TILE; k++)
        sum = _mm512_add_ps(sum, _mm512_add_ps(even(lanes.rows[k]), odd(lanes.rows[k])));
    _mm512_mask_storeu_ps(sums, some, sum);
}

// Turns the gradients of some outputs to tiles, and adds them up. Of each row it reads what lies
// together.
void turn_columns(const Gradients &all, ptrdiff_t output, ptrdiff_t end, Bfloat16 *turned) {
    std::fill(all.sums + output, all.sums + end, 0.0f);
    for (ptrdiff_t row = 0; row < all.rows; row += Block::SIZE)
        for (ptrdiff_t k = output; k < end; k += Block::SIZE) {
            const Block block(all.gradients + row * all.outputs + k, all.outputs, all.rows - row,
                              all.outputs - k);
            Bfloat16 *tile = turned + (k - output) * all.depth() + row * Block::SIZE;
            const Lanes one = block.columns(0), other = block.columns(TILE);
            add(one, all.sums + k, first(end - k));
            add(other, all.sums + k + TILE, first(end - k - TILE));
            one.turned().store(tile);
            other.turned().store(tile + NUMBERS_OF_A_TILE);
        }
}

// The gradients of the weights from 32 inputs to 32 outputs.
void multiply_block(const Gradients &all, const Part &part, ptrdiff_t output, ptrdiff_t input,
                    const Bfloat16 *turned, Tiles &tiles) {
    const ptrdiff_t rows = std::min(all.outputs - output, Block::SIZE), inputs = part.inputs;
    const Tiled own = Tiled::pairs(turned),
                others = Tiled::pairs(part.packed + input * all.depth());
    float *place = part.result + output * inputs + input;
    if (input + Block::SIZE <= inputs)
        return tiles.multiply(rows, own, others, all.depth() / 2, place, inputs);
    float sums[Block::SIZE * Block::SIZE];
    tiles.multiply(rows, own, others, all.depth() / 2, sums, Block::SIZE);
    for (ptrdiff_t k = 0; k < rows; k++)
        std::copy_n(sums + k * Block::SIZE, inputs - input, place + k * inputs);
}

// Those of so many outputs that the vectors need not pass for each of them again.
void multiply_columns(const Gradients &all, ptrdiff_t output, ptrdiff_t end, Bfloat16 *turned,
                      Tiles &tiles) {
    turn_columns(all, output, end, turned);
    for (ptrdiff_t number = 0; number < all.num_parts; number++)
        for (ptrdiff_t input = 0; input < all.parts[number].inputs; input += Block::SIZE)
            for (ptrdiff_t k = output; k < end; k += Block::SIZE)
                multiply_block(all, all.parts[number], k, input,
                               turned + (k - output) * all.depth(), tiles);
}

}  // namespace

// tiled_gradient.py calls this by its name, and checks what it is given.
extern "C" void multiply_gradients_bfloat16(const Gradients *all, int threads) {
    ptrdiff_t inputs = 0;
    for (ptrdiff_t k = 0; k < all->num_parts; k++) inputs += all->parts[k].inputs;
    const ptrdiff_t blocks = (all->outputs + Block::SIZE - 1) / Block::SIZE;
    const int worth = threads_worth(all->outputs * (inputs + Block::SIZE) * all->rows,
                                    PRODUCTS_OF_A_THREAD, blocks, threads);
    const ptrdiff_t most =
        inputs * all->depth() <= FEW_NUMBERS
            ? 1
            : std::max(NUMBERS_AT_ONCE / all->depth() / Block::SIZE, ptrdiff_t(1));
    const ptrdiff_t at_once = std::min(most, (blocks + worth - 1) / worth) * Block::SIZE;
#pragma omp parallel num_threads(worth) if (worth > 1)
    {
        Tiles tiles(true);
        std::vector<Lanes> turned(all->depth() * at_once / NUMBERS_OF_A_TILE);
        for (ptrdiff_t k = 0; k < all->num_parts; k++)
#pragma omp for schedule(static)
            for (ptrdiff_t input = 0; input < all->parts[k].inputs; input += Block::SIZE)
                pack_columns(*all, all->parts[k], input);
#pragma omp for schedule(dynamic)
        for (ptrdiff_t output = 0; output < all->outputs; output += at_once)
            multiply_columns(*all, output, std::min(output + at_once, all->outputs),
                             reinterpret_cast<Bfloat16 *>(turned.data()), tiles);
    }
}

#endif
