// spec.hpp - the typed fields of a task for given options: what describe() filled, checked and
// owned by us.
#pragma once

#include <envpool/env.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "host.hpp"
#include "options.hpp"

namespace envpool::runtime {

constexpr std::size_t bytes_of(ep_dtype dtype) { return static_cast<std::size_t>(dtype % 100) / 8; }
const char* name_of(ep_dtype dtype);  // NumPy's: "float32"; nullptr: no dtype that we know

// Element i of an array in dtype. A long double holds every value of every dtype exactly.
long double number_at(ep_dtype dtype, const void* array, std::size_t i);
// Stores a number as element i; floats are rounded. False if the dtype can't hold it.
bool store_number(ep_dtype dtype, void* array, std::size_t i, long double number);

struct Field {
  std::string name, doc, unit, meaning;
  ep_role role = EP_OBS;
  ep_kind kind = EP_BOX;
  ep_dtype dtype = EP_FLOAT32;
  ep_layout layout = EP_PLAIN;
  std::uint32_t flags = 0;
  std::uint32_t group = 0;
  std::vector<std::int64_t> shape;     // without the agent dimension
  std::vector<std::byte> low, high;    // in dtype, 1 or count() entries; empty: unbounded
  std::vector<std::int64_t> n, start;  // EP_DISCRETE: 1 or count() entries
  std::vector<std::string> labels;
  std::vector<std::uint8_t> palette, gray;  // EP_INDEXED: 768, 256 bytes

  bool per_agent() const { return flags & EP_FIELD_PER_AGENT; }
  bool has_length() const { return kind == EP_TEXT || (flags & EP_FIELD_RAGGED); }
  std::size_t count() const;  // elements of one agent's value
  std::size_t agents(std::uint32_t max_agents) const { return per_agent() ? max_agents : 1; }
  std::size_t row_bytes(std::uint32_t max_agents) const;  // of one env, all agents
  bool operator==(const Field&) const = default;
};

struct Spec {
  std::vector<Field> obs, action, info, global;
  std::uint32_t max_agents = 1;
  std::int64_t max_episode_steps = 0;
  double reward_threshold = std::numeric_limits<double>::quiet_NaN();
  double fps = 0;

  // True if envs of both specs may share one pool: fields, agents and layout alike (limits and doc
  // texts may differ).
  bool compatible(const Spec& other) const;
};

// Calls the task's describe(). Throws Error(kPlugin) for a spec that breaks the contract in env.h
// (naming task, field and flaw), Error(kValue) if the task refuses the options with EP_E_ARGUMENT
// or EP_E_NOT_FOUND, else Error(kEnv); each with the plugin's explanation.
Spec describe(const ep_task& task, const Host& host, const Options& options);

}  // namespace envpool::runtime
