// What AMX and AVX512-BF16 share: packed operands and how a tile of sums goes to memory. To be
// included between HWY_PUSH_ATTRIBUTES and HWY_POP_ATTRIBUTES, inside a namespace of the unit's
// own.
//   A  [k / 32][row][k % 32]      a row's 32 values are a cache line, a row of a tile register
//   B  [k / 2][column][k % 2]     pairs of k, as the instructions take them

#include "engine/cpu/bf16/x86_vectors-inl.h"

constexpr size_t kStep = 32;   // values of k
constexpr size_t kLanes = 16;  // floats of a vector

inline __mmask16 FirstLanes(size_t n) {
  return n >= kLanes ? __mmask16(0xffff) : __mmask16((1u << n) - 1);
}
inline __mmask32 FirstValues(size_t n) {
  return n >= kStep ? __mmask32(0xffffffff) : __mmask32((1u << n) - 1);
}
inline __m512 LoadLanes(const float* from, size_t n) {
  if (n >= kLanes) return _mm512_loadu_ps(from);
  return _mm512_maskz_loadu_ps(FirstLanes(n), from);
}

// Up to 32 values, then zeros.
inline __m512i LoadStep(const float* from, size_t n) {
  if (from == nullptr) return _mm512_setzero_si512();
  const __m512 low = LoadLanes(from, n);
  return Narrow(low, n > kLanes ? LoadLanes(from + kLanes, n - kLanes) : _mm512_setzero_ps());
}

inline __m512i LoadStep(const BFloat* from, size_t n) {
  if (from == nullptr) return _mm512_setzero_si512();
  if (n >= kStep) return _mm512_loadu_si512(from);
  return _mm512_maskz_loadu_epi16(FirstValues(n), from);
}

// Pairs of 16 lines' values at two k: (first[0], second[0]), (first[1], second[1]), ...
inline __m512i Pairs(const float* first, const float* second, size_t n) {
  const __m512 a = first ? LoadLanes(first, n) : _mm512_setzero_ps();
  const __m512 b = second ? LoadLanes(second, n) : _mm512_setzero_ps();
  const __m512i order = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24,
                                         8, 23, 7, 22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
  return _mm512_permutexvar_epi16(order, Narrow(a, b));
}
inline __m512i LoadWords(const BFloat* from, size_t n) {
  if (from == nullptr) return _mm512_setzero_si512();
  if (n >= kLanes) return _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i*)from));
  return _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(FirstLanes(n), from));
}
inline __m512i Pairs(const BFloat* first, const BFloat* second, size_t n) {
  return _mm512_or_si512(LoadWords(first, n), _mm512_slli_epi32(LoadWords(second, n), 16));
}

template <class T>
void PackRowsAlong(const T* const* lines, size_t count, size_t depth, BFloat* to) {
  for (size_t r = 0; r < kRows; ++r) {
    const T* line = r < count ? lines[r] : nullptr;
    BFloat* at = to + r * kStep;
    size_t k = 0;
    if (line != nullptr) {
      for (; k + kStep <= depth; k += kStep, at += kRows * kStep) {
        _mm512_store_si512(at, LoadStep(line + k, kStep));
      }
    }
    for (; k < depth; k += kStep, at += kRows * kStep) {
      _mm512_store_si512(at, LoadStep(line ? line + k : nullptr, depth - k));
    }
  }
}

template <class T>
void PackRowsAcross(const T* const* lines, size_t count, size_t depth, BFloat* to) {
  for (size_t k = 0; k < depth; k += kStep, to += kRows * kStep) {
    for (size_t first = 0; first < kRows; first += kLanes) {
      const size_t n = first < count ? count - first : 0;
      __m512i v[16];
#pragma GCC unroll 16
      for (size_t p = 0; p < 16; ++p) {
        const T* even = k + 2 * p < depth ? lines[k + 2 * p] : nullptr;
        const T* odd = k + 2 * p + 1 < depth ? lines[k + 2 * p + 1] : nullptr;
        v[p] = Pairs(even ? even + first : nullptr, odd ? odd + first : nullptr, n);
      }
      Transpose(v);
#pragma GCC unroll 16
      for (size_t r = 0; r < 16; ++r) {
        if (first + r < kRows) _mm512_store_si512(to + (first + r) * kStep, v[r]);
      }
    }
  }
}

