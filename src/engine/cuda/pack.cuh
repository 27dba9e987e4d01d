#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "engine/cuda/array.h"

// Kernels compute in float32 and read and write 16 bytes at a time, whatever they hold.

namespace trireme::cuda {

using BFloat = __nv_bfloat16;
using Half = __half;

// Two numbers of 16 bits in one word; the first of them is its lower half.
template <class T>
struct Pair;
template <>
struct Pair<BFloat> {
  using Type = __nv_bfloat162;
  static constexpr unsigned kLeast = 0xff80ff80u;  // both are less than all others
  static __device__ __forceinline__ float2 Widen(unsigned word) {
    return make_float2(__uint_as_float(word << 16), __uint_as_float(word & 0xffff0000u));
  }
  static __device__ __forceinline__ Type Round(float first, float second) {
    return __floats2bfloat162_rn(first, second);
  }
};
template <>
struct Pair<Half> {
  using Type = __half2;
  static constexpr unsigned kLeast = 0xfc00fc00u;
  static __device__ __forceinline__ float2 Widen(unsigned word) {
    return __half22float2(*reinterpret_cast<const Type*>(&word));
  }
  static __device__ __forceinline__ Type Round(float first, float second) {
    return __floats2half2_rn(first, second);  // what is too large becomes infinite
  }
};

template <int kN>
struct Floats {
  float values[kN];
  __device__ float& operator[](int i) { return values[i]; }
  __device__ float operator[](int i) const { return values[i]; }
};

// How many make 16 bytes.
template <class T>
constexpr int kPack = int(16 / sizeof(T));

// kN numbers as they lie in memory, to fetch several before the first is looked at. They begin at a
// multiple of 16 bytes, unless it is a single one.
template <int kN, class T>
struct Raw {
  static_assert(kN % kPack<T> == 0);
  uint4 bits[kN / kPack<T>];
};
template <class T>
struct Raw<1, T> {
  T bits;
};
template <int kN, class T>
__device__ __forceinline__ Raw<kN, T> Fetch(const T* from) {
  if constexpr (kN == 1) {
    return {*from};
  } else {
    Raw<kN, T> raw;
#pragma unroll
    for (int i = 0; i < kN / kPack<T>; ++i) {
      raw.bits[i] = reinterpret_cast<const uint4*>(from)[i];
    }
    return raw;
  }
}

template <int kN, class T>
__device__ __forceinline__ Floats<kN> Widen(const Raw<kN, T>& raw) {
  Floats<kN> to;
  if constexpr (kN == 1) {
    to[0] = float(raw.bits);
  } else {
#pragma unroll
    for (int p = 0; p < kN / kPack<T>; ++p) {
      const uint4 bits = raw.bits[p];
      const unsigned words[4] = {bits.x, bits.y, bits.z, bits.w};
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        if constexpr (sizeof(T) == 4) {
          to[4 * p + i] = __uint_as_float(words[i]);
        } else {
          const float2 pair = Pair<T>::Widen(words[i]);
          to[8 * p + 2 * i] = pair.x;
          to[8 * p + 2 * i + 1] = pair.y;
        }
      }
    }
  }
  return to;
}

template <int kN, class T>
__device__ __forceinline__ Floats<kN> Load(const T* from) {
  return Widen(Fetch<kN>(from));
}

template <int kN, class T>
__device__ __forceinline__ void Store(T* to, const Floats<kN>& from) {
  if constexpr (kN == 1) {
    *to = T(from[0]);
  } else if constexpr (sizeof(T) == 4) {
    static_assert(kN % 4 == 0);
#pragma unroll
    for (int i = 0; i < kN / 4; ++i) {
      reinterpret_cast<float4*>(to)[i] =
          make_float4(from[4 * i], from[4 * i + 1], from[4 * i + 2], from[4 * i + 3]);
    }
  } else {
    static_assert(kN % 8 == 0);
#pragma unroll
    for (int i = 0; i < kN / 8; ++i) {
      unsigned words[4];
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        const auto pair = Pair<T>::Round(from[8 * i + 2 * k], from[8 * i + 2 * k + 1]);
        words[k] = *reinterpret_cast<const unsigned*>(&pair);
      }
      reinterpret_cast<uint4*>(to)[i] = make_uint4(words[0], words[1], words[2], words[3]);
    }
  }
}

// kN bytes, at a multiple of kN.
template <int kN>
struct Bytes {
  alignas(kN) unsigned char values[kN];
};
template <int kN>
__device__ __forceinline__ Bytes<kN> LoadBytes(const unsigned char* from) {
  Bytes<kN> to;
  if constexpr (kN == 8) {
    *reinterpret_cast<uint2*>(to.values) = *reinterpret_cast<const uint2*>(from);
  } else if constexpr (kN == 4) {
    *reinterpret_cast<unsigned*>(to.values) = *reinterpret_cast<const unsigned*>(from);
  } else {
    static_assert(kN == 1);
    to.values[0] = *from;
  }
  return to;
}
template <int kN>
__device__ __forceinline__ void StoreBytes(unsigned char* to, const Bytes<kN>& from) {
  if constexpr (kN == 8) {
    *reinterpret_cast<uint2*>(to) = *reinterpret_cast<const uint2*>(from.values);
  } else if constexpr (kN == 4) {
    *reinterpret_cast<unsigned*>(to) = *reinterpret_cast<const unsigned*>(from.values);
  } else {
    static_assert(kN == 1);
    *to = from.values[0];
  }
}

template <class T>
T* As(const Array& array) {
  return static_cast<T*>(array.data);
}

// Calls f with a number of the type that arrays hold: f(float()), f(BFloat()) or f(Half()).
template <class F>
void WithElement(Element element, const F& f) {
  switch (element) {
    case Element::kBFloat:
      return f(BFloat());
    case Element::kHalf:
      return f(Half());
    default:
      return f(float());
  }
}

// Calls f with a number of each of two types. If both are narrow they are the same.
template <class F>
void WithElements(Element one, Element other, const F& f) {
  WithElement(IsNarrow(one) ? one : other, [&](auto zero) {
    if (one == other) {
      f(zero, zero);
    } else if (IsNarrow(one)) {
      f(zero, float());
    } else {
      f(float(), zero);
    }
  });
}

// Calls f with a number of that type and with how many of them a thread takes at a time of rows of
// `channels`, as a constant: a pack, or one where packs would cross the ends of rows.
template <auto kValue>
struct Constant {
  static constexpr auto value = kValue;
};
template <class F>
void WithPack(Element element, int channels, const F& f) {
  WithElement(element, [&](auto zero) {
    constexpr int kN = kPack<decltype(zero)>;
    if (channels % kN == 0) {
      f(zero, Constant<kN>());
    } else {
      f(zero, Constant<1>());
    }
  });
}

}  // namespace trireme::cuda
