// To be included as x86-inl.h is.

// 32 floats as bf16: `low` first.
inline __m512i Narrow(__m512 low, __m512 high) {
  const __m512bh both = _mm512_cvtne2ps_pbh(high, low);
  __m512i bits;
  static_assert(sizeof both == sizeof bits);
  std::memcpy(&bits, &both, sizeof bits);
  return bits;
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
