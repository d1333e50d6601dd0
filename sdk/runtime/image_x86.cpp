// The image kernels for AVX2 and AVX-512 (with VBMI). Each function names its instruction set, so
// the file is compiled with the same flags as the others.

#include "image_kernels.hpp"

#ifdef ENVPOOL_IMAGE_X86

#include <immintrin.h>

#include <array>
#include <iterator>

// See image.cpp: the compiler may not fuse the multiplications and additions below.
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#elif defined(__GNUC__)
#pragma GCC optimize("fp-contract=off")
// GCC's own AVX-512 headers set it off (its bug 105593).
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

#define AVX2 __attribute__((target("avx2")))
#define AVX512 __attribute__((target("avx2,avx512f,avx512bw,avx512vl,avx512vbmi")))

namespace envpool::runtime {
namespace {

const __m128i* in128(const std::uint8_t* p) { return reinterpret_cast<const __m128i*>(p); }
const __m256i* in256(const std::uint8_t* p) { return reinterpret_cast<const __m256i*>(p); }
__m128i* out128(std::uint8_t* p) { return reinterpret_cast<__m128i*>(p); }
__m256i* out256(std::uint8_t* p) { return reinterpret_cast<__m256i*>(p); }

// AVX2 shuffles within 16 bytes, so a table of 128 needs eight steps. Step i subtracts 16 * i from
// the index: while the result is not negative, the shuffle gives entry (index % 16) of piece i,
// afterwards zero. Piece i holds its entries XORed with those of piece i - 1, so that the XOR of
// all steps leaves the last one that counted. A negative index gives zero.
struct Table128 {
  __m256i piece[8];
};

template <int kCount>
AVX2 inline void add_translation(const Table128& t, __m256i (&index)[kCount],
                                 __m256i (&result)[kCount]) {
  const __m256i sixteen = _mm256_set1_epi8(16);
  for (int i = 0; i < 8; ++i) {
    for (int j = 0; j < kCount; ++j) {
      result[j] = _mm256_xor_si256(result[j], _mm256_shuffle_epi8(t.piece[i], index[j]));
      index[j] = _mm256_subs_epi8(index[j], sixteen);
    }
  }
}

struct Table256 {
  Table128 lower, upper;
  Table128 even;  // entries 0, 2, 4, ...
};

AVX2 inline Table256 load_table(const std::uint8_t* table) {
  Table256 t;
  __m128i lower = _mm_setzero_si128(), upper = lower, even = lower;  // the pieces before
  const __m128i low_byte = _mm_set1_epi16(0xff);
  for (int i = 0; i < 8; ++i) {
    const auto store = [i](Table128& to, __m128i piece, __m128i& before) AVX2 {
      to.piece[i] = _mm256_broadcastsi128_si256(_mm_xor_si128(piece, before));
      before = piece;
    };
    store(t.lower, _mm_loadu_si128(in128(table + 16 * i)), lower);
    store(t.upper, _mm_loadu_si128(in128(table + 128 + 16 * i)), upper);
    const __m128i a = _mm_loadu_si128(in128(table + 32 * i));
    const __m128i b = _mm_loadu_si128(in128(table + 32 * i + 16));
    store(t.even, _mm_packus_epi16(_mm_and_si128(a, low_byte), _mm_and_si128(b, low_byte)), even);
  }
  return t;
}

// Many palettes, Atari's among them, use even indices only, and then half the steps do.
template <int kCount>
AVX2 inline void translate(const Table256& t, __m256i (&x)[kCount]) {
  __m256i any = x[0], result[kCount];
  for (int j = 0; j < kCount; ++j) {
    any = _mm256_or_si256(any, x[j]);
    result[j] = _mm256_setzero_si256();
  }
  if (_mm256_testz_si256(any, _mm256_set1_epi8(1))) {
    for (int j = 0; j < kCount; ++j) x[j] = _mm256_srli_epi16(x[j], 1);
    add_translation(t.even, x, result);
  } else {
    __m256i flipped[kCount];  // 128 ... 255 become 0 ... 127, the others negative
    for (int j = 0; j < kCount; ++j) flipped[j] = _mm256_xor_si256(x[j], _mm256_set1_epi8(-128));
    add_translation(t.lower, x, result);
    add_translation(t.upper, flipped, result);
  }
  for (int j = 0; j < kCount; ++j) x[j] = result[j];
}

}  // namespace

AVX2 std::size_t lookup_avx2(const std::uint8_t* src, const std::uint8_t* table, std::uint8_t* dst,
                             std::size_t n) {
  const Table256 t = load_table(table);
  std::size_t i = 0;
  for (; i + 64 <= n; i += 64) {
    __m256i x[2] = {_mm256_loadu_si256(in256(src + i)), _mm256_loadu_si256(in256(src + i + 32))};
    translate(t, x);
    _mm256_storeu_si256(out256(dst + i), x[0]);
    _mm256_storeu_si256(out256(dst + i + 32), x[1]);
  }
  return i;
}

AVX2 std::size_t lookup_max_avx2(const std::uint8_t* a, const std::uint8_t* b,
                                 const std::uint8_t* table, std::uint8_t* dst, std::size_t n) {
  const Table256 t = load_table(table);
  std::size_t i = 0;
  for (; i + 64 <= n; i += 64) {
    __m256i x[2] = {_mm256_loadu_si256(in256(a + i)), _mm256_loadu_si256(in256(a + i + 32))};
    __m256i y[2] = {_mm256_loadu_si256(in256(b + i)), _mm256_loadu_si256(in256(b + i + 32))};
    // Two successive frames differ in few places.
    const __m256i difference =
        _mm256_or_si256(_mm256_xor_si256(x[0], y[0]), _mm256_xor_si256(x[1], y[1]));
    translate(t, x);
    if (!_mm256_testz_si256(difference, difference)) {
      translate(t, y);
      x[0] = _mm256_max_epu8(x[0], y[0]);
      x[1] = _mm256_max_epu8(x[1], y[1]);
    }
    _mm256_storeu_si256(out256(dst + i), x[0]);
    _mm256_storeu_si256(out256(dst + i + 32), x[1]);
  }
  return i;
}

AVX2 std::size_t gray_from_rgb_avx2(const std::uint8_t* src, std::uint8_t* dst, std::size_t n) {
  // Of four pixels: pairs of red and green, then pairs of blue and zero, as 16-bit numbers.
  const __m256i red_green = _mm256_broadcastsi128_si256(
      _mm_setr_epi8(0, -1, 1, -1, 3, -1, 4, -1, 6, -1, 7, -1, 9, -1, 10, -1));
  const __m256i blue = _mm256_broadcastsi128_si256(
      _mm_setr_epi8(2, -1, -1, -1, 5, -1, -1, -1, 8, -1, -1, -1, 11, -1, -1, -1));
  const __m256i red_green_weight = _mm256_set1_epi32(19235 << 16 | 9798);
  const __m256i blue_weight = _mm256_set1_epi32(3735);
  const __m256i half = _mm256_set1_epi32(1 << 14);
  const auto four_and_four = [&](const std::uint8_t* p) AVX2 {
    const __m256i x = _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128(in128(p))),
                                              _mm_loadu_si128(in128(p + 12)), 1);
    const __m256i sum =
        _mm256_add_epi32(_mm256_madd_epi16(_mm256_shuffle_epi8(x, red_green), red_green_weight),
                         _mm256_madd_epi16(_mm256_shuffle_epi8(x, blue), blue_weight));
    return _mm256_srli_epi32(_mm256_add_epi32(sum, half), 15);
  };
  std::size_t i = 0;
  // The last load reads four bytes past its pixels.
  for (; i + 18 <= n; i += 16) {
    const __m256i low = four_and_four(src + 3 * i);
    const __m256i high = four_and_four(src + 3 * i + 24);
    // Packing works within halves: quarters 0 2 1 3.
    const __m256i words = _mm256_permute4x64_epi64(_mm256_packus_epi32(low, high), 0xd8);
    _mm_storeu_si128(out128(dst + i), _mm_packus_epi16(_mm256_castsi256_si128(words),
                                                       _mm256_extracti128_si256(words, 1)));
  }
  return i;
}

