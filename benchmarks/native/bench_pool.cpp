// bench_pool.cpp - what the pool costs without Python: steps of all envs of a plugin's first task.
// Beside it, where the plugin has envpool.batch/1, the ceiling: a bare loop over its step_many with
// the same bookkeeping, on one thread.
//
//   bench_pool cartpole_c.so [num_envs] [threads] [seconds]
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include "pool.hpp"

using namespace envpool::runtime;

namespace {

using Clock = std::chrono::steady_clock;

// Calls `step` with 0, 1, 2, ... for about so long; returns seconds a call.
template <class Step>
double time_of(Step step, double seconds) {
  for (std::size_t i = 0; i < 200; ++i) step(i);
  const auto start = Clock::now();
  std::size_t calls = 0;
  double spent = 0;
  do {
    for (int i = 0; i < 16; ++i) step(calls++);
    spent = std::chrono::duration<double>(Clock::now() - start).count();
  } while (spent < seconds);
  return spent / static_cast<double>(calls);
}

void print(const char* what, double call, std::uint32_t envs) {
  std::printf("%s: %.2f us a call, %.1f ns a step, %.2f M steps/s\n", what, call * 1e6,
              call / envs * 1e9, envs / call / 1e6);
}

// Envs in a row with nothing around them: actions read in place, one set of arrays. The task's
// first observation and one discrete action of 64 bits are all that it writes and reads.
class Bare {
 public:
  Bare(const Plugin& plugin, const ep_task& task, const Plan& plan, std::uint32_t envs)
      : task_(task),
        batch_(*plan.batch),
        limit_(plan.limit > 0 ? plan.limit : INT32_MAX),
        options_(task, {}),
        at_reset_(options_.at_reset({})),
        obs_bytes_(plan.columns[plan.obs[0].column].row_bytes),
        env_(envs),
        id_(envs),
        obs_(envs * obs_bytes_),
        reward_(envs),
        returned_(envs),
        elapsed_(envs),
        terminated_(envs),
        truncated_(envs),
        over_(envs, 1),
        status_(envs) {
    for (std::uint32_t i = 0; i < envs; ++i) {
      const ep_create how{sizeof how, static_cast<std::uint32_t>(options_.values().size()),
                          options_.values().data(), i};
      if (task.create(plugin.host().abi(), &how, &env_[i]) != EP_OK) std::abort();
      id_[i] = i;
      reset(i, true);
    }
  }
  ~Bare() {
    for (void* env : env_) task_.destroy(env);
  }
  Bare(const Bare&) = delete;
  Bare& operator=(const Bare&) = delete;

  void step(const std::int64_t* actions) {
    running_.clear();
    running_id_.clear();
    for (const std::uint32_t i : id_) {
      if (over_[i]) {
        reset(i, false);
      } else {
        running_.push_back(env_[i]);
        running_id_.push_back(i);
      }
    }
    const ep_column action{const_cast<std::int64_t*>(actions), sizeof *actions};
    const ep_column obs{obs_.data(), obs_bytes_};
    const ep_rows rows{sizeof rows,
                       static_cast<std::uint32_t>(running_.size()),
                       running_.data(),
                       running_id_.data(),
                       running_id_.data(),
                       &action,
                       &obs,
                       nullptr,
                       reward_.data(),
                       terminated_.data(),
                       truncated_.data(),
                       status_.data()};
    if (batch_.step_many(&rows) != EP_OK) std::abort();
    for (const std::uint32_t i : running_id_) {
      returned_[i] += reward_[i];
      truncated_[i] |= ++elapsed_[i] >= limit_ && !terminated_[i];
      over_[i] = terminated_[i] | truncated_[i];
    }
  }

 private:
  void reset(std::uint32_t i, bool seeded) {
    const ep_reset how{.size = sizeof how,
                       .has_seed = seeded,
                       .seed = i,
                       .options = at_reset_.values().data(),
                       .option_count = static_cast<std::uint32_t>(at_reset_.values().size())};
    void* obs = obs_.data() + i * obs_bytes_;
    const ep_view view{sizeof view, 1, &obs, nullptr, nullptr, nullptr, nullptr, nullptr};
    if (task_.reset(env_[i], &how) != EP_OK || task_.observe(env_[i], &view) != EP_OK) std::abort();
    elapsed_[i] = 0;
    returned_[i] = reward_[i] = 0;
    terminated_[i] = truncated_[i] = over_[i] = 0;
  }

  const ep_task& task_;
  const ep_batch& batch_;
  const std::int64_t limit_;
  const Options options_, at_reset_;
  const std::size_t obs_bytes_;
  std::vector<void*> env_, running_;
  std::vector<std::uint32_t> id_, running_id_;
  std::vector<std::byte> obs_;
  std::vector<double> reward_, returned_;
  std::vector<std::int32_t> elapsed_;
  std::vector<std::uint8_t> terminated_, truncated_, over_;
  std::vector<ep_status> status_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2)
    return std::fprintf(stderr, "usage: bench_pool PLUGIN [ENVS] [THREADS] [SECONDS]\n"), 2;
  Plugin& plugin = Plugin::load(argv[1]);
  const ep_task& task = *plugin.tasks().front();
  PoolSettings settings;
  settings.num_envs = settings.batch_size = argc > 2 ? std::atol(argv[2]) : 4096;
  const std::vector<std::string> columns{"reward", "terminated", "truncated"};
  settings.plan.pool_columns = pool_columns_of(columns);  // as make_vec has them
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
  std::printf("%u envs, %u threads\n", pool->num_envs(), pool->num_threads());
  print("pool", time_of(step, seconds), pool->num_envs());
  if (pool->plan().batch) {
    Bare bare(plugin, task, pool->plan(), pool->num_envs());
    const auto bare_step = [&](std::size_t i) { bare.step(actions[i % actions.size()].data()); };
    print("bare", time_of(bare_step, seconds), pool->num_envs());
  }
  return 0;
}
