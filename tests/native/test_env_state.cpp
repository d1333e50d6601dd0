// test_env_state.cpp - saved states: they bring back all of an env, and bad ones change nothing.
#include <cstring>
#include <random>

#include "fake_env.hpp"

using namespace envpool::test;

namespace {

using Bytes = std::vector<std::byte>;

// All that an env keeps here beside the plugin's part.
PoolSettings rich_settings(const ep_task& task = image_task()) {
  PoolSettings settings = sizes(2, 2, 1);
  Transforms& t = settings.plan.transforms;
  t.frame_skip = 2;
  if (&task == &image_task()) {
    t.max_last_two = true;
    t.last_frame = LastFrame::kStale;
    t.stack_num = 3;
  }
  t.noop_max = 4;
  t.use_fire_reset = true;
  t.episodic_life = true;
  settings.plan.max_episode_steps = 20;
  return settings;
}

bool same(const Got& a, const Got& b) {
  return a.elapsed == b.elapsed && a.lives == b.lives && a.reward == b.reward &&
         a.returns == b.returns && a.terminated == b.terminated && a.truncated == b.truncated &&
         a.fault == b.fault && a.obs == b.obs && a.image == b.image;
}

Got look(Pool& pool, std::int32_t env) { return take(pool, pool.observe(Ids{env})); }

std::vector<Got> play(Pool& pool, std::int32_t env, int steps) {
  std::vector<Got> all;
  for (int i = 0; i < steps; ++i) {
    send(pool, {env}, i % 4);
    all.push_back(recv(pool));
  }
  return all;
}

bool same(const std::vector<Got>& a, const std::vector<Got>& b) {
  bool equal = a.size() == b.size();
  for (std::size_t i = 0; equal && i < a.size(); ++i) equal = same(a[i], b[i]);
  return equal;
}

void lose_lives() {
  script->step = [](FakeEnv& env) {
    if (env.t % 5 == 0) --env.lives;
    return EP_OK;
  };
  script->length = 12;
}

// From every step of a few episodes, ends, lost lives and resets among them.
void test_round_trip() {
  lose_lives();
  for (const ep_task* task : {&image_task(), &free_task(), &bound_task()}) {
    PoolPtr pool = make_pool(*task, rich_settings(*task));
    PoolPtr other = make_pool(*task, rich_settings(*task));
    reset_all(*pool);
    reset_all(*other, 1000);
    for (int i = 0; i < 30; ++i) {
      const Got here = look(*pool, 0);
      const Bytes state = pool->save_state(0);
      CHECK(pool->save_state(0) == state);
      const auto future = play(*pool, 0, 15);
      // Into the same env, its neighbour, and an env of another pool.
      pool->load_state(0, state);
      CHECK(same(look(*pool, 0), here) && pool->save_state(0) == state);
      CHECK(same(play(*pool, 0, 15), future));
      pool->load_state(1, state);
      const Got there = look(*pool, 1);
      CHECK(same(there, here) && there.id == Ids{1});
      CHECK(same(play(*pool, 1, 15), future));
      other->load_state(0, state);
      CHECK(same(play(*other, 0, 15), future));
      pool->load_state(0, state);
      play(*pool, 0, 1);
    }
  }
}

// A state makes an env playable that was never reset.
void test_never_reset() {
  PoolPtr pool = make_pool(free_task(), sizes(3, 3, 1));
  CHECK_THROWS(pool->save_state(0), kRuntime, "reset it before saving");
  reset(*pool, {0});
  recv(*pool);
  pool->load_state(2, pool->save_state(0));
  CHECK(same(look(*pool, 0), look(*pool, 2)));
  CHECK(same(play(*pool, 0, 3), play(*pool, 2, 3)));
  CHECK_THROWS(send(*pool, {1}), kRuntime, "env 1 was never reset");
  pool->reset(Ids{2}, std::nullopt, {});
  CHECK(recv(*pool).elapsed[0] == 0);
}

void test_damaged() {
  lose_lives();
  for (const ep_task* task : {&image_task(), &free_task()}) {
    PoolPtr pool = make_pool(*task, rich_settings(*task));
    reset_all(*pool);
    play(*pool, 0, 4);
    const Bytes state = pool->save_state(0);
    play(*pool, 1, 3);
    const Got before = look(*pool, 1);
    for (std::size_t size = 0; size < state.size(); ++size) {
      const auto end = state.begin() + static_cast<std::ptrdiff_t>(size);
      const Bytes cut(state.begin(), end);  // a copy of its own: nothing stands behind it
      CHECK_THROWS(pool->load_state(1, cut), kValue, "env 1: load_state: ");
    }
    Bytes bad = state;
    for (std::size_t i = 0; i < state.size(); ++i) {
      const std::byte bit{static_cast<unsigned char>(1u << (i % 8))};
      bad[i] ^= bit;
      CHECK_THROWS(pool->load_state(1, bad), kValue, "load_state: ");
      bad[i] ^= bit;
    }
    bad.push_back(std::byte{0});
    CHECK_THROWS(pool->load_state(1, bad), kValue, "load_state: ");
    CHECK_THROWS(pool->load_state(1, {}), kValue, "no saved state");
    CHECK(same(look(*pool, 1), before));
    pool->load_state(1, state);
    CHECK(same(look(*pool, 1), look(*pool, 0)));
  }
}

// The checksum at the end, as the runtime makes it.
void seal(Bytes& state) {
  const std::size_t body = state.size() - sizeof(std::uint64_t);
  std::uint64_t sum = body;
  for (std::size_t i = 0; i < body; i += sizeof sum) {
    std::uint64_t word = 0;
    std::memcpy(&word, state.data() + i, std::min(sizeof word, body - i));
    sum = (sum ^ word) * 0x9E3779B97F4A7C15;
    sum ^= sum >> 32;
  }
  std::memcpy(state.data() + body, &sum, sizeof sum);
}

// Bytes that somebody made up: refused, or an env that still works.
void test_forged() {
  lose_lives();
  PoolPtr pool = make_pool(image_task(), rich_settings());
  reset_all(*pool);
  play(*pool, 0, 4);
  const Bytes state = pool->save_state(0);
  Bytes copy = state;
  seal(copy);
  CHECK(copy == state);
  std::mt19937 random(5);
  int refused = 0, taken = 0;
  for (int i = 0; i < 6000; ++i) {
    Bytes bad = state;
    // Half of them early, where the lengths and numbers are.
    const std::size_t range = i % 2 ? std::min<std::size_t>(bad.size() - 8, 400) : bad.size() - 8;
    for (int k = 0; k <= i % 3; ++k) bad[random() % range] = std::byte(random() & 255);
    if (i % 50 == 0) bad.resize(8 + random() % (bad.size() - 8));
    seal(bad);
    try {
      pool->load_state(0, bad);
      ++taken;
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::kValue);
      ++refused;
    }
    if (i % 4 == 0) play(*pool, 0, 2);
    if (i % 64 == 0) pool->reset(Ids{0}, std::nullopt, {}), recv(*pool);
  }
  CHECK(refused > 100 && taken > 100);
  // A generator of numbers that are none of its states would draw ever so many no-ops.
  const std::string text(reinterpret_cast<const char*>(state.data()), state.size());
  const std::size_t at = text.find(' ', text.find(' ') + 1);
  CHECK(at != std::string::npos);
  Bytes bad = state;
  for (std::size_t i = at + 1; text[i] != ' '; ++i) bad[i] = std::byte('9');
  if (text.find(' ', at + 1) - at - 1 == 10) {
    seal(bad);
    CHECK_THROWS(pool->load_state(0, bad), kValue, "damaged");
  }
}

