// bare_loop.hpp - what one env costs without a pool: the ABI's calls in a loop on the calling
// thread, and nothing else. The measure that envpool-sdk bench holds a pool against.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <span>

#include "actions.hpp"
#include "options.hpp"
#include "plan.hpp"

namespace envpool::runtime {

struct BareLoop {
  std::uint64_t steps = 0;  // actions taken, each for frame_skip calls of step()
  std::uint64_t episodes = 0;
  std::chrono::nanoseconds took{0};  // creation and the first reset left out
};

// Plays for at least `time`: frame_skip calls of step() with the same action, then one of observe()
// for all fields, and reset() after an episode's end or the time limit. Of the plan's transforms
// only frame_skip counts. The actions have `rows` rows, taken in turn. interrupt is called every
// 50 ms or so; what it throws ends the loop. Throws Error(kValue) for actions that the task does
// not have, Error(kEnv) with the plugin's text if a call fails.
BareLoop bare_loop(const Plan& plan, const Options& options, std::span<const ActionRows> actions,
                   std::uint32_t rows, std::uint64_t seed, std::chrono::nanoseconds time,
                   const std::function<void()>& interrupt);

}  // namespace envpool::runtime
