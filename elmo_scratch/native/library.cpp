// What is asked before anything else.

// That of the functions, as native_library.py expects it: to be counted up with every change.
constexpr int INTERFACE = 1;

extern "C" {

int elmo_scratch_interface() { return INTERFACE; }

// Whether this processor has the instructions that setup.py asks for.
int elmo_scratch_runs_here() {
#ifdef __x86_64__
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
    return 1;
#endif
}

}  // extern "C"
