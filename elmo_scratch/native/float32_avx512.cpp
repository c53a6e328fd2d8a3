// The same with registers twice as wide, of which there are twice as many.

#define INSTRUCTIONS AVX512

#include "convolution.h"
#include "lstm_backward.h"
#include "lstm_forward.h"

#ifdef HAS_WIDE_CODE

using namespace elmo_scratch;

extern "C" {

FORWARD_FUNCTION(float32_avx512, float)
BACKWARD_FUNCTION(float32_avx512, float)
CONVOLUTION_FUNCTIONS(float32_avx512, float)

}  // extern "C"

#endif
