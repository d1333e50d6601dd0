// test_process_pool.cpp - worker processes from the inside: wake-ups, the keeper, the arena,
// orders, and pools under many threads while workers die.
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <random>
#include <thread>

#include "arena.hpp"
#include "check.hpp"
#include "keeper.hpp"
#include "mailbox.hpp"
#include "orders.hpp"
#include "plugin.hpp"
#include "pool.hpp"

using namespace envpool::test;
using namespace envpool::runtime;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

namespace {

constexpr auto kNever = Clock::time_point::max();

// ---- wake-ups

// Ping-pong: a wake-up that is lost is a test that never ends.
void test_no_ring_is_lost() {
  Bell there, back;
  std::atomic<int> sent{0}, answered{0};
  constexpr int kTimes = 20000;
  std::thread other([&] {
    for (int i = 1; i <= kTimes; ++i) {
      while (sent < i) there.wait([&] { return sent >= i; });
      answered = i;
      back.ring();
    }
  });
  for (int i = 1; i <= kTimes; ++i) {
    sent = i;
    there.ring();
    while (answered < i) back.wait([&] { return answered >= i; });
  }
  other.join();
}

// Many who finish, one who wants to be woken once they all have.
void test_no_arrival_is_lost() {
  constexpr int kWorkers = 3, kRounds = 3000;
  Arrivals arrivals;
  std::atomic<int> round{0}, done{0};
  std::vector<std::thread> workers;
  for (int worker = 0; worker < kWorkers; ++worker) {
    workers.emplace_back([&] {
      for (int i = 1; i <= kRounds; ++i) {
        while (round < i) std::this_thread::yield();
        ++done;
        arrivals.add(1);
      }
    });
  }
  for (int i = 1; i <= kRounds; ++i) {
    round = i;
    for (;;) {
      const std::uint32_t seen = arrivals.count();
      const int missing = i * kWorkers - done;
      if (missing == 0) break;
      std::uint32_t at = 0;
      if (arrivals.arm(seen, static_cast<std::uint32_t>(missing), &at)) arrivals.sleep(at, kNever);
    }
  }
  for (std::thread& worker : workers) worker.join();
  CHECK(done == kWorkers * kRounds);

  // A deadline is kept, a kick is heard.
  const auto start = Clock::now();
  const std::uint32_t count = arrivals.count();
  arrivals.sleep(count, start + 30ms);
  CHECK(Clock::now() - start >= 30ms);
  std::thread kicker([&] { arrivals.kick(); });
  while (arrivals.count() == count) arrivals.sleep(count, kNever);
  kicker.join();
}

// ---- the keeper

std::shared_ptr<Child> spawn(const std::string& script, std::atomic<int>& deaths) {
  static const auto arena = Arena::make(1, 0);
  return Keeper::get().spawn({{"/bin/sh", "-c", script}, {"PATH=/usr/bin:/bin"}, arena->file()},
                             [&deaths] { ++deaths; });
}

void wait_for(const std::atomic<int>& count, int value) {
  for (int i = 0; i < 2000 && count < value; ++i) std::this_thread::sleep_for(5ms);
  CHECK(count == value);
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

void test_keeper() {
  std::atomic<int> deaths{0};
  const auto quiet = spawn("exit 3", deaths);
  wait_for(deaths, 1);
  CHECK(quiet->dead() && quiet->obituary() == "its worker process exited with code 3");

  const auto chatty =
      spawn("for i in 1 2 3 4 5 6 7; do echo line $i; done; printf end; kill -9 $$", deaths);
  wait_for(deaths, 2);
  CHECK(has(chatty->obituary(), "was killed by signal 9 (Killed); it printed last:\n  line 4\n"));
  CHECK(has(chatty->obituary(), "\n  end"));
  CHECK(chatty->take_lines().size() == 8 && chatty->take_lines().empty());

  const auto slow = spawn("sleep 100 & echo $!; wait", deaths);
  while (!slow->has_lines()) std::this_thread::sleep_for(2ms);
  const pid_t grandchild = std::stoi(slow->take_lines().at(0).text);
  CHECK(!slow->dead() && ::kill(slow->pid(), 0) == 0);
  slow->kill("it was too slow");
  slow->kill("of another reason");
  wait_for(deaths, 3);
  CHECK(has(slow->obituary(), "its worker process was killed, since it was too slow"));
  slow->kill("it is dead already");
  // What it started is gone too.
  for (int i = 0; i < 1000 && ::kill(grandchild, 0) == 0; ++i) std::this_thread::sleep_for(2ms);
  CHECK(::kill(grandchild, 0) != 0);

  const auto logged = spawn(
      "printf '\\00140\\002an error\\n\\00110\\002detail\\nplain\\n\\001no level\\n'", deaths);
  wait_for(deaths, 4);
  const auto lines = logged->take_lines();
  CHECK(lines.size() == 4 && lines[0].level == EP_LOG_ERROR && lines[0].text == "an error");
  CHECK(lines.size() == 4 && lines[1].level == EP_LOG_DEBUG && lines[2].level == EP_LOG_INFO);

  CHECK_THROWS(Keeper::get().spawn({{"/nowhere/program"}, {}, 0}, [] {}), kRuntime,
               "a worker process can't be started: /nowhere/program: No such file");

  // Much output holds nobody up, and is not kept without bounds.
  const auto loud = spawn("yes | head -n 50000", deaths);
  wait_for(deaths, 5);
  CHECK(loud->take_lines().size() <= 1000);
}

void test_keeper_under_threads() {
  std::atomic<int> deaths{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 10; ++i) {
        const auto child = spawn("read never", deaths);  // ends at once: its input is /dev/null
        child->kill("the test says so");
        child->take_lines();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  wait_for(deaths, 40);
}

// ---- the arena

void test_arena() {
  const auto arena = Arena::make(100, 1 << 20);
  CHECK(arena->shared() && arena->bytes() == 4096 + (1 << 20));
  for (int i = 0; i < 100; ++i) CHECK(arena->base()[i] == std::byte{0});
  std::byte* small = arena->allocate(100);
  std::byte* large = arena->allocate(10000);
  CHECK(reinterpret_cast<std::uintptr_t>(small) % 64 == 0);
  CHECK(arena->offset_of(large) % 4096 == 0 && arena->offset_of(small) >= 4096);
  std::memset(large, 1, 10000);

  // The other side sees it, and its own changes are seen here.
  const auto other = Arena::open(Descriptor(dup(arena->file())));
  CHECK(other->bytes() == arena->bytes());
  CHECK(other->base()[other->bytes() - 1] == std::byte{0});
  std::byte* there = other->base() + arena->offset_of(large);
  CHECK(there[9999] == std::byte{1});
  there[0] = std::byte{2};
  CHECK(large[0] == std::byte{2});

  arena->free(large, 10000);
  CHECK(there[0] == std::byte{0});  // its pages went back
  CHECK(arena->allocate(10000) == large);
  arena->free(small, 100);
  CHECK(arena->allocate(100) == small && arena->allocate(100) != small);
  CHECK(arena->allocate(2 << 20) == nullptr);
  CHECK(arena->allocate(4096) != nullptr);  // that one cost nothing
  CHECK_THROWS(Arena::open(Descriptor(open("/dev/null", 0))), kRuntime,
               "without its shared memory");

  // A child of a fork keeps what it saw.
  std::memset(small, 5, 100);
  const pid_t child = fork();
  if (child == 0) {
    const bool kept = small[0] == std::byte{5};
    small[0] = std::byte{6};
    _exit(kept && there[0] == std::byte{0} ? 0 : 1);
  }
  int status = -1;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  CHECK(small[0] == std::byte{5});
}

// ---- orders

NamedOption named(const std::string& name, OptionValue value) { return {name, std::move(value)}; }

void test_orders() {
  Orders orders;
  orders.plugin_path = "/a/plugin.so";
  orders.assets = {{"rom", "/b"}, {"", ""}};
  orders.task_id = "Some-v0";
  orders.options = {{named("fault", std::string("none")), named("at_step", std::int64_t{-3})}, {}};
  orders.num_envs = 7;
  orders.envs_per_worker = 3;
  orders.affinity_offset = 2;
  orders.cpus = {0, 5};
  orders.spins = true;
  orders.digest = 0x123456789abcdef0;
  orders.plan.max_episode_steps = 44;
  orders.plan.transforms.frame_skip = 5;
  const auto bytes = to_bytes(orders);
  const Orders back = orders_from(bytes);
  CHECK(back.plugin_path == orders.plugin_path && back.assets == orders.assets);
  CHECK(back.task_id == orders.task_id && back.num_envs == 7 && back.envs_per_worker == 3);
  CHECK(back.affinity_offset == 2 && back.cpus == orders.cpus && back.spins);
  CHECK(back.digest == orders.digest && back.plan.max_episode_steps == 44);
  CHECK(back.plan.transforms.frame_skip == 5);
  CHECK(back.options.size() == 2 && back.options[0].size() == 2 && back.options[1].empty());
  CHECK(to_bytes(back) == bytes);
  for (std::size_t cut = 0; cut < bytes.size(); ++cut) {
    CHECK_THROWS(orders_from(std::span(bytes).first(cut)), kRuntime, "");
  }
}

// ---- pools

constexpr std::int64_t kBad = 1000000;

PoolPtr make_pool(std::int64_t envs, std::int64_t batch, const std::string& fault,
                  std::int64_t envs_per_worker = 1) {
  Plugin& plugin = Plugin::load(ENVPOOL_REFERENCE_DIR "/evil.so");
  const ep_task& task = plugin.task("Evil-v0");
  PoolSettings settings;
  settings.num_envs = envs;
  settings.batch_size = batch;
  settings.isolation = Isolation::kProcess;
  settings.processes.command = {ENVPOOL_WORKER_PROGRAM};
  settings.processes.envs_per_worker = envs_per_worker;
  for (char** one = environ; *one; ++one) settings.processes.environment.emplace_back(*one);
  const std::vector<NamedOption> options = {named("fault", fault), named("at_action", kBad)};
  return Pool::make(plugin, task, {std::make_shared<const Options>(task, options)}, settings,
                    nullptr);
}

struct Row {
  std::int32_t env;
  std::int64_t life, episode, action, pid;
  bool fault;
};

std::vector<Row> take(Pool& pool, std::unique_ptr<Batch> batch) {
  const auto& columns = pool.plan().columns;
  std::vector<Row> rows(batch->rows());
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const auto read = [&](std::size_t column, auto& to, std::size_t at = 0) {
      const std::byte* row = batch->columns.data[column] + r * columns[column].row_bytes;
      std::memcpy(&to, row + at * sizeof to, sizeof to);
    };
    std::uint8_t fault = 0;
    for (std::size_t i = 0; i < columns.size(); ++i) {
      if (columns[i].section == "obs") {
        read(i, rows[r].life, 1);
        read(i, rows[r].episode, 2);
        read(i, rows[r].action, 3);
      }
      if (columns[i].name == "pid") read(i, rows[r].pid);
      if (columns[i].name == "env_id") read(i, rows[r].env);
      if (columns[i].name == "fault") read(i, fault);
    }
    rows[r].fault = fault != 0;
  }
  pool.recycle(std::move(batch));
  return rows;
}

std::vector<Row> recv(Pool& pool) { return take(pool, pool.recv(20s, nullptr)); }

void send(Pool& pool, const std::vector<std::int32_t>& ids,
          const std::vector<std::int64_t>& actions) {
  const ActionRows rows{actions.data(), nullptr};
  pool.send(std::span(&rows, 1), ids);
}

void test_crashes(const std::string& fault, std::int64_t envs_per_worker) {
  constexpr std::int32_t kEnvs = 4;
  const PoolPtr pool = make_pool(kEnvs, kEnvs, fault, envs_per_worker);
  CHECK(pool->isolation() == Isolation::kProcess);
  CHECK(pool->num_threads() == kEnvs / envs_per_worker);
  pool->reset(std::nullopt, std::nullopt, {});
  CHECK(recv(*pool).size() == kEnvs);
  const std::vector<std::int32_t> all = {0, 1, 2, 3};
  std::int64_t action = 0;
  std::size_t faults = 0;
  for (std::int32_t victim = 0; victim < kEnvs; ++victim) {
    std::vector<std::int64_t> actions;
    for (std::int32_t env = 0; env < kEnvs; ++env)
      actions.push_back(env == victim ? kBad : ++action);
    send(*pool, all, actions);
    const auto rows = recv(*pool);
    for (const Row& row : rows) {
      const bool hit = row.env / envs_per_worker == victim / envs_per_worker;
      if (row.env == victim) CHECK(row.fault);
      if (!hit) CHECK(!row.fault && row.action == actions[static_cast<std::size_t>(row.env)]);
      faults += row.fault;
    }
    // Its neighbours in the process tell at the next step; all begin anew at the one after that.
    for (int i = 0; i < 3; ++i) {
      send(*pool, all, {++action, ++action, ++action, ++action});
      for (const Row& row : recv(*pool)) faults += row.fault;
    }
  }
  CHECK(faults == static_cast<std::size_t>(kEnvs * envs_per_worker));
  CHECK(pool->statistics().faults == faults && pool->faults().size() == faults);
  CHECK(pool->close(5s));
}

// Users' threads that send, receive, look, and count, while workers are killed; then one closes.
void test_many_threads() {
  constexpr std::int32_t kEnvs = 6;
  const PoolPtr pool = make_pool(kEnvs, 2, "none");
  std::atomic<bool> stop{false};
  std::atomic<std::int64_t> rows{0}, killed{0};
  std::vector<std::atomic<std::int64_t>> pids(kEnvs);
  const auto guarded = [&](auto call) {
    return [&, call]() mutable {
      while (!stop) {
        try {
          call();
        } catch (const Error& error) {
          // Nothing in flight, in flight already, too late, closed.
          const bool expected =
              error.kind() != ErrorKind::kMemory && error.kind() != ErrorKind::kEnv;
          if (!expected) envpool::test::fail(__FILE__, __LINE__, error.what());
          std::this_thread::yield();
        }
      }
    };
  };
  const auto go_on = [&] {
    for (const Row& row : take(*pool, pool->recv(50ms, nullptr))) {
      ++rows;
      pids[static_cast<std::size_t>(row.env)] = row.pid;
      for (bool sent = false; !sent && !stop;) {
        try {
          send(*pool, {row.env}, {1});
          sent = true;
        } catch (const Error& error) {  // somebody looks at it
          if (error.kind() != ErrorKind::kValue) throw;
          std::this_thread::yield();
        }
      }
    }
  };
  pool->reset(std::nullopt, std::nullopt, {});
  std::vector<std::thread> threads;
  threads.emplace_back(guarded(go_on));
  threads.emplace_back(guarded(go_on));
  threads.emplace_back(guarded([&] {
    for (std::int32_t env = 0; env < kEnvs; ++env) {
      try {
        pool->render(env, 0, 0, 0);
        const auto state = pool->save_state(env);
        pool->load_state(env, state);
      } catch (const Error&) {  // mostly: in flight
      }
    }
    pool->statistics();
    pool->pending();
    pool->faults();
    std::this_thread::sleep_for(1ms);
  }));
  threads.emplace_back(guarded([&, random = std::mt19937(1)]() mutable {
    std::this_thread::sleep_for(50ms);
    const std::int64_t pid = pids[random() % kEnvs];
    if (pid > 0 && ::kill(static_cast<pid_t>(pid), SIGKILL) == 0) ++killed;
  }));
  std::this_thread::sleep_for(2500ms);
  CHECK(pool->close(5s));
  stop = true;
  for (std::thread& thread : threads) thread.join();
  CHECK(rows > 100);
  CHECK(killed > 5 && pool->statistics().faults > 2);
}

void test_create_fails() {
  Plugin& plugin = Plugin::load(ENVPOOL_REFERENCE_DIR "/evil.so");
  const ep_task& task = plugin.task("Evil-v0");
  PoolSettings settings;
  settings.num_envs = settings.batch_size = 3;
  settings.isolation = Isolation::kProcess;
  CHECK_THROWS(
      Pool::make(plugin, task, {std::make_shared<const Options>(task, std::vector<NamedOption>{})},
                 settings, nullptr),
      kValue, "no program for worker processes is known");
  settings.processes.command = {ENVPOOL_WORKER_PROGRAM};
  const std::vector<NamedOption> options = {named("fault", std::string("kill")),
                                            named("where", std::string("create")),
                                            named("env_id", std::int64_t{1})};
  CHECK_THROWS(
      Pool::make(plugin, task, {std::make_shared<const Options>(task, options)}, settings, nullptr),
      kEnv, "env 1: create: its worker process was killed by signal 9");
}

}  // namespace

int main() {
  test_no_ring_is_lost();
  test_no_arrival_is_lost();
  test_keeper();
  test_keeper_under_threads();
  test_arena();
  test_orders();
  for (const char* fault : {"kill", "abort", "exit", "throw"}) test_crashes(fault, 1);
  test_crashes("kill", 2);
  test_many_threads();
  test_create_fails();
  return report();
}
