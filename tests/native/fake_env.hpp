// fake_env.hpp - envs that do what a test says, in a task that is made without a library, and short
// ways to make pools of them and to look at batches.
#pragma once

#include <envpool/env.h>
#include <envpool/ext/render.h>
#include <envpool/ext/state.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "check.hpp"
#include "plugin.hpp"
#include "pool.hpp"

namespace envpool::test {

using namespace std::chrono_literals;
using namespace envpool::runtime;

struct FakeEnv {
  const ep_host* host = nullptr;
  std::uint64_t id = 0;
  // What the state extension saves.
  std::uint64_t random = 0;
  std::int64_t episode = 0, t = 0;  // t: steps of this episode
  std::int32_t lives = 3;
  // Of the call at hand; a hook may change the outcome.
  std::int32_t action = 0;
  double reward = 0;
  std::uint8_t terminated = 0, truncated = 0;
  bool has_seed = false;
  std::uint64_t seed = 0;

  std::thread::id home;
  std::atomic<bool> busy{false};
  bool was_reset = false;
};

// What all fake envs do. Hooks run at the start of a call (step: after the state moved on); what is
// not EP_OK is returned. Set it only while no pool runs.
struct Script {
  using Hook = std::function<ep_status(FakeEnv&)>;
  Hook create, reset, step, observe, load, destroy;
  std::int64_t length = 0;  // an episode terminates by itself after so many steps, 0: never
  // Of an image env: the value of all pixels.
  std::function<std::uint8_t(const FakeEnv&)> pixel = [](const FakeEnv& env) {
    return static_cast<std::uint8_t>(50 * env.episode + env.t);
  };
  std::atomic<int> alive{0}, created{0}, wrong_thread{0}, overlaps{0}, out_of_order{0}, observed{0};
};
inline std::unique_ptr<Script> script = std::make_unique<Script>();

// Marks a call, and notes calls from a wrong thread or two at once.
class Touch {
 public:
  explicit Touch(FakeEnv& env) : env_(env) {
    if (env.home != std::this_thread::get_id()) ++script->wrong_thread;
    if (env.busy.exchange(true)) ++script->overlaps;
  }
  ~Touch() { env_.busy = false; }

