// bench_pool.cpp - what the pool costs without Python: steps of all envs of a plugin's first task,
// whose actions are one discrete number of two, as CartPole's and Counter's.
//
//   bench_pool PLUGIN [TASK|-] [ENVS] [BATCH] [THREADS] [SECONDS]
//
// Prints one line of JSON: calls made, seconds that they took, and how many of these were in send.
// Of an asynchronous pool also the seconds of calls whose rows were there already (ready_*): what
// the user's thread does alone, however many threads run envs.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "pool.hpp"

using namespace envpool::runtime;
using Clock = std::chrono::steady_clock;

namespace {

constexpr std::size_t kActionRows = 64;
constexpr int kWarmUpCalls = 200;
constexpr int kReadyCalls = 100;
constexpr double kUntilReady = 0.001;  // seconds, for all envs to be run

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

class Stepper {
 public:
  explicit Stepper(Pool& pool)
      : pool_(pool), everyone_(pool.batch_size() == pool.num_envs()), ids_(pool.batch_size()) {
    // Zeros and ones by turns would keep CartPole up for long; these don't.
    std::uint64_t state = 1;
    for (auto& row : actions_) {
      row.resize(pool.batch_size());
      for (auto& action : row) action = static_cast<std::int64_t>(ep_rand(&state) >> 63);
    }
    pool.reset(std::nullopt, std::nullopt, {});
    receive();
  }

  // One call; adds the seconds spent in send.
  void step(double& in_send) {
    const ActionRows row{actions_[call_++ % kActionRows].data(), nullptr};
    const auto start = Clock::now();
    pool_.send(std::span(&row, 1), everyone_ ? Pool::EnvIds{} : Pool::EnvIds(ids_));
    in_send += seconds_since(start);
    receive();
  }

 private:
  void receive() {
    std::unique_ptr<Batch> batch = pool_.recv(std::nullopt, {});
    if (!everyone_) {
      const auto* ids =
          reinterpret_cast<const std::int32_t*>(batch->columns.data[*pool_.plan().pool.env_id]);
      ids_.assign(ids, ids + batch->rows());
    }
    pool_.recycle(std::move(batch));
  }

  Pool& pool_;
  const bool everyone_;
  std::vector<std::int32_t> ids_;
  std::vector<std::int64_t> actions_[kActionRows];
  std::size_t call_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: bench_pool PLUGIN [TASK|-] [ENVS] [BATCH] [THREADS] [SECONDS]\n");
    return 2;
  }
  try {
    Plugin& plugin = Plugin::load(argv[1]);
    const std::string name = argc > 2 ? argv[2] : "-";
    const ep_task& task = name == "-" ? *plugin.tasks().front() : plugin.task(name);
    PoolSettings settings;
    settings.num_envs = argc > 3 ? std::atol(argv[3]) : 4096;
    settings.batch_size = argc > 4 ? std::atol(argv[4]) : settings.num_envs;
    settings.num_threads = argc > 5 ? std::atol(argv[5]) : 1;
    const std::vector<std::string> columns{"env_id", "reward", "terminated", "truncated"};
    settings.plan.pool_columns = pool_columns_of(columns);  // as make_vec has them, and env_id
    const double seconds = argc > 6 ? std::atof(argv[6]) : 1;
    const PoolPtr pool = Pool::make(
        plugin, task, {std::make_shared<const Options>(task, std::vector<NamedOption>{})}, settings,
        {});
    Stepper stepper(*pool);
    double in_send = 0;
    for (int i = 0; i < kWarmUpCalls; ++i) stepper.step(in_send);

    const auto start = Clock::now();
    std::size_t calls = 0;
    double spent = 0;
    in_send = 0;
    do {
      for (int i = 0; i < 16; ++i, ++calls) stepper.step(in_send);
      spent = seconds_since(start);
    } while (spent < seconds);
    std::vector<double> ready(1);  // nothing of a synchronous pool is there already
    for (int i = 0; i < kReadyCalls && pool->batch_size() < pool->num_envs(); ++i) {
      // Busy, as with a policy: who sleeps comes back to cold caches and a slow clock.
      for (const auto since = Clock::now(); seconds_since(since) < kUntilReady;) {
      }
      double ignored = 0;
      const auto call = Clock::now();
      stepper.step(ignored);
      ready.push_back(seconds_since(call));
    }
    const auto middle = ready.begin() + static_cast<std::ptrdiff_t>(ready.size() / 2);
    std::ranges::nth_element(ready, middle);
    std::printf(
        "{\"task\": \"%s\", \"num_envs\": %u, \"batch_size\": %u, \"threads\": %u, \"calls\": %zu, "
        "\"seconds\": %.9g, \"send_seconds\": %.9g, \"ready_call_seconds\": "
        "%.9g}\n",
        task.id, pool->num_envs(), pool->batch_size(), pool->num_threads(), calls, spent, in_send,
        *middle);
  } catch (const std::exception& error) {
    return std::fprintf(stderr, "bench_pool: %s\n", error.what()), 1;
  }
  return 0;
}
