#pragma once
#include "engine/cuda/pack.cuh"

// The instructions of tensor cores, for a whole warp: c[16][8] += a[16][kDeep] b[kDeep][8], where
// kDeep is 16 for numbers of 16 bits and 8 for tf32. What a thread has of the matrices, with
// quad = lane / 4 and place = lane % 4:
//
//   c   rows quad and quad + 8, of each the columns 2 place and 2 place + 1
//   a   words 0 and 1: rows quad and quad + 8; 2 and 3: the same rows, 8 (tf32: 4) columns later.
//       Of 16 bits a word has the columns 2 place and 2 place + 1, of tf32 the column `place`.
//   b   column quad; word 0 has the rows that word 0 of a has as columns, word 1 those of word 2

namespace trireme::cuda {

__device__ __forceinline__ void MultiplyAdd(BFloat, float (&c)[4], const unsigned (&a)[4],
                                            const unsigned (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

__device__ __forceinline__ void MultiplyAdd(Half, float (&c)[4], const unsigned (&a)[4],
                                            const unsigned (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// Of numbers that RoundToTf32 gave.
__device__ __forceinline__ void MultiplyAdd(float, float (&c)[4], const unsigned (&a)[4],
                                            const unsigned (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

__device__ __forceinline__ unsigned RoundToTf32(float x) {
  unsigned bits;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));
  return bits;
}

// Four matrices of 8x8 numbers of 16 bits in shared memory; lane i says where row i % 8 of matrix
// i / 8 begins, at a multiple of 16 bytes. Of each a thread gets a word: of row `quad` the columns
// 2 place and 2 place + 1 or, turned, of column `quad` these rows.
__device__ __forceinline__ void LoadMatrices(const void* row, unsigned (&words)[4]) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
               : "r"(unsigned(__cvta_generic_to_shared(row)))
               : "memory");
}
__device__ __forceinline__ void LoadMatricesTurned(const void* row, unsigned (&words)[4]) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
               : "r"(unsigned(__cvta_generic_to_shared(row)))
               : "memory");
}

}  // namespace trireme::cuda
