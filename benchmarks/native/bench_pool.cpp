// bench_pool.cpp - what the pool costs without Python: steps of all envs of a plugin's first task.
//
//   bench_pool cartpole_c.so [num_envs] [threads] [seconds]
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include "pool.hpp"

using namespace envpool::runtime;

int main(int argc, char** argv) {
  if (argc < 2)
    return std::fprintf(stderr, "usage: bench_pool PLUGIN [ENVS] [THREADS] [SECONDS]\n"), 2;
  Plugin& plugin = Plugin::load(argv[1]);
  const ep_task& task = *plugin.tasks().front();
  PoolSettings settings;
  settings.num_envs = settings.batch_size = argc > 2 ? std::atol(argv[2]) : 4096;
  settings.num_threads = argc > 3 ? std::atol(argv[3]) : 1;
  const double seconds = argc > 4 ? std::atof(argv[4]) : 1;
  const PoolPtr pool =
      Pool::make(plugin, task, {std::make_shared<const Options>(task, std::vector<NamedOption>{})},
                 settings, {});

  // Actions of all zeros and all ones by turns would keep CartPole up for long; these don't.
  std::vector<std::vector<std::int64_t>> actions(64, std::vector<std::int64_t>(pool->num_envs()));
  std::uint64_t state = 1;
  for (auto& row : actions) {
    for (auto& action : row) action = static_cast<std::int64_t>(ep_rand(&state) >> 63);
  }
  const auto step = [&](std::size_t i) {
    const ActionRows row{actions[i % actions.size()].data(), nullptr};
    pool->send(std::span(&row, 1), std::nullopt);
    pool->recycle(pool->recv(std::nullopt, {}));
  };
  pool->reset(std::nullopt, std::nullopt, {});
  pool->recycle(pool->recv(std::nullopt, {}));
  for (std::size_t i = 0; i < 200; ++i) step(i);

  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  std::size_t calls = 0;
  double spent = 0;
  do {
    for (int i = 0; i < 16; ++i) step(calls++);
    spent = std::chrono::duration<double>(Clock::now() - start).count();
  } while (spent < seconds);
  std::printf("%u envs, %u threads: %.2f us a call, %.1f ns a step, %.2f M steps/s\n",
              pool->num_envs(), pool->num_threads(), spent / static_cast<double>(calls) * 1e6,
              spent / static_cast<double>(calls) / pool->num_envs() * 1e9,
              static_cast<double>(calls) * pool->num_envs() / spent / 1e6);
  return 0;
}
