// The operations of vec16f.h on a single float, for templates that take either.

#pragma once

#include "numbers.h"

namespace elmo_scratch {
inline namespace OF_INSTRUCTIONS {

// The same number in each place of a `V`.
template <typename V>
INLINE V constant(float number);

template <>
INLINE float constant<float>(float number) {
    return number;
}

INLINE float negate(float x) { return -x; }

// a b + c, rounded once.
INLINE float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }

// c - a b, rounded once.
INLINE float fnma(float a, float b, float c) { return __builtin_fmaf(-a, b, c); }

// As the instructions of x86: `b` if either is NaN.
INLINE float min(float a, float b) { return a < b ? a : b; }

INLINE float max(float a, float b) { return a > b ? a : b; }

// 2^n for the integer n in the low bits of a float.
INLINE float exp2_of_low_bits(float shifted) {
    return as_float((as_bits(shifted) << 23) + 0x3F800000u);
}

// Whether |x| >= bound. NaN doesn't reach any bound.
INLINE bool reaches(float x, float bound) { return (x <= -bound) | (x >= bound); }

INLINE float select(bool mask, float yes, float no) { return mask ? yes : no; }

}  // namespace OF_INSTRUCTIONS
}  // namespace elmo_scratch
