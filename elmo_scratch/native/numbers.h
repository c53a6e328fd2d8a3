// Numbers of several types, and how loops over them are compiled.
//
// Without contractions: what is fused is written so, and a number's result depends neither on its
// place, nor on the others, nor on the compiler.

#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace elmo_scratch {

using std::ptrdiff_t;

// The loops once more for wider registers, where there are any when this is loaded.
#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__clang__) && __GNUC__ >= 12
#define WIDER_TOO __attribute__((target_clones("arch=x86-64-v4", "default")))
#else
#define WIDER_TOO
#endif
#define INLINE inline __attribute__((always_inline))

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

    // To the nearest, a half to the even one.
    INLINE Bfloat16 &operator=(float number) {
        const std::uint32_t whole = as_bits(number);
        const bool is_nan = (whole & 0x7FFFFFFFu) > 0x7F800000u;
        const std::uint32_t rounded = (whole + 0x7FFFu + ((whole >> 16) & 1u)) >> 16;
        bits = std::uint16_t(is_nan ? 0x7FC0u : rounded);
        return *this;
    }
};

// The type in which numbers of a type are computed with.
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

// To a multiple.
INLINE ptrdiff_t filled(ptrdiff_t size, ptrdiff_t together) {
    return (size + together - 1) / together * together;
}

// How many threads `size` numbers in `rows` are worth, of which each has at least `of_a_thread`.
INLINE int threads_worth(ptrdiff_t size, ptrdiff_t of_a_thread, ptrdiff_t rows, int threads) {
    ptrdiff_t worth = size / of_a_thread;
    worth = worth < rows ? worth : rows;
    worth = worth < threads ? worth : threads;
    return worth < 1 ? 1 : int(worth);
}

}  // namespace elmo_scratch
