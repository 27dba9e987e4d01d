// What AMX and AVX512-BF16 share: packed operands and how a tile of sums goes to memory. To be
// included between HWY_PUSH_ATTRIBUTES and HWY_POP_ATTRIBUTES, inside a namespace of the unit's
// own.
//   A  [k / 32][row][k % 32]      a row's 32 values are a cache line, a row of a tile register
//   B  [k / 2][column][k % 2]     pairs of k, as the instructions take them

constexpr size_t kStep = 32;   // values of k
constexpr size_t kLanes = 16;  // floats of a vector

inline __mmask16 FirstLanes(size_t n) {
  return n >= kLanes ? __mmask16(0xffff) : __mmask16((1u << n) - 1);
}
inline __m512 LoadLanes(const float* from, size_t n) {
  if (n >= kLanes) return _mm512_loadu_ps(from);
  return _mm512_maskz_loadu_ps(FirstLanes(n), from);
}

// 32 floats as bf16: `low` first.
inline __m512i Narrow(__m512 low, __m512 high) {
  const __m512bh both = _mm512_cvtne2ps_pbh(high, low);
  __m512i bits;
  static_assert(sizeof both == sizeof bits);
  std::memcpy(&bits, &both, sizeof bits);
  return bits;
}

// Up to 32 floats, then zeros.
inline __m512i NarrowStep(const float* from, size_t n) {
  if (from == nullptr) return _mm512_setzero_si512();
  const __m512 low = LoadLanes(from, n);
  return Narrow(low, n > kLanes ? LoadLanes(from + kLanes, n - kLanes) : _mm512_setzero_ps());
}

// Pairs of 16 lines' values at two k: (first[0], second[0]), (first[1], second[1]), ...
inline __m512i Pairs(const float* first, const float* second, size_t n) {
  const __m512 a = first ? LoadLanes(first, n) : _mm512_setzero_ps();
  const __m512 b = second ? LoadLanes(second, n) : _mm512_setzero_ps();
  const __m512i order = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24,
                                         8, 23, 7, 22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
  return _mm512_permutexvar_epi16(order, Narrow(a, b));
}

