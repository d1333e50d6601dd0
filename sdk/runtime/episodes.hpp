// episodes.hpp - what a pool keeps of its envs' episodes, an array for each quantity: loops over
// many envs read and write them in one go.
#pragma once

#include <cstdint>
#include <vector>

namespace envpool::runtime {

// An env's part belongs to whoever runs the env.
struct Episodes {
  Episodes(std::uint32_t envs, std::uint32_t agents)
      : handle(envs),
        elapsed(envs),
        over(envs, 1),
        reward(std::size_t{envs} * agents),
        returned(reward.size()),
        terminated(reward.size()),
        truncated(reward.size()) {}

  std::vector<void*> handle;          // [env], of the plugin; nullptr: there is none
  std::vector<std::int32_t> elapsed;  // [env], steps since the reset
  std::vector<std::uint8_t> over;     // [env], the episode ended, or there was none yet
  std::vector<double> reward;         // [env][agent], of the last step, raw
  std::vector<double> returned;       // [env][agent], raw rewards since the reset
  std::vector<std::uint8_t> terminated, truncated;  // [env][agent], of the last step
};

}  // namespace envpool::runtime
