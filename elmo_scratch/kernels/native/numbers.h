// Number formats, and helpers for sizes and threads.
//
// setup.py turns floating-point contraction off: a fused multiply-add is always written as `fma`.
// A result therefore depends neither on its place in a vector, nor on its neighbours, nor on the
// compiler.

#pragma once

#include "instructions.h"

#define INLINE inline __attribute__((always_inline))

// Compiles a loop a second time for AVX-512; which copy runs is decided when the library is loaded.
#ifdef HAS_AVX512_CODE
#define WITH_AVX512_CLONE __attribute__((target_clones("arch=x86-64-v4", "default")))
#else
#define WITH_AVX512_CLONE
#endif

namespace elmo_scratch {
inline namespace OF_INSTRUCTIONS {

using std::ptrdiff_t;

INLINE float as_float(std::uint32_t bits) {
    float number;
    std::memcpy(&number, &bits, sizeof number);
    return number;
}

INLINE std::uint32_t as_bits(float number) {
    std::uint32_t bits;
    std::memcpy(&bits, &number, sizeof bits);
    return bits;
}

// The upper half of a float.
struct Bfloat16 {
    std::uint16_t bits;

    INLINE operator float() const { return as_float(std::uint32_t(bits) << 16); }

    // Rounds to nearest, ties to even. Every NaN becomes the same NaN.
    INLINE Bfloat16 &operator=(float number) {
        const std::uint32_t whole = as_bits(number);
        const bool is_nan = (whole & 0x7FFFFFFFu) > 0x7F800000u;
        const std::uint32_t rounded = (whole + 0x7FFFu + ((whole >> 16) & 1u)) >> 16;
        bits = std::uint16_t(is_nan ? 0x7FC0u : rounded);
        return *this;
    }
};

// The type that computes with numbers of a type.
template <typename Number>
struct WideOf {
    using type = Number;
};
template <>
struct WideOf<Bfloat16> {
    using type = float;
};
template <typename Number>
using Wide = typename WideOf<Number>::type;

INLINE ptrdiff_t round_up(ptrdiff_t size, ptrdiff_t multiple) {
    return (size + multiple - 1) / multiple * multiple;
}

// How many threads share `size` numbers in `rows`: each gets at least `min_size` numbers and at
// least one row.
INLINE int threads_for(ptrdiff_t size, ptrdiff_t min_size, ptrdiff_t rows, int max_threads) {
    ptrdiff_t num_threads = size / min_size;
    num_threads = num_threads < rows ? num_threads : rows;
    num_threads = num_threads < max_threads ? num_threads : max_threads;
    return num_threads < 1 ? 1 : int(num_threads);
}

}  // namespace OF_INSTRUCTIONS
}  // namespace elmo_scratch
