// The sigmoid and the hyperbolic tangent, of one float and of vectors.

#pragma once

#include "scalar.h"
#include "vec16f.h"

namespace elmo_scratch {
inline namespace OF_INSTRUCTIONS {

// e^x = (1 + p) * power, for x between -87 and 87: `power` is a power of two, which is one where x
// is near zero.
template <typename V>
struct Exponential {
    V p, power;
};

// e^x = 2^n e^r with |r| <= ln(2) / 2. The polynomial for e^r is that of expf in Moshier's Cephes
// library.
template <typename V>
INLINE Exponential<V> exponential(V x) {
    // NaN stays.
    x = min(constant<V>(87.0f), max(constant<V>(-87.0f), x));
    // This addition rounds to an integer, which the low bits of the sum then hold.
    const V shifted = fma(x, constant<V>(1.44269504f), constant<V>(12582912.0f));
    const V n = shifted - constant<V>(12582912.0f);
    const V r = fma(n, constant<V>(2.12194440e-4f), fma(n, constant<V>(-0.693359375f), x));
    V p = fma(constant<V>(1.9875691500e-4f), r, constant<V>(1.3981999507e-3f));
    p = fma(p, r, constant<V>(8.3334519073e-3f));
    p = fma(p, r, constant<V>(4.1665795894e-2f));
    p = fma(p, r, constant<V>(1.6666665459e-1f));
    p = fma(p, r, constant<V>(5.0000001201e-1f));
    return {fma(p, r * r, r), exp2_of_low_bits(shifted)};
}

INLINE float exp(float x) {
    const Exponential<float> e = exponential(x);
    return (e.p + 1.0f) * e.power;
}

INLINE float sigmoid(float x) { return 1.0f / (1.0f + exp(negate(x))); }

// The general formula loses digits near zero, where the polynomial of Cephes' tanhf takes its
// place.
INLINE float tanh(float x) {
    const float square = x * x;
    float p = -5.70498872745e-3f;
    p = fma(p, square, 2.06390887954e-2f);
    p = fma(p, square, -5.37397155531e-2f);
    p = fma(p, square, 1.33314422036e-1f);
    p = fma(p, square, -3.33332819422e-1f);
    const float near_zero = fma(p * square, x, x);
    const float elsewhere = 1.0f - 2.0f / (exp(2.0f * x) + 1.0f);
    return square < 0.390625f ? near_zero : elsewhere;
}

#ifdef HAS_SIMD_CODE

INLINE Vec16f sigmoid(Vec16f x) {
    const Exponential<Vec16f> e = exponential(negate(x));
    return reciprocal(e.p * e.power + e.power + broadcast(1.0f));
}

// By e^2x - 1, which keeps all digits near zero.
INLINE Vec16f tanh(Vec16f x) {
    const Exponential<Vec16f> e = exponential(x + x);
    const Vec16f grown = e.p * e.power + (e.power - broadcast(1.0f));
    return grown * reciprocal(grown + broadcast(2.0f));
}

#endif

}  // namespace OF_INSTRUCTIONS
}  // namespace elmo_scratch
