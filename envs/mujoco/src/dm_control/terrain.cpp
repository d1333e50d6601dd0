#include "dm_control/terrain.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numbers>
#include <vector>

namespace dm_control {
namespace {

using Row = std::vector<double>;

// Coefficients of the cubic B-spline through `values`, mirrored at both ends (Unser, Aldroubi, Eden
// 1993: a causal and an anticausal recursion with the pole sqrt(3) - 2).
void to_coefficients(Row& values) {
  const double pole = std::sqrt(3.) - 2;
  const std::size_t n = values.size();
  if (n < 2) return;
  for (double& x : values) x *= (1 - pole) * (1 - 1 / pole);
  double power = pole, sum = values[0];
  // The mirrored signal repeats after 2 n - 2 values.
  for (std::size_t i = 1; i < 2 * n - 2; ++i, power *= pole)
    sum += power * values[i < n ? i : 2 * n - 2 - i];
  values[0] = sum / (1 - power);
  for (std::size_t i = 1; i < n; ++i) values[i] += pole * values[i - 1];
  values[n - 1] = pole / (pole * pole - 1) * (values[n - 1] + pole * values[n - 2]);
  for (std::size_t i = n - 1; i-- > 0;) values[i] = pole * (values[i + 1] - values[i]);
}

// The spline's value at x, between 0 and n - 1.
double value(const Row& coefficients, double x) {
  const auto n = static_cast<std::ptrdiff_t>(coefficients.size());
  const double floor = std::floor(x), t = x - floor, u = 1 - t;
  const double weights[] = {u * u * u / 6, (t * t * (t - 2) * 3 + 4) / 6,
                            (u * u * (u - 2) * 3 + 4) / 6, t * t * t / 6};
  double all = 0;
  for (std::ptrdiff_t k = 0; k < 4; ++k) {
    std::ptrdiff_t i = static_cast<std::ptrdiff_t>(floor) - 1 + k;
    if (n == 1) i = 0;
    if (i < 0) i = -i;
    if (i > n - 1) i = 2 * n - 2 - i;
    all += weights[k] * coefficients[static_cast<std::size_t>(i)];
  }
  return all;
}

// `row` at `size` places from its first to its last value.
Row stretched(Row row, std::size_t size) {
  to_coefficients(row);
  const double scale = static_cast<double>(row.size() - 1) / static_cast<double>(size - 1);
  Row out(size);
  for (std::size_t i = 0; i < size; ++i) out[i] = value(row, scale * static_cast<double>(i));
  return out;
}

}  // namespace

void draw_bowl(float* heights, int resolution, double metres, mujoco::Random& random) {
  const auto size = static_cast<std::size_t>(resolution);
  const auto count = static_cast<std::size_t>(metres / 2);  // of bumps, along each side
  std::vector<Row> bumps(count, Row(count));
  for (Row& row : bumps)
    for (double& x : row) x = random.uniform(0.15, 1);

  // Along the rows, then along the columns.
  for (Row& row : bumps) row = stretched(row, size);
  std::vector<Row> columns;
  for (std::size_t j = 0; j < size; ++j) {
    Row column(count);
    for (std::size_t i = 0; i < count; ++i) column[i] = bumps[i][j];
    columns.push_back(stretched(column, size));
  }
  const auto at = [size](std::size_t i) {
    return -1 + 2 * static_cast<double>(i) / static_cast<double>(size - 1);
  };
  for (std::size_t i = 0; i < size; ++i) {
    for (std::size_t j = 0; j < size; ++j) {
      const double radius = std::clamp(std::sqrt(at(j) * at(j) + at(i) * at(i)), 0.04, 1.);
      const double bowl = 0.5 - std::cos(2 * std::numbers::pi * radius) / 2;
      heights[i * size + j] = static_cast<float>(bowl * columns[j][i]);
    }
  }
}

}  // namespace dm_control
