// Sixteen numbers at a time, as floats in a register of AVX-512 or in two of AVX2.

#pragma once

#include "instructions.h"
#include "numbers.h"

#ifdef HAS_SIMD_CODE

namespace elmo_scratch {
inline namespace OF_INSTRUCTIONS {

constexpr ptrdiff_t REGISTER = 16;

#if INSTRUCTIONS == AVX2

struct Sixteen {
    __m256 low, high;
};
// Of each number whether it is meant: all bits, or none.
using Mask = Sixteen;

INLINE Sixteen all(float number) { return {_mm256_set1_ps(number), _mm256_set1_ps(number)}; }

INLINE Sixteen load(const float *numbers) {
    return {_mm256_loadu_ps(numbers), _mm256_loadu_ps(numbers + 8)};
}

INLINE void store(Sixteen own, float *numbers) {
    _mm256_storeu_ps(numbers, own.low);
    _mm256_storeu_ps(numbers + 8, own.high);
}

INLINE Sixteen operator+(Sixteen a, Sixteen b) {
    return {_mm256_add_ps(a.low, b.low), _mm256_add_ps(a.high, b.high)};
}

INLINE Sixteen operator-(Sixteen a, Sixteen b) {
    return {_mm256_sub_ps(a.low, b.low), _mm256_sub_ps(a.high, b.high)};
}

INLINE Sixteen operator*(Sixteen a, Sixteen b) {
    return {_mm256_mul_ps(a.low, b.low), _mm256_mul_ps(a.high, b.high)};
}

// a b + c, rounded once.
INLINE Sixteen fused(Sixteen a, Sixteen b, Sixteen c) {
    return {_mm256_fmadd_ps(a.low, b.low, c.low), _mm256_fmadd_ps(a.high, b.high, c.high)};
}

// c - a b, rounded once.
INLINE Sixteen fused_less(Sixteen a, Sixteen b, Sixteen c) {
    return {_mm256_fnmadd_ps(a.low, b.low, c.low), _mm256_fnmadd_ps(a.high, b.high, c.high)};
}

// The second one where either is no number.
INLINE Sixteen lower_of(Sixteen a, Sixteen b) {
    return {_mm256_min_ps(a.low, b.low), _mm256_min_ps(a.high, b.high)};
}

INLINE Sixteen higher_of(Sixteen a, Sixteen b) {
    return {_mm256_max_ps(a.low, b.low), _mm256_max_ps(a.high, b.high)};
}

INLINE Sixteen reciprocal(Sixteen x) {
    const __m256 one = _mm256_set1_ps(1.0f);
    return {_mm256_div_ps(one, x.low), _mm256_div_ps(one, x.high)};
}

// 2^n, of the whole number n that the last bits of a float hold.
INLINE __m256 power_of_bits(__m256 shifted) {
    const __m256i bits = _mm256_slli_epi32(_mm256_castps_si256(shifted), 23);
    return _mm256_castsi256_ps(_mm256_add_epi32(bits, _mm256_set1_epi32(0x3F800000)));
}

INLINE Sixteen power_of_bits(Sixteen shifted) {
    return {power_of_bits(shifted.low), power_of_bits(shifted.high)};
}

// Whether |x| reaches the bound. What is no number doesn't.
INLINE Mask reaches(Sixteen x, Sixteen bound) {
    const __m256 sign = _mm256_set1_ps(-0.0f);
    return {_mm256_cmp_ps(_mm256_andnot_ps(sign, x.low), bound.low, _CMP_GE_OQ),
            _mm256_cmp_ps(_mm256_andnot_ps(sign, x.high), bound.high, _CMP_GE_OQ)};
}

// What is no number is the highest, and the first of them stays.
INLINE __m256 is_higher(__m256 own, __m256 highest) {
    return _mm256_and_ps(_mm256_cmp_ps(highest, highest, _CMP_ORD_Q),
                         _mm256_cmp_ps(own, highest, _CMP_NLE_UQ));
}

INLINE Mask is_higher(Sixteen own, Sixteen highest) {
    return {is_higher(own.low, highest.low), is_higher(own.high, highest.high)};
}

INLINE Sixteen where(Mask mask, Sixteen yes, Sixteen no) {
    return {_mm256_blendv_ps(no.low, yes.low, mask.low),
            _mm256_blendv_ps(no.high, yes.high, mask.high)};
}

// Which of eight numbers are among the first of them.
INLINE __m256i first_of_eight(ptrdiff_t count) {
    const __m256i places = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    const int bound = count < 0 ? 0 : count > 8 ? 8 : int(count);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(bound), places);
}

// The first numbers, and zeros.
INLINE Sixteen load_first(const float *numbers, ptrdiff_t count) {
    if (count >= REGISTER) return load(numbers);
    return {_mm256_maskload_ps(numbers, first_of_eight(count)),
            _mm256_maskload_ps(numbers + 8, first_of_eight(count - 8))};
}

INLINE void store_first(Sixteen own, float *numbers, ptrdiff_t count) {
    if (count >= REGISTER) return store(own, numbers);
    _mm256_maskstore_ps(numbers, first_of_eight(count), own.low);
    _mm256_maskstore_ps(numbers + 8, first_of_eight(count - 8), own.high);
}

// Whole numbers below 256.
INLINE void store_first(Sixteen own, std::uint8_t *numbers, ptrdiff_t count) {
    const __m256i shorts =
        _mm256_packs_epi32(_mm256_cvtps_epi32(own.low), _mm256_cvtps_epi32(own.high));
    const __m256i sorted = _mm256_permute4x64_epi64(shorts, 0xD8);
    alignas(16) std::uint8_t bytes[REGISTER];
    _mm_store_si128(
        reinterpret_cast<__m128i *>(bytes),
        _mm_packus_epi16(_mm256_castsi256_si128(sorted), _mm256_extracti128_si256(sorted, 1)));
    std::memcpy(numbers, bytes, count < REGISTER ? count : REGISTER);
}

#else

using Sixteen = __m512;
using Mask = __mmask16;

// Which of sixteen numbers are among the first of them.
INLINE Mask first(ptrdiff_t count) {
    return count >= 16 ? Mask(0xFFFF) : count <= 0 ? Mask(0) : Mask((1 << count) - 1);
}

INLINE Sixteen all(float number) { return _mm512_set1_ps(number); }

INLINE Sixteen load(const float *numbers) { return _mm512_loadu_ps(numbers); }

INLINE void store(Sixteen own, float *numbers) { _mm512_storeu_ps(numbers, own); }

// a b + c, rounded once.
INLINE Sixteen fused(Sixteen a, Sixteen b, Sixteen c) { return _mm512_fmadd_ps(a, b, c); }

// c - a b, rounded once.
INLINE Sixteen fused_less(Sixteen a, Sixteen b, Sixteen c) { return _mm512_fnmadd_ps(a, b, c); }

// The second one where either is no number.
INLINE Sixteen lower_of(Sixteen a, Sixteen b) { return _mm512_min_ps(a, b); }

INLINE Sixteen higher_of(Sixteen a, Sixteen b) { return _mm512_max_ps(a, b); }

// To the last bit or the one before it: a division takes four times as long.
INLINE Sixteen reciprocal(Sixteen x) {
    const Sixteen near = _mm512_rcp14_ps(x);
    return fused(fused_less(x, near, all(1.0f)), near, near);
}

// 2^n, of the whole number n that the last bits of a float hold.
INLINE Sixteen power_of_bits(Sixteen shifted) {
    const __m512i bits = _mm512_slli_epi32(_mm512_castps_si512(shifted), 23);
    return _mm512_castsi512_ps(_mm512_add_epi32(bits, _mm512_set1_epi32(0x3F800000)));
}

// Whether |x| reaches the bound. What is no number doesn't.
INLINE Mask reaches(Sixteen x, Sixteen bound) {
    return _mm512_cmp_ps_mask(_mm512_abs_ps(x), bound, _CMP_GE_OQ);
}

// What is no number is the highest, and the first of them stays.
INLINE Mask is_higher(Sixteen own, Sixteen highest) {
    return _mm512_mask_cmp_ps_mask(_mm512_cmp_ps_mask(highest, highest, _CMP_ORD_Q), own, highest,
                                   _CMP_NLE_UQ);
}

INLINE Sixteen where(Mask mask, Sixteen yes, Sixteen no) {
    return _mm512_mask_mov_ps(no, mask, yes);
}

// The first numbers, and zeros.
INLINE Sixteen load_first(const float *numbers, ptrdiff_t count) {
    return _mm512_maskz_loadu_ps(first(count), numbers);
}

INLINE void store_first(Sixteen own, float *numbers, ptrdiff_t count) {
    _mm512_mask_storeu_ps(numbers, first(count), own);
}

// Whole numbers below 256.
INLINE void store_first(Sixteen own, std::uint8_t *numbers, ptrdiff_t count) {
    _mm512_mask_cvtepi32_storeu_epi8(numbers, first(count), _mm512_cvtps_epi32(own));
}

#endif
#if INSTRUCTIONS == BFLOAT16

INLINE Sixteen load(const Bfloat16 *numbers) {
    const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i *>(numbers));
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
}

INLINE void store(Sixteen own, Bfloat16 *numbers) {
    _mm256_storeu_si256(reinterpret_cast<__m256i *>(numbers), (__m256i)_mm512_cvtneps_pbh(own));
}

#endif

// Stores them, and returns what was stored.
template <typename Number>
INLINE Sixteen store_rounded(Sixteen own, Number *numbers) {
    store(own, numbers);
    return load(numbers);
}

}  // namespace OF_INSTRUCTIONS
}  // namespace elmo_scratch

#endif
