// Packs matrices into tiles.

#pragma once

#include "tiles.h"

#ifdef HAS_SIMD_CODE

namespace elmo_scratch {
inline namespace OF_INSTRUCTIONS {

// The lanes of a tile, row by row. Without `alignas` standard templates, which are compiled for
// AVX2, align it to 32 bytes.
struct alignas(64) Lanes {
    __m512i rows[TILE];

    INLINE void store(Bfloat16 *tile) const {
        for (ptrdiff_t k = 0; k < TILE; k++) _mm512_storeu_si512(tile + k * 2 * TILE, rows[k]);
    }

    // The transposed tile.
    INLINE Lanes transposed() const {
        Lanes pairs, fours, eights, columns;
        for (ptrdiff_t k = 0; k < TILE; k += 2) {
            pairs.rows[k] = _mm512_unpacklo_epi32(rows[k], rows[k + 1]);
            pairs.rows[k + 1] = _mm512_unpackhi_epi32(rows[k], rows[k + 1]);
        }
        for (ptrdiff_t k = 0; k < TILE; k += 4)
            for (ptrdiff_t n = 0; n < 2; n++) {
                const __m512i one = pairs.rows[k + n], other = pairs.rows[k + n + 2];
                fours.rows[k + 2 * n] = _mm512_unpacklo_epi64(one, other);
                fours.rows[k + 2 * n + 1] = _mm512_unpackhi_epi64(one, other);
            }
        for (ptrdiff_t k = 0; k < TILE; k += 8)
            for (ptrdiff_t n = 0; n < 4; n++) {
                const __m512i one = fours.rows[k + n], other = fours.rows[k + n + 4];
                eights.rows[k + n] = _mm512_shuffle_i32x4(one, other, 0x88);
                eights.rows[k + n + 4] = _mm512_shuffle_i32x4(one, other, 0xDD);
            }
        for (ptrdiff_t k = 0; k < TILE / 2; k++) {
            const __m512i one = eights.rows[k], other = eights.rows[k + TILE / 2];
            columns.rows[k] = _mm512_shuffle_i32x4(one, other, 0x88);
            columns.rows[k + TILE / 2] = _mm512_shuffle_i32x4(one, other, 0xDD);
        }
        return columns;
    }
};

INLINE __m256i rounded(const Bfloat16 *numbers, __mmask16 some) {
    return _mm256_maskz_loadu_epi16(some, numbers);
}

INLINE __m256i rounded(const float *numbers, __mmask16 some) {
    return (__m256i)_mm512_cvtneps_pbh(_mm512_maskz_loadu_ps(some, numbers));
}

// A copy of 32 rows and 32 columns of a matrix, rounded, with zeros where it has fewer. The stride
// of a matrix is often such that its rows evict each other from the cache: the copy reads each line
// once.
struct Block {
    static constexpr ptrdiff_t SIZE = 2 * TILE;
    alignas(64) Bfloat16 numbers[SIZE][SIZE];

    template <typename Number>
    INLINE Block(const Number *matrix, ptrdiff_t stride, ptrdiff_t rows, ptrdiff_t columns) {
        const __mmask16 left = first(columns), right = first(columns - TILE);
        for (ptrdiff_t row = 0; row < SIZE; row++) {
            const Number *place = matrix + row * stride;
            const bool is_there = row < rows;
            store(row, 0, rounded(place, is_there ? left : __mmask16(0)));
            store(row, TILE, rounded(place + TILE, is_there ? right : __mmask16(0)));
        }
    }

    // From two matrices, 16 rows each.
    template <typename Number>
    INLINE Block(const Number *above, const Number *below, ptrdiff_t stride) {
        for (ptrdiff_t row = 0; row < SIZE; row++) {
            const Number *place = row < TILE ? above + row * stride : below + (row - TILE) * stride;
            store(row, 0, rounded(place, __mmask16(0xFFFF)));
            store(row, TILE, rounded(place + TILE, __mmask16(0xFFFF)));
        }
    }

    // A tile of 16 columns, of which each lane has two rows.
    INLINE Lanes columns(ptrdiff_t column) const {
        Lanes lanes;
        for (ptrdiff_t k = 0; k < TILE; k++)
            lanes.rows[k] = _mm512_or_si512(wide(2 * k, column),
                                            _mm512_slli_epi32(wide(2 * k + 1, column), 16));
        return lanes;
    }

    // A tile of 16 rows, of which each lane has two columns.
    INLINE Lanes rows(ptrdiff_t row) const {
        Lanes lanes;
        for (ptrdiff_t k = 0; k < TILE; k++) lanes.rows[k] = _mm512_load_si512(numbers[row + k]);
        return lanes;
    }

    // Packs weights with a column for each output: two tiles, which lie beside each other.
    INLINE void store_columns(Bfloat16 *tiles) const {
        columns(0).store(tiles);
        columns(TILE).store(tiles + NUMBERS_OF_A_TILE);
    }

    // Packs weights with a row for each output.
    INLINE void store_rows(Bfloat16 *tiles) const {
        rows(0).transposed().store(tiles);
        rows(TILE).transposed().store(tiles + NUMBERS_OF_A_TILE);
    }

   private:
    INLINE void store(ptrdiff_t row, ptrdiff_t column, __m256i bits) {
        _mm256_store_si256(reinterpret_cast<__m256i *>(&numbers[row][column]), bits);
    }

    INLINE __m512i wide(ptrdiff_t row, ptrdiff_t column) const {
        return _mm512_cvtepu16_epi32(
            _mm256_load_si256(reinterpret_cast<const __m256i *>(&numbers[row][column])));
    }
};

}  // namespace OF_INSTRUCTIONS
}  // namespace elmo_scratch

#endif
