// Sixteen numbers at a time, as floats in a register.

#pragma once

#include "instructions.h"
#include "numbers.h"

#ifdef HAS_WIDE_CODE

namespace elmo_scratch {

// Of sixteen.
INLINE __mmask16 first(ptrdiff_t count) {
    return count >= 16  ? __mmask16(0xFFFF)
           : count <= 0 ? __mmask16(0)
                        : __mmask16((1 << count) - 1);
}

WIDE INLINE __m512 load(const float *numbers) { return _mm512_loadu_ps(numbers); }

WIDE INLINE __m512 load(const Bfloat16 *numbers) {
    const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i *>(numbers));
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
}

WIDE INLINE void store(__m512 own, float *numbers) { _mm512_storeu_ps(numbers, own); }

WIDE INLINE void store(__m512 own, Bfloat16 *numbers) {
    _mm256_storeu_si256(reinterpret_cast<__m256i *>(numbers), (__m256i)_mm512_cvtneps_pbh(own));
}

// Stores them, and returns what was stored.
template <typename Number>
WIDE INLINE __m512 store_rounded(__m512 own, Number *numbers) {
    store(own, numbers);
    return load(numbers);
}

}  // namespace elmo_scratch

#endif
