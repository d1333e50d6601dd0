// actions.hpp - the private copy of every env's next action, and the check of what users send.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "plan.hpp"

namespace envpool::runtime {

// What a user sends for one action field: rows in the order of the ids sent, dtype and shape
// already right.
struct ActionRows {
  const void* data;
  const std::uint32_t* lengths;  // nullptr unless the field has lengths: one a row, or an agent of
                                 // a row if per-agent
};

class Actions {
 public:
  // memory: bytes_for() bytes, 64-byte aligned, zero when new; nullptr: memory of its own. Two
  // objects over the same memory, in two processes, see the same actions.
  Actions(const Plan& plan, std::uint32_t num_envs, std::byte* memory = nullptr);
  static std::size_t bytes_for(const Plan& plan, std::uint32_t num_envs);

  // Throws Error(kValue) naming field, env, value and what is allowed. Ranges are checked for
  // discrete, multi-binary and lengths; box values pass, NaN too: the env's own rule applies.
  void check(std::span<const ActionRows> sent, std::span<const std::uint32_t> ids) const;
  // Copies; from then on the user's arrays may change.
  void store(std::span<const ActionRows> sent, std::span<const std::uint32_t> ids);

  // The same for all envs, in order.
  void store_all(std::span<const ActionRows> sent);
  // All envs' actions of a field, one after the other.
  // step_many takes void*, but reads only.
  std::byte* rows(std::size_t field) const { return fields_[field].rows; }

  // For Env::step, valid until the next store() for that env. `pointers` and `lengths` have one
  // entry a field.
  void point(std::uint32_t env, std::span<const void*> pointers,
             std::span<const std::uint32_t*> lengths) const;

 private:
  struct Storage {
    std::byte* rows;
    std::uint32_t* lengths;
    std::size_t row_bytes;
    std::size_t lengths_a_row;  // 0: none
  };

  void check_fields(std::span<const ActionRows> sent, std::span<const std::uint32_t> ids) const;

  const Plan& plan_;
  const std::uint32_t num_envs_;
  std::vector<std::byte> own_;
  std::vector<Storage> fields_;
};

}  // namespace envpool::runtime
