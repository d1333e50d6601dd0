// module_numpy.hpp - NumPy arrays over memory of ours, by NumPy's C interface: an array costs a
// tenth of a microsecond, and its dtype is the very object that NumPy itself uses.
#pragma once

#include <envpool/env.h>
#include <nanobind/nanobind.h>

#include <cstddef>
#include <vector>

namespace envpool::runtime {

// Comes before all else. Raises ImportError if there is no NumPy.
void import_numpy();

// A writable C-contiguous array; it keeps `owner` alive, the memory's keeper.
nanobind::object numpy_array(void* data, const std::vector<std::size_t>& shape, ep_dtype dtype,
                             nanobind::object owner);

}  // namespace envpool::runtime