namespace {

// Shuffles between 48 bytes of RGB and 16 bytes of each channel: entry [part][channel] takes from
// register `part` of RGB what belongs to the channel, or the other way round.
using Shuffles = std::array<std::array<std::array<std::int8_t, 16>, 3>, 3>;

constexpr Shuffles kSplit = [] {
  Shuffles s{};
  for (std::size_t part = 0; part < 3; ++part) {
    for (std::size_t c = 0; c < 3; ++c) {
      for (std::size_t i = 0; i < 16; ++i) {
        const std::size_t from = 3 * i + c;
        s[part][c][i] = static_cast<std::int8_t>(from / 16 == part ? from % 16 : 0x80);
      }
    }
  }
  return s;
}();

constexpr Shuffles kJoin = [] {
  Shuffles s{};
  for (std::size_t part = 0; part < 3; ++part) {
    for (std::size_t c = 0; c < 3; ++c) {
      for (std::size_t i = 0; i < 16; ++i) {
        const std::size_t to = 16 * part + i;
        s[part][c][i] = static_cast<std::int8_t>(to % 3 == c ? to / 3 : 0x80);
      }
    }
  }
  return s;
}();

AVX2 inline __m128i shuffled(__m128i x, const std::array<std::int8_t, 16>& by) {
  return _mm_shuffle_epi8(x, _mm_loadu_si128(reinterpret_cast<const __m128i*>(by.data())));
}

}  // namespace

