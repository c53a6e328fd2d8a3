// The gradients of matrices of weights, by AMX.

#define INSTRUCTIONS BFLOAT16

#include "../structs.h"
#include "tile_packing.h"

#ifdef HAS_SIMD_CODE

using namespace elmo_scratch;

namespace {

using Gradients = GradientProducts<Bfloat16>;
using Part = GradientPart<Bfloat16>;

constexpr ptrdiff_t MIN_PRODUCTS_OF_A_THREAD = 1 << 20;
// The L2 cache holds vectors with up to MAX_CACHED_NUMBERS. Larger ones pass once for
// NUMBERS_AT_ONCE transposed gradients.
constexpr ptrdiff_t MAX_CACHED_NUMBERS = 1 << 20, NUMBERS_AT_ONCE = 1 << 17;

INLINE ptrdiff_t padded_rows(const Gradients &all) { return round_up(all.rows, Block::SIZE); }

// Packs vectors as weights that have an output for each of 32 inputs, and an input for each row.
void pack_columns(const Gradients &all, const Part &part, ptrdiff_t input) {
    for (ptrdiff_t row = 0; row < all.rows; row += Block::SIZE) {
        const Block block(part.vectors + row * part.inputs + input, part.inputs, all.rows - row,
                          part.inputs - input);
        block.store_columns(part.packed + input * padded_rows(all) + row * Block::SIZE);
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

// Packs the gradients of some outputs into transposed tiles, and adds them up over rows.
void transpose_columns(const Gradients &all, ptrdiff_t output, ptrdiff_t end,
                       Bfloat16 *transposed) {
    std::fill(all.sums + output, all.sums + end, 0.0f);
    for (ptrdiff_t row = 0; row < all.rows; row += Block::SIZE)
        for (ptrdiff_t k = output; k < end; k += Block::SIZE) {
            const Block block(all.gradients + row * all.outputs + k, all.outputs, all.rows - row,
                              all.outputs - k);
            Bfloat16 *tile = transposed + (k - output) * padded_rows(all) + row * Block::SIZE;
            const Lanes one = block.columns(0), other = block.columns(TILE);
            add(one, all.sums + k, first(end - k));
            add(other, all.sums + k + TILE, first(end - k - TILE));
            one.transposed().store(tile);
            other.transposed().store(tile + NUMBERS_OF_A_TILE);
        }
}

// Computes the gradients of the weights from 32 inputs to 32 outputs.
void multiply_block(const Gradients &all, const Part &part, ptrdiff_t output, ptrdiff_t input,
                    const Bfloat16 *transposed, Tiles &tiles) {
    const ptrdiff_t rows = std::min(all.outputs - output, Block::SIZE), inputs = part.inputs;
    const Tiled own = Tiled::pairs(transposed),
                others = Tiled::pairs(part.packed + input * padded_rows(all));
    float *place = part.result + output * inputs + input;
    if (input + Block::SIZE <= inputs)
        return tiles.multiply(rows, own, others, padded_rows(all) / 2, place, inputs);
    float sums[Block::SIZE * Block::SIZE];
    tiles.multiply(rows, own, others, padded_rows(all) / 2, sums, Block::SIZE);
    for (ptrdiff_t k = 0; k < rows; k++)
        std::copy_n(sums + k * Block::SIZE, inputs - input, place + k * inputs);
}

// Computes the gradients of several blocks of outputs, for which the vectors pass once.
void multiply_columns(const Gradients &all, ptrdiff_t output, ptrdiff_t end, Bfloat16 *transposed,
                      Tiles &tiles) {
    transpose_columns(all, output, end, transposed);
    for (ptrdiff_t number = 0; number < all.num_parts; number++)
        for (ptrdiff_t input = 0; input < all.parts[number].inputs; input += Block::SIZE)
            for (ptrdiff_t k = output; k < end; k += Block::SIZE)
                multiply_block(all, all.parts[number], k, input,
                               transposed + (k - output) * padded_rows(all), tiles);
}

}  // namespace

// weight_gradients.py calls this, and checks what it is given.
extern "C" void multiply_gradients_bfloat16(const Gradients *all, int threads) {
    ptrdiff_t inputs = 0;
    const ptrdiff_t depth = padded_rows(*all);
    for (ptrdiff_t k = 0; k < all->num_parts; k++) inputs += all->parts[k].inputs;
    const ptrdiff_t blocks = (all->outputs + Block::SIZE - 1) / Block::SIZE;
    const int num_threads = threads_for(all->outputs * (inputs + Block::SIZE) * all->rows,
                                        MIN_PRODUCTS_OF_A_THREAD, blocks, threads);
    const ptrdiff_t most = inputs * depth <= MAX_CACHED_NUMBERS
                               ? 1
                               : std::max(NUMBERS_AT_ONCE / depth / Block::SIZE, ptrdiff_t(1));
    const ptrdiff_t at_once =
        std::min(most, (blocks + num_threads - 1) / num_threads) * Block::SIZE;
#pragma omp parallel num_threads(num_threads) if (num_threads > 1)
    {
        Tiles tiles(true);
        std::vector<Lanes> transposed(depth * at_once / NUMBERS_OF_A_TILE);
        for (ptrdiff_t k = 0; k < all->num_parts; k++)
#pragma omp for schedule(static)
            for (ptrdiff_t input = 0; input < all->parts[k].inputs; input += Block::SIZE)
                pack_columns(*all, all->parts[k], input);
#pragma omp for schedule(dynamic)
        for (ptrdiff_t output = 0; output < all->outputs; output += at_once)
            multiply_columns(*all, output, std::min(output + at_once, all->outputs),
                             reinterpret_cast<Bfloat16 *>(transposed.data()), tiles);
    }
}

#endif
