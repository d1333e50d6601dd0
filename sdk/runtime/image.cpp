// The portable image kernels, the planning of a Resizer, and the choice of instruction set.

#include "image.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <utility>

#include "image_kernels.hpp"

// A fused multiply-add rounds once instead of twice and changes bits. The build says
// -ffp-contract=off as well; this is for whoever compiles the file alone.
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#elif defined(__GNUC__)
#pragma GCC optimize("fp-contract=off")
#endif

namespace envpool::runtime {

Isa best_isa() {
#ifdef ENVPOOL_IMAGE_X86
  static const Isa best = [] {
    if (!__builtin_cpu_supports("avx2")) return Isa::kGeneric;
    const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vbmi");
    return avx512 ? Isa::kAvx512 : Isa::kAvx2;
  }();
  return best;
#else
  return Isa::kGeneric;
#endif
}

void max_into(std::uint8_t* dst, const std::uint8_t* src, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) dst[i] = std::max(dst[i], src[i]);
}

void lookup(const std::uint8_t* src, const std::uint8_t table[256], std::uint8_t* dst,
            std::size_t n, [[maybe_unused]] Isa isa) {
  std::size_t i = 0;
#ifdef ENVPOOL_IMAGE_X86
  if (isa == Isa::kAvx512) return lookup_avx512(src, table, dst, n);
  if (isa == Isa::kAvx2) i = lookup_avx2(src, table, dst, n);
#endif
  for (; i < n; ++i) dst[i] = table[src[i]];
}

void lookup_max(const std::uint8_t* a, const std::uint8_t* b, const std::uint8_t table[256],
                std::uint8_t* dst, std::size_t n, [[maybe_unused]] Isa isa) {
  std::size_t i = 0;
#ifdef ENVPOOL_IMAGE_X86
  if (isa == Isa::kAvx512) return lookup_max_avx512(a, b, table, dst, n);
  if (isa == Isa::kAvx2) i = lookup_max_avx2(a, b, table, dst, n);
#endif
  // Two successive frames differ in few places.
  for (; i + 8 <= n; i += 8) {
    std::uint64_t of_a, of_b;
    std::memcpy(&of_a, a + i, 8);
    std::memcpy(&of_b, b + i, 8);
    if (of_a == of_b) {
      for (std::size_t j = i; j < i + 8; ++j) dst[j] = table[a[j]];
    } else {
      for (std::size_t j = i; j < i + 8; ++j) dst[j] = std::max(table[a[j]], table[b[j]]);
    }
  }
  for (; i < n; ++i) dst[i] = std::max(table[a[i]], table[b[i]]);
}

void lookup_rgb(const std::uint8_t* src, const std::uint8_t table[768], std::uint8_t* dst,
                std::size_t n, [[maybe_unused]] Isa isa) {
  std::size_t i = 0;
#ifdef ENVPOOL_IMAGE_X86
  if (isa == Isa::kAvx512) i = lookup_rgb_avx512(src, table, dst, n);
#endif
  // Four bytes are moved faster than three; the fourth is overwritten by the next pixel.
  if (i + 1 < n) {
    std::array<std::array<std::uint8_t, 4>, 256> wide{};
    for (std::size_t entry = 0; entry < 256; ++entry) {
      std::copy_n(table + 3 * entry, 3, wide[entry].begin());
    }
    for (; i + 1 < n; ++i) std::memcpy(dst + 3 * i, wide[src[i]].data(), 4);
  }
  for (; i < n; ++i) std::memcpy(dst + 3 * i, table + 3 * std::size_t{src[i]}, 3);
}

void gray_from_rgb(const std::uint8_t* src, std::uint8_t* dst, std::size_t n,
                   [[maybe_unused]] Isa isa) {
  std::size_t i = 0;
#ifdef ENVPOOL_IMAGE_X86
  if (isa >= Isa::kAvx2) i = gray_from_rgb_avx2(src, dst, n);
#endif
  // 0.299, 0.587 and 0.114 in units of 2^-15.
  for (; i < n; ++i) {
    const std::uint8_t* p = src + 3 * i;
    dst[i] =
        static_cast<std::uint8_t>((p[0] * 9798 + p[1] * 19235 + p[2] * 3735 + (1 << 14)) >> 15);
  }
}

