// dm_control/tolerance.hpp - soft indicators of a number being within bounds, which dm_control's
// rewards are made of (dm_control/utils/rewards.py).
#pragma once

#include <cmath>
#include <limits>

namespace dm_control {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Bounds {  // inclusive
  double low = 0, high = 0;
};

// How the indicator falls off outside of its bounds.
enum class Sigmoid { kGaussian, kLongTail, kReciprocal, kLinear, kQuadratic };

// 1 at x == 0; at |x| == 1: value_at_1, which lies in (0, 1), or [0, 1) if linear or quadratic.
inline double sigmoid(double x, double value_at_1, Sigmoid shape) {
  switch (shape) {
    case Sigmoid::kGaussian: {
      const double scaled = x * std::sqrt(-2 * std::log(value_at_1));
      return std::exp(-0.5 * (scaled * scaled));
    }
    case Sigmoid::kLongTail: {
      const double scaled = x * std::sqrt(1 / value_at_1 - 1);
      return 1 / (scaled * scaled + 1);
    }
    case Sigmoid::kReciprocal:
      return 1 / (std::abs(x) * (1 / value_at_1 - 1) + 1);
    case Sigmoid::kLinear: {
      const double scaled = x * (1 - value_at_1);
      return std::abs(scaled) < 1 ? 1 - scaled : 0;
    }
    case Sigmoid::kQuadratic: {
      const double scaled = x * std::sqrt(1 - value_at_1);
      return std::abs(scaled) < 1 ? 1 - scaled * scaled : 0;
    }
  }
  return std::numeric_limits<double>::quiet_NaN();
}

// 1 where x is within the bounds; outside it falls off, to value_at_margin at a distance of
// `margin` from them. Margin 0: to 0 at once.
inline double tolerance(double x, Bounds bounds, double margin = 0,
                        Sigmoid shape = Sigmoid::kGaussian, double value_at_margin = 0.1) {
  if (bounds.low <= x && x <= bounds.high) return 1;
  if (margin == 0) return 0;
  const double distance = (x < bounds.low ? bounds.low - x : x - bounds.high) / margin;
  return sigmoid(distance, value_at_margin, shape);
}

}  // namespace dm_control
