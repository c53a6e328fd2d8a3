// LSTMs, convolutions, the packing of their weights, and gradients of weights. setup.py compiles
// this file three times: with INSTRUCTIONS=AVX2 and =AVX512 for products in float32, with =BFLOAT16
// for those in bfloat16.

#include "convolution.h"
#include "lstm_backward.h"
#include "lstm_stack.h"
#include "panels.h"
#if INSTRUCTIONS == AVX2
#include "weight_gradient.h"
#endif

#ifdef HAS_SIMD_CODE

using namespace elmo_scratch;

#if INSTRUCTIONS == AVX2
#define NAME(function) function##_float32_avx2
using Number = float;
#elif INSTRUCTIONS == AVX512
#define NAME(function) function##_float32_avx512
using Number = float;
#else
#define NAME(function) function##_bfloat16
using Number = Bfloat16;
#endif

extern "C" {

// native.py calls these, and checks what they are given.
void NAME(read_forward)(const LstmSizes *sizes, const LstmForward<Number> *run, int threads,
                        int has_tiles) {
    run_slices<Number>(*sizes, *run, run_forward<Number>, threads, has_tiles);
}

void NAME(read_backward)(const LstmSizes *sizes, const LstmBackward<Number> *run, int threads,
                         int has_tiles) {
    run_slices<Number>(*sizes, *run, run_backward<Number>, threads, has_tiles);
}

// stack.py calls this, and checks what it is given.
void NAME(read_layers)(const LstmSizes *sizes, const LstmLayers<Number> *run, int threads,
                       int has_tiles) {
    read_layers(*sizes, *run, threads, has_tiles);
}

// char_convolution.py calls these, and checks what they are given.
void NAME(convolve)(const Words<Number> *words, const Filters<Number> *filters,
                    ptrdiff_t num_widths, float *maxima, std::uint8_t *places, int threads,
                    int has_tiles) {
    convolved_maxima(*words, filters, num_widths, maxima, places, threads, has_tiles);
}

void NAME(convolve_backward)(const Words<Number> *words, const Filters<Number> *filters,
                             ptrdiff_t num_widths, const float *d_maxima,
                             const std::uint8_t *places, float *d_characters, float *d_bias,
                             int threads) {
    convolved_maxima_backward(*words, filters, num_widths, d_maxima, places, d_characters, d_bias,
                              threads);
}

// library.py calls these, and checks what they are given. Both levels of float32 read the same
// panels.
#if INSTRUCTIONS == AVX2
void pack_panels_float32(const PanelMatrix *matrix, float *packed, int threads, int has_tiles) {
    pack_panels(*matrix, packed, threads, has_tiles);
}

// weight_gradients.py calls this, and checks what it is given.
void multiply_gradients_float32(const GradientProducts<float> *all, int threads) {
    multiply_gradients(*all, threads);
}
#elif INSTRUCTIONS == BFLOAT16
void pack_panels_bfloat16(const PanelMatrix *matrix, Bfloat16 *packed, int threads, int has_tiles) {
    pack_panels(*matrix, packed, threads, has_tiles);
}
#endif

}  // extern "C"

#endif
