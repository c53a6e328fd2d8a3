// Products of any number of rows with weights, by the processor's tiles: a row's result depends
// neither on its place nor on the other rows.

#include <algorithm>
#include <vector>

#include "tile_packing.h"
#include "wide_numbers.h"

#ifdef HAS_WIDE_CODE

using namespace elmo_scratch;

namespace {

// Numbers of rows that stay in the processor's second cache while weights pass.
constexpr ptrdiff_t NUMBERS_AT_ONCE = 1 << 18;
// So many products of two numbers are worth a thread of their own.
constexpr ptrdiff_t PRODUCTS_OF_A_THREAD = 1 << 20;
// So many weights are worth one to lay them out.
constexpr ptrdiff_t NUMBERS_OF_A_THREAD = 1 << 16;

// The shapes are those of tiled_product.py. Sizes are filled up.
struct Product {
    const Bfloat16 *rows, *weights, *bias, *summand;
    Bfloat16 *result;
    ptrdiff_t num_rows, inputs, outputs;
};

// Weights as they lie: `is_turned` where a row is that of an input.
template <typename Number>
struct Weights {
    const Number *numbers;
    ptrdiff_t outputs, inputs;
    int is_turned;

    // Of 64 outputs, two tiles beside each other for 32 of them and 32 inputs, and zeros beyond the
    // last.
    WIDE void pack(ptrdiff_t output, Bfloat16 *tiles) const {
        const ptrdiff_t other = filled(inputs, Block::SIZE) * Block::SIZE;
        for (ptrdiff_t input = 0; input < inputs; input += Block::SIZE)
            for (ptrdiff_t k = 0; k < PANEL; k += Block::SIZE)
                block(output + k, input, tiles + k / Block::SIZE * other + input * Block::SIZE);
    }

   private:
    WIDE INLINE void block(ptrdiff_t output, ptrdiff_t input, Bfloat16 *tiles) const {
        if (is_turned)
            Block(numbers + input * outputs + output, outputs, inputs - input, outputs - output)
                .store_columns(tiles);
        else
            Block(numbers + output * inputs + input, inputs, outputs - output, inputs - input)
                .store_rows(tiles);
    }
};

// Rounds the sums of 16 columns.
WIDE INLINE void finish(const float *sums, const Bfloat16 *bias, const Bfloat16 *summand,
                        Bfloat16 *result) {
    __m512 own = load(sums);
    if (bias) own = _mm512_add_ps(own, load(bias));
    if (summand) own = _mm512_add_ps(own, load(summand));
    store(own, result);
}

// The products of some rows with 64 columns.
TILED void multiply_rows(const Product &product, ptrdiff_t first, ptrdiff_t end, ptrdiff_t column,
                         const Bfloat16 *weights, Tiles &tiles) {
    alignas(64) float sums[Block::SIZE * PANEL];
    const ptrdiff_t inputs = product.inputs;
    const Bfloat16 *bias = product.bias ? product.bias + column : nullptr;
    for (ptrdiff_t row = first; row < end; row += Block::SIZE) {
        const ptrdiff_t rows = std::min(end - row, Block::SIZE);
        for (ptrdiff_t k = 0; k < PANEL; k += Block::SIZE)
            tiles.multiply(rows, Tiled::rows(product.rows + row * inputs, inputs),
                           Tiled::pairs(weights + k * inputs), inputs / 2, sums + k, PANEL);
        for (ptrdiff_t r = 0; r < rows; r++) {
            const ptrdiff_t place = (row + r) * product.outputs + column;
            for (ptrdiff_t k = 0; k < PANEL; k += REGISTER)
                finish(sums + r * PANEL + k, bias ? bias + k : nullptr,
                       product.summand ? product.summand + place + k : nullptr,
                       product.result + place + k);
        }
    }
}

template <typename Number>
void pack_tiles(const Weights<Number> &weights, Bfloat16 *packed, int threads) {
    const ptrdiff_t inputs = filled(weights.inputs, Block::SIZE);
    const ptrdiff_t outputs = filled(weights.outputs, PANEL);
    const int worth =
        threads_worth(outputs * inputs, NUMBERS_OF_A_THREAD, outputs / PANEL, threads);
#pragma omp parallel for num_threads(worth) if (worth > 1)
    for (ptrdiff_t output = 0; output < outputs; output += PANEL)
        weights.pack(output, packed + output * inputs);
}

// Weights for one product are laid out in a cache only.
template <typename Number>
void multiply_once(const Product &product, const Weights<Number> &weights, int threads) {
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
        Tiles tiles(true);
        std::vector<Lanes> packed(PANEL * product.inputs / NUMBERS_OF_A_TILE);
        Bfloat16 *own = reinterpret_cast<Bfloat16 *>(packed.data());
#pragma omp for schedule(static)
        for (ptrdiff_t column = 0; column < product.outputs; column += PANEL) {
            weights.pack(column, own);
            multiply_rows(product, 0, product.num_rows, column, own, tiles);
        }
    }
}

}  // namespace

// tiled_product.py calls these by their names, and checks what they are given.
#define FUNCTIONS(NAME, NUMBER)                                                                    \
    void pack_tiles_##NAME(const Weights<NUMBER> *weights, Bfloat16 *packed, int threads) {        \
        pack_tiles(*weights, packed, threads);                                                     \
    }                                                                                              \
    void multiply_once_##NAME(const Product *product, const Weights<NUMBER> *weights,              \
                              int threads) {                                                       \
        multiply_once(*product, *weights, threads);                                                \
    }

extern "C" {

FUNCTIONS(float32, float)
FUNCTIONS(bfloat16, Bfloat16)

void multiply_tiles_bfloat16(const Product *product, int threads) {
    const ptrdiff_t inputs = product->inputs, outputs = product->outputs;
    const ptrdiff_t rows_at_once =
        std::max(NUMBERS_AT_ONCE / inputs / Block::SIZE, ptrdiff_t(1)) * Block::SIZE;
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
                              product->weights + column * inputs, tiles);
    }
}

}  // extern "C"

#endif
