// test_pool.cpp - pools of scripted envs: queues, autoreset, faults, memory.
#include <array>
#include <map>
#include <mutex>
#include <set>

#include "fake_env.hpp"

using namespace envpool::test;

namespace {

// ---- episodes

void test_next_step() {
  script->length = 3;
  PoolPtr pool = make_pool(free_task(), sizes(2, 2, 1));
  Got got = reset_all(*pool);
  CHECK((got.id == Ids{0, 1}) && got.t(0) == 0 && got.random(0) != got.random(1));
  double sum = 0;
  for (int episode = 1; episode <= 3; ++episode) {
    for (int t = 1; t <= 3; ++t) {
      got = step(*pool);
      sum += got.reward[0];
      CHECK(got.elapsed[0] == t && got.t(0) == t && got.episode(0) == episode);
      CHECK(got.terminated[0] == (t == 3) && !got.truncated[0] && got.returns[0] == sum);
    }
    const std::int64_t last = got.random(0);
    got = step(*pool);
    CHECK(got.reward[0] == 0 && got.elapsed[0] == 0 && !got.terminated[0] && !got.truncated[0]);
    CHECK(got.t(0) == 0 && got.episode(0) == episode + 1 && got.random(0) != last);
    CHECK(got.returns[0] == 0 && got.final_mask.empty());
    sum = 0;
  }
  CHECK(pool->statistics().steps == 18 && pool->statistics().episodes == 6);
}

void test_same_step() {
  script->length = 3;
  PoolSettings settings = sizes(2, 2, 1);
  settings.plan.autoreset = Autoreset::kSameStep;
  PoolPtr pool = make_pool(free_task(), settings);
  reset_all(*pool);
  step(*pool);
  reset(*pool, {1}, 50);  // out of step with the other
  CHECK(recv(*pool).id == Ids{1});
  Got got = step(*pool);
  CHECK(got.final_mask.empty());
  const double before = got.returns[0];
  got = step(*pool);
  CHECK((got.final_mask == std::vector<std::uint8_t>{1, 0}));
  CHECK(got.terminated[0] && !got.truncated[0] && !got.terminated[1]);
  CHECK(got.elapsed[0] == 0 && got.t(0) == 0 && got.episode(0) == 2 && got.returns[0] == 0);
  CHECK(got.elapsed[1] == 2 && got.t(1) == 2);
  CHECK(got.final_obs[1] == 1 && got.final_obs[2] == 3 && got.final_obs[0] != got.random(0));
  CHECK(got.final_returns[0] == before + got.reward[0]);
  got = step(*pool);
  CHECK(got.elapsed[0] == 1 && !got.terminated[0]);
}

void test_disabled() {
  script->length = 2;
  PoolSettings settings = sizes(3, 3, 1);
  settings.plan.autoreset = Autoreset::kDisabled;
  PoolPtr pool = make_pool(free_task(), settings);
  reset_all(*pool);
  step(*pool);
  reset(*pool, {1}, 3);
  recv(*pool);
  Got got = step(*pool);
  CHECK(got.terminated[0] && !got.terminated[1] && got.terminated[2]);
  CHECK_THROWS(step(*pool), kRuntime, "the episode of env 0 is over");
  CHECK_THROWS(send(*pool, {1, 2}), kRuntime, "env 2");
  CHECK(pool->pending() == 0);
  send(*pool, {1});
  CHECK(recv(*pool).t(0) == 2);
  reset(*pool, {0, 2});
  recv(*pool);
  send(*pool, {2, 0});
  CHECK((recv(*pool).id == Ids{2, 0}));
}

void test_time_limit() {
  for (const bool same : {false, true}) {
    PoolSettings settings = sizes(1, 1, 1);
    settings.plan.max_episode_steps = 3;
    if (same) settings.plan.autoreset = Autoreset::kSameStep;
    PoolPtr pool = make_pool(free_task(), settings);
    reset_all(*pool);
    step(*pool);
    step(*pool);
    Got got = step(*pool);
    CHECK(got.truncated[0] && !got.terminated[0]);
    if (same) {
      CHECK(got.final_obs[2] == 3 && got.t(0) == 0 && got.elapsed[0] == 0);
    } else {
      CHECK(got.t(0) == 3 && got.elapsed[0] == 3);
      got = step(*pool);
      CHECK(got.reward[0] == 0 && got.elapsed[0] == 0 && got.t(0) == 0 && !got.truncated[0]);
    }
  }
  for (const bool both : {false, true}) {
    script->length = 3;
    PoolSettings settings = sizes(1, 1, 1);
    settings.plan.max_episode_steps = 3;
    settings.plan.both_flags = both;
    settings.plan.transforms.frame_skip = 1;
    PoolPtr pool = make_pool(free_task(), settings);
    reset_all(*pool);
    step(*pool);
    step(*pool);
    const Got got = step(*pool);
    CHECK(got.terminated[0] && got.truncated[0] == both);
  }
  // The limit counts steps of the user's, whatever the skip.
  script->length = 0;
  PoolSettings settings = sizes(1, 1, 1);
  settings.plan.max_episode_steps = 2;
  settings.plan.transforms.frame_skip = 5;
  PoolPtr pool = make_pool(free_task(), settings);
  reset_all(*pool);
  step(*pool);
  const Got got = step(*pool);
  CHECK(got.truncated[0] && got.t(0) == 10 && got.elapsed[0] == 2);
}

// ---- queues

void test_partial_sends() {
  for (const int threads : {1, 3}) {
    PoolPtr pool = make_pool(free_task(), sizes(8, 8, threads));
    reset_all(*pool);
    send(*pool, {5, 0, 3}, 1);
    send(*pool, {1});
    send(*pool, {7, 2, 6, 4}, 2);
    CHECK(pool->pending() == 8);
    CHECK((recv_working(*pool).id == Ids{5, 0, 3}));
    send(*pool, {3, 5});
    CHECK((recv(*pool).id == Ids{1}));
    CHECK((recv(*pool).id == Ids{7, 2, 6, 4}));
    CHECK((recv_working(*pool).id == Ids{3, 5}));
    CHECK_THROWS(recv_working(*pool), kRuntime, "nothing to wait for");
    CHECK_THROWS(recv(*pool), kRuntime, "nothing to wait for");
    send(*pool, {});
    CHECK_THROWS(recv(*pool), kRuntime, "nothing to wait for");
  }
}

void test_async() {
  for (const ep_task* task : {&free_task(), &bound_task()}) {
    PoolPtr pool = make_pool(*task, sizes(10, 4, 3));
    pool->reset(std::nullopt, std::nullopt, {});
    std::vector<int> left(10, 6);
    std::multiset<std::int32_t> first;
    for (int i = 0; i < 3; ++i) {
      const Got got = recv(*pool);
      CHECK(got.rows() == (i < 2 ? 4 : 2));  // the last one is cut short
      first.insert(got.id.begin(), got.id.end());
    }
    for (const std::int32_t id : all_ids(*pool)) CHECK(first.count(id) == 1);
    CHECK_THROWS(recv(*pool), kRuntime, "nothing to wait for");
    send(*pool, all_ids(*pool));
    std::vector<std::int64_t> t(10);
    while (pool->pending() > 0) {
      const Got got = recv(*pool);
      Ids again;
      for (std::size_t row = 0; row < got.rows(); ++row) {
        const auto id = static_cast<std::size_t>(got.id[row]);
        CHECK(got.t(row) == ++t[id]);
        if (--left[id] > 0) again.push_back(got.id[row]);
      }
      send(*pool, again);
    }
    for (const int n : left) CHECK(n == 0);
  }
}

void test_async_slow_reset() {
  Gate gate;
  script->reset = [&](FakeEnv& env) {
    if (env.id == 1) gate.pass();
    return EP_OK;
  };
  PoolPtr pool = make_pool(free_task(), sizes(6, 2, 2));
  reset(*pool, all_ids(*pool));
  std::set<std::int32_t> seen;
  for (int i = 0; i < 2; ++i) {
    for (const std::int32_t id : recv(*pool).id) seen.insert(id);
  }
  CHECK(seen.size() == 4 && !seen.count(1));
  for (int i = 0; i < 20; ++i) {  // the others go round
    send(*pool, Ids(seen.begin(), seen.end()));
    std::set<std::int32_t> now;
    for (int k = 0; k < 2; ++k) {
      for (const std::int32_t id : recv(*pool).id) now.insert(id);
    }
    CHECK(now.size() == 4 && !now.count(1));
    seen = now;
  }
  gate.open();
  const Got got = recv(*pool);
  CHECK(std::count(got.id.begin(), got.id.end(), 1) == 1);
}

// Cheap envs are taken several at once: those that only step come before one that begins anew. The
// receiver, who runs cheap envs himself, leaves it to a worker.
void test_async_slow_autoreset() {
  Gate gate;
  script->reset = [&](FakeEnv& env) {
    std::this_thread::sleep_for(1ms);  // as slow as the pool knows resets
    if (env.id == 0 && env.episode == 1) gate.pass();
    return EP_OK;
  };
  script->step = [](FakeEnv& env) {
    env.terminated = env.id == 0 && env.t == 400;
    return EP_OK;
  };
  PoolPtr pool = make_pool(free_task(), sizes(8, 1, 2));
  const auto all = [&](std::size_t count) {
    Ids seen;
    for (std::size_t i = 0; i < count; ++i) seen.push_back(recv_working(*pool).id.at(0));
    std::sort(seen.begin(), seen.end());
    return seen;
  };
  reset(*pool, all_ids(*pool));
  all(8);
  for (int i = 0; i < 400; ++i) {
    send(*pool, all_ids(*pool));
    all(8);
  }
  send(*pool, all_ids(*pool));
  CHECK((all(7) == Ids{1, 2, 3, 4, 5, 6, 7}));
  gate.open();
  CHECK(all(1) == Ids{0});
}

// Rows of an asynchronous batch stand in the order in which the envs were done.
void test_async_order() {
  std::array<Gate, 3> gates;
  script->step = [&](FakeEnv& env) {
    gates[env.id].pass();
    return EP_OK;
  };
  PoolPtr pool = make_pool(free_task(), sizes(4, 3, 3));
  reset(*pool, {0, 1, 2});
  recv(*pool);
  send(*pool, {0, 1, 2});
  for (const std::size_t id : {2, 0, 1}) {
    const auto before = script->observed.load();
    gates[id].open();
    while (script->observed.load() == before) std::this_thread::sleep_for(1ms);
  }
  CHECK((recv(*pool).id == Ids{2, 0, 1}));
}

// Cheap envs are taken, and their rows claimed, several at once: across batches and episodes.
void test_async_chunks() {
  script->length = 5;
  for (const Autoreset mode : {Autoreset::kNextStep, Autoreset::kSameStep}) {
    PoolSettings settings = sizes(64, 5, 2);
    settings.plan.autoreset = mode;
    PoolPtr pool = make_pool(free_task(), settings);
    reset(*pool, all_ids(*pool));
    const std::int64_t last = mode == Autoreset::kNextStep ? 5 : 4;
    std::vector<std::int64_t> t(64, -1);
    for (int round = 0; round < 300; ++round) {
      Ids ready;
      while (pool->pending() > 0) {
        const Got got = round % 2 == 0 ? recv(*pool) : recv_working(*pool);
        CHECK(got.rows() == (pool->pending() > 0 ? 5 : 4));
        for (std::size_t row = 0; row < got.rows(); ++row) {
          const auto id = static_cast<std::size_t>(got.id[row]);
          t[id] = t[id] == last ? 0 : t[id] + 1;
          CHECK(got.t(row) == t[id]);
        }
        ready.insert(ready.end(), got.id.begin(), got.id.end());
      }
      CHECK(std::set<std::int32_t>(ready.begin(), ready.end()).size() == 64);
      send(*pool, ready);
    }
  }
}

void test_validation() {
  for (const std::int64_t batch : {4, 2}) {
    PoolPtr pool = make_pool(free_task(), sizes(4, batch, 2));
    CHECK_THROWS(send(*pool, {0}), kRuntime, "env 0 was never reset");
    reset(*pool, {0, 1});
    recv(*pool);
    const auto good = [&] {
      CHECK(pool->pending() == 0);
      send(*pool, {1, 0}, 3);
      CHECK(recv(*pool).rows() == 2);
    };
    good();
    CHECK_THROWS(send(*pool, {0, 1, 0}), kValue, "env_id 0 is given twice");
    good();
    CHECK_THROWS(send(*pool, {0, -1}), kValue, "env_id -1, allowed: 0 .. 3");
    CHECK_THROWS(send(*pool, {4}), kValue, "env_id 4");
    CHECK_THROWS(send(*pool, {0, 2}), kRuntime, "env 2 was never reset");
    good();
    CHECK_THROWS(send(*pool, {0, 1}, {0, 4}), kValue, "of env 1 is 4, allowed: 0 .. 3");
    CHECK_THROWS(send(*pool, {1}, -1), kValue, "of env 1 is -1");
    CHECK_THROWS(pool->send({}, Ids{0}), kValue, "0 action fields given, allowed: 1");
    good();
    const std::uint64_t seed = 1;
    CHECK_THROWS(pool->reset(Ids{0, 1}, std::span(&seed, 1), {}), kValue, "1 seeds for 2 envs");
    CHECK_THROWS(pool->reset(Ids{0}, std::nullopt, {{"no_such", std::int64_t{1}}}), kValue,
                 "no_such");
    CHECK_THROWS(pool->observe(Ids{0, 0}), kValue, "given twice");
    CHECK_THROWS(pool->observe(Ids{9}), kValue, "env_id 9");
    CHECK_THROWS(pool->render(4, 0, 0, 0), kValue, "env_id");
    CHECK_THROWS(pool->render(-1, 0, 0, 0), kValue, "env_id");
    CHECK_THROWS(pool->render(INT64_MIN, 0, 0, 0), kValue, "env_id");
    good();
    send(*pool, {0});
    CHECK_THROWS(send(*pool, {1, 0}), kValue, "env_id 0 is still in flight");
    CHECK_THROWS(reset(*pool, {0}), kValue, "env_id 0 is still in flight");
    CHECK_THROWS(pool->observe(Ids{0}), kValue, "env_id 0 is still in flight");
    CHECK_THROWS(pool->save_state(0), kValue, "env_id 0 is still in flight");
    CHECK(pool->pending() == 1);
    CHECK(recv(*pool).id == Ids{0});
    good();
  }
  const auto make = [&](PoolSettings settings) { make_pool(free_task(), settings); };
  CHECK_THROWS(make(sizes(0, 1, 1)), kValue, "num_envs=0");
  CHECK_THROWS(make(sizes(4, 5, 1)), kValue, "batch_size=5");
  CHECK_THROWS(make(sizes(4, 0, 1)), kValue, "batch_size=0");
  CHECK_THROWS(make(sizes(4, 4, -1)), kValue, "num_threads=-1");
  PoolSettings settings = sizes(1, 1, 1);
  settings.plan.transforms.img_height = -3;
  CHECK_THROWS(make_pool(image_task(), settings), kValue, "img_height=-3");
  settings.plan.transforms.img_height = std::int64_t{1} << 40;
  CHECK_THROWS(make_pool(image_task(), settings), kValue, "img_height=");
}

void test_seeds() {
  std::mutex mutex;
  std::map<std::uint64_t, std::vector<std::pair<bool, std::uint64_t>>> log;
  script->reset = [&](FakeEnv& env) {
    const std::lock_guard lock(mutex);
    log[env.id].emplace_back(env.has_seed, env.seed);
    return EP_OK;
  };
  script->length = 2;
  PoolPtr pool = make_pool(free_task(), sizes(3, 3, 2));
  const auto all = [&](auto seeds) {
    pool->reset(std::nullopt, seeds, {});
    return recv(*pool).obs;
  };
  all(std::nullopt);  // entropy
  CHECK(log[0][0].first && log[0][0].second != log[1][0].second);
  const std::vector<std::uint64_t> seeds{123, 124, 125};
  const auto a = all(std::optional(std::span<const std::uint64_t>(seeds)));
  const auto b = all(std::nullopt);
  const auto c = all(std::optional(std::span<const std::uint64_t>(seeds)));
  const auto d = all(std::nullopt);
  for (std::size_t i = 0; i < a.size(); i += 3) CHECK(a[i] == c[i] && b[i] == d[i] && a[i] != b[i]);
  for (int i = 0; i < 3; ++i) step(*pool);  // an automatic reset goes on with the generator
  CHECK((log[2][1] == std::pair{true, std::uint64_t{125}}));
  CHECK(!log[2][2].first && log[2][3].first && !log[2][4].first && !log[2][5].first);
  CHECK(log[2].size() == 6);
}

// ---- faults

void test_step_faults() {
  for (const Autoreset mode : {Autoreset::kNextStep, Autoreset::kSameStep}) {
    for (const ep_status status : {EP_E_FAILED, EP_E_BROKEN}) {
      script = std::make_unique<Script>();
      std::mutex mutex;
      std::vector<std::uint64_t> seeds;
      script->step = [&](FakeEnv& env) -> ep_status {
        if (env.id != 1 || env.t != 2) return EP_OK;
        return ep_fail(env.host, status, "the wheel came off");
      };
      script->reset = [&](FakeEnv& env) {
        const std::lock_guard lock(mutex);
        if (env.id == 1) seeds.push_back(env.has_seed ? env.seed : 0);
        return EP_OK;
      };
      PoolSettings settings = sizes(3, 3, 2);
      settings.plan.autoreset = mode;
      PoolPtr pool = make_pool(free_task(), settings);
      reset_all(*pool, 7);
      step(*pool);
      int steps = 1;  // of the envs that are well
      for (int round = 1; round <= 3; ++round) {
        Got got = step(*pool);
        ++steps;
        CHECK(got.fault[1] && got.truncated[1] && !got.terminated[1] && got.reward[1] == 0);
        CHECK(!got.fault[0] && !got.truncated[2] && got.elapsed[2] == steps);
        CHECK(got.faults.size() == 1 && got.faults[0].env_id == 1);
        CHECK(got.faults[0].message == "Fake-v1, env 1: step: the wheel came off");
        if (mode == Autoreset::kNextStep) {
          got = step(*pool);
          ++steps;
          CHECK(!got.fault[1] && got.faults.empty());
        } else {
          CHECK((got.final_mask == std::vector<std::uint8_t>{0, 1, 0}));
        }
        CHECK(got.t(1) == 0 && got.elapsed[1] == 0 && !got.fault[0]);
        step(*pool);
        ++steps;
      }
      CHECK(pool->statistics().faults == 3);
      CHECK(script->created == (status == EP_E_BROKEN ? 6 : 3));
      if (status == EP_E_BROKEN) {  // made anew, never with a seed it had
        CHECK(seeds.size() == 4 && seeds[0] == 8);
        CHECK(std::set<std::uint64_t>(seeds.begin(), seeds.end()).size() == 4);
        CHECK(!std::count(seeds.begin(), seeds.end(), std::uint64_t{0}));
      } else {
        CHECK((seeds == std::vector<std::uint64_t>{8, 0, 0, 0}));
      }
      pool.reset();
    }
  }
}

void test_observe_faults() {
  for (const Autoreset mode : {Autoreset::kNextStep, Autoreset::kSameStep}) {
    for (const ep_status status : {EP_E_FAILED, EP_E_BROKEN}) {
      for (const bool at_end : {false, true}) {
        script = std::make_unique<Script>();
        if (at_end) script->length = 2;
        script->observe = [&](FakeEnv& env) -> ep_status {
          return env.id == 0 && env.t == 2 ? ep_fail(env.host, status, "dark") : EP_OK;
        };
        PoolSettings settings = sizes(2, 2, 1);
        settings.plan.autoreset = mode;
        PoolPtr pool = make_pool(free_task(), settings);
        reset_all(*pool);
        step(*pool);
        Got got = step(*pool);
        CHECK(got.fault[0] && got.truncated[0] && !got.terminated[0]);
        CHECK(!got.fault[1] && got.terminated[1] == at_end);
        CHECK(got.faults.size() == 1 && got.faults[0].message == "Fake-v1, env 0: observe: dark");
        CHECK(pool->statistics().faults == 1);
        CHECK(pool->statistics().episodes == (at_end ? 2u : 1u));
        if (mode == Autoreset::kSameStep) {
          CHECK(!got.final_mask.empty() && got.final_mask[0] && got.final_mask[1] == at_end);
        } else {
          CHECK(got.obs[0] == 0 && got.obs[1] == 0 && got.obs[2] == 0);
          got = step(*pool);
        }
        CHECK(got.t(0) == 0 && got.elapsed[0] == 0 && got.random(0) != 0);
        got = step(*pool);
        CHECK(!got.fault[0] && got.elapsed[0] == 1);
        pool.reset();
      }
    }
  }
}

void test_reset_faults() {
  int fails = 1;
  ep_status status = EP_E_FAILED;
  std::mutex mutex;
  script->reset = [&](FakeEnv& env) -> ep_status {
    const std::lock_guard lock(mutex);
    return env.id == 1 && fails-- > 0 ? ep_fail(env.host, status, "no ball") : EP_OK;
  };
  for (const std::int64_t batch : {3, 2}) {
    for (const ep_status s : {EP_E_FAILED, EP_E_BROKEN}) {
      status = s;
      fails = 1;
      PoolPtr pool = make_pool(free_task(), sizes(3, batch, 1));
      reset(*pool, {0, 1});
      CHECK_THROWS(recv(*pool), kEnv, "Fake-v1, env 1: reset: no ball");
      CHECK(pool->pending() == 0 && pool->statistics().faults == 0);
      CHECK_THROWS(send(*pool, {1}), kRuntime, "env 1 was never reset");
      reset(*pool, {1, 0});
      CHECK(recv(*pool).rows() == 2);
      // A later one is a fault, as often as it takes.
      fails = 2;
      reset(*pool, {0, 1});
      Got got = recv(*pool);
      CHECK(!got.fault[0] && got.fault[1] && got.truncated[1] && got.faults.size() == 1);
      send(*pool, {1, 0});
      got = recv(*pool);
      CHECK(got.fault[0] && !got.fault[1] && got.t(1) == 1);
      send(*pool, {1, 0});
      got = recv(*pool);
      CHECK(!got.fault[0] && got.elapsed[0] == 0 && got.t(0) == 0 && got.t(1) == 2);
      CHECK(pool->statistics().faults == 2);
      // Without autoreset, a fault needs a reset too.
    }
  }
}

void test_create_faults() {
  std::atomic<int> calls{0};
  std::atomic<bool> broken{true};
  script->create = [&](FakeEnv& env) -> ep_status {
    ++calls;
    return env.id == 2 && broken ? ep_fail(env.host, EP_E_NOT_FOUND, "no ROM") : EP_OK;
  };
  for (const ep_task* task : {&free_task(), &bound_task()}) {
    CHECK_THROWS(make_pool(*task, sizes(4, 4, 2)), kEnv, "Fake-v1, env 2: create: no ROM");
    CHECK(script->alive == 0);
  }
  // Made anew after it broke: create fails, then works.
  broken = false;
  script->step = [&](FakeEnv& env) { return env.id == 2 && broken ? EP_E_BROKEN : EP_OK; };
  PoolPtr pool = make_pool(free_task(), sizes(3, 3, 2));
  reset_all(*pool);
  broken = true;
  for (int i = 0; i < 3; ++i) {
    const Got got = step(*pool);
    CHECK(got.fault[2] && got.truncated[2] && got.faults.size() == 1);
    CHECK(got.obs[6] == 0 && got.obs[7] == 0);
    CHECK(got.t(0) == i + 1);
  }
  CHECK_THROWS(pool->render(2, 0, 0, 0), kRuntime, "reset it before rendering");
  broken = false;
  const Got got = step(*pool);
  CHECK(!got.fault[2] && got.t(2) == 0 && got.elapsed[2] == 0);
}

// A respawned env whose first reset fails is still seeded at the next one.
void test_respawn_seed_after_failed_reset() {
  int fails = 0;
  std::vector<bool> seeded;
  script->step = [&](FakeEnv& env) { return env.t == 1 && fails ? EP_E_BROKEN : EP_OK; };
  script->reset = [&](FakeEnv& env) {
    seeded.push_back(env.has_seed);
    return fails-- > 0 ? EP_E_FAILED : EP_OK;
  };
  PoolPtr pool = make_pool(free_task(), sizes(1, 1, 1));
  reset_all(*pool);
  fails = 1;
  CHECK(step(*pool).fault[0]);  // broke
  CHECK(step(*pool).fault[0]);  // made, reset failed
  fails = 0;
  CHECK(!step(*pool).fault[0]);
  CHECK((seeded == std::vector<bool>{true, true, true}));
}

void test_max_faults() {
  for (const std::int64_t batch : {4, 2}) {
    script->step = [](FakeEnv& env) { return env.id == 0 ? EP_E_FAILED : EP_OK; };
    PoolSettings settings = sizes(4, batch, 2);
    settings.max_faults = 2;
    PoolPtr pool = make_pool(free_task(), settings);
    reset(*pool, {0, 1});
    recv(*pool);
    for (int i = 0; i < 2; ++i) {
      send(*pool, {0, 1});
      CHECK(recv(*pool).faults.size() == 1);
      send(*pool, {0, 1});
      CHECK(recv(*pool).faults.empty());
    }
    send(*pool, {0, 1});
    CHECK_THROWS(recv(*pool), kEnv, "more than max_faults=2 faults");
    CHECK_THROWS(send(*pool, {1}), kEnv, "max_faults");
    CHECK_THROWS(reset(*pool, {1}), kEnv, "max_faults");
    CHECK_THROWS(pool->observe(Ids{1}), kEnv, "max_faults");
    CHECK(pool->close(2s));
  }
}

// A plugin is not asked to show an env that was never reset.
void test_observe() {
  PoolPtr pool = make_pool(free_task(), sizes(3, 3, 1));
  Got got = take(*pool, pool->observe(std::nullopt));
  CHECK((got.id == Ids{0, 1, 2}) && got.obs == std::vector<std::int64_t>(9));
  CHECK_THROWS(pool->render(0, 0, 0, 0), kRuntime, "reset it before rendering");
  CHECK_THROWS(pool->save_state(0), kRuntime, "reset it before saving");
  reset_all(*pool);
  const Got stepped = step(*pool);
  got = take(*pool, pool->observe(Ids{2, 0}));
  CHECK((got.id == Ids{2, 0}) && got.random(0) == stepped.random(2) && got.t(1) == 1);
  CHECK(got.elapsed[0] == 1 && got.reward[0] == stepped.reward[2]);
  script->observe = [](FakeEnv& env) { return env.id == 1 ? EP_E_FAILED : EP_OK; };
  got = take(*pool, pool->observe(std::nullopt));
  CHECK(got.fault[1] && got.faults.size() == 1 && pool->statistics().faults == 1);
  const Env::Picture picture = pool->render(0, 3, 2, 0);
  CHECK(picture.pixels == std::vector<std::uint8_t>(18, 1));
  CHECK_THROWS(pool->render(0, 1 << 20, 0, 0), kValue, "width=1048576");
}

// ---- memory

void test_kept_blocks() {
  std::vector<std::pair<Block*, std::vector<std::byte>>> all;
  {
    script->length = 5;
    PoolPtr pool = make_pool(free_task(), sizes(4, 2, 2));
    pool->reset(std::nullopt, std::nullopt, {});
    for (int i = 0; i < 100; ++i) {
      auto batch = pool->recv(10s, nullptr);
      const auto ids = column<std::int32_t>(*pool, batch->columns, batch->rows(), "env_id");
      const std::size_t rows = batch->rows();
      std::vector<Block*> kept = keep(*pool, std::move(batch));
      for (Block* block : kept) {
        const std::size_t used = pool->plan().columns[block->column].row_bytes * rows;
        CHECK(reinterpret_cast<std::uintptr_t>(block->data) % 64 == 0);
        all.emplace_back(block, std::vector<std::byte>(block->data, block->data + used));
      }
      send(*pool, ids);
    }
  }  // they outlive the pool
  for (auto& [block, copy] : all) {
    CHECK(std::memcmp(block->data, copy.data(), copy.size()) == 0);
    block->store->release(block);
  }
}

void test_steady_memory() {
  script->length = 5;
  for (const Autoreset mode : {Autoreset::kNextStep, Autoreset::kSameStep}) {
    PoolSettings settings = sizes(4, 4, 1);
    settings.plan.autoreset = mode;
    PoolPtr pool = make_pool(free_task(), settings);
    reset_all(*pool);
    step(*pool);
    const std::size_t bytes = pool->retained_bytes();
    for (int i = 0; i < 50; ++i) step(*pool);
    CHECK(pool->retained_bytes() == bytes);
  }
}

void test_memory_limit() {
  for (const std::int64_t batch : {4, 2}) {
    for (const Autoreset mode : {Autoreset::kNextStep, Autoreset::kSameStep}) {
      script->length = 2;
      PoolSettings settings = sizes(4, batch, 2);
      settings.plan.autoreset = mode;
      settings.memory_limit = 3000;
      PoolPtr pool = make_pool(free_task(), settings);
      std::vector<Block*> kept;
      std::vector<std::int64_t> t(4);
      const Ids ids{0, 1, 2};
      reset(*pool, ids);
      const auto receive = [&](bool keeping) {
        while (pool->pending() > 0) {
          auto received = pool->recv(10s, nullptr);
          if (!keeping) {
            pool->recycle(std::move(received));
            continue;
          }
          const auto more = keep(*pool, std::move(received));
          kept.insert(kept.end(), more.begin(), more.end());
        }
      };
      receive(false);
      int refused = 0;
      for (int i = 0; i < 300 && refused < 3; ++i) {
        try {
          send(*pool, ids);
        } catch (const Error& error) {
          CHECK(error.kind() == ErrorKind::kMemory && pool->pending() == 0);
          CHECK(std::string(error.what()).find("limit is 3000") != std::string::npos);
          if (++refused == 2) drop(kept);
          continue;
        }
        receive(true);
      }
      CHECK(refused == 3 && pool->retained_bytes() <= 3000);
      drop(kept);
      for (int i = 0; i < 10; ++i) {
        send(*pool, ids);
        receive(false);
      }
    }
  }
}

}  // namespace

int main() {
  RUN(test_next_step);
  RUN(test_same_step);
  RUN(test_disabled);
  RUN(test_time_limit);
  RUN(test_partial_sends);
  RUN(test_async);
  RUN(test_async_slow_reset);
  RUN(test_async_slow_autoreset);
  RUN(test_async_order);
  RUN(test_async_chunks);
  RUN(test_validation);
  RUN(test_seeds);
  RUN(test_step_faults);
  RUN(test_observe_faults);
  RUN(test_reset_faults);
  RUN(test_create_faults);
  RUN(test_respawn_seed_after_failed_reset);
  RUN(test_max_faults);
  RUN(test_observe);
  RUN(test_kept_blocks);
  RUN(test_steady_memory);
  RUN(test_memory_limit);
  return report();
}
