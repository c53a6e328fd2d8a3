// What is asked before anything else.

#include "instructions.h"

#ifdef HAS_AVX512_CODE
#include <sys/syscall.h>
#include <unistd.h>

namespace {

// Linux gives a process tiles when it asks for them.
constexpr int ARCH_REQ_XCOMP_PERM = 0x1023, XFEATURE_XTILEDATA = 18;

}  // namespace
#endif

extern "C" {

// Of the files that this was made of.
unsigned elmo_scratch_checksum() { return CHECKSUM; }

// Whether this processor has the instructions that setup.py asks for.
int elmo_scratch_runs_here() {
#ifdef __x86_64__
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
    return 1;
#endif
}

// The best of the instructions that native_library.py names.
int elmo_scratch_instructions() {
#ifdef HAS_AVX512_CODE
    if (!__builtin_cpu_supports("x86-64-v4")) return AVX2;
    if (!__builtin_cpu_supports("avx512bf16")) return AVX512;
    if (!__builtin_cpu_supports("amx-tile") || !__builtin_cpu_supports("amx-bf16")) return BFLOAT16;
    const bool are_given = syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0;
    return are_given ? BFLOAT16 + 1 : BFLOAT16;
#elif defined(__x86_64__)
    return AVX2;
#else
    return 0;
#endif
}

}  // extern "C"
