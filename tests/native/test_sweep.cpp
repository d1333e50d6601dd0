// test_sweep.cpp - a step of all envs, which takes the pool's short way and the plugin's step_many,
// gives the same bits as the same step of envs named one by one, which takes neither.
#include <cstring>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "check.hpp"
#include "pool.hpp"

using namespace envpool::runtime;
using envpool::test::report;

namespace {

struct Case {
  const char* plugin;
  const char* task;
  Autoreset autoreset;
  std::int64_t limit;
  bool both_flags, float32, clip;
  std::int64_t threads;
};

PoolPtr open(const Case& c, std::int64_t num_envs) {
  Plugin& plugin = Plugin::load(std::string(ENVPOOL_REFERENCE_DIR) + "/" + c.plugin);
  const ep_task& task = plugin.task(c.task);
  PoolSettings settings;
  settings.num_envs = settings.batch_size = num_envs;
  settings.num_threads = c.threads;
  settings.plan.autoreset = c.autoreset;
  settings.plan.max_episode_steps = c.limit;
  settings.plan.both_flags = c.both_flags;
  settings.plan.float32_reward = c.float32;
  settings.plan.transforms.reward_clip = c.clip;
  return Pool::make(plugin, task,
                    {std::make_shared<const Options>(task, std::vector<NamedOption>{})}, settings,
                    {});
}

std::unique_ptr<Batch> next(Pool& pool) { return pool.recv(std::nullopt, {}); }

bool equal(const Plan& plan, const Columns& one, const Columns& other, std::uint32_t row) {
  for (std::size_t i = 0; i < plan.columns.size(); ++i) {
    const std::size_t bytes = plan.columns[i].row_bytes;
    if (std::memcmp(one.data[i] + row * bytes, other.data[i] + row * bytes, bytes) != 0) {
      std::fprintf(stderr, "row %u differs in %s/%s\n", row, plan.columns[i].section.c_str(),
                   plan.columns[i].name.c_str());
      return false;
    }
  }
  return true;
}

void compare(const Case& c) {
  constexpr std::int32_t kEnvs = 300;  // more than a block of anything, and no multiple of one
  const PoolPtr swept = open(c, kEnvs), named = open(c, kEnvs);
  CHECK(swept->plan().batch != nullptr);
  std::vector<std::int32_t> ids(kEnvs);
  std::iota(ids.begin(), ids.end(), 0);
  std::vector<std::uint64_t> seeds(kEnvs);
  std::iota(seeds.begin(), seeds.end(), 7);
  for (Pool* pool : {swept.get(), named.get()}) {
    pool->reset(std::nullopt, seeds, {});
    pool->recycle(next(*pool));
  }
  std::uint64_t state = 3;
  std::vector<std::int64_t> actions(kEnvs);
  std::uint64_t ended = 0;
  for (int step = 0; step < 150; ++step) {
    for (auto& action : actions) action = static_cast<std::int64_t>(ep_rand(&state) >> 63);
    const ActionRows row{actions.data(), nullptr};
    swept->send(std::span(&row, 1), std::nullopt);
    named->send(std::span(&row, 1), ids);
    auto one = next(*swept), other = next(*named);
    bool same = one->final_mask == other->final_mask;
    for (std::uint32_t i = 0; same && i < kEnvs; ++i) {
      same = equal(swept->plan(), one->columns, other->columns, i);
      if (same && !one->final_mask.empty() && one->final_mask[i]) {
        same = equal(swept->plan(), one->finals(), other->finals(), i);
        ++ended;
      }
    }
    swept->recycle(std::move(one));
    named->recycle(std::move(other));
    CHECK(same);
    if (!same) return;
  }
  CHECK(swept->statistics().steps == named->statistics().steps);
  CHECK(swept->statistics().episodes == named->statistics().episodes);
  CHECK(swept->statistics().episodes > kEnvs);
  CHECK((ended > 0) == (c.autoreset == Autoreset::kSameStep));
}

// An env of a pool may be looked at, saved and loaded between sweeps, as between other steps.
void visits() {
  const Case c{"cartpole_c.so", "CartPole-v1", Autoreset::kNextStep, 0, false, false, false, 1};
  const PoolPtr pool = open(c, 8);
  pool->reset(std::nullopt, std::vector<std::uint64_t>{1, 2, 3, 4, 5, 6, 7, 8}, {});
  pool->recycle(next(*pool));
  const std::vector<std::int64_t> actions(8, 1);
  const ActionRows row{actions.data(), nullptr};
  const auto step = [&] {
    pool->send(std::span(&row, 1), std::nullopt);
    return next(*pool);
  };
  pool->recycle(step());
  const auto saved = pool->save_state(3);
  auto first = step();
  auto seen = pool->observe(std::nullopt);
  CHECK(equal(pool->plan(), first->columns, seen->columns, 3));
  pool->load_state(3, saved);
  auto again = step();
  CHECK(equal(pool->plan(), first->columns, again->columns, 3));
  pool->recycle(std::move(first));
  pool->recycle(std::move(seen));
  pool->recycle(std::move(again));
}

void in_flight() {
  const Case c{"cartpole_c.so", "CartPole-v1", Autoreset::kDisabled, 3, false, false, false, 1};
  const PoolPtr pool = open(c, 4);
  pool->reset(std::nullopt, std::nullopt, {});
  pool->recycle(next(*pool));
  std::vector<std::int64_t> actions(4, 1);
  const ActionRows row{actions.data(), nullptr};
  const std::vector<std::int32_t> one{2};
  pool->send(std::span(&row, 1), std::nullopt);
  CHECK(pool->pending() == 4);
  CHECK_THROWS(pool->send(std::span(&row, 1), std::nullopt), kValue, "in flight");
  CHECK_THROWS(pool->send(std::span(&row, 1), one), kValue, "env_id 2 is still in flight");
  CHECK_THROWS(pool->reset(one, std::nullopt, {}), kValue, "in flight");
  CHECK_THROWS(pool->render(0, 0, 0, 0), kValue, "in flight");
  pool->recycle(next(*pool));
  CHECK(pool->pending() == 0);
  actions[1] = 2;
  CHECK_THROWS(pool->send(std::span(&row, 1), std::nullopt), kValue, "env 1 is 2");
  actions[1] = 0;
  for (int i = 0; i < 2; ++i) {
    pool->send(std::span(&row, 1), std::nullopt);
    pool->recycle(next(*pool));
  }
  CHECK_THROWS(pool->send(std::span(&row, 1), std::nullopt), kRuntime, "autoreset is disabled");
  CHECK(pool->pending() == 0);
}

}  // namespace

int main() {
  for (const std::int64_t threads : {1, 2, 8}) {
    for (const Autoreset mode : {Autoreset::kNextStep, Autoreset::kSameStep}) {
      compare({"cartpole_c.so", "CartPole-v1", mode, 20, false, true, true, threads});
      compare({"cartpole_c.so", "CartPole-v1", mode, 11, true, false, false, threads});
      compare({"cartpole_cpp.so", "CartPole-v1", mode, 0, false, false, false, threads});
    }
  }
  visits();
  in_flight();
  return report();
}
