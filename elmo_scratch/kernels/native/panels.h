// Packs weights into panels of 64 outputs for panel_products.h. Missing outputs of the last panel
// are zeros.

#pragma once

#include "panel_products.h"
#include "structs.h"
#if INSTRUCTIONS == BFLOAT16
#include "amx/tile_packing.h"
#endif

#ifdef HAS_SIMD_CODE

namespace elmo_scratch {
inline namespace OF_INSTRUCTIONS {

constexpr ptrdiff_t MIN_WEIGHTS_OF_A_THREAD = 1 << 16;

INLINE ptrdiff_t num_outputs(const PanelMatrix &matrix) {
    return matrix.is_turned ? matrix.columns : matrix.rows;
}

INLINE ptrdiff_t num_inputs(const PanelMatrix &matrix) {
    return matrix.is_turned ? matrix.rows : matrix.columns;
}

// The first output of one of the four vectors of a panel.
INLINE ptrdiff_t first_output(const PanelMatrix &matrix, ptrdiff_t panel, ptrdiff_t vector) {
    return matrix.is_of_gates ? panel * REGISTER + vector * (matrix.rows / 4)
                              : panel * PANEL + vector * REGISTER;
}

INLINE const float *weight_at(const PanelMatrix &matrix, ptrdiff_t output, ptrdiff_t input) {
    return matrix.numbers +
           (matrix.is_turned ? input * matrix.columns + output : output * matrix.columns + input);
}

template <typename Number>
void pack_lanes(const PanelMatrix &matrix, ptrdiff_t panel, Number *packed) {
    constexpr ptrdiff_t depth = NUMBERS_OF_A_LANE<Number>;
    const ptrdiff_t output_step = matrix.is_turned ? 1 : matrix.columns;
    const ptrdiff_t input_step = matrix.is_turned ? matrix.columns : 1;
    for (ptrdiff_t input = 0; input < num_inputs(matrix); input += depth)
        for (ptrdiff_t r = 0; r < REGISTERS; r++) {
            const ptrdiff_t output = first_output(matrix, panel, r);
            const ptrdiff_t some = std::clamp(num_outputs(matrix) - output, ptrdiff_t(0), REGISTER);
            const float *place = weight_at(matrix, output, input);
            for (ptrdiff_t k = 0; k < some; k++)
                for (ptrdiff_t d = 0; d < depth; d++)
                    *packed++ = place[k * output_step + d * input_step];
            for (ptrdiff_t k = some * depth; k < REGISTER * depth; k++) *packed++ = 0.0f;
        }
}

#if INSTRUCTIONS == BFLOAT16
inline void pack_tiles(const PanelMatrix &matrix, ptrdiff_t panel, Bfloat16 *packed) {
    for (ptrdiff_t vector = 0; vector < REGISTERS; vector += 2) {
        const ptrdiff_t one = first_output(matrix, panel, vector);
        const ptrdiff_t other = first_output(matrix, panel, vector + 1);
        const ptrdiff_t outputs = num_outputs(matrix) - one, columns = matrix.columns;
        for (ptrdiff_t input = 0; input < num_inputs(matrix); input += Block::SIZE) {
            const float *place = weight_at(matrix, one, input);
            const ptrdiff_t inputs = num_inputs(matrix) - input;
            if (matrix.is_turned)
                Block(place, columns, inputs, outputs).store_columns(packed);
            else if (matrix.is_of_gates)
                Block(place, weight_at(matrix, other, input), columns).store_rows(packed);
            else
                Block(place, columns, outputs, inputs).store_rows(packed);
            packed += 2 * NUMBERS_OF_A_TILE;
        }
    }
}
#endif

template <typename Number>
void pack_panel(const PanelMatrix &matrix, ptrdiff_t panel, Number *packed, int has_tiles) {
#if INSTRUCTIONS == BFLOAT16
    if (has_tiles) return pack_tiles(matrix, panel, packed);
#endif
    pack_lanes(matrix, panel, packed);
}

template <typename Number>
void pack_panels(const PanelMatrix &matrix, Number *packed, int threads, int has_tiles) {
    const ptrdiff_t panels = round_up(num_outputs(matrix), PANEL) / PANEL;
    const int num_threads =
        threads_for(matrix.rows * matrix.columns, MIN_WEIGHTS_OF_A_THREAD, panels, threads);
#pragma omp parallel for num_threads(num_threads) if (num_threads > 1)
    for (ptrdiff_t panel = 0; panel < panels; panel++)
        pack_panel(matrix, panel, packed + panel * PANEL * num_inputs(matrix), has_tiles);
}

}  // namespace OF_INSTRUCTIONS
}  // namespace elmo_scratch

#endif
