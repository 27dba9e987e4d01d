#pragma once
#include <cuda_runtime.h>

#include <cstdint>

// Blocks of a cluster, which run at the same time and reach each other's shared memory, and copies
// to shared memory that a thread does not wait for. Cards before sm_90 have no clusters: nothing
// launches kernels with them there.

namespace trireme::cuda {

__device__ __forceinline__ unsigned SharedAddress(const void* shared) {
  return unsigned(__cvta_generic_to_shared(shared));
}

// 16 bytes, both at a multiple of that.
__device__ __forceinline__ void CopyToShared(void* shared, const void* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(SharedAddress(shared)), "l"(from)
               : "memory");
}
// For all of this thread; others see them after a barrier.
__device__ __forceinline__ void WaitForCopies() { asm volatile("cp.async.wait_all;" ::: "memory"); }

// A barrier of all threads of a cluster in two halves. What was written before the one, others see
// behind the other.
__device__ __forceinline__ void ArriveAtCluster() {
#if __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
#else
  __trap();
#endif
}
__device__ __forceinline__ void WaitForCluster() {
#if __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
#endif
}

// To where `shared` lies in another block, given by its number in the cluster.
__device__ __forceinline__ void StoreInBlock(double* shared, int block, double value) {
#if __CUDA_ARCH__ >= 900
  unsigned there;
  asm("mapa.shared::cluster.u32 %0, %1, %2;"
      : "=r"(there)
      : "r"(SharedAddress(shared)), "r"(block));
  asm volatile("st.shared::cluster.f64 [%0], %1;" ::"r"(there), "d"(value) : "memory");
#endif
}

}  // namespace trireme::cuda
