#pragma once
#include <cuda_runtime.h>

#include "engine/cuda/batch_norm.h"
#include "engine/cuda/batch_norm_rules.h"

// Batch-norm in one kernel, as batch_norm_rules.h plans it: what batch_norm.h does in two.

namespace trireme::cuda {

// Of the card that the thread has selected.
ClusterLimits FindClusterLimits(const cudaDeviceProp& card);

// LaunchBatchNormSums, then LaunchBatchNormApply, whose mean and inv_std are those of `measure`.
void LaunchBatchNormInCluster(cudaStream_t stream, const NormCluster& cluster,
                              const Columns& columns, const BatchNormMeasure& measure,
                              const BatchNormApply& apply);

// LaunchBatchNormGradSums, or with `summed` LaunchBatchNormSummedGradSums; then
// LaunchBatchNormGrad.
void LaunchBatchNormGradInCluster(cudaStream_t stream, const NormCluster& cluster,
                                  const Columns& columns, const BatchNormGrad& grad,
                                  const BatchNormSummed* summed);

}  // namespace trireme::cuda
