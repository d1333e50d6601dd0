// random.hpp - the generator of an env's resets: its numbers are its own, the distributions are
// those of the tasks it stands in for.
#pragma once

#include <cmath>
#include <envpool/env.hpp>
#include <numbers>

namespace mujoco {

struct Random : envpool::rng {
  // Standard normal: Box and Muller's cosine half, so that the generator's state stays one word.
  double normal() {
    const double radius = std::sqrt(-2 * std::log(1 - uniform(0, 1)));
    return radius * std::cos(2 * std::numbers::pi * uniform(0, 1));
  }
  double angle() { return uniform(-std::numbers::pi, std::numbers::pi); }
};

}  // namespace mujoco