void interleaved_to_planar(const std::uint8_t* src, std::uint8_t* dst, std::size_t n, int channels,
                           [[maybe_unused]] Isa isa) {
  if (channels == 1) {
    std::copy_n(src, n, dst);
    return;
  }
  std::size_t done = 0;
#ifdef ENVPOOL_IMAGE_X86
  if (isa >= Isa::kAvx2 && channels == 3) done = planar_from_rgb_avx2(src, dst, n);
#endif
  const auto step = static_cast<std::size_t>(channels);
  for (std::size_t c = 0; c < step; ++c) {
    for (std::size_t i = done; i < n; ++i) dst[c * n + i] = src[i * step + c];
  }
}

void planar_to_interleaved(const std::uint8_t* src, std::uint8_t* dst, std::size_t n, int channels,
                           [[maybe_unused]] Isa isa) {
  if (channels == 1) {
    std::copy_n(src, n, dst);
    return;
  }
  std::size_t done = 0;
#ifdef ENVPOOL_IMAGE_X86
  if (isa >= Isa::kAvx2 && channels == 3) done = rgb_from_planar_avx2(src, dst, n);
#endif
  const auto step = static_cast<std::size_t>(channels);
  for (std::size_t c = 0; c < step; ++c) {
    for (std::size_t i = done; i < n; ++i) dst[i * step + c] = src[c * n + i];
  }
}

namespace {

int floor_int(double x) { return static_cast<int>(std::floor(x)); }
int ceil_int(double x) { return static_cast<int>(std::ceil(x)); }

// One axis of a resize. OpenCV derives every position from these two, so their rounding counts.
struct Axis {
  int src, dst;
  double inverse, scale;

  Axis(int src_size, int dst_size)
      : src(src_size),
        dst(dst_size),
        inverse(static_cast<double>(dst_size) / src_size),
        scale(1.0 / inverse) {}

