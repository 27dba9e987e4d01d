// Winograd's convolutions of one target, declared for the kernels (winograd.cc,
// winograd_weights.cc): 3x3, stride 1, tiles of 2x2 or 4x4 outputs.
#if defined(TRIREME_ENGINE_CPU_WINOGRAD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TRIREME_ENGINE_CPU_WINOGRAD_INL_H_
#undef TRIREME_ENGINE_CPU_WINOGRAD_INL_H_
#else
#define TRIREME_ENGINE_CPU_WINOGRAD_INL_H_
#endif

#include "engine/cpu/product-inl.h"
#include "engine/cpu/tiling/patches.h"

HWY_BEFORE_NAMESPACE();
namespace trireme::cpu::HWY_NAMESPACE {

// y = x convolved with weights[3][3][in][out], then finished; outputs of `tile` x `tile` at once.
void WinogradForward(size_t tile, const ConvShape& s, size_t samples, const float* x,
                     const float* weights, float* y, const Finish& finish, float* scratch,
                     Team& team);
// dx: the input gradient (dgrad) of the same convolution.
void WinogradGradInput(size_t tile, const ConvShape& s, size_t samples, const float* dy,
                       const float* weights, float* dx, float* scratch, Team& team);
// dw (+)= the weight gradient (wgrad).
void WinogradGradWeights(size_t tile, const ConvShape& s, size_t samples, const float* x,
                         const float* dy, float* dw, bool add, float* scratch, Team& team);

// Floats of scratch for the first two (in and out may change places), and for the third.
size_t WinogradScratch(size_t tile, const ConvShape& s, size_t threads);
size_t WinogradGradWeightsScratch(size_t tile, const ConvShape& s, size_t samples, size_t threads);

}  // namespace trireme::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
