// The levels of instructions that code is compiled for.
//
// A file that is compiled for a level defines INSTRUCTIONS, or setup.py does, before it includes
// anything else. From this header on all of its functions may use the instructions of that level.
// Standard headers are therefore included here, before: the linker keeps one copy of each of their
// templates for all levels, and that one must run on every processor.

#pragma once

#include <omp.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#ifdef __x86_64__
#include <immintrin.h>
#endif

// The numbers are those of library.py. COMMON is what setup.py's flags allow.
#define COMMON 0
#define AVX2 1
#define AVX512 2
#define BFLOAT16 3

#ifndef INSTRUCTIONS
#define INSTRUCTIONS COMMON
#endif

#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__clang__) && __GNUC__ >= 12
#define HAS_AVX512_CODE
#endif

// HAS_SIMD_CODE says whether this compiler can compile for the level. What is compiled for several
// levels lies in a namespace of each level.
#if INSTRUCTIONS == COMMON
#define OF_INSTRUCTIONS of_common
#elif INSTRUCTIONS == AVX2
#define OF_INSTRUCTIONS of_avx2
#ifdef __x86_64__
#define HAS_SIMD_CODE  // setup.py's flags allow AVX2
#endif
#elif INSTRUCTIONS == AVX512
#define OF_INSTRUCTIONS of_avx512
#ifdef HAS_AVX512_CODE
#define HAS_SIMD_CODE
#pragma GCC target("arch=x86-64-v4")
#endif
#elif INSTRUCTIONS == BFLOAT16
#define OF_INSTRUCTIONS of_bfloat16
#ifdef HAS_AVX512_CODE
#define HAS_SIMD_CODE
#pragma GCC target("arch=x86-64-v4,avx512bf16,amx-tile,amx-bf16")
#endif
#endif
