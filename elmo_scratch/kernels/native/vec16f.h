// A vector of 16 floats: one register of AVX-512, or two of AVX2.

#pragma once

#include "scalar.h"

#ifdef HAS_SIMD_CODE

namespace elmo_scratch {
inline namespace OF_INSTRUCTIONS {

// Floats of a vector.
constexpr ptrdiff_t REGISTER = 16;

#if INSTRUCTIONS == AVX2

struct Vec16f {
    __m256 low, high;
};
// All bits of a float are set where the mask is true, and none elsewhere.
using Mask = Vec16f;

INLINE Vec16f broadcast(float number) { return {_mm256_set1_ps(number), _mm256_set1_ps(number)}; }

INLINE Vec16f load(const float *numbers) {
    return {_mm256_loadu_ps(numbers), _mm256_loadu_ps(numbers + 8)};
}

INLINE void store(Vec16f own, float *numbers) {
    _mm256_storeu_ps(numbers, own.low);
    _mm256_storeu_ps(numbers + 8, own.high);
}

INLINE Vec16f operator+(Vec16f a, Vec16f b) {
    return {_mm256_add_ps(a.low, b.low), _mm256_add_ps(a.high, b.high)};
}

INLINE Vec16f operator-(Vec16f a, Vec16f b) {
    return {_mm256_sub_ps(a.low, b.low), _mm256_sub_ps(a.high, b.high)};
}

INLINE Vec16f operator*(Vec16f a, Vec16f b) {
    return {_mm256_mul_ps(a.low, b.low), _mm256_mul_ps(a.high, b.high)};
}

INLINE Vec16f negate(Vec16f x) { return broadcast(0.0f) - x; }

// a b + c, rounded once.
INLINE Vec16f fma(Vec16f a, Vec16f b, Vec16f c) {
    return {_mm256_fmadd_ps(a.low, b.low, c.low), _mm256_fmadd_ps(a.high, b.high, c.high)};
}

// c - a b, rounded once.
INLINE Vec16f fnma(Vec16f a, Vec16f b, Vec16f c) {
    return {_mm256_fnmadd_ps(a.low, b.low, c.low), _mm256_fnmadd_ps(a.high, b.high, c.high)};
}

// `b` where either is NaN.
INLINE Vec16f min(Vec16f a, Vec16f b) {
    return {_mm256_min_ps(a.low, b.low), _mm256_min_ps(a.high, b.high)};
}

INLINE Vec16f max(Vec16f a, Vec16f b) {
    return {_mm256_max_ps(a.low, b.low), _mm256_max_ps(a.high, b.high)};
}

INLINE Vec16f reciprocal(Vec16f x) {
    const __m256 one = _mm256_set1_ps(1.0f);
    return {_mm256_div_ps(one, x.low), _mm256_div_ps(one, x.high)};
}

// 2^n for the integer n in the low bits of a float.
INLINE __m256 exp2_of_low_bits(__m256 shifted) {
    const __m256i bits = _mm256_slli_epi32(_mm256_castps_si256(shifted), 23);
    return _mm256_castsi256_ps(_mm256_add_epi32(bits, _mm256_set1_epi32(0x3F800000)));
}

INLINE Vec16f exp2_of_low_bits(Vec16f shifted) {
    return {exp2_of_low_bits(shifted.low), exp2_of_low_bits(shifted.high)};
}

// Whether |x| >= bound. NaN doesn't reach any bound.
INLINE Mask reaches(Vec16f x, Vec16f bound) {
    const __m256 sign = _mm256_set1_ps(-0.0f);
    return {_mm256_cmp_ps(_mm256_andnot_ps(sign, x.low), bound.low, _CMP_GE_OQ),
            _mm256_cmp_ps(_mm256_andnot_ps(sign, x.high), bound.high, _CMP_GE_OQ)};
}

// Whether `own` replaces the maximum so far. NaN compares as largest; the first NaN wins (as in
// `torch.max`).
INLINE __m256 is_new_max(__m256 own, __m256 max_so_far) {
    return _mm256_and_ps(_mm256_cmp_ps(max_so_far, max_so_far, _CMP_ORD_Q),
                         _mm256_cmp_ps(own, max_so_far, _CMP_NLE_UQ));
}

INLINE Mask is_new_max(Vec16f own, Vec16f max_so_far) {
    return {is_new_max(own.low, max_so_far.low), is_new_max(own.high, max_so_far.high)};
}

INLINE Vec16f select(Mask mask, Vec16f yes, Vec16f no) {
    return {_mm256_blendv_ps(no.low, yes.low, mask.low),
            _mm256_blendv_ps(no.high, yes.high, mask.high)};
}

// A mask of the first `count` of eight numbers.
INLINE __m256i first_of_eight(ptrdiff_t count) {
    const __m256i places = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    const int bound = count < 0 ? 0 : count > 8 ? 8 : int(count);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(bound), places);
}

// The first `count` numbers, and zeros.
INLINE Vec16f load_first(const float *numbers, ptrdiff_t count) {
    if (count >= REGISTER) return load(numbers);
    return {_mm256_maskload_ps(numbers, first_of_eight(count)),
            _mm256_maskload_ps(numbers + 8, first_of_eight(count - 8))};
}

INLINE void store_first(Vec16f own, float *numbers, ptrdiff_t count) {
    if (count >= REGISTER) return store(own, numbers);
    _mm256_maskstore_ps(numbers, first_of_eight(count), own.low);
    _mm256_maskstore_ps(numbers + 8, first_of_eight(count - 8), own.high);
}

// Stores the first `count` numbers, which are integers below 256, as bytes.
INLINE void store_first(Vec16f own, std::uint8_t *numbers, ptrdiff_t count) {
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

using Vec16f = __m512;
using Mask = __mmask16;

// A mask of the first `count` of 16 numbers.
INLINE Mask first(ptrdiff_t count) {
    return count >= 16 ? Mask(0xFFFF) : count <= 0 ? Mask(0) : Mask((1 << count) - 1);
}

INLINE Vec16f broadcast(float number) { return _mm512_set1_ps(number); }

INLINE Vec16f load(const float *numbers) { return _mm512_loadu_ps(numbers); }

INLINE void store(Vec16f own, float *numbers) { _mm512_storeu_ps(numbers, own); }

INLINE Vec16f negate(Vec16f x) { return broadcast(0.0f) - x; }

// a b + c, rounded once.
INLINE Vec16f fma(Vec16f a, Vec16f b, Vec16f c) { return _mm512_fmadd_ps(a, b, c); }

// c - a b, rounded once.
INLINE Vec16f fnma(Vec16f a, Vec16f b, Vec16f c) { return _mm512_fnmadd_ps(a, b, c); }

// `b` where either is NaN.
INLINE Vec16f min(Vec16f a, Vec16f b) { return _mm512_min_ps(a, b); }

INLINE Vec16f max(Vec16f a, Vec16f b) { return _mm512_max_ps(a, b); }

// Correct to the last bit but one: a division takes four times as long.
INLINE Vec16f reciprocal(Vec16f x) {
    const Vec16f near = _mm512_rcp14_ps(x);
    return fma(fnma(x, near, broadcast(1.0f)), near, near);
}

// 2^n for the integer n in the low bits of a float.
INLINE Vec16f exp2_of_low_bits(Vec16f shifted) {
    const __m512i bits = _mm512_slli_epi32(_mm512_castps_si512(shifted), 23);
    return _mm512_castsi512_ps(_mm512_add_epi32(bits, _mm512_set1_epi32(0x3F800000)));
}

// Whether |x| >= bound. NaN doesn't reach any bound.
INLINE Mask reaches(Vec16f x, Vec16f bound) {
    return _mm512_cmp_ps_mask(_mm512_abs_ps(x), bound, _CMP_GE_OQ);
}

// Whether `own` replaces the maximum so far. NaN compares as largest; the first NaN wins (as in
// `torch.max`).
INLINE Mask is_new_max(Vec16f own, Vec16f max_so_far) {
    return _mm512_mask_cmp_ps_mask(_mm512_cmp_ps_mask(max_so_far, max_so_far, _CMP_ORD_Q), own,
                                   max_so_far, _CMP_NLE_UQ);
}

INLINE Vec16f select(Mask mask, Vec16f yes, Vec16f no) { return _mm512_mask_mov_ps(no, mask, yes); }

// The first `count` numbers, and zeros.
INLINE Vec16f load_first(const float *numbers, ptrdiff_t count) {
    return _mm512_maskz_loadu_ps(first(count), numbers);
}

INLINE void store_first(Vec16f own, float *numbers, ptrdiff_t count) {
    _mm512_mask_storeu_ps(numbers, first(count), own);
}

// Stores the first `count` numbers, which are integers below 256, as bytes.
INLINE void store_first(Vec16f own, std::uint8_t *numbers, ptrdiff_t count) {
    _mm512_mask_cvtepi32_storeu_epi8(numbers, first(count), _mm512_cvtps_epi32(own));
}

#endif
#if INSTRUCTIONS == BFLOAT16

INLINE Vec16f load(const Bfloat16 *numbers) {
    const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i *>(numbers));
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
}

INLINE void store(Vec16f own, Bfloat16 *numbers) {
    _mm256_storeu_si256(reinterpret_cast<__m256i *>(numbers), (__m256i)_mm512_cvtneps_pbh(own));
}

#endif

template <>
INLINE Vec16f constant<Vec16f>(float number) {
    return broadcast(number);
}

// Stores a vector, and returns it as it was rounded.
template <typename Number>
INLINE Vec16f store_rounded(Vec16f own, Number *numbers) {
    store(own, numbers);
    return load(numbers);
}

}  // namespace OF_INSTRUCTIONS
}  // namespace elmo_scratch

#endif