void test_other_envs() {
  PoolPtr pool = make_pool(image_task(), rich_settings());
  reset_all(*pool);
  const Bytes state = pool->save_state(0);
  PoolSettings settings = rich_settings();
  settings.plan.transforms.stack_num = 4;
  PoolPtr taller = make_pool(image_task(), settings);
  reset_all(*taller);
  CHECK_THROWS(taller->load_state(0, state), kValue, "other settings");
  ep_task renamed = image_task();
  renamed.id = "Fake-v2";
  {
    PoolPtr stranger = make_pool(renamed, rich_settings());
    reset_all(*stranger);
    CHECK_THROWS(stranger->load_state(0, state), kValue, "of another task");
  }
  ep_task plain = free_task();
  plain.extension = nullptr;
  PoolPtr mute = make_pool(plain, sizes(1, 1, 1));
  reset_all(*mute);
  CHECK_THROWS(mute->save_state(0), kValue, "can't save its state");
  CHECK_THROWS(mute->load_state(0, state), kValue, "can't save its state");
  CHECK_THROWS(mute->render(0, 0, 0, 0), kValue, "can't render");
}

// What the plugin says no to, and an env that breaks at it or was broken before.
void test_plugin_refuses() {
  ep_status status = EP_OK;
  bool breaks = false;
  script->load = [&](FakeEnv& env) {
    return status == EP_OK ? EP_OK : ep_fail(env.host, status, "not mine");
  };
  script->step = [&](FakeEnv&) { return breaks ? EP_E_BROKEN : EP_OK; };
  PoolPtr pool = make_pool(free_task(), sizes(1, 1, 1));
  reset_all(*pool);
  const Bytes state = pool->save_state(0);
  step(*pool);
  const Got before = look(*pool, 0);
  status = EP_E_ARGUMENT;
  CHECK_THROWS(pool->load_state(0, state), kValue, "env 0: load_state: not mine");
  CHECK(same(look(*pool, 0), before));
  status = EP_E_BROKEN;
  CHECK_THROWS(pool->load_state(0, state), kRuntime, "env 0: load_state: not mine");
  CHECK(script->alive == 0);
  CHECK_THROWS(pool->save_state(0), kRuntime, "reset it before saving");
  Got got = step(*pool);
  CHECK(!got.fault[0] && got.elapsed[0] == 0 && script->alive == 1);
  breaks = true;
  CHECK(step(*pool).fault[0] && script->alive == 0);
  status = EP_OK;
  pool->load_state(0, state);
  got = look(*pool, 0);
  CHECK(!got.fault[0] && got.t(0) == 0 && script->alive == 1);
  breaks = false;
  CHECK(step(*pool).t(0) == 1);
}

}  // namespace

int main() {
  RUN(test_round_trip);
  RUN(test_never_reset);
  RUN(test_damaged);
  RUN(test_forged);
  RUN(test_other_envs);
  RUN(test_plugin_refuses);
  return report();
}