inline void PackColumnsAlong(const float* const* lines, size_t count, size_t depth, BFloat* to) {
  for (size_t k = 0; k < depth; k += kStep, to += kColumns * kStep) {
    for (size_t first = 0; first < kColumns; first += kLanes) {
      __m512i v[16];
#pragma GCC unroll 16
      for (size_t c = 0; c < 16; ++c) {
        const float* line = first + c < count ? lines[first + c] : nullptr;
        v[c] = LoadStep(line ? line + k : nullptr, depth - k);
      }
      Transpose(v);
#pragma GCC unroll 16
      for (size_t p = 0; p < 16; ++p) _mm512_store_si512(to + (p * kColumns + first) * 2, v[p]);
    }
  }
}

template <class T>
void PackColumnsAcross(const T* const* lines, size_t count, size_t depth, BFloat* to) {
  for (size_t k = 0; k < (depth + kStep - 1) / kStep * kStep; k += 2, to += 2 * kColumns) {
    const T* even = k < depth ? lines[k] : nullptr;
    const T* odd = k + 1 < depth ? lines[k + 1] : nullptr;
    for (size_t first = 0; first < kColumns; first += kLanes) {
      const size_t n = first < count ? count - first : 0;
      _mm512_store_si512(to + first * 2,
                         Pairs(even ? even + first : nullptr, odd ? odd + first : nullptr, n));
    }
  }
}

inline __m512 PositivePart(__m512 value) {  // what is not a number stays
  const __mmask16 negative = _mm512_cmp_ps_mask(value, _mm512_setzero_ps(), _CMP_LT_OQ);
  return _mm512_mask_mov_ps(value, negative, _mm512_setzero_ps());
}

// A row of a tile, `low` first, n values of it. Streams are whole cache lines.
static_assert(kColumns == 2 * kLanes);
inline void StoreRow(__m512 low, __m512 high, float* to, size_t n, bool stream) {
  if (stream) {
    _mm512_stream_ps(to, low);
    if (n > kLanes) _mm512_stream_ps(to + kLanes, high);
  } else {
    _mm512_mask_storeu_ps(to, FirstLanes(n), low);
    if (n > kLanes) _mm512_mask_storeu_ps(to + kLanes, FirstLanes(n - kLanes), high);
  }
}
inline void StoreRow(__m512 low, __m512 high, BFloat* to, size_t n, bool stream) {
  const __m512i values = Narrow(low, high);
  if (stream) {
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to), values);
  } else {
    _mm512_mask_storeu_epi16(to, FirstValues(n), values);
  }
}

template <class T>
inline void StoreRows(const float* sums, T* const* rows, const TileTarget& into) {
  const size_t n = into.columns, rest = n > kLanes ? n - kLanes : 0;
  const auto load = [&](const float* from, __m512& low, __m512& high) {
    low = LoadLanes(from, n);
    high = rest ? LoadLanes(from + kLanes, rest) : _mm512_setzero_ps();
  };
  __m512 bias_low = _mm512_setzero_ps(), bias_high = bias_low;
  if (into.bias) load(into.bias + into.first, bias_low, bias_high);
  for (size_t r = 0; r < into.count; ++r, sums += kColumns) {
    __m512 low = _mm512_load_ps(sums), high = _mm512_load_ps(sums + kLanes);
    if (into.before) {
      __m512 before_low, before_high;
      load(into.before[r] + into.first, before_low, before_high);
      low = _mm512_add_ps(before_low, low);
      high = _mm512_add_ps(before_high, high);
    }
    if (into.bias) {
      low = _mm512_add_ps(low, bias_low);
      high = _mm512_add_ps(high, bias_high);
    }
    if (into.relu) {
      low = PositivePart(low);
      high = PositivePart(high);
    }
    StoreRow(low, high, rows[r] + into.first, n, into.stream);
  }
}

// Sums of kRows x kColumns to where they go.
inline void StoreTile(const float* sums, const TileTarget& into) {
  if (into.floats) {
    StoreRows(sums, into.floats, into);
  } else {
    StoreRows(sums, into.bfloats, into);
  }
}

template <class T>
inline void PrefetchRows(T* const* rows, const TileTarget& into) {
  for (size_t r = 0; r < into.count; ++r) {
    for (size_t j = 0; j < into.columns; j += kLanes) {
      __builtin_prefetch(rows[r] + into.first + j, 1);
    }
  }
}

inline void PrefetchTarget(const TileTarget& into) {
  if (into.before) PrefetchRows(into.before, into);
  if (into.stream) return;
  if (!into.floats) {
    PrefetchRows(into.bfloats, into);
  } else if (into.floats != into.before) {
    PrefetchRows(into.floats, into);
  }
}
