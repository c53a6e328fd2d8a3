// What sixteen memory cells do at a step: memory_cell.h says the same of one.

#pragma once

#include "instructions.h"

#ifdef HAS_WIDE_CODE

namespace elmo_scratch {

WIDE INLINE __m512 all(float number) { return _mm512_set1_ps(number); }

// To the last bit or the one before it: a division takes four times as long.
WIDE INLINE __m512 reciprocal(__m512 x) {
    const __m512 near = _mm512_rcp14_ps(x);
    return _mm512_fmadd_ps(_mm512_fnmadd_ps(x, near, all(1.0f)), near, near);
}

// Two numbers whose sum is e^x, of x between -87 and 87: the second is a power of two, and where x
// is near zero it is one. The polynomial is that of expf in Moshier's Cephes library.
struct Exponential {
    __m512 rest, power;

    WIDE INLINE explicit Exponential(__m512 x) {
        // Where x is no number it stays.
        x = _mm512_min_ps(all(87.0f), _mm512_max_ps(all(-87.0f), x));
        // This addition rounds to a whole number, which its last bits then hold.
        const __m512 shifted = _mm512_fmadd_ps(x, all(1.44269504f), all(12582912.0f));
        const __m512 n = _mm512_sub_ps(shifted, all(12582912.0f));
        __m512 r = _mm512_fmadd_ps(n, all(-0.693359375f), x);
        r = _mm512_fmadd_ps(n, all(2.12194440e-4f), r);
        __m512 p = _mm512_fmadd_ps(all(1.9875691500e-4f), r, all(1.3981999507e-3f));
        p = _mm512_fmadd_ps(p, r, all(8.3334519073e-3f));
        p = _mm512_fmadd_ps(p, r, all(4.1665795894e-2f));
        p = _mm512_fmadd_ps(p, r, all(1.6666665459e-1f));
        p = _mm512_fmadd_ps(p, r, all(5.0000001201e-1f));
        p = _mm512_fmadd_ps(p, _mm512_mul_ps(r, r), r);
        const __m512i bits = _mm512_slli_epi32(_mm512_castps_si512(shifted), 23);
        power = _mm512_castsi512_ps(_mm512_add_epi32(bits, _mm512_set1_epi32(0x3F800000)));
        rest = _mm512_mul_ps(p, power);
    }

    WIDE INLINE __m512 and_one() const {
        return _mm512_add_ps(_mm512_add_ps(rest, power), all(1.0f));
    }
    // Exact near zero too.
    WIDE INLINE __m512 less_one() const {
        return _mm512_add_ps(rest, _mm512_sub_ps(power, all(1.0f)));
    }
};

WIDE INLINE __m512 sigmoid(__m512 x) {
    return reciprocal(Exponential(_mm512_sub_ps(_mm512_setzero_ps(), x)).and_one());
}

WIDE INLINE __m512 hyperbolic_tangent(__m512 x) {
    const __m512 grown = Exponential(_mm512_add_ps(x, x)).less_one();
    return _mm512_mul_ps(grown, reciprocal(_mm512_add_ps(grown, all(2.0f))));
}

struct WideGates {
    __m512 i, j, f, o;
};

struct WideOpenedCells {
    __m512 after, output;
};

// Where nothing is clipped, `clip` is no number: then both return their second argument.
WIDE INLINE __m512 clipped(__m512 x, __m512 clip) {
    const __m512 low = _mm512_max_ps(_mm512_sub_ps(_mm512_setzero_ps(), clip), x);
    return _mm512_min_ps(clip, low);
}

// Whether it was clipped. What is no number is not.
WIDE INLINE __mmask16 is_clipped(__m512 x, __m512 clip) {
    return _mm512_cmp_ps_mask(_mm512_abs_ps(x), clip, _CMP_GE_OQ);
}

WIDE INLINE WideOpenedCells open_cells(const WideGates &gates, __m512 before, __m512 clip) {
    const __m512 entering = _mm512_mul_ps(sigmoid(gates.i), hyperbolic_tangent(gates.j));
    const __m512 after = clipped(_mm512_fmadd_ps(sigmoid(gates.f), before, entering), clip);
    return {after, _mm512_mul_ps(sigmoid(gates.o), hyperbolic_tangent(after))};
}

// The gradients of the gates. `d_cell` is that of memory after the step, and becomes that of memory
// before it.
WIDE INLINE WideGates open_cells_backward(const WideGates &gates, __m512 before, __m512 after,
                                          __m512 clip, __m512 d_output, __m512 &d_cell) {
    const __m512 i = sigmoid(gates.i), j = hyperbolic_tangent(gates.j);
    const __m512 f = sigmoid(gates.f), o = sigmoid(gates.o);
    const __m512 t = hyperbolic_tangent(after), one = all(1.0f);
    const __m512 through = _mm512_mul_ps(d_output, o);
    __m512 d = _mm512_fmadd_ps(through, _mm512_fnmadd_ps(t, t, one), d_cell);
    d = _mm512_mask_mov_ps(d, is_clipped(after, clip), _mm512_setzero_ps());
    d_cell = _mm512_mul_ps(d, f);
    const __m512 of_entering = _mm512_mul_ps(d, i);
    return {_mm512_mul_ps(_mm512_mul_ps(of_entering, j), _mm512_sub_ps(one, i)),
            _mm512_mul_ps(of_entering, _mm512_fnmadd_ps(j, j, one)),
            _mm512_mul_ps(_mm512_mul_ps(d_cell, before), _mm512_sub_ps(one, f)),
            _mm512_mul_ps(_mm512_mul_ps(through, t), _mm512_sub_ps(one, o))};
}

}  // namespace elmo_scratch

#endif
