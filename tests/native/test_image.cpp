// Tests the image kernels: every instruction set against the simplest statement of what each kernel
// does, at odd sizes and unaligned addresses, and the resizer's paths against each other. Equality
// with OpenCV is tested from Python.
//
// Every buffer is exactly as long as the kernel may touch, so build with
// -fsanitize=address,undefined to see a byte too many.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <random>
#include <stdexcept>
#include <vector>

#include "image.hpp"

#define CHECK(condition)                                                  \
  do {                                                                    \
    if (!(condition)) {                                                   \
      std::printf("%s:%d: failed: %s\n", __FILE__, __LINE__, #condition); \
      ++failures;                                                         \
    }                                                                     \
  } while (false)

namespace {

using namespace envpool::runtime;
using Bytes = std::vector<std::uint8_t>;

int failures = 0;
std::mt19937 generator(7);

int random_int(int low, int high) {
  return std::uniform_int_distribution<int>(low, high)(generator);
}

// A few values only make ties and runs of equal bytes likely.
Bytes random_bytes(std::size_t n) {
  const int kind = random_int(0, 3);
  const int mask = kind == 0 ? 0xfe : kind == 1 ? 0x81 : 0xff;
  Bytes bytes(n);
  for (auto& byte : bytes) byte = static_cast<std::uint8_t>(random_int(0, 255) & mask);
  if (kind == 2) std::fill(bytes.begin(), bytes.end(), static_cast<std::uint8_t>(n));
  return bytes;
}

// A block of its own on the heap, `shift` bytes after its start: not aligned, ends where it ends.
class Buffer {
 public:
  Buffer(std::size_t n, std::size_t shift)
      : shift_(shift), size_(n), data_(new std::uint8_t[n + shift]) {
    std::fill_n(data(), n, std::uint8_t{0xcd});
  }
  Buffer(const Bytes& bytes, std::size_t shift) : Buffer(bytes.size(), shift) {
    std::copy(bytes.begin(), bytes.end(), data());
  }
  std::uint8_t* data() { return data_.get() + shift_; }
  bool equals(const Bytes& bytes) {
    return bytes.size() == size_ && std::equal(bytes.begin(), bytes.end(), data());
  }

 private:
  std::size_t shift_, size_;
  std::unique_ptr<std::uint8_t[]> data_;
};

std::vector<Isa> isas() {
  std::vector<Isa> all;
  for (const Isa isa : {Isa::kGeneric, Isa::kAvx2, Isa::kAvx512}) {
    if (isa <= best_isa()) all.push_back(isa);
  }
  return all;
}

void test_lookups(std::size_t n, Isa isa) {
  const Bytes gray = random_bytes(256), palette = random_bytes(768);
  const Bytes a = random_bytes(n);
  Bytes b = random_bytes(n);
  // Half of them agree with a in long runs, as frames do.
  if (random_int(0, 1)) {
    b = a;
    if (n > 0) b[n / 2] ^= 0x40;
  }
  const auto shift = static_cast<std::size_t>(random_int(0, 5));
  Buffer in_a(a, shift), in_b(b, 2 * shift), table(gray, shift), colors(palette, shift);

  Bytes want(n), want_max(n), want_rgb(3 * n), bigger(n);
  for (std::size_t i = 0; i < n; ++i) {
    want[i] = gray[a[i]];
    want_max[i] = std::max(gray[a[i]], gray[b[i]]);
    bigger[i] = std::max(a[i], b[i]);
    for (std::size_t c = 0; c < 3; ++c) want_rgb[3 * i + c] = palette[3 * std::size_t{a[i]} + c];
  }
  Buffer out(n, shift);
  lookup(in_a.data(), table.data(), out.data(), n, isa);
  CHECK(out.equals(want));
  Buffer out_max(n, shift);
  lookup_max(in_a.data(), in_b.data(), table.data(), out_max.data(), n, isa);
  CHECK(out_max.equals(want_max));
  Buffer out_rgb(3 * n, shift);
  lookup_rgb(in_a.data(), colors.data(), out_rgb.data(), n, isa);
  CHECK(out_rgb.equals(want_rgb));

  Buffer in_place(a, shift);
  lookup(in_place.data(), table.data(), in_place.data(), n, isa);
  CHECK(in_place.equals(want));
  Buffer max_in_place(b, shift);
  lookup_max(in_a.data(), max_in_place.data(), table.data(), max_in_place.data(), n, isa);
  CHECK(max_in_place.equals(want_max));
  max_into(in_a.data(), in_b.data(), n);
  CHECK(in_a.equals(bigger));
}

void test_lookup_entries(Isa isa) {
  Bytes all(512);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::uint8_t>(i);
  const Bytes table = random_bytes(256);
  Bytes want(table);
  want.insert(want.end(), table.begin(), table.end());
  Buffer out(512, 0);
  lookup(all.data(), table.data(), out.data(), 512, isa);
  CHECK(out.equals(want));
}

void test_gray(std::size_t n, Isa isa) {
  const Bytes rgb = random_bytes(3 * n);
  Bytes want(n);
  for (std::size_t i = 0; i < n; ++i) {
    const int sum = 9798 * rgb[3 * i] + 19235 * rgb[3 * i + 1] + 3735 * rgb[3 * i + 2];
    want[i] = static_cast<std::uint8_t>((sum + 16384) / 32768);
  }
  Buffer in(rgb, n % 7), out(n, n % 5);
  gray_from_rgb(in.data(), out.data(), n, isa);
  CHECK(out.equals(want));
}

void test_layout(std::size_t n, int channels, Isa isa) {
  const auto count = static_cast<std::size_t>(channels);
  const Bytes interleaved = random_bytes(n * count);
  Bytes planar(n * count);
  for (std::size_t i = 0; i < planar.size(); ++i) {
    planar[i % count * n + i / count] = interleaved[i];
  }
  Buffer in(interleaved, n % 3), out(planar.size(), n % 5), back(planar.size(), n % 7);
  interleaved_to_planar(in.data(), out.data(), n, channels, isa);
  CHECK(out.equals(planar));
  planar_to_interleaved(out.data(), back.data(), n, channels, isa);
  CHECK(back.equals(interleaved));
}

struct Size {
  int src_h, src_w, channels, dst_h, dst_w;
};

Bytes resized(const Size& s, Interpolation interpolation, const Bytes& image, Isa isa) {
  const Resizer resizer(s.src_h, s.src_w, s.channels, s.dst_h, s.dst_w, interpolation, isa);
  CHECK(resizer.src_bytes() == image.size());
  const auto shift = static_cast<std::size_t>(random_int(0, 9));
  Buffer in(image, shift), out(resizer.dst_bytes(), shift);
  resizer.run(in.data(), out.data());
  return Bytes(out.data(), out.data() + resizer.dst_bytes());
}

Bytes random_image(const Size& s) {
  return random_bytes(static_cast<std::size_t>(s.src_h) * static_cast<std::size_t>(s.src_w) *
                      static_cast<std::size_t>(s.channels));
}

// All instruction sets agree.
void test_resize(const Size& s, Interpolation interpolation) {
  const Bytes image = random_image(s);
  const Bytes want = resized(s, interpolation, image, Isa::kGeneric);
  for (const Isa isa : isas()) {
    const bool equal = resized(s, interpolation, image, isa) == want;
    CHECK(equal);
    if (!equal) {
      std::printf("  %dx%dx%d to %dx%d, interpolation %d, isa %d\n", s.src_h, s.src_w, s.channels,
                  s.dst_h, s.dst_w, static_cast<int>(interpolation), static_cast<int>(isa));
    }
  }
}

// What the result must be, where that can be said without repeating the code.
void test_resize_values(Isa isa) {
  // A plain area stays what it is.
  for (const auto interpolation :
       {Interpolation::kNearest, Interpolation::kLinear, Interpolation::kArea}) {
    for (const Size s :
         {Size{210, 160, 1, 84, 84}, Size{33, 70, 3, 90, 20}, Size{7, 9, 4, 70, 90}}) {
      for (const int value : {0, 1, 127, 255}) {
        Bytes image = random_image(s);
        std::fill(image.begin(), image.end(), static_cast<std::uint8_t>(value));
        const Bytes out = resized(s, interpolation, image, isa);
        CHECK(std::all_of(out.begin(), out.end(), [&](std::uint8_t x) { return x == value; }));
      }
    }
  }
  // The same size is a copy.
  const Size same{17, 23, 3, 17, 23};
  const Bytes image = random_image(same);
  CHECK(resized(same, Interpolation::kArea, image, isa) == image);
  CHECK(resized(same, Interpolation::kLinear, image, isa) == image);
  // Means of whole pixels: by two half up, otherwise half to even.
  const Bytes twos{0, 1, 4, 5, 1, 0, 4, 5};  // sums 2 and 18, means 0.5 and 4.5
  CHECK((resized({2, 4, 1, 1, 2}, Interpolation::kArea, twos, isa) == Bytes{1, 5}));
  CHECK((resized({2, 4, 1, 1, 2}, Interpolation::kLinear, twos, isa) == Bytes{1, 5}));
  const Bytes pairs{0, 1, 1, 2, 2, 3};  // means 0.5, 1.5 and 2.5
  CHECK((resized({1, 6, 1, 1, 3}, Interpolation::kArea, pairs, isa) == Bytes{0, 2, 2}));
  // A sum of more than float's 24 bits.
  const Size huge{600, 500, 1, 1, 1};
  CHECK(resized(huge, Interpolation::kArea, Bytes(300000, 255), isa) == Bytes{255});
}

void test_bad_sizes() {
  for (const Size s : {Size{0, 1, 1, 1, 1}, Size{1, 1, 1, 1, 0}, Size{1, -1, 1, 1, 1},
                       Size{1, 1, 5, 1, 1}, Size{1, 1, 0, 1, 1}}) {
    bool thrown = false;
    try {
      Resizer(s.src_h, s.src_w, s.channels, s.dst_h, s.dst_w, Interpolation::kArea);
    } catch (const std::invalid_argument&) {
      thrown = true;
    }
    CHECK(thrown);
  }
}

}  // namespace

int main() {
  for (const Isa isa : isas()) {
    test_lookup_entries(isa);
    for (std::size_t n = 0; n < 300; ++n) {
      test_lookups(n, isa);
      test_gray(n, isa);
      for (int channels = 1; channels <= 4; ++channels) test_layout(n, channels, isa);
    }
    test_resize_values(isa);
  }
  for (const auto interpolation :
       {Interpolation::kNearest, Interpolation::kLinear, Interpolation::kArea}) {
    for (int i = 0; i < 20; ++i) test_resize({210, 160, 1, 84, 84}, interpolation);
    for (int i = 0; i < 600; ++i) {
      const int limit = i % 2 ? 130 : 20;
      Size s{random_int(1, limit), random_int(1, limit), random_int(1, 4), random_int(1, limit),
             random_int(1, limit)};
      if (i % 3 == 0) s.src_w = s.dst_w * random_int(1, 4), s.src_h = s.dst_h * random_int(1, 4);
      test_resize(s, interpolation);
    }
  }
  test_bad_sizes();
  if (failures == 0) std::printf("test_image: all passed\n");
  return failures == 0 ? 0 : 1;
}
