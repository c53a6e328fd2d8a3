// Products of any number of rows with weights, by AMX. A row's result depends neither on its place
// nor on the other rows.

#define INSTRUCTIONS BFLOAT16

#include "../structs.h"
#include "tile_packing.h"

#ifdef HAS_SIMD_CODE

using namespace elmo_scratch;

namespace {

// Outputs that are packed together.
constexpr ptrdiff_t PANEL = 4 * TILE;
// Numbers of rows that stay in the L2 cache while weights pass.
constexpr ptrdiff_t NUMBERS_AT_ONCE = 1 << 18;
// Rows with more inputs are long. So many long rows and columns are multiplied together.
constexpr ptrdiff_t MANY_INPUTS = 1 << 12, ROWS_OF_MANY_INPUTS = 384, COLUMNS_OF_LONG_ROWS = 512;
constexpr ptrdiff_t MIN_PRODUCTS_OF_A_THREAD = 1 << 20, MIN_WEIGHTS_OF_A_THREAD = 1 << 16;

template <typename Number>
INLINE void pack_block(const AmxWeights<Number> &weights, ptrdiff_t output, ptrdiff_t input,
                       Bfloat16 *tiles) {
    const ptrdiff_t outputs = weights.outputs, inputs = weights.inputs;
    if (weights.is_turned)
        Block(weights.numbers + input * outputs + output, outputs, inputs - input, outputs - output)
            .store_columns(tiles);
    else
        Block(weights.numbers + output * inputs + input, inputs, outputs - output, inputs - input)
            .store_rows(tiles);
}

// Packs the weights of 64 outputs: two tiles beside each other for each 32 outputs and 32 inputs.
// Missing outputs and inputs are zeros.
template <typename Number>
void pack_panel(const AmxWeights<Number> &weights, ptrdiff_t output, Bfloat16 *tiles) {
    const ptrdiff_t other = round_up(weights.inputs, Block::SIZE) * Block::SIZE;
    for (ptrdiff_t input = 0; input < weights.inputs; input += Block::SIZE)
        for (ptrdiff_t k = 0; k < PANEL; k += Block::SIZE)
            pack_block(weights, output + k, input,
                       tiles + k / Block::SIZE * other + input * Block::SIZE);
}

// Adds the bias and the summand to the sums of 16 columns, and rounds.
INLINE void finish(const float *sums, const Bfloat16 *bias, const Bfloat16 *summand,
                   Bfloat16 *result) {
    __m512 own = load(sums);
    if (bias) own = _mm512_add_ps(own, load(bias));
    if (summand) own = _mm512_add_ps(own, load(summand));
    store(own, result);
}

// Finishes up to 32 rows and 64 columns.
void finish_block(const AmxProduct &product, ptrdiff_t row, ptrdiff_t rows, ptrdiff_t column,
                  const float *sums, ptrdiff_t stride) {
    const Bfloat16 *bias = product.bias ? product.bias + column : nullptr;
    for (ptrdiff_t r = 0; r < rows; r++) {
        const ptrdiff_t place = (row + r) * product.outputs + column;
        for (ptrdiff_t k = 0; k < PANEL; k += REGISTER)
            finish(sums + r * stride + k, bias ? bias + k : nullptr,
                   product.summand ? product.summand + place + k : nullptr,
                   product.result + place + k);
    }
}

// Multiplies some rows by 64 columns.
void multiply_rows(const AmxProduct &product, ptrdiff_t first, ptrdiff_t end, ptrdiff_t column,
                   const Bfloat16 *weights, Tiles &tiles) {
    alignas(64) float sums[Block::SIZE * PANEL];
    const ptrdiff_t inputs = product.inputs;
    for (ptrdiff_t row = first; row < end; row += Block::SIZE) {
        const ptrdiff_t rows = std::min(end - row, Block::SIZE);
        for (ptrdiff_t k = 0; k < PANEL; k += Block::SIZE)
            tiles.multiply(rows, Tiled::rows(product.rows + row * inputs, inputs),
                           Tiled::pairs(weights + k * inputs), inputs / 2, sums + k, PANEL);
        finish_block(product, row, rows, column, sums, PANEL);
    }
}

// Multiplies some long rows by some columns, a part of the inputs after the other: the caches don't
// hold all inputs of enough rows to make fetching the weights worthwhile.
void multiply_long_rows(const AmxProduct &product, ptrdiff_t first, ptrdiff_t end, ptrdiff_t from,
                        ptrdiff_t to, float *sums, Tiles &tiles) {
    const ptrdiff_t inputs = product.inputs, stride = to - from;
    const ptrdiff_t at_once =
        std::max(NUMBERS_AT_ONCE / (end - first) / Block::SIZE, ptrdiff_t(1)) * Block::SIZE;
    for (ptrdiff_t input = 0; input < inputs; input += at_once)
        for (ptrdiff_t column = from; column < to; column += Block::SIZE)
            for (ptrdiff_t row = first; row < end; row += Block::SIZE)
                tiles.multiply(
                    std::min(end - row, Block::SIZE),
                    Tiled::rows(product.rows + row * inputs + input, inputs),
                    Tiled::pairs(product.weights + column * inputs + input * Block::SIZE),
                    std::min(at_once, inputs - input) / 2,
                    sums + (row - first) * stride + column - from, stride, input > 0);
    for (ptrdiff_t row = first; row < end; row += Block::SIZE)
        for (ptrdiff_t column = from; column < to; column += PANEL)
            finish_block(product, row, std::min(end - row, Block::SIZE), column,
                         sums + (row - first) * stride + column - from, stride);
}

template <typename Number>
void pack_tiles(const AmxWeights<Number> &weights, Bfloat16 *packed, int threads) {
    const ptrdiff_t inputs = round_up(weights.inputs, Block::SIZE);
    const ptrdiff_t outputs = round_up(weights.outputs, PANEL);
    const int num_threads =
        threads_for(outputs * inputs, MIN_WEIGHTS_OF_A_THREAD, outputs / PANEL, threads);
#pragma omp parallel for num_threads(num_threads) if (num_threads > 1)
    for (ptrdiff_t output = 0; output < outputs; output += PANEL)
        pack_panel(weights, output, packed + output * inputs);
}

// Multiplies by weights for one product only, which are packed in a cache.
template <typename Number>
void multiply_once(const AmxProduct &product, const AmxWeights<Number> &weights, int threads) {
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
        Tiles tiles(true);
        std::vector<Lanes> packed(PANEL * product.inputs / NUMBERS_OF_A_TILE);
        Bfloat16 *own = reinterpret_cast<Bfloat16 *>(packed.data());
#pragma omp for schedule(static)
        for (ptrdiff_t column = 0; column < product.outputs; column += PANEL) {
            pack_panel(weights, column, own);
            multiply_rows(product, 0, product.num_rows, column, own, tiles);
        }
    }
}

}  // namespace