AVX2 std::size_t planar_from_rgb_avx2(const std::uint8_t* src, std::uint8_t* dst, std::size_t n) {
  std::size_t i = 0;
  for (; i + 16 <= n; i += 16) {
    const std::uint8_t* p = src + 3 * i;
    const __m128i x0 = _mm_loadu_si128(in128(p));
    const __m128i x1 = _mm_loadu_si128(in128(p + 16));
    const __m128i x2 = _mm_loadu_si128(in128(p + 32));
    for (std::size_t c = 0; c < 3; ++c) {
      const __m128i y =
          _mm_or_si128(_mm_or_si128(shuffled(x0, kSplit[0][c]), shuffled(x1, kSplit[1][c])),
                       shuffled(x2, kSplit[2][c]));
      _mm_storeu_si128(out128(dst + c * n + i), y);
    }
  }
  return i;
}

AVX2 std::size_t rgb_from_planar_avx2(const std::uint8_t* src, std::uint8_t* dst, std::size_t n) {
  std::size_t i = 0;
  for (; i + 16 <= n; i += 16) {
    const __m128i r = _mm_loadu_si128(in128(src + i));
    const __m128i g = _mm_loadu_si128(in128(src + n + i));
    const __m128i b = _mm_loadu_si128(in128(src + 2 * n + i));
    for (std::size_t part = 0; part < 3; ++part) {
      const __m128i y =
          _mm_or_si128(_mm_or_si128(shuffled(r, kJoin[part][0]), shuffled(g, kJoin[part][1])),
                       shuffled(b, kJoin[part][2]));
      _mm_storeu_si128(out128(dst + 3 * i + 16 * part), y);
    }
  }
  return i;
}

namespace {

// Half a block, eight output columns, at a time, from top to bottom. With the number of taps known,
// their shuffles and weights stay in registers.
template <int kTaps>
AVX2 void resize_sum_taps_avx2(const Resizer::Sum& sum, const std::uint8_t* src,
                               std::size_t src_row, std::uint8_t* dst, std::size_t dst_row) {
  const __m256 bias = _mm256_set1_ps(sum.bias);
  const __m256 factor = _mm256_set1_ps(sum.factor);
  const float* row_weights = sum.row_weights.data();
  for (std::size_t half = 0; half < 2 * sum.block_at.size(); ++half) {
    // The last block may overlap the one before by half or more.
    const std::size_t block = half / 2;
    if (half % 2 == 0 && block > 0 && sum.block_at[block] <= sum.block_at[block - 1] + 8) continue;
    std::ptrdiff_t low[kTaps], high[kTaps];
    __m256i shuffle[kTaps];
    __m256 weight[kTaps];
    for (std::size_t i = 0; i < kTaps; ++i) {
      const std::size_t quarter = 4 * (block * kTaps + i) + half % 2 * 2;
      low[i] = sum.window[quarter];
      high[i] = sum.window[quarter + 1];
      shuffle[i] = _mm256_loadu_si256(in256(&sum.shuffle[quarter * 16]));
      weight[i] = _mm256_loadu_ps(&sum.weight[quarter * 4]);
    }
    std::uint8_t* out = dst + sum.block_at[block] + half % 2 * 8;
    __m256 along = _mm256_setzero_ps();
    int along_row = -1;
    for (const Resizer::Sum::Row& row : sum.rows) {
      __m256 total = _mm256_setzero_ps();
      for (int k = 0; k < row.count; ++k) {
        if (along_row != row.first + k) {
          along_row = row.first + k;
          const std::uint8_t* line = src + static_cast<std::size_t>(along_row) * src_row;
          for (int i = 0; i < kTaps; ++i) {
            const __m256i bytes = _mm256_inserti128_si256(
                _mm256_castsi128_si256(_mm_loadu_si128(in128(line + low[i]))),
                _mm_loadu_si128(in128(line + high[i])), 1);
            const __m256 numbers = _mm256_cvtepi32_ps(_mm256_shuffle_epi8(bytes, shuffle[i]));
            const __m256 product = _mm256_mul_ps(numbers, weight[i]);
            along = i == 0 ? product : _mm256_add_ps(along, product);
          }
        }
        const __m256 row_weight =
            _mm256_set1_ps(row_weights[row.weight_at + static_cast<std::size_t>(k)]);
        total = _mm256_add_ps(total, _mm256_mul_ps(along, row_weight));
      }
      const __m256i rounded = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_add_ps(total, bias), factor));
      const __m128i words =
          _mm_packus_epi32(_mm256_castsi256_si128(rounded), _mm256_extracti128_si256(rounded, 1));
      _mm_storel_epi64(out128(out), _mm_packus_epi16(words, words));
      out += dst_row;
    }
  }
}

