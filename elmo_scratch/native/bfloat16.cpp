// LSTMs and convolutions in bfloat16, by tiles where there are some.

#define INSTRUCTIONS BFLOAT16

#include "convolution.h"
#include "lstm_backward.h"
#include "lstm_forward.h"
#include "panels.h"

#ifdef HAS_WIDE_CODE

using namespace elmo_scratch;

extern "C" {

FORWARD_FUNCTION(bfloat16, Bfloat16)
BACKWARD_FUNCTION(bfloat16, Bfloat16)
CONVOLUTION_FUNCTIONS(bfloat16, Bfloat16)
PANELS_FUNCTION(bfloat16, Bfloat16)

}  // extern "C"

#endif
