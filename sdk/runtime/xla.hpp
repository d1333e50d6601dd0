// xla.hpp - pools behind XLA's foreign function interface: the custom calls that compiled JAX
// programs make.
//
// A program names its pool by a number. That stands in an array, the handle, which each call takes
// and gives back: as one call needs what the other gives, XLA keeps them in order. Nothing in a
// program is trusted: whatever arrays come, the result is a step or an error.
//
// xla_send  (handle, [env ids,] actions...) -> handle
// xla_recv  (handle) -> (handle, columns...)
// xla_step  (handle, [env ids,] actions...) -> (handle, columns...): both at once
//
// Handle: uint8[8]. Env ids: [k], of any integer dtype; without them, all envs. Actions: one array
// [k, ...] a field, each followed by its lengths where it has them, in the field's dtype or in one
// that holds the same values: JAX has no 64 bits unless told so. Columns: all of Plan::columns, in
// order, [rows, ...], in the column's dtype or another of its kind (integers and bool; float32 and
// float64), as whoever traces the program asked: integers that
// don't fit are cut, floats rounded, as JAX does it.
#pragma once

#include <cstdint>
#include <memory>

#include "pool.hpp"
#include "xla_ffi.h"

namespace envpool::runtime {

// Makes the pool known to programs, for as long as it lives. The number is its own in this process,
// and hardly one of another process, for handles may be stored. [any-thread]
std::uint64_t lend_to_xla(const std::shared_ptr<Pool>& pool);

// Of pools with a copy of each batch, and without final rows. They block, with no lock held that
// Python could want, and throw nothing: errors go back to XLA. [any-thread]
xla_error* xla_send(xla_call_frame* frame) noexcept;
xla_error* xla_recv(xla_call_frame* frame) noexcept;
xla_error* xla_step(xla_call_frame* frame) noexcept;

}  // namespace envpool::runtime
