// module_numpy.hpp - NumPy arrays over memory of ours, and the memory of users' arrays, by NumPy's
// C interface: a tenth of a microsecond each, and a dtype is the very object that NumPy itself
// uses.
#pragma once

#include <envpool/env.h>
#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace envpool::runtime {

// Comes before all else. Raises ImportError if there is no NumPy.
void import_numpy();

inline constexpr std::size_t kMostDims = 16;  // a field's 8, batch and agents, with room to spare

// A writable C-contiguous array; it keeps `owner` alive, the memory's keeper.
nanobind::object numpy_array(void* data, std::span<const std::size_t> shape, ep_dtype dtype,
                             nanobind::object owner);

// The elements of an array that a user gave, aligned and C-contiguous.
struct ArrayElements {
  const void* data;
  std::span<const std::intptr_t> shape;
  nanobind::object keeper;  // the array itself, or a copy of it
};
// In this dtype, converted where that is safe by NumPy's rules; nothing if it is not, or if this is
// no array.
std::optional<ArrayElements> elements_of(nanobind::handle array, ep_dtype dtype);

}  // namespace envpool::runtime
