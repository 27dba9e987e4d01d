#include <bit>

#include "engine/cuda/batch_norm_cluster.cuh"
#include "engine/cuda/batch_norm_cluster.h"

namespace trireme::cuda {
namespace {

constexpr int kN = NormCluster::kPack, kMostThreads = NormCluster::kMostThreads;

// Numbers of each channel of a cluster, found by one thread and read by many.
template <int kLanes>
using PerChannel = float[ClusterPlace<kLanes>::kWidth];

template <class T, int kLanes>
__global__ void __launch_bounds__(kMostThreads)
    Norm(ClusterPlace<kLanes> place, BatchNormMeasure measure, BatchNormApply apply) {
  constexpr int kWidth = ClusterPlace<kLanes>::kWidth;
  extern __shared__ uint4 memory[];
  __shared__ ClusterSums<kLanes> sums;
  __shared__ alignas(16) PerChannel<kLanes> pivots, mean, scale, bias;
  if (place.doublings > 0) ArriveAtCluster();

  Pack<T>* const x = reinterpret_cast<Pack<T>*>(memory);
  Pack<T>* const residual = x + place.packs;
  const bool adds = apply.residual != nullptr;
  place.ForEachPack([&](int at, int held) {
    CopyPack<T>(&x[held], apply.x, at);
    if (adds) CopyPack<T>(&residual[held], apply.residual, at);
  });
  // The first threads have a channel each later on.
  const int own = int(threadIdx.x), channel = place.first() + own;
  const bool owns = own < kWidth && channel < place.channels;
  const float weight = owns ? apply.weight[channel] : 0;
  if (owns) bias[own] = apply.bias[channel];
  const bool stores = owns && place.block() == 0;
  const SeenBefore before = stores ? SeenBefore(measure, channel) : SeenBefore();

  if (own < kLanes && place.channel() < place.channels) {
    Store<kN>(pivots + own * kN, PivotOf<kN>(static_cast<const T*>(apply.x), size_t(place.rows),
                                             place.channels, place.channel()));
  }
  const int of_lane = place.lane() * kN;
  Floats<2 * kN> numbers = {};
  WaitForCopies();
  __syncthreads();
  const Floats<kN> pivot = Load<kN>(pivots + of_lane);
  place.ForEachPack([&](int, int held) {
    const Floats<kN> values = Widen(x[held]);
#pragma unroll
    for (int i = 0; i < kN; ++i) {
      const float off = values[i] - pivot[i];
      numbers[i] += off;
      numbers[kN + i] = fmaf(off, off, numbers[kN + i]);
    }
  });
  sums.Join(place, numbers);

  if (owns) {
    const double sum = sums.Sum(place, 0, own), square = sums.Sum(place, 1, own);
    const double off = sum * place.of.share;
    const ChannelMeasure found(place.of, pivots[own] + off, square - sum * off, measure.epsilon);
    mean[own] = found.mean;
    scale[own] = found.inv_std * weight;
    if (stores) StoreMeasure(measure, channel, place.of, found, before);
  }
  __syncthreads();

  const Floats<kN> means = Load<kN>(mean + of_lane), scales = Load<kN>(scale + of_lane),
                   biases = Load<kN>(bias + of_lane);
  place.ForEachPack([&](int at, int held) {
    Floats<kN> made = Widen(x[held]), other = {};
    if (adds) other = Widen(residual[held]);
#pragma unroll
    for (int i = 0; i < kN; ++i) {
      float normal = Normalised(made[i] - means[i], scales[i], biases[i]);
      if (adds) normal += other[i];
      made[i] = apply.relu ? fmaxf(normal, 0) : normal;
    }
    if (apply.mask) {
      unsigned mask = 0;
#pragma unroll
      for (int i = 0; i < kN; ++i) {
        // Of what is stored: a tiny number may round to 0.
        mask |= unsigned(float(T(made[i])) > 0) << i;
      }
      apply.mask[unsigned(at) / kN] = uint8_t(mask);
    }
    Store<kN>(static_cast<T*>(apply.y) + at, made);
  });
}

// What a pack of a sum of gradients is made of.
template <class T>
struct Summands {
  Pack<T> a, b, y;
  unsigned mask;
  __device__ __forceinline__ void Fetch(const BatchNormSummed& from, int at) {
    a = cuda::Fetch<kN>(static_cast<const T*>(from.a) + at);
    b = cuda::Fetch<kN>(static_cast<const T*>(from.b) + at);
    if (from.mask) {
      mask = from.mask[unsigned(at) / kN];
    } else {
      y = cuda::Fetch<kN>(static_cast<const T*>(from.y) + at);
    }
  }
  __device__ __forceinline__ Floats<kN> Sum(const BatchNormSummed& from) const {
    const Floats<kN> one = Widen(a), other = Widen(b);
    Floats<kN> sum, signs = {};
    if (!from.mask) signs = Widen(y);
#pragma unroll
    for (int i = 0; i < kN; ++i) {
      const bool passes = from.mask ? mask >> i & 1 : signs[i] > 0;
      sum[i] = passes ? one[i] + other[i] : 0;
    }
    return sum;
  }
};

template <class T, int kLanes, bool kSummed>
__global__ void __launch_bounds__(kMostThreads)
    NormGrad(ClusterPlace<kLanes> place, BatchNormGrad grad, BatchNormSummed from) {
  constexpr int kWidth = ClusterPlace<kLanes>::kWidth;
  extern __shared__ uint4 memory[];
  __shared__ ClusterSums<kLanes> sums;
  __shared__ alignas(16) PerChannel<kLanes> slope, level;
  if (place.doublings > 0) ArriveAtCluster();

  Pack<T>* const x = reinterpret_cast<Pack<T>*>(memory);
  Pack<T>* const dy = x + place.packs;
  place.ForEachPack([&](int at, int held) {
    CopyPack<T>(&x[held], grad.x, at);
    if (!kSummed) CopyPack<T>(&dy[held], grad.dy, at);
  });
  if (kSummed) {  // what reaches the sums is what is stored of it
    constexpr int kUnroll = sizeof(T) == 2 ? 4 : 2;
    Summands<T> fetched[kUnroll];
    place.template ForEachPack<kUnroll>([&](int u, int at) { fetched[u].Fetch(from, at); },
                                        [&](int u, int at, int held) {
                                          const Floats<kN> sum = fetched[u].Sum(from);
                                          Store<kN>(static_cast<T*>(from.sum) + at, sum);
                                          Store<kN>(reinterpret_cast<T*>(&dy[held]), sum);
                                        });
  }
  Passage<kN, true> passage = {};
  if (place.channel() < place.channels) passage.Begin(grad, place.channel());

  Floats<2 * kN> numbers = {};
  WaitForCopies();
  place.ForEachPack([&](int, int held) {
    const Floats<kN> values = Widen(x[held]);
    Floats<kN> passed = Widen(dy[held]);
#pragma unroll
    for (int i = 0; i < kN; ++i) {
      const float off = values[i] - passage.mean[i];
      if (!kSummed && grad.relu) passed[i] = passage.Passed(i, off, passed[i]);
      numbers[i] += passed[i];
      numbers[kN + i] = fmaf(passed[i], off, numbers[kN + i]);
    }
    if (!kSummed && grad.relu) Store<kN>(reinterpret_cast<T*>(&dy[held]), passed);
  });
  sums.Join(place, numbers);

  const int own = int(threadIdx.x), channel = place.first() + own;
  if (own < kWidth && channel < place.channels) {
    const double sum = sums.Sum(place, 0, own), product = sums.Sum(place, 1, own);
    const GradFactor factor(grad, channel, place.of, sum, product);
    slope[own] = factor.slope;
    level[own] = factor.level;
    if (place.block() == 0) StoreGradients(grad, channel, sum, product);
  }
  __syncthreads();

  const int of_lane = place.lane() * kN;
  const Floats<kN> slopes = Load<kN>(slope + of_lane), levels = Load<kN>(level + of_lane);
  const Passage<kN, false> all = {passage.mean, passage.scale};
  place.ForEachPack([&](int at, int held) {
    Store<kN>(static_cast<T*>(grad.dx) + at,
              GradOf(all, slopes, levels, Widen(x[held]), Widen(dy[held])));
  });
}

// Sets what a kernel may have, always the same: other threads launch it too.
template <class... Args>
void Allow(void (*kernel)(Args...), size_t shared_bytes) {
  cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, int(shared_bytes));
  cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
}

struct Launched {
  Launched(int threads, int blocks, int clusters, size_t shared_bytes, cudaStream_t stream) {
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim = {unsigned(blocks), 1, 1};
    config.gridDim = dim3(unsigned(blocks * clusters));
    config.blockDim = dim3(unsigned(threads));
    config.dynamicSmemBytes = shared_bytes;
    config.stream = stream;
    config.attrs = &attribute;
    config.numAttrs = blocks > 1 ? 1 : 0;
  }
  cudaLaunchAttribute attribute = {};
  cudaLaunchConfig_t config = {};
};

template <class... Args>
void Launch(cudaStream_t stream, const NormCluster& c, void (*kernel)(Args...),
            const Args&... arguments) {
  Allow(kernel, c.most_shared_bytes);
  const Launched launched(c.threads, c.blocks, c.groups, c.shared_bytes, stream);
  cudaLaunchKernelEx(&launched.config, kernel, arguments...);
}

// Calls f with a number of the type of the values and with where its threads stand.
template <class F>
void WithPlace(const NormCluster& c, const Columns& g, const F& f) {
  WithElement(g.element, [&](auto zero) {
    const auto call = [&]<int kLanes>(Constant<kLanes>) {
      f(zero, ClusterPlace<kLanes>{.rows = int(g.rows),
                                   .channels = g.channels,
                                   .of = Population(double(g.rows)),
                                   .doublings = std::countr_zero(unsigned(c.blocks)),
                                   .chunk = int(c.chunk),
                                   .packs = int(c.turns) * c.threads});
    };
    if (c.lanes == 4) {
      call(Constant<4>());
    } else {
      call(Constant<2>());
    }
  });
}

}  // namespace