// Turns 16 vectors of 16 words over.
inline void Transpose(__m512i (&v)[16]) {
  __m512i t[16];
#pragma GCC unroll 8
  for (int i = 0; i < 16; i += 2) {
    t[i] = _mm512_unpacklo_epi32(v[i], v[i + 1]);
    t[i + 1] = _mm512_unpackhi_epi32(v[i], v[i + 1]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 16; i += 4) {
    v[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
    v[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
    v[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
    v[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
  }
  // v[4 g + c]: lines 4 g .. 4 g + 3 of columns c, c + 4, c + 8, c + 12, a quarter each.
#pragma GCC unroll 4
  for (int c = 0; c < 4; ++c) {
    t[c] = _mm512_shuffle_i32x4(v[c], v[c + 4], 0x88);  // columns c, c + 8 of lines 0 .. 7
    t[c + 4] = _mm512_shuffle_i32x4(v[c], v[c + 4], 0xdd);
    t[c + 8] = _mm512_shuffle_i32x4(v[c + 8], v[c + 12], 0x88);  // of lines 8 .. 15
    t[c + 12] = _mm512_shuffle_i32x4(v[c + 8], v[c + 12], 0xdd);
  }
#pragma GCC unroll 4
  for (int c = 0; c < 4; ++c) {
    v[c] = _mm512_shuffle_i32x4(t[c], t[c + 8], 0x88);
    v[c + 8] = _mm512_shuffle_i32x4(t[c], t[c + 8], 0xdd);
    v[c + 4] = _mm512_shuffle_i32x4(t[c + 4], t[c + 12], 0x88);
    v[c + 12] = _mm512_shuffle_i32x4(t[c + 4], t[c + 12], 0xdd);
  }
}

void PackRowsAlong(const float* const* lines, size_t count, size_t depth, BFloat* to) {
  for (size_t r = 0; r < kRows; ++r) {
    const float* line = r < count ? lines[r] : nullptr;
    BFloat* at = to + r * kStep;
    size_t k = 0;
    if (line != nullptr) {
      for (; k + kStep <= depth; k += kStep, at += kRows * kStep) {
        const __m512i values =
            Narrow(_mm512_loadu_ps(line + k), _mm512_loadu_ps(line + k + kLanes));
        _mm512_store_si512(at, values);
      }
    }
    for (; k < depth; k += kStep, at += kRows * kStep) {
      _mm512_store_si512(at, NarrowStep(line ? line + k : nullptr, depth - k));
    }
  }
}

void PackRowsAcross(const float* const* lines, size_t count, size_t depth, BFloat* to) {
  for (size_t k = 0; k < depth; k += kStep, to += kRows * kStep) {
    for (size_t first = 0; first < kRows; first += kLanes) {
      const size_t n = first < count ? count - first : 0;
      __m512i v[16];
#pragma GCC unroll 16
      for (size_t p = 0; p < 16; ++p) {
        const float* even = k + 2 * p < depth ? lines[k + 2 * p] : nullptr;
        const float* odd = k + 2 * p + 1 < depth ? lines[k + 2 * p + 1] : nullptr;
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

void PackColumnsAlong(const float* const* lines, size_t count, size_t depth, BFloat* to) {
  for (size_t k = 0; k < depth; k += kStep, to += kColumns * kStep) {
    for (size_t first = 0; first < kColumns; first += kLanes) {
      __m512i v[16];
#pragma GCC unroll 16
      for (size_t c = 0; c < 16; ++c) {
        const float* line = first + c < count ? lines[first + c] : nullptr;
        v[c] = NarrowStep(line ? line + k : nullptr, depth - k);
      }
      Transpose(v);
#pragma GCC unroll 16
      for (size_t p = 0; p < 16; ++p) _mm512_store_si512(to + (p * kColumns + first) * 2, v[p]);
    }
  }
}

void PackColumnsAcross(const float* const* lines, size_t count, size_t depth, BFloat* to) {
  for (size_t k = 0; k < (depth + kStep - 1) / kStep * kStep; k += 2, to += 2 * kColumns) {
    const float* even = k < depth ? lines[k] : nullptr;
    const float* odd = k + 1 < depth ? lines[k + 1] : nullptr;
    for (size_t first = 0; first < kColumns; first += kLanes) {
      const size_t n = first < count ? count - first : 0;
      _mm512_store_si512(to + first * 2,
                         Pairs(even ? even + first : nullptr, odd ? odd + first : nullptr, n));
    }
  }
}

// Sums of kRows x kColumns to where they go.
inline void StoreTile(const float* sums, const TileTarget& into) {
  for (size_t first = 0; first < into.columns; first += kLanes) {
    const size_t n = into.columns - first;
    const __mmask16 mask = FirstLanes(n);
    const __m512 bias =
        into.bias ? LoadLanes(into.bias + into.first + first, n) : _mm512_setzero_ps();
    for (size_t r = 0; r < into.count; ++r) {
      float* c = into.rows[r] + into.first + first;
      __m512 value = _mm512_load_ps(sums + r * kColumns + first);
      if (into.add) {
        value = _mm512_add_ps(_mm512_maskz_loadu_ps(mask, c), value);
      } else if (into.bias) {
        value = _mm512_add_ps(value, bias);
      }
      if (into.relu) {  // what is not a number stays
        const __mmask16 negative = _mm512_cmp_ps_mask(value, _mm512_setzero_ps(), _CMP_LT_OQ);
        value = _mm512_mask_mov_ps(value, negative, _mm512_setzero_ps());
      }
      if (into.stream) {
        _mm512_stream_ps(c, value);
      } else {
        _mm512_mask_storeu_ps(c, mask, value);
      }
    }
  }
}

inline void PrefetchTarget(const TileTarget& into) {
  for (size_t r = 0; r < into.count && !into.stream; ++r) {
    for (size_t j = 0; j < into.columns; j += kLanes) {
      __builtin_prefetch(into.rows[r] + into.first + j, 1);
    }
  }
}
