// Lays weights in panels of 64 outputs, as panel_products.h reads them, and zeros beyond the last.

#pragma once

#include "panel_products.h"
#if INSTRUCTIONS == BFLOAT16
#include "amx/tile_packing.h"
#endif

#ifdef HAS_SIMD_CODE

namespace elmo_scratch {
inline namespace OF_INSTRUCTIONS {

// So many weights are worth a thread of its own.
constexpr ptrdiff_t WEIGHTS_OF_A_THREAD = 1 << 16;

// A matrix as it lies, of shape `(rows, columns)`: what its rows stand for are the outputs, or what
// its columns do where it is turned. A panel of gates has all four of 16 memory cells.
struct Matrix {
    const float *numbers;
    ptrdiff_t rows, columns;
    int is_turned, is_of_gates;

    ptrdiff_t outputs() const { return is_turned ? columns : rows; }
    ptrdiff_t inputs() const { return is_turned ? rows : columns; }
    // The first of 16 outputs of a panel, which has four times as many.
    ptrdiff_t output_of(ptrdiff_t panel, ptrdiff_t number) const {
        return is_of_gates ? panel * REGISTER + number * (rows / 4)
                           : panel * PANEL + number * REGISTER;
    }
    const float *place(ptrdiff_t output, ptrdiff_t input) const {
        return numbers + (is_turned ? input * columns + output : output * columns + input);
    }
};

template <typename Number>
void pack_lanes(const Matrix &matrix, ptrdiff_t panel, Number *packed) {
    constexpr ptrdiff_t depth = NUMBERS_OF_A_LANE<Number>;
    const ptrdiff_t output_step = matrix.is_turned ? 1 : matrix.columns;
    const ptrdiff_t input_step = matrix.is_turned ? matrix.columns : 1;
    for (ptrdiff_t input = 0; input < matrix.inputs(); input += depth)
        for (ptrdiff_t r = 0; r < REGISTERS; r++) {
            const ptrdiff_t output = matrix.output_of(panel, r);
            const ptrdiff_t some = std::clamp(matrix.outputs() - output, ptrdiff_t(0), REGISTER);
            const float *place = matrix.place(output, input);
            for (ptrdiff_t k = 0; k < some; k++)
                for (ptrdiff_t d = 0; d < depth; d++)
                    *packed++ = place[k * output_step + d * input_step];
            for (ptrdiff_t k = some * depth; k < REGISTER * depth; k++) *packed++ = 0.0f;
        }
}

#if INSTRUCTIONS == BFLOAT16
void pack_tiles(const Matrix &matrix, ptrdiff_t panel, Bfloat16 *packed) {
    for (ptrdiff_t number = 0; number < REGISTERS; number += 2) {
        const ptrdiff_t one = matrix.output_of(panel, number);
        const ptrdiff_t other = matrix.output_of(panel, number + 1);
        const ptrdiff_t outputs = matrix.outputs() - one, columns = matrix.columns;
        for (ptrdiff_t input = 0; input < matrix.inputs(); input += Block::SIZE) {
            const float *place = matrix.place(one, input);
            const ptrdiff_t inputs = matrix.inputs() - input;
            if (matrix.is_turned)
                Block(place, columns, inputs, outputs).store_columns(packed);
            else if (matrix.is_of_gates)
                Block(place, matrix.place(other, input), columns).store_rows(packed);
            else
                Block(place, columns, outputs, inputs).store_rows(packed);
            packed += 2 * NUMBERS_OF_A_TILE;
        }
    }
}
#endif

template <typename Number>
void pack_panel(const Matrix &matrix, ptrdiff_t panel, Number *packed, int has_tiles) {
#if INSTRUCTIONS == BFLOAT16
    if (has_tiles) return pack_tiles(matrix, panel, packed);
#endif
    pack_lanes(matrix, panel, packed);
}

template <typename Number>
void pack_panels(const Matrix &matrix, Number *packed, int threads, int has_tiles) {
    const ptrdiff_t panels = filled(matrix.outputs(), PANEL) / PANEL;
    const int worth =
        threads_worth(matrix.rows * matrix.columns, WEIGHTS_OF_A_THREAD, panels, threads);
#pragma omp parallel for num_threads(worth) if (worth > 1)
    for (ptrdiff_t panel = 0; panel < panels; panel++)
        pack_panel(matrix, panel, packed + panel * PANEL * matrix.inputs(), has_tiles);
}

}  // namespace OF_INSTRUCTIONS
}  // namespace elmo_scratch

#endif