// amx.py calls these, and checks what they are given.
#define FUNCTIONS(NAME, NUMBER)                                                                    \
    void pack_tiles_##NAME(const AmxWeights<NUMBER> *weights, Bfloat16 *packed, int threads) {     \
        pack_tiles(*weights, packed, threads);                                                     \
    }                                                                                              \
    void multiply_once_##NAME(const AmxProduct *product, const AmxWeights<NUMBER> *weights,        \
                              int threads) {                                                       \
        multiply_once(*product, *weights, threads);                                                \
    }

extern "C" {

FUNCTIONS(float32, float)
FUNCTIONS(bfloat16, Bfloat16)

void multiply_tiles_bfloat16(const AmxProduct *product, int threads) {
    const ptrdiff_t num_rows = product->num_rows, outputs = product->outputs;
    const ptrdiff_t inputs = product->inputs;
    const bool are_long = inputs > MANY_INPUTS;
    const ptrdiff_t columns = are_long ? std::min(outputs, COLUMNS_OF_LONG_ROWS) : PANEL;
    const ptrdiff_t most =
        are_long ? ROWS_OF_MANY_INPUTS : std::max(NUMBERS_AT_ONCE / inputs, Block::SIZE);
    const ptrdiff_t panels = (outputs + columns - 1) / columns;
    const int num_threads = threads_for(num_rows * outputs * inputs, MIN_PRODUCTS_OF_A_THREAD,
                                        num_rows * outputs / PANEL, threads);
    // Parts have the same size, so that threads finish at about the same time.
    ptrdiff_t parts = std::max((num_rows + most - 1) / most, ptrdiff_t(1));
    if (panels < num_threads) parts = std::max(parts, ptrdiff_t(num_threads));
    const ptrdiff_t rows = round_up((num_rows + parts - 1) / parts, Block::SIZE);
#pragma omp parallel num_threads(num_threads) if (num_threads > 1)
    {
        Tiles tiles(true);
        std::vector<float> sums(are_long ? rows * columns : 0);
#pragma omp for collapse(2) schedule(static)
        for (ptrdiff_t part = 0; part < parts; part++)
            for (ptrdiff_t panel = 0; panel < panels; panel++) {
                const ptrdiff_t first = part * rows, end = std::min(first + rows, num_rows);
                const ptrdiff_t column = panel * columns;
                if (first >= end) continue;
                if (are_long)
                    multiply_long_rows(*product, first, end, column,
                                       std::min(column + columns, outputs), sums.data(), tiles);
                else
                    multiply_rows(*product, first, end, column, product->weights + column * inputs,
                                  tiles);
            }
    }
}

}  // extern "C"

#endif
