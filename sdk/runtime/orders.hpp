// orders.hpp - what a worker process is told once, and other structured things that go to it, as
// bytes. Both sides are of one version (Header::build), so numbers and enums go as they lie in
// memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "host.hpp"
#include "options.hpp"
#include "plan.hpp"

namespace envpool::runtime {

struct Orders {
  std::string plugin_path;
  Assets assets;
  std::string task_id;
  std::vector<std::vector<NamedOption>> options;  // one for all, or one for each env of the pool
  PlanSettings plan;
  std::uint32_t num_envs = 1, envs_per_worker = 1;
  std::int64_t affinity_offset = -1;
  std::vector<int> cpus;     // that the user's process may use
  bool spins = false;        // a worker that waits may spin shortly
  bool timed = false;        // somebody looks at Mailbox::at_work
  std::uint64_t digest = 0;  // of the user's side's Plan
};

std::vector<std::byte> to_bytes(const Orders& orders);
std::vector<std::byte> to_bytes(const std::vector<NamedOption>& options);

// Throw Error(kRuntime) for bytes that are cut short.
Orders orders_from(std::span<const std::byte> bytes);
std::vector<NamedOption> options_from(std::span<const std::byte> bytes);

}  // namespace envpool::runtime