// The kernels for 1, 2, ... taps.
using ResizeSum = void(const Resizer::Sum&, const std::uint8_t*, std::size_t, std::uint8_t*,
                       std::size_t);
constexpr ResizeSum* kResizeSumAvx2[] = {resize_sum_taps_avx2<1>, resize_sum_taps_avx2<2>,
                                         resize_sum_taps_avx2<3>, resize_sum_taps_avx2<4>,
                                         resize_sum_taps_avx2<5>, resize_sum_taps_avx2<6>};
static_assert(std::size(kResizeSumAvx2) == Resizer::kMaxShuffledTaps);

}  // namespace

void resize_sum_avx2(const Resizer::Sum& sum, const std::uint8_t* src, std::size_t src_row,
                     std::uint8_t* dst, std::size_t dst_row) {
  kResizeSumAvx2[sum.taps - 1](sum, src, src_row, dst, dst_row);
}

namespace {

struct Table256Wide {
  __m512i piece[4];
};

AVX512 inline Table256Wide load_table_wide(const std::uint8_t* table) {
  return {{_mm512_loadu_si512(table), _mm512_loadu_si512(table + 64),
           _mm512_loadu_si512(table + 128), _mm512_loadu_si512(table + 192)}};
}

AVX512 inline __m512i translate(const Table256Wide& t, __m512i x) {
  const __m512i lower = _mm512_permutex2var_epi8(t.piece[0], x, t.piece[1]);
  const __m512i upper = _mm512_permutex2var_epi8(t.piece[2], x, t.piece[3]);
  return _mm512_mask_blend_epi8(_mm512_movepi8_mask(x), lower, upper);
}

// A mask of the n - i bytes that are left, at most 64.
inline std::uint64_t mask_of_rest(std::size_t left) {
  return left >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << left) - 1;
}

}  // namespace

AVX512 void lookup_avx512(const std::uint8_t* src, const std::uint8_t* table, std::uint8_t* dst,
                          std::size_t n) {
  const Table256Wide t = load_table_wide(table);
  for (std::size_t i = 0; i < n; i += 64) {
    const __mmask64 mask = mask_of_rest(n - i);
    _mm512_mask_storeu_epi8(dst + i, mask, translate(t, _mm512_maskz_loadu_epi8(mask, src + i)));
  }
}

AVX512 void lookup_max_avx512(const std::uint8_t* a, const std::uint8_t* b,
                              const std::uint8_t* table, std::uint8_t* dst, std::size_t n) {
  const Table256Wide t = load_table_wide(table);
  for (std::size_t i = 0; i < n; i += 64) {
    const __mmask64 mask = mask_of_rest(n - i);
    const __m512i x = translate(t, _mm512_maskz_loadu_epi8(mask, a + i));
    const __m512i y = translate(t, _mm512_maskz_loadu_epi8(mask, b + i));
    _mm512_mask_storeu_epi8(dst + i, mask, _mm512_max_epu8(x, y));
  }
}

namespace {

// Byte j of output register `part` is channel (64 * part + j) % 3 of pixel (64 * part + j) / 3. Red
// and green come from a pair of registers, green's bytes being numbered from 64; blue by a mask.
struct JoinWide {
  std::array<std::array<std::uint8_t, 64>, 3> index{};
  std::array<std::uint64_t, 3> is_blue{};
};

constexpr JoinWide kJoinWide = [] {
  JoinWide join;
  for (std::size_t part = 0; part < 3; ++part) {
    for (std::size_t j = 0; j < 64; ++j) {
      const std::size_t to = 64 * part + j;
      join.index[part][j] = static_cast<std::uint8_t>(to / 3 + (to % 3 == 1 ? 64 : 0));
      if (to % 3 == 2) join.is_blue[part] |= std::uint64_t{1} << j;
    }
  }
  return join;
}();

}  // namespace