  bool integral() const {
    return std::abs(scale - std::nearbyint(scale)) < std::numeric_limits<double>::epsilon();
  }
};

// The source pixels that one output pixel sums up: neighbours, beginning with `first`.
struct Cell {
  int first = 0;
  std::vector<float> weights;
};

std::vector<Cell> nearest_cells(const Axis& axis) {
  std::vector<Cell> cells;
  for (int i = 0; i < axis.dst; ++i) {
    cells.push_back({std::min(floor_int(i * axis.scale), axis.src - 1), {1.0f}});
  }
  return cells;
}

// Shrinking by a whole number: all weights are one, and the sum is divided at the end.
std::vector<Cell> whole_cells(const Axis& axis) {
  const int size = axis.src / axis.dst;
  std::vector<Cell> cells;
  for (int i = 0; i < axis.dst; ++i) {
    cells.push_back({i * size, std::vector<float>(static_cast<std::size_t>(size), 1.0f)});
  }
  return cells;
}

// Shrinking by any factor: a pixel weighs as much as is covered of it. Slivers are left out.
std::vector<Cell> area_cells(const Axis& axis) {
  constexpr double kSliver = 1e-3;
  std::vector<Cell> cells;
  for (int i = 0; i < axis.dst; ++i) {
    const double begin = i * axis.scale;
    const double end = begin + axis.scale;
    const double width = std::min(axis.scale, axis.src - begin);
    const int whole_end = std::min(floor_int(end), axis.src - 1);
    const int whole_begin = std::min(ceil_int(begin), whole_end);

    Cell cell{whole_begin, {}};
    if (whole_begin - begin > kSliver) {
      cell.first = whole_begin - 1;
      cell.weights.push_back(static_cast<float>((whole_begin - begin) / width));
    }
    cell.weights.insert(cell.weights.end(), static_cast<std::size_t>(whole_end - whole_begin),
                        static_cast<float>(1.0 / width));
    if (end - whole_end > kSliver) {
      const double covered = std::min(std::min(end - whole_end, 1.0), width);
      cell.weights.push_back(static_cast<float>(covered / width));
    }
    cells.push_back(std::move(cell));
  }
  return cells;
}

// Fixed point of the linear method: 11 bits.
constexpr int kLinearOne = 1 << 11;

struct LinearPosition {
  int first;
  float fraction;  // the weight of the pixel after the first
};

LinearPosition linear_position(const Axis& axis, int i, bool area_like) {
  if (area_like) {
    const int first = floor_int(i * axis.scale);
    const auto f = static_cast<float>((i + 1) - (first + 1) * axis.inverse);
    return {first, f <= 0 ? 0.0f : f - std::floor(f)};
  }
  const auto f = static_cast<float>((i + 0.5) * axis.scale - 0.5);
  return {floor_int(f), f - std::floor(f)};
}

std::int32_t fixed_point(float weight) {
  return static_cast<std::int32_t>(std::lrint(weight * kLinearOne));
}

// Rounds half to even, for 0 <= x < 2^22: adding 1.5 * 2^23 leaves no bits after the point. Unlike
// std::lrint this vectorises everywhere.
std::uint8_t round_to_byte(float x) {
  const std::uint32_t rounded = std::bit_cast<std::uint32_t>(x + 0x1.8p23f) & 0x3fffff;
  return static_cast<std::uint8_t>(std::min<std::uint32_t>(rounded, 255));
}

// The order of the additions is OpenCV's: along the row first, then down the rows. Number is float;
// double for sums of whole numbers that a float can't hold.
template <typename Number>
void resize_sum(const Resizer::Sum& sum, const std::uint8_t* src, std::size_t src_row,
                std::uint8_t* dst, std::size_t dst_row) {
  constexpr std::size_t kLanes = Resizer::kLanes;
  const auto taps = static_cast<std::size_t>(sum.taps);
  for (std::size_t block = 0; block < sum.block_at.size(); ++block) {
    const auto at = static_cast<std::size_t>(sum.block_at[block]);
    const std::size_t count = std::min(kLanes, dst_row - at);
    const std::int32_t* offset = sum.offset.data() + block * taps * kLanes;
    const float* weight = sum.weight.data() + block * taps * kLanes;
    std::array<Number, kLanes> along{};
    int along_row = -1;  // the source row that `along` sums up: two output rows may share one
    for (std::size_t y = 0; y < sum.rows.size(); ++y) {
      const Resizer::Sum::Row& row = sum.rows[y];
      std::array<Number, kLanes> total{};
      for (int k = 0; k < row.count; ++k) {
        if (along_row != row.first + k) {
          along_row = row.first + k;
          const std::uint8_t* line = src + static_cast<std::size_t>(along_row) * src_row;
          along.fill(0);
          for (std::size_t i = 0; i < taps * kLanes; i += kLanes) {
            for (std::size_t lane = 0; lane < kLanes; ++lane) {
              along[lane] += static_cast<Number>(line[offset[i + lane]]) * weight[i + lane];
            }
          }
        }
        const float row_weight = sum.row_weights[row.weight_at + static_cast<std::size_t>(k)];
        for (std::size_t lane = 0; lane < kLanes; ++lane) total[lane] += along[lane] * row_weight;
      }
      std::array<std::uint8_t, kLanes> bytes;
      for (std::size_t lane = 0; lane < kLanes; ++lane) {
        bytes[lane] = round_to_byte((static_cast<float>(total[lane]) + sum.bias) * sum.factor);
      }
      std::memcpy(dst + y * dst_row + at, bytes.data(), count);
    }
  }
}

}  // namespace

