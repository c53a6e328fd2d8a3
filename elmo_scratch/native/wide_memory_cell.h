// What sixteen memory cells do at a step: memory_cell.h says the same of one.

#pragma once

#include "sixteen.h"

#ifdef HAS_SIMD_CODE

namespace elmo_scratch {
inline namespace OF_INSTRUCTIONS {

// Two numbers whose sum is e^x, of x between -87 and 87: the second is a power of two, and where x
// is near zero it is one. The polynomial is that of expf in Moshier's Cephes library.
struct Exponential {
    Sixteen rest, power;

    INLINE explicit Exponential(Sixteen x) {
        // Where x is no number it stays.
        x = lower_of(all(87.0f), higher_of(all(-87.0f), x));
        // This addition rounds to a whole number, which its last bits then hold.
        const Sixteen shifted = fused(x, all(1.44269504f), all(12582912.0f));
        const Sixteen n = shifted - all(12582912.0f);
        Sixteen r = fused(n, all(-0.693359375f), x);
        r = fused(n, all(2.12194440e-4f), r);
        Sixteen p = fused(all(1.9875691500e-4f), r, all(1.3981999507e-3f));
        p = fused(p, r, all(8.3334519073e-3f));
        p = fused(p, r, all(4.1665795894e-2f));
        p = fused(p, r, all(1.6666665459e-1f));
        p = fused(p, r, all(5.0000001201e-1f));
        p = fused(p, r * r, r);
        power = power_of_bits(shifted);
        rest = p * power;
    }

    INLINE Sixteen and_one() const { return rest + power + all(1.0f); }
    // Exact near zero too.
    INLINE Sixteen less_one() const { return rest + (power - all(1.0f)); }
};

INLINE Sixteen sigmoid(Sixteen x) { return reciprocal(Exponential(all(0.0f) - x).and_one()); }

INLINE Sixteen hyperbolic_tangent(Sixteen x) {
    const Sixteen grown = Exponential(x + x).less_one();
    return grown * reciprocal(grown + all(2.0f));
}

struct WideGates {
    Sixteen i, j, f, o;
};

struct WideOpenedCells {
    Sixteen after, output;
};

// Where nothing is clipped, `clip` is no number: then both return their second argument.
INLINE Sixteen clipped(Sixteen x, Sixteen clip) {
    return lower_of(clip, higher_of(all(0.0f) - clip, x));
}

INLINE WideOpenedCells open_cells(const WideGates &gates, Sixteen before, Sixteen clip) {
    const Sixteen entering = sigmoid(gates.i) * hyperbolic_tangent(gates.j);
    const Sixteen after = clipped(fused(sigmoid(gates.f), before, entering), clip);
    return {after, sigmoid(gates.o) * hyperbolic_tangent(after)};
}

// The gradients of the gates. `d_cell` is that of memory after the step, and becomes that of memory
// before it.
INLINE WideGates open_cells_backward(const WideGates &gates, Sixteen before, Sixteen after,
                                     Sixteen clip, Sixteen d_output, Sixteen &d_cell) {
    const Sixteen i = sigmoid(gates.i), j = hyperbolic_tangent(gates.j);
    const Sixteen f = sigmoid(gates.f), o = sigmoid(gates.o);
    const Sixteen t = hyperbolic_tangent(after), one = all(1.0f);
    const Sixteen through = d_output * o;
    Sixteen d = fused(through, fused_less(t, t, one), d_cell);
    // What was clipped has none.
    d = where(reaches(after, clip), all(0.0f), d);
    d_cell = d * f;
    const Sixteen of_entering = d * i;
    return {of_entering * j * (one - i), of_entering * fused_less(j, j, one),
            d_cell * before * (one - f), through * t * (one - o)};
}

}  // namespace OF_INSTRUCTIONS
}  // namespace elmo_scratch

#endif
