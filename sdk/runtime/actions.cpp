// actions.cpp - see actions.hpp.
#include "actions.hpp"

#include <algorithm>
#include <cstring>
#include <string>

#include "error.hpp"

namespace envpool::runtime {
namespace {

[[noreturn]] void refuse(const Field& field, std::uint32_t env, const std::string& value,
                         const std::string& allowed) {
  const std::string name = field.name.empty() ? "action" : "action '" + field.name + "'";
  throw Error(ErrorKind::kValue,
              name + " of env " + std::to_string(env) + " is " + value + ", allowed: " + allowed);
}

// Every element e of every row must be in first[e] .. first[e] + count[e] - 1 (one bound for all,
// or one an element).
template <class T>
void check_range(const Field& field, const void* data, std::size_t row_elements,
                 std::span<const std::uint32_t> ids, std::span<const std::int64_t> count,
                 std::span<const std::int64_t> first) {
  const T* values = static_cast<const T*>(data);
  const auto begin = [&](std::size_t e) {
    return first.empty() ? 0 : first[first.size() == 1 ? 0 : e % first.size()];
  };
  const auto many = [&](std::size_t e) { return count[count.size() == 1 ? 0 : e % count.size()]; };
  // Below begin wraps to a huge number: one comparison a value, and a loop that vectorises in the
  // common case.
  const auto wrong = [&](T value, std::size_t e) {
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(value)) -
               static_cast<std::uint64_t>(begin(e)) >=
           static_cast<std::uint64_t>(many(e));
  };
  const std::size_t total = row_elements * ids.size();
  bool any = false;
  if (count.size() == 1 && first.size() <= 1) {
    for (std::size_t i = 0; i < total; ++i) any |= wrong(values[i], 0);
  } else {
    for (std::size_t i = 0; i < total; ++i) any |= wrong(values[i], i % row_elements);
  }
  if (!any) [[likely]]
    return;
  for (std::size_t i = 0; i < total; ++i) {
    const std::size_t e = i % row_elements;
    if (!wrong(values[i], e)) continue;
    refuse(field, ids[i / row_elements], std::to_string(values[i]),
           std::to_string(begin(e)) + " .. " + std::to_string(begin(e) + many(e) - 1));
  }
}

void check_integers(const Field& field, const void* data, std::size_t row_elements,
                    std::span<const std::uint32_t> ids, std::span<const std::int64_t> count,
                    std::span<const std::int64_t> first) {
  const auto run = [&]<class T>(T) {
    check_range<T>(field, data, row_elements, ids, count, first);
  };
  switch (field.dtype) {
    case EP_BOOL:
    case EP_UINT8:
      return run(std::uint8_t{});
    case EP_UINT16:
      return run(std::uint16_t{});
    case EP_UINT32:
      return run(std::uint32_t{});
    case EP_UINT64:
      return run(std::uint64_t{});
    case EP_INT8:
      return run(std::int8_t{});
    case EP_INT16:
      return run(std::int16_t{});
    case EP_INT32:
      return run(std::int32_t{});
    case EP_INT64:
      return run(std::int64_t{});
    default:
      return;  // floating point: multi-binary floats are the env's own rule
  }
}

constexpr std::size_t kLine = 64;

std::size_t padding(std::size_t at) { return (kLine - at % kLine) % kLine; }

// The bytes of one field's actions and of their lengths, in whole cache lines.
struct Extent {
  Extent(const Plan& plan, std::size_t i, std::uint32_t num_envs) {
    const Field& field = plan.source.action[i];
    lengths_a_row = field.has_length() ? field.agents(plan.agents) : 0;
    rows = num_envs * plan.actions[i].row_bytes;
    rows += padding(rows);
    lengths = num_envs * lengths_a_row * sizeof(std::uint32_t);
    lengths += padding(lengths);
  }
  std::size_t rows, lengths, lengths_a_row;
};

}  // namespace

Actions::Actions(const Plan& plan, std::uint32_t num_envs, std::byte* memory)
    : plan_(plan), num_envs_(num_envs) {
  if (!memory) {
    own_.resize(bytes_for(plan, num_envs) + kLine);
    memory = own_.data() + padding(reinterpret_cast<std::uintptr_t>(own_.data()));
  }
  for (std::size_t i = 0; i < plan.actions.size(); ++i) {
    const Extent extent(plan, i, num_envs);
    fields_.push_back({memory, reinterpret_cast<std::uint32_t*>(memory + extent.rows),
                       plan.actions[i].row_bytes, extent.lengths_a_row});
    memory += extent.rows + extent.lengths;
  }
}

std::size_t Actions::bytes_for(const Plan& plan, std::uint32_t num_envs) {
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < plan.actions.size(); ++i) {
    const Extent extent(plan, i, num_envs);
    bytes += extent.rows + extent.lengths;
  }
  return bytes;
}

void Actions::check(std::span<const ActionRows> sent, std::span<const std::uint32_t> ids) const {
  within(plan_.task.id, [&] { check_fields(sent, ids); });
}

void Actions::check_fields(std::span<const ActionRows> sent,
                           std::span<const std::uint32_t> ids) const {
  static constexpr std::int64_t kBinary[] = {2};
  if (sent.size() != fields_.size()) {
    throw Error(ErrorKind::kValue, std::to_string(sent.size()) + " action fields given, allowed: " +
                                       std::to_string(fields_.size()));
  }
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    const Field& field = plan_.source.action[i];
    const std::size_t elements = field.count() * field.agents(plan_.agents);
    if (field.kind == EP_DISCRETE) {
      check_integers(field, sent[i].data, elements, ids, field.n, field.start);
    } else if (field.kind == EP_MULTI_BINARY || field.dtype == EP_BOOL) {
      check_integers(field, sent[i].data, elements, ids, kBinary, {});
    }
    const std::size_t lengths = fields_[i].lengths_a_row;
    for (std::size_t k = 0; k < lengths * ids.size(); ++k) {
      if (sent[i].lengths[k] > field.shape[0]) {
        refuse(field, ids[k / lengths], "of length " + std::to_string(sent[i].lengths[k]),
               "lengths up to " + std::to_string(field.shape[0]));
      }
    }
  }
}

void Actions::store(std::span<const ActionRows> sent, std::span<const std::uint32_t> ids) {
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    Storage& field = fields_[i];
    const auto* from = static_cast<const std::byte*>(sent[i].data);
    for (std::size_t k = 0; k < ids.size(); ++k) {
      std::memcpy(field.rows + ids[k] * field.row_bytes, from + k * field.row_bytes,
                  field.row_bytes);
      std::copy_n(sent[i].lengths + k * field.lengths_a_row, field.lengths_a_row,
                  field.lengths + ids[k] * field.lengths_a_row);
    }
  }
}

void Actions::store_all(std::span<const ActionRows> sent) {
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    Storage& field = fields_[i];
    std::memcpy(field.rows, sent[i].data, num_envs_ * field.row_bytes);
    std::copy_n(sent[i].lengths, num_envs_ * field.lengths_a_row, field.lengths);
  }
}

void Actions::point(std::uint32_t env, std::span<const void*> pointers,
                    std::span<const std::uint32_t*> lengths) const {
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    const Storage& field = fields_[i];
    pointers[i] = field.rows + env * field.row_bytes;
    lengths[i] = field.lengths_a_row ? field.lengths + env * field.lengths_a_row : nullptr;
  }
}

}  // namespace envpool::runtime
