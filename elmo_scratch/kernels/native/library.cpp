// What library.py asks before it calls anything else.

#include "structs.h"

#ifdef HAS_AVX512_CODE
#include <sys/syscall.h>
#include <unistd.h>

namespace {

// Linux lets a process use tiles when it asks for them.
constexpr int ARCH_REQ_XCOMP_PERM = 0x1023, XFEATURE_XTILEDATA = 18;

}  // namespace
#endif

namespace {

using elmo_scratch::AmxProduct;
using elmo_scratch::LstmSizes;
using elmo_scratch::PanelMatrix;
using std::ptrdiff_t;
// A struct is laid out alike for all types of numbers.
using AmxWeights = elmo_scratch::AmxWeights<float>;
using ConvolutionFilters = elmo_scratch::ConvolutionFilters<float>;
using ConvolutionWords = elmo_scratch::ConvolutionWords<float>;
using GradientPart = elmo_scratch::GradientPart<float>;
using GradientProducts = elmo_scratch::GradientProducts<float>;
using LstmBackward = elmo_scratch::LstmBackward<float>;
using LstmForward = elmo_scratch::LstmForward<float>;
using LstmLayer = elmo_scratch::LstmLayer<float>;
using LstmLayers = elmo_scratch::LstmLayers<float>;

// The size of a struct, or the offset of its field.
struct Layout {
    const char *name;
    ptrdiff_t value;
};

#define SIZE(STRUCT) {#STRUCT, ptrdiff_t(sizeof(STRUCT))}
#define FIELD(STRUCT, NAME) {#STRUCT "." #NAME, ptrdiff_t(offsetof(STRUCT, NAME))}

constexpr Layout LAYOUTS[] = {
    SIZE(LstmSizes),
    FIELD(LstmSizes, batch_sizes),
    FIELD(LstmSizes, steps),
    FIELD(LstmSizes, batch),
    FIELD(LstmSizes, cells),
    FIELD(LstmSizes, dim),
    FIELD(LstmSizes, gate_stride),
    FIELD(LstmSizes, opened_stride),

    SIZE(LstmForward),
    FIELD(LstmForward, to_gates),
    FIELD(LstmForward, projection),
    FIELD(LstmForward, bias),
    FIELD(LstmForward, gates),
    FIELD(LstmForward, scale),
    FIELD(LstmForward, hidden),
    FIELD(LstmForward, cell),
    FIELD(LstmForward, after),
    FIELD(LstmForward, opened),
    FIELD(LstmForward, projected),
    FIELD(LstmForward, outputs),
    FIELD(LstmForward, last_hidden),
    FIELD(LstmForward, last_cell),
    FIELD(LstmForward, cell_clip),
    FIELD(LstmForward, projection_clip),

    SIZE(LstmLayer),
    FIELD(LstmLayer, from_inputs),
    FIELD(LstmLayer, to_gates),
    FIELD(LstmLayer, projection),
    FIELD(LstmLayer, bias),

    SIZE(LstmLayers),
    FIELD(LstmLayers, layers),
    FIELD(LstmLayers, num_layers),
    FIELD(LstmLayers, positions_at_once),
    FIELD(LstmLayers, inputs),
    FIELD(LstmLayers, outputs),
    FIELD(LstmLayers, last_hidden),
    FIELD(LstmLayers, last_cell),
    FIELD(LstmLayers, rounded_inputs),
    FIELD(LstmLayers, rounded_outputs),
    FIELD(LstmLayers, gates),
    FIELD(LstmLayers, opened),
    FIELD(LstmLayers, hidden),
    FIELD(LstmLayers, after),
    FIELD(LstmLayers, cell_clip),
    FIELD(LstmLayers, projection_clip),
    FIELD(LstmLayers, adds_inputs),

    SIZE(LstmBackward),
    FIELD(LstmBackward, from_gates),
    FIELD(LstmBackward, projection),
    FIELD(LstmBackward, gates),
    FIELD(LstmBackward, scale),
    FIELD(LstmBackward, cell),
    FIELD(LstmBackward, after),
    FIELD(LstmBackward, projected),
    FIELD(LstmBackward, d_outputs),
    FIELD(LstmBackward, d_gates),
    FIELD(LstmBackward, d_projected),
    FIELD(LstmBackward, d_hidden),
    FIELD(LstmBackward, d_cell),
    FIELD(LstmBackward, cell_clip),
    FIELD(LstmBackward, projection_clip),

    SIZE(ConvolutionWords),
    FIELD(ConvolutionWords, characters),
    FIELD(ConvolutionWords, lengths),
    FIELD(ConvolutionWords, number),
    FIELD(ConvolutionWords, positions),
    FIELD(ConvolutionWords, dim),
    FIELD(ConvolutionWords, most_characters),
    FIELD(ConvolutionWords, filters),

    SIZE(ConvolutionFilters),
    FIELD(ConvolutionFilters, panels),
    FIELD(ConvolutionFilters, weights),
    FIELD(ConvolutionFilters, bias),
    FIELD(ConvolutionFilters, d_weights),
    FIELD(ConvolutionFilters, inputs),
    FIELD(ConvolutionFilters, width),
    FIELD(ConvolutionFilters, number),
    FIELD(ConvolutionFilters, first),

    SIZE(PanelMatrix),
    FIELD(PanelMatrix, numbers),
    FIELD(PanelMatrix, rows),
    FIELD(PanelMatrix, columns),
    FIELD(PanelMatrix, is_turned),
    FIELD(PanelMatrix, is_of_gates),

    SIZE(AmxProduct),
    FIELD(AmxProduct, rows),
    FIELD(AmxProduct, weights),
    FIELD(AmxProduct, bias),
    FIELD(AmxProduct, summand),
    FIELD(AmxProduct, result),
    FIELD(AmxProduct, num_rows),
    FIELD(AmxProduct, inputs),
    FIELD(AmxProduct, outputs),

    SIZE(AmxWeights),
    FIELD(AmxWeights, numbers),
    FIELD(AmxWeights, outputs),
    FIELD(AmxWeights, inputs),
    FIELD(AmxWeights, is_turned),

    SIZE(GradientPart),
    FIELD(GradientPart, vectors),
    FIELD(GradientPart, inputs),
    FIELD(GradientPart, packed),
    FIELD(GradientPart, result),

    SIZE(GradientProducts),
    FIELD(GradientProducts, gradients),
    FIELD(GradientProducts, rows),
    FIELD(GradientProducts, outputs),
    FIELD(GradientProducts, sums),
    FIELD(GradientProducts, parts),
    FIELD(GradientProducts, num_parts),

    {nullptr, 0},
};

}  // namespace

extern "C" {

// The checksum of the sources that this library was made from.
unsigned elmo_scratch_checksum() { return CHECKSUM; }

// The layouts of all structs, up to a name that is null.
const Layout *elmo_scratch_layouts() { return LAYOUTS; }

// Whether this processor has the instructions that setup.py asks for.
int elmo_scratch_runs_here() {
#ifdef __x86_64__
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
    return 1;
#endif
}

// The highest level of instructions, as library.py numbers them.
int elmo_scratch_instructions() {
#ifdef HAS_AVX512_CODE
    if (!__builtin_cpu_supports("x86-64-v4")) return AVX2;
    if (!__builtin_cpu_supports("avx512bf16")) return AVX512;
    if (!__builtin_cpu_supports("amx-tile") || !__builtin_cpu_supports("amx-bf16")) return BFLOAT16;
    const bool is_allowed = syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0;
    return is_allowed ? BFLOAT16 + 1 : BFLOAT16;
#elif defined(__x86_64__)
    return AVX2;
#else
    return COMMON;
#endif
}

}  // extern "C"
