// The vector kernels behind image.hpp, x86-64 only. image.cpp calls them after it has asked the
// CPU; nothing else should.

#pragma once

#include "image.hpp"

#if defined(__x86_64__)
#define ENVPOOL_IMAGE_X86 1
#endif

namespace envpool::runtime {

#ifdef ENVPOOL_IMAGE_X86
// Those that return a std::size_t do only whole registers, and say how many pixels they have done.
std::size_t lookup_avx2(const std::uint8_t* src, const std::uint8_t* table, std::uint8_t* dst,
                        std::size_t n);
std::size_t lookup_max_avx2(const std::uint8_t* a, const std::uint8_t* b, const std::uint8_t* table,
                            std::uint8_t* dst, std::size_t n);
std::size_t gray_from_rgb_avx2(const std::uint8_t* src, std::uint8_t* dst, std::size_t n);
std::size_t planar_from_rgb_avx2(const std::uint8_t* src, std::uint8_t* dst, std::size_t n);
std::size_t rgb_from_planar_avx2(const std::uint8_t* src, std::uint8_t* dst, std::size_t n);
void resize_sum_avx2(const Resizer::Sum& sum, const std::uint8_t* src, std::size_t src_row,
                     std::uint8_t* dst, std::size_t dst_row);

void lookup_avx512(const std::uint8_t* src, const std::uint8_t* table, std::uint8_t* dst,
                   std::size_t n);
void lookup_max_avx512(const std::uint8_t* a, const std::uint8_t* b, const std::uint8_t* table,
                       std::uint8_t* dst, std::size_t n);
std::size_t lookup_rgb_avx512(const std::uint8_t* src, const std::uint8_t* table, std::uint8_t* dst,
                              std::size_t n);
void resize_sum_avx512(const Resizer::Sum& sum, const std::uint8_t* src, std::size_t src_row,
                       std::uint8_t* dst, std::size_t dst_row);
#endif

}  // namespace envpool::runtime
