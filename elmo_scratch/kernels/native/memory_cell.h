// A step of one LSTM memory cell (`V` is float) or of 16 (`V` is Vec16f). cells.py says the same
// with PyTorch's operations.

#pragma once

#include "activations.h"

namespace elmo_scratch {
inline namespace OF_INSTRUCTIONS {

template <typename V>
struct Gates {
    V i, j, f, o;
};

template <typename V>
struct CellOutput {
    V after, output;
};

// NaN as `clip` clips nothing: `min` and `max` then return their second argument.
template <typename V>
INLINE V clipped(V x, V clip) {
    return min(clip, max(negate(clip), x));
}

template <typename V>
INLINE CellOutput<V> open_cell(const Gates<V> &gates, V before, V clip) {
    const V entering = sigmoid(gates.i) * tanh(gates.j);
    const V after = clipped(fma(sigmoid(gates.f), before, entering), clip);
    return {after, sigmoid(gates.o) * tanh(after)};
}

// The gradient before a sigmoid `s`, from the gradient `d` of `s * factor`. One cell and 16 cells
// multiply in different orders, and each keeps its own to the last bit.
INLINE float through_sigmoid(float d, float factor, float s) {
    return d * factor * ((1.0f - s) * s);
}

#ifdef HAS_SIMD_CODE
INLINE Vec16f through_sigmoid(Vec16f d, Vec16f factor, Vec16f s) {
    return d * s * factor * (broadcast(1.0f) - s);
}
#endif

// Returns the gradients of the gates. `d_cell` comes in as the gradient of memory after the step,
// and goes out as that of memory before it.
template <typename V>
INLINE Gates<V> open_cell_backward(const Gates<V> &gates, V before, V after, V clip, V d_output,
                                   V &d_cell) {
    const V i = sigmoid(gates.i), j = tanh(gates.j), f = sigmoid(gates.f), o = sigmoid(gates.o);
    const V t = tanh(after), one = constant<V>(1.0f);
    V d = fma(d_output * o, fnma(t, t, one), d_cell);
    // What was clipped has no gradient.
    d = select(reaches(after, clip), constant<V>(0.0f), d);
    d_cell = d * f;
    return {through_sigmoid(d, j, i), d * i * fnma(j, j, one), through_sigmoid(d, before, f),
            through_sigmoid(d_output, t, o)};
}

}  // namespace OF_INSTRUCTIONS
}  // namespace elmo_scratch
