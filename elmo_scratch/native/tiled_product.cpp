// Products of any number of rows with weights, by the processor's tiles: a row's result depends
// neither on its place nor on the other rows.

#include <algorithm>

#include "tiles.h"

#ifdef HAS_WIDE_CODE

using namespace elmo_scratch;

namespace {

// Numbers of rows that stay in the processor's second cache while weights pass.
constexpr ptrdiff_t NUMBERS_AT_ONCE = 1 << 18;
// So many products of two numbers are worth a thread of their own.
constexpr ptrdiff_t PRODUCTS_OF_A_THREAD = 1 << 20;

// The shapes are those of tiled_product.py.
struct Product {
    const Bfloat16 *rows, *weights, *bias, *summand;
    Bfloat16 *result;
    ptrdiff_t num_rows, lanes, outputs;
};

// Tile by tile, two beside each other.
constexpr ptrdiff_t COLUMNS = 2 * TILE, NUMBERS_OF_A_TILE = TILE * TILE * 2;
constexpr TileOrder IN_PAIRS = {TILE * 4, NUMBERS_OF_A_TILE, 2 * NUMBERS_OF_A_TILE};

WIDE INLINE __m512 wide(const Bfloat16 *numbers) {
    const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i *>(numbers));
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
}

// Rounds the sums of 16 columns.
WIDE INLINE void finish(const float *sums, const Bfloat16 *bias, const Bfloat16 *summand,
                        Bfloat16 *result) {
    __m512 own = _mm512_load_ps(sums);
    if (bias) own = _mm512_add_ps(own, wide(bias));
    if (summand) own = _mm512_add_ps(own, wide(summand));
    _mm256_storeu_si256(reinterpret_cast<__m256i *>(result), (__m256i)_mm512_cvtneps_pbh(own));
}

// The products of some rows with 64 columns.
TILED void multiply_rows(const Product &product, ptrdiff_t first, ptrdiff_t end, ptrdiff_t column,
                         Tiles &tiles) {
    alignas(64) float sums[2 * TILE * PANEL];
    const ptrdiff_t inputs = 2 * product.lanes;
    const Bfloat16 *bias = product.bias ? product.bias + column : nullptr;
    for (ptrdiff_t row = first; row < end; row += 2 * TILE) {
        const ptrdiff_t rows = std::min(end - row, 2 * TILE);
        for (ptrdiff_t k = 0; k < PANEL; k += COLUMNS)
            tiles.multiply(rows, product.rows + row * inputs, inputs,
                           product.weights + (column + k) * inputs, IN_PAIRS, product.lanes,
                           sums + k);
        for (ptrdiff_t r = 0; r < rows; r++) {
            const ptrdiff_t place = (row + r) * product.outputs + column;
            for (ptrdiff_t k = 0; k < PANEL; k += REGISTER)
                finish(sums + r * PANEL + k, bias ? bias + k : nullptr,
                       product.summand ? product.summand + place + k : nullptr,
                       product.result + place + k);
        }
    }
}

}  // namespace

extern "C" {

void pack_tiles_bfloat16(const Bfloat16 *weights, ptrdiff_t outputs, ptrdiff_t inputs,
                         Bfloat16 *packed, int threads) {
    const int worth = threads_worth(outputs * inputs, 65536, outputs / COLUMNS, threads);
#pragma omp parallel for num_threads(worth) if (worth > 1)
    for (ptrdiff_t column = 0; column < outputs; column += COLUMNS)
        for (ptrdiff_t c = 0; c < COLUMNS; c++)
            for (ptrdiff_t k = 0; k < inputs; k++) {
                const ptrdiff_t lane = k / 2 % TILE, tile = k / 2 / TILE * 2 + c / TILE;
                packed[column * inputs + tile * NUMBERS_OF_A_TILE + (lane * TILE + c % TILE) * 2 +
                       k % 2] = weights[(column + c) * inputs + k];
            }
}

void multiply_tiles_bfloat16(const Product *product, int threads) {
    const ptrdiff_t inputs = 2 * product->lanes, outputs = product->outputs;
    const ptrdiff_t rows_at_once =
        std::max(NUMBERS_AT_ONCE / inputs / (2 * TILE), ptrdiff_t(1)) * 2 * TILE;
    const ptrdiff_t parts = (product->num_rows + rows_at_once - 1) / rows_at_once;
    const int worth = threads_worth(product->num_rows * outputs * inputs, PRODUCTS_OF_A_THREAD,
                                    parts * outputs / PANEL, threads);
#pragma omp parallel num_threads(worth) if (worth > 1)
    {
        Tiles tiles(true);
#pragma omp for collapse(2) schedule(static)
        for (ptrdiff_t part = 0; part < parts; part++)
            for (ptrdiff_t column = 0; column < outputs; column += PANEL)
                multiply_rows(*product, part * rows_at_once,
                              std::min((part + 1) * rows_at_once, product->num_rows), column,
                              tiles);
    }
}

}  // extern "C"

#endif