 private:
  FakeEnv& env_;
};

namespace fake {

inline FakeEnv& env_of(void* handle) { return *static_cast<FakeEnv*>(handle); }
inline ep_status run(const Script::Hook& hook, FakeEnv& env) { return hook ? hook(env) : EP_OK; }

template <bool image>
ep_status EP_CALL describe(const ep_host*, const ep_create*, ep_spec* spec) {
  static const std::int64_t obs_shape[] = {3}, image_shape[] = {2, 2}, n[] = {4};
  static const char* const labels[] = {"NOOP", "FIRE", "LEFT", "RIGHT"};
  ep_field obs{};
  obs.size = sizeof obs;
  obs.role = EP_OBS;
  obs.kind = EP_BOX;
  obs.dtype = image ? EP_UINT8 : EP_INT64;
  obs.name = "obs";
  obs.rank = image ? 2 : 1;
  obs.shape = image ? image_shape : obs_shape;
  obs.layout = image ? EP_HW : EP_PLAIN;
  ep_field action{};
  action.size = sizeof action;
  action.role = EP_ACTION;
  action.kind = EP_DISCRETE;
  action.dtype = EP_INT32;
  action.name = "";
  action.n = n;
  action.bound_count = 1;
  action.labels = labels;
  ep_field lives{};
  lives.size = sizeof lives;
  lives.role = EP_INFO;
  lives.kind = EP_BOX;
  lives.dtype = EP_INT32;
  lives.name = "lives";
  lives.meaning = "lives";
  for (const ep_field* field : {&obs, &action, &lives}) {
    if (const ep_status status = spec->add(spec, field)) return status;
  }
  return EP_OK;
}

inline ep_status EP_CALL create(const ep_host* host, const ep_create* info, void** handle) {
  auto env = std::make_unique<FakeEnv>();
  env->host = host;
  env->id = info->env_id;
  env->home = std::this_thread::get_id();
  if (const ep_status status = run(script->create, *env)) return status;
  ++script->alive;
  ++script->created;
  *handle = env.release();
  return EP_OK;
}

inline ep_status EP_CALL reset(void* handle, const ep_reset* how) {
  FakeEnv& env = env_of(handle);
  const Touch touch(env);
  env.has_seed = how->has_seed;
  env.seed = how->seed;
  if (!how->has_seed && !env.was_reset) ++script->out_of_order;
  if (const ep_status status = run(script->reset, env)) return status;
  if (how->has_seed) env.random = how->seed;
  ep_rand(&env.random);
  env.was_reset = true;
  env.t = 0;
  ++env.episode;
  env.lives = 3;
  return EP_OK;
}

inline ep_status EP_CALL step(void* handle, const ep_input* in, const ep_result* out) {
  FakeEnv& env = env_of(handle);
  const Touch touch(env);
  if (!env.was_reset) ++script->out_of_order;
  std::memcpy(&env.action, in->action[0], sizeof env.action);
  ++env.t;
  env.random ^= static_cast<std::uint64_t>(env.action + 1);
  env.reward = static_cast<double>(ep_rand(&env.random) % 100);
  env.terminated = script->length && env.t >= script->length;
  env.truncated = 0;
  if (const ep_status status = run(script->step, env)) return status;
  *out->reward = env.reward;
  *out->terminated = env.terminated;
  *out->truncated = env.truncated;
  return EP_OK;
}

template <bool image>
ep_status EP_CALL observe(void* handle, const ep_view* view) {
  FakeEnv& env = env_of(handle);
  const Touch touch(env);
  ++script->observed;
  if (!env.was_reset) ++script->out_of_order;
  if (const ep_status status = run(script->observe, env)) return status;
  if (view->obs && view->obs[0]) {
    if (image) {
      std::memset(view->obs[0], script->pixel(env), 4);
    } else {
      const std::int64_t values[] = {static_cast<std::int64_t>(env.random), env.episode, env.t};
      std::memcpy(view->obs[0], values, sizeof values);
    }
  }
  if (view->info && view->info[0]) std::memcpy(view->info[0], &env.lives, sizeof env.lives);
  return EP_OK;
}

inline void EP_CALL destroy(void* handle) {
  {
    const Touch touch(env_of(handle));
    run(script->destroy, env_of(handle));
  }
  --script->alive;
  delete &env_of(handle);
}

inline ep_status EP_CALL measure(void* handle, ep_image* image) {
  const Touch touch(env_of(handle));
  if (image->width == 0) image->width = 4;
  if (image->height == 0) image->height = 2;
  return EP_OK;
}
inline ep_status EP_CALL draw(void* handle, const ep_image* image) {
  FakeEnv& env = env_of(handle);
  const Touch touch(env);
  std::memset(image->pixels, static_cast<int>(env.t), image->row_bytes * image->height);
  return EP_OK;
}

struct Saved {
  std::uint64_t random;
  std::int64_t episode, t, lives;
};
inline ep_status EP_CALL save(void* handle, std::int32_t, const ep_writer* writer) {
  FakeEnv& env = env_of(handle);
  const Touch touch(env);
  const Saved saved{env.random, env.episode, env.t, env.lives};
  return writer->write(writer, &saved, sizeof saved);
}
inline ep_status EP_CALL load(void* handle, std::int32_t, const void* data, std::uint64_t bytes) {
  FakeEnv& env = env_of(handle);
  const Touch touch(env);
  Saved saved;
  if (bytes != sizeof saved) return EP_E_ARGUMENT;
  if (const ep_status status = run(script->load, env)) return status;
  std::memcpy(&saved, data, sizeof saved);
  env.random = saved.random;
  env.episode = saved.episode;
  env.t = saved.t;
  env.lives = static_cast<std::int32_t>(saved.lives);
  env.was_reset = true;
  return EP_OK;
}

inline const void* EP_CALL extension(const char* id) {
  static const ep_render render{sizeof render, 1u << EP_RGB8, measure, draw};
  static const ep_state state{sizeof state, 1u << EP_STATE_CLONE, save, load};
  if (std::strcmp(id, EP_EXT_RENDER) == 0) return &render;
  if (std::strcmp(id, EP_EXT_STATE) == 0) return &state;
  return nullptr;
}

template <bool image, ep_sharing sharing>
const ep_task& task() {
  static const ep_task task = [] {
    ep_task t{};
    t.size = sizeof t;
    t.sharing = sharing;
    t.id = "Fake-v1";
    t.describe = describe<image>;
    t.create = create;
    t.reset = reset;
    t.step = step;
    t.observe = observe<image>;
    t.destroy = destroy;
    t.extension = extension;
    return t;
  }();
  return task;
}

}  // namespace fake

inline const ep_task& free_task() { return fake::task<false, EP_FREE>(); }
inline const ep_task& bound_task() { return fake::task<false, EP_THREAD_BOUND>(); }
inline const ep_task& image_task() { return fake::task<true, EP_FREE>(); }

// A pool needs a plugin for little more than its assets.
inline Plugin& some_plugin() { return Plugin::load(ENVPOOL_REFERENCE_DIR "/cartpole_c.so"); }

inline PoolPtr make_pool(const ep_task& task, const PoolSettings& settings,
                         const Pool::Interrupt& interrupt = nullptr) {
  return Pool::make(some_plugin(), task,
                    {std::make_shared<const Options>(task, std::vector<NamedOption>{})}, settings,
                    interrupt);
}

inline PoolSettings sizes(std::int64_t envs, std::int64_t batch, std::int64_t threads) {
  PoolSettings settings;
  settings.num_envs = envs;
  settings.batch_size = batch;
  settings.num_threads = threads;
  return settings;
}

using Ids = std::vector<std::int32_t>;

inline Ids all_ids(const Pool& pool) {
  Ids ids(pool.num_envs());
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<std::int32_t>(i);
  return ids;
}

inline void send(Pool& pool, const Ids& ids, const std::vector<std::int32_t>& actions) {
  const ActionRows rows{actions.data(), nullptr};
  pool.send(std::span(&rows, 1), ids);
}
inline void send(Pool& pool, const Ids& ids, std::int32_t action = 0) {
  send(pool, ids, std::vector<std::int32_t>(ids.size(), action));
}
inline void reset(Pool& pool, const Ids& ids, std::uint64_t seed = 7) {
  std::vector<std::uint64_t> seeds;
  for (const std::int32_t id : ids) seeds.push_back(seed + static_cast<std::uint64_t>(id));
  pool.reset(ids, std::span<const std::uint64_t>(seeds), {});
}

template <class T>
std::vector<T> column(const Pool& pool, const Columns& columns, std::size_t rows,
                      const std::string& name) {
  const auto& all = pool.plan().columns;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].name != name) continue;
    std::vector<T> values(all[i].row_bytes * rows / sizeof(T));
    if (rows) std::memcpy(values.data(), columns.data[i], all[i].row_bytes * rows);
    return values;
  }
  fail(__FILE__, __LINE__, "no column " + name);
  return {};
}

