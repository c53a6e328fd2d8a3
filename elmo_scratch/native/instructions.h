// Instructions that only some of the processors have on which compiled code runs.

#pragma once

#include <cstddef>  // says which C library there is

#ifdef __x86_64__
#include <immintrin.h>
#endif

// As native_library.py numbers them.
#define AVX2 1
#define AVX512 2
#define BFLOAT16 3

// Those that a file is compiled for, unless it says otherwise.
#ifndef INSTRUCTIONS
#define INSTRUCTIONS BFLOAT16
#endif

#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__clang__) && __GNUC__ >= 12
#define HAS_AVX512_CODE 1
#endif

// What is compiled for several has a name for each.
#if INSTRUCTIONS == AVX2
#ifdef __x86_64__
#define HAS_WIDE_CODE 1
#endif
#define WIDE  // setup.py asks for them
#define OF_INSTRUCTIONS of_avx2
#elif INSTRUCTIONS == AVX512
#ifdef HAS_AVX512_CODE
#define HAS_WIDE_CODE 1
#endif
#define WIDE __attribute__((target("arch=x86-64-v4")))
#define OF_INSTRUCTIONS of_avx512
#else
// AVX-512 with that for bfloat16, and tiles too (AMX).
#ifdef HAS_AVX512_CODE
#define HAS_WIDE_CODE 1
#endif
#define WIDE __attribute__((target("arch=x86-64-v4,avx512bf16")))
#define TILED __attribute__((target("arch=x86-64-v4,avx512bf16,amx-tile,amx-bf16")))
#define OF_INSTRUCTIONS of_bfloat16
#endif
