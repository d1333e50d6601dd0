// Times the image kernels on one core: the Atari preprocessing of two raw frames, and each kernel
// by itself, for every instruction set the CPU has.
//
//   g++ -std=c++20 -O3 -ffp-contract=off -Isdk/runtime sdk/runtime/image*.cpp
//       benchmarks/native/bench_image.cpp -o bench_image

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <random>
#include <vector>

#include "image.hpp"

namespace {

using namespace envpool::runtime;
using Bytes = std::vector<std::uint8_t>;

// The best of many short runs, in microseconds a call: other work on the machine only adds.
template <typename Function>
double microseconds(Function&& function) {
  using Clock = std::chrono::steady_clock;
  constexpr int kRuns = 200, kCalls = 20;
  double best = 1e9;
  for (int run = 0; run < kRuns; ++run) {
    const auto start = Clock::now();
    for (int call = 0; call < kCalls; ++call) function();
    const std::chrono::duration<double, std::micro> took = Clock::now() - start;
    best = std::min(best, took.count() / kCalls);
  }
  return best;
}

Bytes random_bytes(std::size_t n, std::uint32_t seed, std::uint8_t mask = 0xff) {
  std::mt19937 random(seed);
  Bytes bytes(n);
  for (auto& byte : bytes) byte = static_cast<std::uint8_t>(random()) & mask;
  return bytes;
}

constexpr int kRawH = 210, kRawW = 160, kSide = 84;
constexpr std::size_t kRaw = std::size_t{kRawH} * kRawW, kSmall = std::size_t{kSide} * kSide;

void bench_atari(Isa isa) {
  const Bytes gray = random_bytes(256, 1);
  const Bytes frame = random_bytes(kRaw, 2, 0xfe);  // Atari's indices are even
  const Bytes other = random_bytes(kRaw, 3, 0xfe);
  const Bytes odd = random_bytes(kRaw, 4);
  // Two successive frames as games have them: a few moved sprites.
  Bytes moved = frame;
  for (std::size_t y = 40; y < 160; y += 20) {
    for (std::size_t i = 0; i < 8 * kRawW; i += kRawW) {
      std::copy_n(other.begin(), 16,
                  moved.begin() + static_cast<std::ptrdiff_t>(y * kRawW + i + y));
    }
  }
  const Resizer resizer(kRawH, kRawW, 1, kSide, kSide, Interpolation::kArea, isa);
  Bytes seen(kRaw), small(kSmall), stack(4 * kSmall);
  const auto preprocess = [&](const Bytes& a, const Bytes& b) {
    return microseconds([&] {
      lookup_max(a.data(), b.data(), gray.data(), seen.data(), kRaw, isa);
      std::memmove(stack.data(), stack.data() + kSmall, 3 * kSmall);
      resizer.run(seen.data(), stack.data() + 3 * kSmall);
    });
  };
  std::printf("  atari, frames nearly equal    %7.2f\n", preprocess(frame, moved));
  std::printf("  atari, frames all different   %7.2f\n", preprocess(frame, other));
  std::printf("  any palette, all different    %7.2f\n", preprocess(odd, other));
  std::printf("    lookup                      %7.2f\n",
              microseconds([&] { lookup(frame.data(), gray.data(), seen.data(), kRaw, isa); }));
  std::printf("    lookup_max, all different   %7.2f\n", microseconds([&] {
                lookup_max(frame.data(), other.data(), gray.data(), seen.data(), kRaw, isa);
              }));
  std::printf("    resize to 84x84, area       %7.2f\n",
              microseconds([&] { resizer.run(frame.data(), small.data()); }));
  const Resizer linear(kRawH, kRawW, 1, kSide, kSide, Interpolation::kLinear, isa);
  std::printf("    resize to 84x84, linear     %7.2f\n",
              microseconds([&] { linear.run(frame.data(), small.data()); }));
}

void bench_color(Isa isa) {
  const Bytes palette = random_bytes(768, 1);
  const Bytes frame = random_bytes(kRaw, 2);
  Bytes color(3 * kRaw), planar(3 * kRaw), seen(kRaw), small(3 * kSmall);
  std::printf("  lookup_rgb 210x160            %7.2f\n", microseconds([&] {
                lookup_rgb(frame.data(), palette.data(), color.data(), kRaw, isa);
              }));
  std::printf("  gray_from_rgb 210x160         %7.2f\n",
              microseconds([&] { gray_from_rgb(color.data(), seen.data(), kRaw, isa); }));
  std::printf("  interleaved_to_planar 210x160 %7.2f\n", microseconds([&] {
                interleaved_to_planar(color.data(), planar.data(), kRaw, 3, isa);
              }));
  std::printf("  planar_to_interleaved 210x160 %7.2f\n", microseconds([&] {
                planar_to_interleaved(planar.data(), color.data(), kRaw, 3, isa);
              }));
  const Resizer resizer(kRawH, kRawW, 3, kSide, kSide, Interpolation::kArea, isa);
  std::printf("  resize RGB to 84x84, area     %7.2f\n",
              microseconds([&] { resizer.run(color.data(), small.data()); }));
  Bytes big = random_bytes(std::size_t{240} * 320 * 3, 4), half(std::size_t{120} * 160 * 3);
  const Resizer by_two(240, 320, 3, 120, 160, Interpolation::kArea, isa);
  std::printf("  resize RGB 240x320 to a half  %7.2f\n",
              microseconds([&] { by_two.run(big.data(), half.data()); }));
}

}  // namespace

int main() {
  constexpr const char* kNames[] = {"generic", "AVX2", "AVX-512"};
  for (const Isa isa : {Isa::kGeneric, Isa::kAvx2, Isa::kAvx512}) {
    if (isa > best_isa()) break;
    std::printf("%s (microseconds)\n", kNames[static_cast<int>(isa)]);
    bench_atari(isa);
    bench_color(isa);
  }
  return 0;
}
