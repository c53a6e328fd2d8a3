// Instructions that only some of the processors have on which compiled code runs.

#pragma once

#include <cstddef>  // says which C library there is

#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__clang__) && __GNUC__ >= 12
#define HAS_WIDE_CODE 1

#include <immintrin.h>

// AVX-512 with that for bfloat16, and tiles too (AMX).
#define WIDE __attribute__((target("arch=x86-64-v4,avx512bf16")))
#define TILED __attribute__((target("arch=x86-64-v4,avx512bf16,amx-tile,amx-bf16")))
#endif