struct Got {
  Ids id;
  std::vector<std::int32_t> elapsed, lives;
  std::vector<double> reward, returns;
  std::vector<std::uint8_t> terminated, truncated, fault, final_mask;
  std::vector<std::int64_t> obs, final_obs;  // of plain tasks: random, episode, t
  std::vector<std::uint8_t> image;           // of image tasks
  std::vector<double> final_returns;
  std::vector<Fault> faults;

  std::size_t rows() const { return id.size(); }
  std::int64_t random(std::size_t row) const { return obs[3 * row]; }
  std::int64_t episode(std::size_t row) const { return obs[3 * row + 1]; }
  std::int64_t t(std::size_t row) const { return obs[3 * row + 2]; }
};

// Copies what the batch holds and gives it back.
inline Got take(Pool& pool, std::unique_ptr<Batch> batch) {
  Got got;
  const std::size_t rows = batch->rows();
  const auto get = [&]<class T>(std::vector<T>& to, const char* name) {
    to = column<T>(pool, batch->columns, rows, name);
  };
  get(got.id, "env_id");
  get(got.elapsed, "elapsed_step");
  get(got.lives, "lives");
  if (!pool.plan().settings.float32_reward) get(got.reward, "reward");
  get(got.returns, "episode_return");
  get(got.terminated, "terminated");
  get(got.truncated, "truncated");
  get(got.fault, "fault");
  if (pool.plan().source.obs[0].layout == EP_PLAIN) {
    get(got.obs, "obs");
  } else {
    get(got.image, "obs");
  }
  got.final_mask = batch->final_mask;
  if (!got.final_mask.empty() && !got.obs.empty()) {
    got.final_obs = column<std::int64_t>(pool, batch->finals(), rows, "obs");
    got.final_returns = column<double>(pool, batch->finals(), rows, "episode_return");
  }
  got.faults = batch->faults;
  pool.recycle(std::move(batch));
  return got;
}

inline Got recv(Pool& pool) { return take(pool, pool.recv(60s, nullptr)); }
inline Got recv_working(Pool& pool) { return take(pool, pool.recv(std::nullopt, nullptr)); }
inline Got step(Pool& pool, std::int32_t action = 0) {
  send(pool, all_ids(pool), action);
  return recv_working(pool);
}
inline Got reset_all(Pool& pool, std::uint64_t seed = 7) {
  reset(pool, all_ids(pool), seed);
  return recv_working(pool);
}

// Opens once.
class Gate {
 public:
  void open() {
    open_.store(true);
    open_.notify_all();
  }
  void pass() { open_.wait(false); }

 private:
  std::atomic<bool> open_{false};
};

// Each test starts with a fresh script and leaves no env behind.
inline void run_test(const char* name, const std::function<void()>& test) {
  const auto start = std::chrono::steady_clock::now();
  script = std::make_unique<Script>();
  try {
    test();
  } catch (const std::exception& error) {
    fail(__FILE__, __LINE__, std::string(name) + " threw: " + error.what());
  }
  CHECK(script->alive == 0);
  CHECK(script->overlaps == 0);
  CHECK(script->out_of_order == 0);
  const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
  std::printf("%-36s %6.2f s\n", name, spent.count());
  std::fflush(stdout);
}
#define RUN(name) envpool::test::run_test(#name, name)

// Takes all columns of a batch, as the bindings do.
inline std::vector<Block*> keep(Pool& pool, std::unique_ptr<Batch> batch) {
  std::vector<Block*> kept;
  for (Block*& block : batch->columns.blocks) kept.push_back(std::exchange(block, nullptr));
  pool.recycle(std::move(batch));
  return kept;
}
inline void drop(std::vector<Block*>& kept) {
  for (Block* block : kept) block->store->release(block);
  kept.clear();
}

}  // namespace envpool::test
