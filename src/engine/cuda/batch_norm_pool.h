#pragma once
#include <cuda_runtime.h>

#include <cstdint>

#include "engine/cuda/batch_norm.h"
#include "engine/cuda/window.h"

namespace trireme::cuda {

// batch_norm, relu and max_pool in one pass over x (`apply.x`), of which only the pooled values
// (`apply.y`), their places and, unless null, what was `chosen` of x are written, held like x.
// `columns` are those of x.
void LaunchBatchNormReluMaxPool(cudaStream_t stream, const Columns& columns,
                                const PoolWindow& window, const BatchNormApply& apply,
                                uint8_t* index, void* chosen);

// Backward through all three, as LaunchBatchNormGradSums and LaunchBatchNormGrad do with relu:
// `grad.dy` is that of the pooled values, from which each pixel gathers its own. Where what was
// chosen of x was kept, LaunchBatchNormGradSums of it has the same sums: nothing else passes.
void LaunchMaxPoolBatchNormGradSums(cudaStream_t stream, const Columns& columns,
                                    const PoolWindow& window, const uint8_t* index,
                                    const BatchNormGrad& grad, const BatchNormScratch& scratch,
                                    bool apart);
void LaunchMaxPoolBatchNormGrad(cudaStream_t stream, const Columns& columns,
                                const PoolWindow& window, const uint8_t* index,
                                const BatchNormGrad& grad, const BatchNormScratch& scratch);

}  // namespace trireme::cuda