Resizer::Resizer(int src_h, int src_w, int channels, int dst_h, int dst_w,
                 Interpolation interpolation, Isa isa)
    : src_h_(src_h),
      src_w_(src_w),
      channels_(channels),
      dst_h_(dst_h),
      dst_w_(dst_w),
      src_row_(static_cast<std::size_t>(src_w) * static_cast<std::size_t>(channels)),
      dst_row_(static_cast<std::size_t>(dst_w) * static_cast<std::size_t>(channels)),
      isa_(isa),
      method_(Method::kSum) {
  if (src_h < 1 || src_w < 1 || dst_h < 1 || dst_w < 1 || channels < 1 || channels > 4) {
    throw std::invalid_argument("Resizer: sizes must be positive, and channels 1 to 4");
  }
  const Axis x(src_w, dst_w), y(src_h, dst_h);
  const bool by_two = src_w == 2 * dst_w && src_h == 2 * dst_h;
  if (src_h == dst_h && src_w == dst_w) {
    method_ = Method::kCopy;
  } else if (interpolation == Interpolation::kNearest) {
    plan_sum(interpolation);
  } else if (interpolation == Interpolation::kLinear && !by_two) {
    plan_linear(false);
  } else if (x.scale < 1 || y.scale < 1) {
    plan_linear(true);
  } else {
    plan_sum(Interpolation::kArea);
  }
}

void Resizer::plan_linear(bool area_like) {
  method_ = Method::kLinear;
  const auto plan = [&](const Axis& axis, int channels, bool drop_fraction) {
    std::vector<Linear::Tap> taps;
    for (int i = 0; i < axis.dst; ++i) {
      auto [first, fraction] = linear_position(axis, i, area_like);
      // Beyond the border, columns take the border's pixel alone; rows repeat it with both weights,
      // which is not the same after rounding.
      if (drop_fraction && (first < 0 || first >= axis.src - 1)) fraction = 0;
      const int last = axis.src - 1;
      const int at[2] = {std::clamp(first, 0, last), std::clamp(first + 1, 0, last)};
      for (int c = 0; c < channels; ++c) {
        taps.push_back({{at[0] * channels + c, at[1] * channels + c},
                        {fixed_point(1.0f - fraction), fixed_point(fraction)}});
      }
    }
    return taps;
  };
  linear_.columns = plan(Axis(src_w_, dst_w_), channels_, true);
  linear_.rows = plan(Axis(src_h_, dst_h_), 1, false);
}

void Resizer::plan_sum(Interpolation interpolation) {
  method_ = Method::kSum;
  const Axis x(src_w_, dst_w_), y(src_h_, dst_h_);
  std::vector<Cell> columns, rows;
  if (interpolation == Interpolation::kNearest) {
    columns = nearest_cells(x);
    rows = nearest_cells(y);
  } else if (x.integral() && y.integral()) {
    columns = whole_cells(x);
    rows = whole_cells(y);
    const std::int64_t area = std::int64_t{src_w_ / dst_w_} * (src_h_ / dst_h_);
    sum_.factor = 1.0f / static_cast<float>(area);
    sum_.wide = 255 * area > 1 << std::numeric_limits<float>::digits;
    // OpenCV has a special case for two by two which rounds half up.
    if (src_w_ == 2 * dst_w_ && src_h_ == 2 * dst_h_ && channels_ != 2) sum_.bias = 0.5f;
  } else {
    columns = area_cells(x);
    rows = area_cells(y);
  }

  for (const Cell& cell : rows) {
    sum_.rows.push_back(
        {cell.first, static_cast<int>(cell.weights.size()), sum_.row_weights.size()});
    sum_.row_weights.insert(sum_.row_weights.end(), cell.weights.begin(), cell.weights.end());
  }

  for (const Cell& cell : columns) {
    sum_.taps = std::max(sum_.taps, static_cast<int>(cell.weights.size()));
  }
  const int width = static_cast<int>(dst_row_);
  for (int at = 0; at < width; at += kLanes) {
    sum_.block_at.push_back(std::max(0, std::min(at, width - kLanes)));
  }
  for (const std::int32_t at : sum_.block_at) {
    for (int tap = 0; tap < sum_.taps; ++tap) {
      for (int lane = 0; lane < kLanes; ++lane) {
        const int column = std::min(at + lane, width - 1);
        const Cell& cell = columns[static_cast<std::size_t>(column / channels_)];
        const int used = static_cast<int>(cell.weights.size());
        const int pixel = cell.first + std::min(tap, used - 1);
        sum_.offset.push_back(pixel * channels_ + column % channels_);
        sum_.weight.push_back(tap < used ? cell.weights[static_cast<std::size_t>(tap)] : 0.0f);
      }
    }
  }

  if (width < kLanes || sum_.wide) isa_ = Isa::kGeneric;
  if (isa_ == Isa::kAvx512 && !plan_shuffle(1)) isa_ = Isa::kAvx2;
  if (isa_ == Isa::kAvx2 && !plan_shuffle(4)) isa_ = Isa::kGeneric;
}