AVX512 std::size_t lookup_rgb_avx512(const std::uint8_t* src, const std::uint8_t* table,
                                     std::uint8_t* dst, std::size_t n) {
  if (n < 64) return 0;
  std::array<std::array<std::uint8_t, 256>, 3> planes;
  for (std::size_t i = 0; i < 256; ++i) {
    for (std::size_t c = 0; c < 3; ++c) planes[c][i] = table[3 * i + c];
  }
  const Table256Wide red = load_table_wide(planes[0].data());
  const Table256Wide green = load_table_wide(planes[1].data());
  const Table256Wide blue = load_table_wide(planes[2].data());
  std::size_t i = 0;
  for (; i + 64 <= n; i += 64) {
    const __m512i x = _mm512_loadu_si512(src + i);
    const __m512i r = translate(red, x), g = translate(green, x), b = translate(blue, x);
    for (std::size_t part = 0; part < 3; ++part) {
      const __m512i index = _mm512_loadu_si512(kJoinWide.index[part].data());
      const __m512i red_green = _mm512_permutex2var_epi8(r, index, g);
      _mm512_storeu_si512(
          dst + 3 * i + 64 * part,
          _mm512_mask_permutexvar_epi8(red_green, kJoinWide.is_blue[part], index, b));
    }
  }
  return i;
}

namespace {

// A block, sixteen output columns, at a time.
template <int kTaps>
AVX512 void resize_sum_taps_avx512(const Resizer::Sum& sum, const std::uint8_t* src,
                                   std::size_t src_row, std::uint8_t* dst, std::size_t dst_row) {
  constexpr __mmask64 kLowBytes = 0x1111111111111111;  // of the 32-bit numbers
  const __m512 bias = _mm512_set1_ps(sum.bias);
  const __m512 factor = _mm512_set1_ps(sum.factor);
  const float* row_weights = sum.row_weights.data();
  for (std::size_t block = 0; block < sum.block_at.size(); ++block) {
    std::ptrdiff_t window[kTaps];
    __m512i shuffle[kTaps];
    __m512 weight[kTaps];
    for (std::size_t i = 0; i < kTaps; ++i) {
      window[i] = sum.window[block * kTaps + i];
      shuffle[i] = _mm512_loadu_si512(&sum.shuffle[(block * kTaps + i) * 64]);
      weight[i] = _mm512_loadu_ps(&sum.weight[(block * kTaps + i) * 16]);
    }
    std::uint8_t* out = dst + sum.block_at[block];
    __m512 along = _mm512_setzero_ps();
    int along_row = -1;
    for (const Resizer::Sum::Row& row : sum.rows) {
      __m512 total = _mm512_setzero_ps();
      for (int k = 0; k < row.count; ++k) {
        if (along_row != row.first + k) {
          along_row = row.first + k;
          const std::uint8_t* line = src + static_cast<std::size_t>(along_row) * src_row;
          for (int i = 0; i < kTaps; ++i) {
            const __m512i bytes = _mm512_loadu_si512(line + window[i]);
            const __m512 numbers =
                _mm512_cvtepi32_ps(_mm512_maskz_permutexvar_epi8(kLowBytes, shuffle[i], bytes));
            const __m512 product = _mm512_mul_ps(numbers, weight[i]);
            along = i == 0 ? product : _mm512_add_ps(along, product);
          }
        }
        const __m512 row_weight =
            _mm512_set1_ps(row_weights[row.weight_at + static_cast<std::size_t>(k)]);
        total = _mm512_add_ps(total, _mm512_mul_ps(along, row_weight));
      }
      const __m512i rounded = _mm512_cvtps_epi32(_mm512_mul_ps(_mm512_add_ps(total, bias), factor));
      _mm_storeu_si128(out128(out), _mm512_cvtusepi32_epi8(rounded));
      out += dst_row;
    }
  }
}

constexpr ResizeSum* kResizeSumAvx512[] = {resize_sum_taps_avx512<1>, resize_sum_taps_avx512<2>,
                                           resize_sum_taps_avx512<3>, resize_sum_taps_avx512<4>,
                                           resize_sum_taps_avx512<5>, resize_sum_taps_avx512<6>};
static_assert(std::size(kResizeSumAvx512) == Resizer::kMaxShuffledTaps);

}  // namespace

void resize_sum_avx512(const Resizer::Sum& sum, const std::uint8_t* src, std::size_t src_row,
                       std::uint8_t* dst, std::size_t dst_row) {
  kResizeSumAvx512[sum.taps - 1](sum, src, src_row, dst, dst_row);
}

}  // namespace envpool::runtime

#endif  // ENVPOOL_IMAGE_X86
