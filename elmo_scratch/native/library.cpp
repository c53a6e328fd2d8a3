// What is asked before anything else.

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

}  // extern "C"