// A kernel fetches the bytes of a block's tap with one load of 64 bytes, or four of 16, and a
// shuffle. Returns false if the bytes lie too far apart (strong shrinking) or the row is too short.
bool Resizer::plan_shuffle(int windows_a_block) {
  const int lanes = kLanes / windows_a_block;
  const int bytes = 64 / windows_a_block;
  const int last_window = static_cast<int>(src_row_) - bytes;
  if (last_window < 0 || sum_.taps > kMaxShuffledTaps) return false;
  sum_.window.clear();
  sum_.shuffle.clear();
  for (auto it = sum_.offset.begin(); it != sum_.offset.end(); it += lanes) {
    const auto [low, high] = std::minmax_element(it, it + lanes);
    const int window = std::min(*low, last_window);
    if (*high - window >= bytes) return false;
    sum_.window.push_back(window);
    for (int lane = 0; lane < lanes; ++lane) {
      sum_.shuffle.push_back(static_cast<std::uint8_t>(it[lane] - window));
      // Three bytes of zero, and so a 32-bit number. 0x80 means zero to the shuffle of AVX2; the
      // one of AVX-512 uses a mask.
      sum_.shuffle.insert(sum_.shuffle.end(), 3, std::uint8_t{0x80});
    }
  }
  return true;
}

void Resizer::run(const std::uint8_t* src, std::uint8_t* dst) const {
  switch (method_) {
    case Method::kCopy:
      std::memcpy(dst, src, src_bytes());
      return;
    case Method::kLinear:
      return run_linear(src, dst);
    case Method::kSum:
#ifdef ENVPOOL_IMAGE_X86
      if (isa_ == Isa::kAvx512) return resize_sum_avx512(sum_, src, src_row_, dst, dst_row_);
      if (isa_ == Isa::kAvx2) return resize_sum_avx2(sum_, src, src_row_, dst, dst_row_);
#endif
      if (sum_.wide) return resize_sum<double>(sum_, src, src_row_, dst, dst_row_);
      return resize_sum<float>(sum_, src, src_row_, dst, dst_row_);
  }
}

void Resizer::run_linear(const std::uint8_t* src, std::uint8_t* dst) const {
  for (const Linear::Tap& row : linear_.rows) {
    const std::uint8_t* upper = src + static_cast<std::size_t>(row.at[0]) * src_row_;
    const std::uint8_t* lower = src + static_cast<std::size_t>(row.at[1]) * src_row_;
    for (const Linear::Tap& column : linear_.columns) {
      const auto along = [&](const std::uint8_t* line) {
        return line[column.at[0]] * column.weight[0] + line[column.at[1]] * column.weight[1];
      };
      const int above = (row.weight[0] * (along(upper) >> 4)) >> 16;
      const int below = (row.weight[1] * (along(lower) >> 4)) >> 16;
      *dst++ = static_cast<std::uint8_t>((above + below + 2) >> 2);
    }
  }
}

}  // namespace envpool::runtime
