// LSTMs and convolutions in float32, on all processors of setup.py.

#define INSTRUCTIONS AVX2

#include "convolution.h"
#include "lstm_backward.h"
#include "lstm_forward.h"
#include "panels.h"

#ifdef HAS_WIDE_CODE

using namespace elmo_scratch;

extern "C" {

FORWARD_FUNCTION(float32_avx2, float)
BACKWARD_FUNCTION(float32_avx2, float)
CONVOLUTION_FUNCTIONS(float32_avx2, float)
PANELS_FUNCTION(float32, float)

}  // extern "C"

#endif
