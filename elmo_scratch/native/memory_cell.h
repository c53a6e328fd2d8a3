// What one memory cell does at a step: plain.py says the same with PyTorch's operations.

#pragma once

#include "numbers.h"

namespace elmo_scratch {

INLINE float fused(float a, float b, float c) { return __builtin_fmaf(a, b, c); }

// e^x, of x between -87 and 87: 2^n e^r with |r| <= ln(2) / 2, and e^r by the polynomial of expf in
// Moshier's Cephes library.
INLINE float exponential(float x) {
    x = x < -87.0f ? -87.0f : x;
    x = x > 87.0f ? 87.0f : x;
    // This addition rounds to a whole number, which its last bits then hold.
    const float shifted = fused(x, 1.44269504f, 12582912.0f);
    const float n = shifted - 12582912.0f;
    const float r = fused(n, 2.12194440e-4f, fused(n, -0.693359375f, x));
    float p = 1.9875691500e-4f;
    p = fused(p, r, 1.3981999507e-3f);
    p = fused(p, r, 8.3334519073e-3f);
    p = fused(p, r, 4.1665795894e-2f);
    p = fused(p, r, 1.6666665459e-1f);
    p = fused(p, r, 5.0000001201e-1f);
    p = fused(p, r * r, r) + 1.0f;
    return p * as_float((as_bits(shifted) << 23) + 0x3F800000u);
}

INLINE float sigmoid(float x) { return 1.0f / (1.0f + exponential(-x)); }

// Near zero, where the general formula loses digits, by the polynomial of that library's tanhf.
INLINE float hyperbolic_tangent(float x) {
    const float square = x * x;
    float p = -5.70498872745e-3f;
    p = fused(p, square, 2.06390887954e-2f);
    p = fused(p, square, -5.37397155531e-2f);
    p = fused(p, square, 1.33314422036e-1f);
    p = fused(p, square, -3.33332819422e-1f);
    const float near_zero = fused(p * square, x, x);
    const float elsewhere = 1.0f - 2.0f / (exponential(2.0f * x) + 1.0f);
    return square < 0.390625f ? near_zero : elsewhere;
}

struct Gates {
    float i, j, f, o;
};

struct OpenedCell {
    float after, output;
};

// Where nothing is clipped, `clip` is no number, to which no other compares.
INLINE OpenedCell open_cell(Gates gates, float before, float clip) {
    const float entering = sigmoid(gates.i) * hyperbolic_tangent(gates.j);
    float c = fused(sigmoid(gates.f), before, entering);
    c = c < -clip ? -clip : c;
    c = c > clip ? clip : c;
    return {c, sigmoid(gates.o) * hyperbolic_tangent(c)};
}

// The gradients of the gates. `d_cell` is that of memory after the step, and becomes that of memory
// before it.
INLINE Gates open_cell_backward(Gates gates, float before, float after, float clip, float d_output,
                                float &d_cell) {
    const float i = sigmoid(gates.i), j = hyperbolic_tangent(gates.j);
    const float f = sigmoid(gates.f), o = sigmoid(gates.o);
    const float t = hyperbolic_tangent(after);
    float d_c = fused(d_output * o, fused(-t, t, 1.0f), d_cell);
    d_c = (after <= -clip) | (after >= clip) ? 0.0f : d_c;
    d_cell = d_c * f;
    return {d_c * j * ((1.0f - i) * i), d_c * i * fused(-j, j, 1.0f),
            d_c * before * ((1.0f - f) * f), d_output * t * ((1.0f - o) * o)};
}

}  // namespace elmo_scratch
