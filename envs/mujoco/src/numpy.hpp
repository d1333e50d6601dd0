// numpy.hpp - sums and norms in the order in which NumPy adds, so that results agree to the last
// bit.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <type_traits>
#include <vector>

namespace numpy {

// The sum of term(begin) .. term(end - 1) as np.sum gives it for a contiguous array: pairwise, in
// blocks of at most 128 with eight accumulators.
template <class T, class Term>
T sum(std::size_t begin, std::size_t end, const Term& term) {
  const std::size_t n = end - begin;
  if (n < 8) {
    T all = T(-0.0);
    for (std::size_t i = begin; i < end; ++i) all += term(i);
    return T(0) + all;
  }
  if (n > 128) {
    const std::size_t half = n / 2 - n / 2 % 8;
    return sum<T>(begin, begin + half, term) + sum<T>(begin + half, end, term);
  }
  T r[8];
  for (std::size_t k = 0; k < 8; ++k) r[k] = term(begin + k);
  std::size_t i = begin + 8;
  for (; i < begin + (n - n % 8); i += 8)
    for (std::size_t k = 0; k < 8; ++k) r[k] += term(i + k);
  T all = ((r[0] + r[1]) + (r[2] + r[3])) + ((r[4] + r[5]) + (r[6] + r[7]));
  for (; i < end; ++i) all += term(i);
  return all;
}

// np.sum(np.square(x)).
template <class X>
auto sum_of_squares(const X& x) {
  using T = std::remove_cvref_t<decltype(x[0])>;
  return sum<T>(0, x.size(), [&x](std::size_t i) { return x[i] * x[i]; });
}

// np.linalg.norm of a short vector. NumPy leaves the dot product to a BLAS, which may fuse
// multiplications and additions, so the last bit may differ.
inline double norm(const double* x, std::size_t n) {
  double all = 0;
  for (std::size_t i = 0; i < n; ++i) all += x[i] * x[i];
  return std::sqrt(all);
}

// np.median; 0 of nothing.
inline double median(std::vector<double> x) {
  if (x.empty()) return 0;
  std::ranges::sort(x);
  const std::size_t middle = x.size() / 2;
  return x.size() % 2 == 1 ? x[middle] : (x[middle - 1] + x[middle]) / 2;
}

// np.clip of a number: NaN stays.
inline double clip(double x, double low, double high) {
  return x < low ? low : x > high ? high : x;
}

}  // namespace numpy