ClusterLimits FindClusterLimits(const cudaDeviceProp& card) {
  const auto kernel = NormGrad<float, 4, true>;
  cudaFuncAttributes attributes = {};
  // Compiled for an older one it has no clusters, wherever it runs.
  if (card.major < 9 || cudaFuncGetAttributes(&attributes, kernel) != cudaSuccess ||
      attributes.ptxVersion < 90) {
    cudaGetLastError();
    return {};
  }
  ClusterLimits limits = {.processors = card.multiProcessorCount,
                          .blocks = 8,
                          .shared_bytes = card.sharedMemPerBlockOptin};
  // More than eight only where most processors can be in a cluster of so many.
  constexpr int kMost = NormCluster::kMostBlocks;
  const size_t shared_bytes = limits.shared_bytes - attributes.sharedSizeBytes;
  Allow(kernel, shared_bytes);
  const Launched tried(kMostThreads, kMost, 1, shared_bytes, nullptr);
  int clusters = 0;
  const cudaError_t asked = cudaOccupancyMaxActiveClusters(&clusters, kernel, &tried.config);
  if (asked == cudaSuccess && 2 * kMost * clusters > limits.processors) limits.blocks = kMost;
  cudaGetLastError();
  return limits;
}

void LaunchBatchNormInCluster(cudaStream_t stream, const NormCluster& cluster,
                              const Columns& columns, const BatchNormMeasure& measure,
                              const BatchNormApply& apply) {
  WithPlace(cluster, columns, [&]<class T, int kLanes>(T, const ClusterPlace<kLanes>& place) {
    Launch(stream, cluster, Norm<T, kLanes>, place, measure, apply);
  });
}

void LaunchBatchNormGradInCluster(cudaStream_t stream, const NormCluster& cluster,
                                  const Columns& columns, const BatchNormGrad& grad,
                                  const BatchNormSummed* summed) {
  WithPlace(cluster, columns, [&]<class T, int kLanes>(T, const ClusterPlace<kLanes>& place) {
    if (summed) {
      Launch(stream, cluster, NormGrad<T, kLanes, true>, place, grad, *summed);
    } else {
      Launch(stream, cluster, NormGrad<T, kLanes, false>, place, grad, BatchNormSummed());
    }
  });
}

}  // namespace trireme::cuda
