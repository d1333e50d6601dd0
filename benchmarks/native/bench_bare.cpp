// bench_bare.cpp - the ceiling: a loop on one thread over the envs of a plugin's first task, with
// what no user can do without: returns, lengths, the time limit, resets after the end.
//
//   bench_bare PLUGIN ENVS
//
// The plugin must offer envpool.batch/1, have one action field (discrete, two choices) and one
// observation field, and no options without defaults, as CartPole. Reads from its input how many
// seconds to step, answers with the number of env steps, and so on until the end of the input. A
// reset counts as a step and takes an env the whole of it, as in a pool.
#include <envpool/ext/batch.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <vector>

#include "options.hpp"
#include "plugin.hpp"
#include "spec.hpp"

using namespace envpool::runtime;

namespace {

constexpr std::size_t kCallsAhead = 64;  // rows of ready-made actions

class BareLoop {
 public:
  BareLoop(const Plugin& plugin, const ep_task& task, std::uint32_t envs)
      : task_(task),
        batch_(extension<ep_batch>(task, EP_EXT_BATCH, sizeof(ep_batch))),
        options_(task, {}),
        at_reset_(options_.at_reset({})),
        spec_(describe(task, plugin.host(), options_)),
        obs_bytes_(spec_.obs.front().row_bytes(1)) {
    if (!batch_) throw std::runtime_error("the plugin does not offer envpool.batch/1");
    limit_ = static_cast<std::int32_t>(spec_.max_episode_steps);
    obs_.resize(std::size_t{envs} * obs_bytes_);
    reward_.resize(envs);
    return_.resize(envs);
    length_.resize(envs);
    terminated_.resize(envs);
    truncated_.resize(envs);
    status_.resize(envs);
    over_.assign(envs, 1);
    rows_.reserve(envs);
    handles_.reserve(envs);
    std::uint64_t state = 1;
    for (auto& row : actions_) {
      row.resize(envs);
      for (auto& action : row) action = static_cast<std::int64_t>(ep_rand(&state) >> 63);
    }
    for (std::uint32_t i = 0; i < envs; ++i) {
      const ep_create how{sizeof how, static_cast<std::uint32_t>(options_.values().size()),
                          options_.values().data(), i};
      void* env = nullptr;
      if (task.create(plugin.host().abi(), &how, &env) != EP_OK) {
        throw std::runtime_error("create failed");
      }
      envs_.push_back(env);
      reset(i, true);
    }
  }

  ~BareLoop() {
    for (void* env : envs_) task_.destroy(env);
  }
  BareLoop(const BareLoop&) = delete;
  BareLoop& operator=(const BareLoop&) = delete;

  std::uint64_t play(double seconds) {
    using Clock = std::chrono::steady_clock;
    const auto end = Clock::now() + std::chrono::duration<double>(seconds);
    std::uint64_t steps = 0;
    do {
      for (int i = 0; i < 16; ++i, steps += envs_.size()) step();
    } while (Clock::now() < end);
    return steps;
  }

 private:
  void reset(std::uint32_t i, bool seeded) {
    const ep_reset how{sizeof how,
                       seeded,
                       i,
                       at_reset_.values().data(),
                       static_cast<std::uint32_t>(at_reset_.values().size()),
                       0};
    void* obs[] = {obs_.data() + i * obs_bytes_};
    ep_view view{};
    view.size = sizeof view;
    view.obs = obs;
    if (task_.reset(envs_[i], &how) != EP_OK || task_.observe(envs_[i], &view) != EP_OK) {
      throw std::runtime_error("reset failed");
    }
    return_[i] = 0;
    length_[i] = 0;
    over_[i] = 0;
  }

  void step() {
    const auto& actions = actions_[call_++ % kCallsAhead];
    rows_.clear();
    handles_.clear();
    for (std::uint32_t i = 0; i < envs_.size(); ++i) {
      if (over_[i]) {
        reset(i, false);
      } else {
        rows_.push_back(i);
        handles_.push_back(envs_[i]);
      }
    }
    const ep_column action{const_cast<std::int64_t*>(actions.data()), sizeof(std::int64_t)};
    const ep_column obs{obs_.data(), obs_bytes_};
    const ep_rows rows{sizeof rows,
                       static_cast<std::uint32_t>(rows_.size()),
                       handles_.data(),
                       rows_.data(),
                       rows_.data(),
                       &action,
                       &obs,
                       nullptr,
                       reward_.data(),
                       terminated_.data(),
                       truncated_.data(),
                       status_.data()};
    if (!rows_.empty() && batch_->step_many(&rows) != EP_OK)
      throw std::runtime_error("step failed");
    for (const std::uint32_t i : rows_) {
      return_[i] += reward_[i];
      truncated_[i] |= ++length_[i] == limit_;
      over_[i] = terminated_[i] | truncated_[i];
    }
  }

  const ep_task& task_;
  const ep_batch* batch_;
  const Options options_, at_reset_;
  const Spec spec_;
  const std::size_t obs_bytes_;
  std::int32_t limit_ = 0;
  std::vector<void*> envs_, handles_;
  std::vector<std::uint32_t> rows_;
  std::vector<std::byte> obs_;
  std::vector<double> reward_, return_;
  std::vector<std::int32_t> length_;
  std::vector<std::uint8_t> terminated_, truncated_, over_;
  std::vector<ep_status> status_;
  std::vector<std::int64_t> actions_[kCallsAhead];
  std::size_t call_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return std::fprintf(stderr, "usage: bench_bare PLUGIN ENVS\n"), 2;
  try {
    const Plugin& plugin = Plugin::load(argv[1]);
    BareLoop loop(plugin, *plugin.tasks().front(), static_cast<std::uint32_t>(std::atoi(argv[2])));
    double seconds = 0;
    while (std::scanf("%lf", &seconds) == 1) {
      std::printf("%llu\n", static_cast<unsigned long long>(loop.play(seconds)));
      std::fflush(stdout);
    }
  } catch (const std::exception& error) {
    return std::fprintf(stderr, "bench_bare: %s\n", error.what()), 1;
  }
  return 0;
}
