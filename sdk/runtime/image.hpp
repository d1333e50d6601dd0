// Image kernels of the native transforms: palette look-up, maximum of two frames, gray, change of
// layout, and resizing. They are plain functions of bytes, allocate nothing and are thread-safe.
//
// Results are the bits that OpenCV gives on x86-64 (cv2.cvtColor RGB2GRAY and cv2.resize of uint8),
// because learned policies and published scores depend on them. Floating-point work assumes the
// default rounding mode.
//
// Each kernel chooses the best instruction set of the running CPU; the last parameter forces a
// lesser one, for tests and benchmarks. All instruction sets give the same bits.

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace envpool::runtime {

// Ordered: each set includes the ones before it. kAvx512 needs the VBMI extension too.
enum class Isa { kGeneric, kAvx2, kAvx512 };

Isa best_isa();

// dst = max(dst, src)
void max_into(std::uint8_t* dst, const std::uint8_t* src, std::size_t n);

// dst = table[src]. dst may be src.
void lookup(const std::uint8_t* src, const std::uint8_t table[256], std::uint8_t* dst,
            std::size_t n, Isa isa = best_isa());

// dst = max(table[a], table[b]). dst may be a or b.
void lookup_max(const std::uint8_t* a, const std::uint8_t* b, const std::uint8_t table[256],
                std::uint8_t* dst, std::size_t n, Isa isa = best_isa());

// Writes n pixels of three bytes, table[3 * src] and the two after it.
void lookup_rgb(const std::uint8_t* src, const std::uint8_t table[768], std::uint8_t* dst,
                std::size_t n, Isa isa = best_isa());

// n RGB pixels to n gray values.
void gray_from_rgb(const std::uint8_t* src, std::uint8_t* dst, std::size_t n, Isa isa = best_isa());

// HWC to CHW and back; n is the number of pixels.
void interleaved_to_planar(const std::uint8_t* src, std::uint8_t* dst, std::size_t n, int channels,
                           Isa isa = best_isa());
void planar_to_interleaved(const std::uint8_t* src, std::uint8_t* dst, std::size_t n, int channels,
                           Isa isa = best_isa());

enum class Interpolation { kNearest, kLinear, kArea };

// cv2.resize(src, (dst_w, dst_h), interpolation=...) for contiguous HWC images of uint8 with up to
// four channels. The constructor does all planning; a Resizer never changes after it, and any
// number of threads may run it at once. src and dst may not overlap.
class Resizer {
 public:
  // Throws std::invalid_argument for a size below one or more than four channels.
  Resizer(int src_h, int src_w, int channels, int dst_h, int dst_w, Interpolation interpolation,
          Isa isa = best_isa());

  void run(const std::uint8_t* src, std::uint8_t* dst) const;

  std::size_t src_bytes() const { return static_cast<std::size_t>(src_h_) * src_row_; }
  std::size_t dst_bytes() const { return static_cast<std::size_t>(dst_h_) * dst_row_; }

  // What follows is the plan, open to the kernels only.

  // Output columns (bytes of a row, channels included) are worked on in blocks of this many.
  static constexpr int kLanes = 16;
  // The most taps that the vector kernels are made for.
  static constexpr int kMaxShuffledTaps = 6;

  // A weighted sum over a rectangle of source pixels: the nearest and the area method.
  // Every block has `taps` entries of kLanes lanes; lanes of fewer taps have zero weights.
  struct Sum {
    struct Row {
      int first;              // source row
      int count;              // rows from there on
      std::size_t weight_at;  // index of the first one's weight in row_weights
    };
    int taps = 0;
    // The first output column of each block; the last block may overlap the one before.
    std::vector<std::int32_t> block_at;
    std::vector<std::int32_t> offset;  // [block][tap][lane] byte within a source row
    std::vector<float> weight;         // [block][tap][lane]
    std::vector<Row> rows;             // [output row]
    std::vector<float> row_weights;
    float bias = 0;  // output = round((sum + bias) * factor)
    float factor = 1;
    bool wide = false;  // sums exceed the whole numbers of float
    // For byte shuffles, [block][tap]: where the register(s) of source bytes are loaded from, and
    // which of their bytes go where. The generic kernel has no use for them.
    std::vector<std::int32_t> window;
    std::vector<std::uint8_t> shuffle;
  };

  // Two by two source pixels with fixed-point weights.
  struct Linear {
    struct Tap {
      std::int32_t at[2];  // source row, or byte within a source row
      std::int32_t weight[2];
    };
    std::vector<Tap> columns;  // [byte of the output row]
    std::vector<Tap> rows;     // [output row]
  };

 private:
  enum class Method { kCopy, kLinear, kSum };

  void plan_linear(bool area_like);
  void plan_sum(Interpolation interpolation);
  bool plan_shuffle(int windows_a_block);
  void run_linear(const std::uint8_t* src, std::uint8_t* dst) const;

  int src_h_, src_w_, channels_, dst_h_, dst_w_;
  std::size_t src_row_, dst_row_;  // bytes of a row
  Isa isa_;
  Method method_;
  Sum sum_;
  Linear linear_;
};

}  // namespace envpool::runtime
