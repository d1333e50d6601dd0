// test_pool_threads.cpp - pools of scripted envs: their threads, waiting, closing, forking.
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <mutex>
#include <set>

#include "fake_env.hpp"

using namespace envpool::test;
using Clock = std::chrono::steady_clock;

namespace {

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// ---- threads

using Trajectory = std::vector<std::int64_t>;  // of one env

// Every env plays 40 steps with actions of its own.
std::vector<Trajectory> play(const ep_task& task, std::int64_t batch, int threads) {
  constexpr std::int64_t kEnvs = 9;
  PoolPtr pool = make_pool(task, sizes(kEnvs, batch, threads));
  std::vector<Trajectory> all(kEnvs);
  std::vector<int> steps(kEnvs);
  reset(*pool, all_ids(*pool), 99);
  while (pool->pending() > 0) {
    const Got got = batch == kEnvs && threads == 1 ? recv_working(*pool) : recv(*pool);
    Ids ids;
    std::vector<std::int32_t> actions;
    for (std::size_t row = 0; row < got.rows(); ++row) {
      const auto id = static_cast<std::size_t>(got.id[row]);
      for (const std::int64_t value :
           {got.random(row), got.episode(row), got.t(row), std::int64_t{got.elapsed[row]},
            std::int64_t{got.terminated[row]}, static_cast<std::int64_t>(got.reward[row]),
            static_cast<std::int64_t>(got.returns[row])}) {
        all[id].push_back(value);
      }
      if (++steps[id] > 40) continue;
      ids.push_back(got.id[row]);
      actions.push_back(static_cast<std::int32_t>((got.id[row] + steps[id]) % 4));
    }
    send(*pool, ids, actions);
  }
  return all;
}

void test_determinism() {
  script->length = 7;
  const auto expected = play(free_task(), 9, 1);
  CHECK(expected[0].size() == 41 * 7 && expected[0] != expected[1]);
  for (const ep_task* task : {&free_task(), &bound_task()}) {
    for (const int threads : {1, 2, 8}) {
      for (const std::int64_t batch : {9, 4, 1}) CHECK(play(*task, batch, threads) == expected);
    }
  }
}

void test_thread_bound() {
  script->length = 3;
  std::atomic<bool> breaks{false};
  script->step = [&](FakeEnv& env) {
    return breaks && env.id % 2 == 0 && env.t == 2 ? EP_E_BROKEN : EP_OK;
  };
  for (const std::int64_t batch : {7, 3}) {
    PoolPtr pool = make_pool(bound_task(), sizes(7, batch, 3));
    breaks = true;
    reset(*pool, all_ids(*pool));
    for (int i = 0; i < 30; ++i) {
      Ids ids;
      while (pool->pending() > 0) {
        const Got got = i % 2 ? recv(*pool) : recv_working(*pool);
        ids.insert(ids.end(), got.id.begin(), got.id.end());
      }
      CHECK(ids.size() == 7);
      const auto id = i % 7;
      pool->recycle(pool->observe(Ids{static_cast<std::int32_t>(id)}));
      try {
        pool->render(id, 0, 0, 0);
        pool->load_state((id + 1) % 7, pool->save_state(id));
      } catch (const Error& error) {  // it is broken just now
        CHECK(error.kind() == ErrorKind::kRuntime);
      }
      send(*pool, ids);
    }
    breaks = false;
  }
  CHECK(script->wrong_thread == 0);
}

// Several threads use one pool: each row exactly once, or a clear error.
void test_many_producers() {
  for (const std::int64_t batch : {12, 5}) {
    for (const int workers : {1, 3}) {
      constexpr int kThreads = 3, kEach = 4, kRounds = 150;
      script = std::make_unique<Script>();
      PoolPtr pool = make_pool(free_task(), sizes(kThreads * kEach, batch, workers));
      reset(*pool, all_ids(*pool));
      while (pool->pending() > 0) recv(*pool);

      std::array<std::atomic<int>, kThreads * kEach> sent{}, received{};
      std::atomic<int> users{kThreads};
      const auto note = [&](const Got& got) {
        for (std::size_t row = 0; row < got.rows(); ++row) {
          const auto id = static_cast<std::size_t>(got.id[row]);
          const int n = received[id].load() + 1;
          CHECK(got.t(row) == n);  // none lost, none twice
          received[id] = n;
        }
      };
      const auto receive = [&](bool works) {
        try {
          note(take(*pool, works ? pool->recv(std::nullopt, nullptr)
                                 : pool->recv(std::chrono::milliseconds(3), nullptr)));
        } catch (const Error& error) {
          CHECK(error.kind() == ErrorKind::kRuntime || error.kind() == ErrorKind::kTimeout);
        }
      };
      std::vector<std::thread> threads;
      for (int k = 0; k < kThreads; ++k) {
        threads.emplace_back([&, k] {
          std::vector<int> todo(kEach, kRounds);
          for (int left = kEach * kRounds; left > 0;) {
            Ids ids;
            for (int i = 0; i < kEach; ++i) {
              const int id = k * kEach + i;
              const auto at = static_cast<std::size_t>(id);
              if (todo[static_cast<std::size_t>(i)] > 0 && received[at] == sent[at])
                ids.push_back(id);
            }
            for (const std::int32_t id : ids) ++sent[static_cast<std::size_t>(id)];
            try {
              send(*pool, ids);
              for (const std::int32_t id : ids) --todo[static_cast<std::size_t>(id - k * kEach)];
              left -= static_cast<int>(ids.size());
            } catch (const Error& error) {  // received by another, who has not noted it yet
              CHECK(error.kind() == ErrorKind::kValue);
              for (const std::int32_t id : ids) --sent[static_cast<std::size_t>(id)];
            }
            receive(k % 2 == 0);
            // Wrong calls in between change nothing.
            if (left % 16 == 0) CHECK_THROWS(send(*pool, {k * kEach, 99}), kValue, "env_id");
          }
          --users;
          while (users > 0) receive(k % 2 == 0);
        });
      }
      for (std::thread& thread : threads) thread.join();
      while (pool->pending() > 0) note(recv(*pool));
      for (const auto& n : received) CHECK(n == kRounds);
      CHECK(pool->statistics().steps == kThreads * kEach * kRounds);
    }
  }
}

// A send that would leave cheap work to the receiver does not do so if there is one who waits
// already, or hangs in another env.
void test_send_wakes_receiver() {
  Gate gate;
  script->step = [&](FakeEnv& env) {
    if (env.id == 0) gate.pass();
    return EP_OK;
  };
  PoolPtr pool = make_pool(free_task(), sizes(64, 64, 2));  // one worker, and the receiver
  reset_all(*pool);
  Ids others;
  for (int i = 1; i < 64; ++i) others.push_back(i);
  for (int i = 0; i < 100; ++i) {  // so that the pool knows how cheap they are
    send(*pool, others);
    recv_working(*pool);
  }
  send(*pool, {0});
  std::atomic<int> rows{0};
  std::thread receiver([&] {
    while (rows < 2) rows += static_cast<int>(recv_working(*pool).rows());
  });
  std::this_thread::sleep_for(10ms);
  const auto start = Clock::now();
  const auto done = [&] { return script->observed.load(); };
  const int before = done();
  send(*pool, {1});
  // One of the two threads hangs in env 0, perhaps the receiver; the other one must come.
  while (done() == before && seconds_since(start) < 5) std::this_thread::yield();
  CHECK(done() != before);
  gate.open();
  receiver.join();
}

// Envs that were cheap so far and suddenly are not: the worker is woken to help, if not at once.
void test_cheap_turns_dear() {
  std::mutex mutex;
  std::set<std::thread::id> who;
  std::atomic<bool> dear{false};
  script->step = [&](FakeEnv&) {
    if (!dear) return EP_OK;
    std::this_thread::sleep_for(2ms);
    const std::lock_guard lock(mutex);
    who.insert(std::this_thread::get_id());
    return EP_OK;
  };
  PoolPtr pool = make_pool(free_task(), sizes(4, 4, 2));
  reset_all(*pool);
  for (int i = 0; i < 300; ++i) step(*pool);
  dear = true;
  // The receiver may have claimed all four at once for the first time: then at the next.
  for (int i = 0; i < 20 && who.size() < 2; ++i) step(*pool);
  CHECK(who.size() == 2);
}

// The receiver of an asynchronous pool runs what is too little for a hand-over, unless he has a
// deadline or it suddenly is costly.
void test_async_receiver_runs() {
  std::atomic<int> by_receiver{0}, by_workers{0};
  std::atomic<bool> dear{false};
  const auto receiver = std::this_thread::get_id();
  script->step = [&](FakeEnv& env) {
    if (dear && env.id == 0) std::this_thread::sleep_for(2ms);
    ++(std::this_thread::get_id() == receiver ? by_receiver : by_workers);
    return EP_OK;
  };
  PoolPtr pool = make_pool(free_task(), sizes(2, 1, 1));
  reset(*pool, all_ids(*pool));
  Ids ready;
  const auto all = [&](std::optional<std::chrono::nanoseconds> timeout) {
    ready.clear();
    while (pool->pending() > 0) {
      const Got got = take(*pool, pool->recv(timeout, {}));
      ready.insert(ready.end(), got.id.begin(), got.id.end());
    }
    CHECK(std::set<std::int32_t>(ready.begin(), ready.end()).size() == 2);
    send(*pool, ready);
  };
#ifdef __SANITIZE_THREAD__  // nothing is little then
  for (int i = 0; i < 2000; ++i) all(std::nullopt);
#else
  const auto start = Clock::now();
  while (by_receiver < 1000 && seconds_since(start) < 30) all(std::nullopt);
  CHECK(by_receiver > 0);
#endif

  const int before = by_receiver;
  for (int i = 0; i < 100; ++i) all(10s);
  CHECK(by_receiver == before && by_workers >= 200);

  dear = true;
  by_receiver = 0;
  for (int i = 0; i < 20; ++i) all(std::nullopt);
  CHECK(by_receiver <= 4);
}

// ---- waiting

void test_timeout() {
  for (const std::int64_t batch : {4, 2}) {
    for (const int threads : {1, 2}) {
      Gate gate;
      script = std::make_unique<Script>();
      script->step = [&](FakeEnv& env) {
        if (env.id == 3) gate.pass();
        return EP_OK;
      };
      PoolPtr pool = make_pool(free_task(), sizes(4, batch, threads));
      reset(*pool, all_ids(*pool));
      while (pool->pending() > 0) recv(*pool);
      send(*pool, {3});
      for (const auto timeout : {0ms, 1ms, 60ms, 130ms}) {
        const auto start = Clock::now();
        CHECK_THROWS(pool->recv(timeout, nullptr), kTimeout, "in flight: env_id 3");
        const double spent = seconds_since(start) - std::chrono::duration<double>(timeout).count();
        CHECK(spent >= 0 && spent < 0.05);
      }
      CHECK_THROWS(pool->recv(-5s, nullptr), kTimeout, "env_id 3");
      gate.open();
      CHECK(take(*pool, pool->recv(std::chrono::nanoseconds::max(), nullptr)).t(0) == 1);
      CHECK_THROWS(pool->recv(0ms, nullptr), kRuntime, "nothing to wait for");
      CHECK(pool->close(std::chrono::nanoseconds::max()));
    }
  }
}

struct Interrupted {};

void test_interrupt() {
  for (const int threads : {1, 2}) {
    for (const bool timed : {false, true}) {
      script = std::make_unique<Script>();
      script->step = [](FakeEnv&) {
        std::this_thread::sleep_for(4ms);
        return EP_OK;
      };
      PoolPtr pool = make_pool(free_task(), sizes(32, 32, threads));
      reset_all(*pool);
      int caught = 0, calls = 0;
      Got got;
      for (int round = 1; round <= 2; ++round) {
        send(*pool, all_ids(*pool));
        while (pool->pending() > 0) {
          try {
            std::optional<std::chrono::nanoseconds> timeout;
            if (timed) timeout = 10s;
            got = take(*pool, pool->recv(timeout, [&] {
              ++calls;
              if (calls % 2) throw Interrupted();
            }));
          } catch (const Interrupted&) {
            ++caught;
          }
        }
        CHECK(got.rows() == 32 && got.t(31) == round && got.t(0) == round);
        CHECK(pool->statistics().steps == static_cast<std::uint64_t>(32 * round));
      }
      CHECK(caught > 0);
    }
  }
}

// ---- the end

void test_close_busy() {
  for (const ep_task* task : {&free_task(), &bound_task()}) {
    for (const std::int64_t batch : {6, 2}) {
      script = std::make_unique<Script>();
      script->step = [&](FakeEnv& env) {
        while (env.id == 5 && !env.host->cancelled(env.host)) std::this_thread::sleep_for(1ms);
        return EP_OK;
      };
      PoolPtr pool = make_pool(*task, sizes(6, batch, 2));
      reset(*pool, all_ids(*pool));
      while (pool->pending() > 0) recv(*pool);
      send(*pool, {0, 2});  // never read
      send(*pool, {5, 3, 1});
      // One user waits for a batch, one for a visit, two close.
      std::vector<std::thread> threads;
      threads.emplace_back([&] {
        const auto receive = [&] {
          for (;;) recv_working(*pool);
        };
        CHECK_THROWS(receive(), kClosed, "the pool is closed");
      });
      threads.emplace_back([&] {
        const auto render = [&] {
          for (;;) pool->render(4, 0, 0, 0);
        };
        CHECK_THROWS(render(), kClosed, "the pool is closed");
      });
      std::this_thread::sleep_for(30ms);
      const auto start = Clock::now();
      for (int i = 0; i < 2; ++i) threads.emplace_back([&] { CHECK(pool->close(5s)); });
      for (std::thread& thread : threads) thread.join();
      CHECK(seconds_since(start) < 2 && script->alive == 0);
      CHECK(pool->close(0s) && pool->closed());
      CHECK_THROWS(recv(*pool), kClosed, "closed");
      CHECK_THROWS(send(*pool, {0}), kClosed, "closed");
      CHECK_THROWS(pool->observe(Ids{0}), kClosed, "closed");
      CHECK_THROWS(pool->load_state(0, {}), kClosed, "closed");
      CHECK(pool->pending() > 0);
    }
  }
}

// What plugins log while they are destroyed may wait for a thread that asks the pool something.
void test_close_does_not_lock_out() {
  PoolPtr pool = make_pool(free_task(), sizes(1, 1, 1));
  std::atomic<bool> asked{false};
  bool in_time = false;
  std::thread asker;
  script->destroy = [&](FakeEnv&) {
    asker = std::thread([&] {
      pool->pending();
      asked = true;
    });
    for (int i = 0; i < 2000 && !asked; ++i) std::this_thread::sleep_for(1ms);
    in_time = asked;
    return EP_OK;
  };
  CHECK(pool->close(5s));
  asker.join();
  CHECK(in_time);
}

void test_hung() {
  for (const ep_task* task : {&free_task(), &bound_task()}) {
    Gate gate;
    script->step = [&](FakeEnv& env) {
      if (env.id == 1) gate.pass();
      return EP_OK;
    };
    PoolPtr pool = make_pool(*task, sizes(2, 2, 2));
    reset_all(*pool);
    send(*pool, {0});
    send(*pool, {1});
    recv(*pool);
    CHECK_THROWS(pool->recv(20ms, nullptr), kTimeout, "env_id 1");
    const auto start = Clock::now();
    CHECK(!pool->close(100ms));
    CHECK(!pool->close(100ms));
    CHECK(seconds_since(start) < 1);
    Pool* const left = pool.get();
    pool.reset();  // leaks it: the thread finds all that it may touch
    CHECK(seconds_since(start) < 4);
    gate.open();
    CHECK(left->close(10s));
    PoolPtr(left).reset();
  }
}

void test_fork() {
  PoolPtr pool = make_pool(free_task(), sizes(4, 2, 2));
  pool->reset(std::nullopt, std::nullopt, {});
  auto batch = pool->recv(10s, nullptr);
  std::vector<Block*> kept = keep(*pool, std::move(batch));
  batch = pool->recv(10s, nullptr);
  std::atomic<bool> stop{false};
  std::thread busy([&] {  // so that locks are held when we fork
    Block* blocks[32];
    const auto& columns = pool->plan().columns;
    const auto store = kept[0]->store;
    while (!stop) {
      pool->pending();
      store->acquire(std::span(blocks, columns.size()));
      for (std::size_t i = 0; i < columns.size(); ++i) store->release(blocks[i]);
    }
  });
  for (int i = 0; i < 20; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(10);
      const auto refused = [&](auto call) {
        try {
          call();
        } catch (const Error& error) {
          if (error.kind() == ErrorKind::kRuntime &&
              std::string(error.what()).find("before fork()") != std::string::npos) {
            return;
          }
        }
        _exit(1);
      };
      refused([&] { pool->recv(std::nullopt, nullptr); });
      refused([&] { send(*pool, {0}); });
      refused([&] { pool->reset(std::nullopt, std::nullopt, {}); });
      refused([&] { pool->observe(Ids{0}); });
      refused([&] { pool->render(0, 0, 0, 0); });
      refused([&] { pool->pending(); });
      refused([&] { pool->statistics(); });
      refused([&] { pool->closed(); });
      if (pool->close(1s)) _exit(2);
      pool->recycle(std::move(batch));
      drop(kept);
      pool.reset();
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  stop = true;
  busy.join();
  pool->recycle(std::move(batch));
  drop(kept);
  send(*pool, all_ids(*pool));
  CHECK(recv(*pool).rows() == 2);
}

// Visits, sends and a close, all at once; a state loaded into a fresh env makes it playable.
void test_visits_and_sends() {
  for (const ep_task* task : {&free_task(), &bound_task()}) {
    for (int round = 0; round < 20; ++round) {
      PoolPtr pool = make_pool(*task, sizes(6, round % 2 ? 6 : 2, 2));
      reset(*pool, {0, 1, 2});
      while (pool->pending() > 0) recv(*pool);
      const std::vector<std::byte> state = pool->save_state(0);
      std::vector<std::thread> threads;
      const auto repeat = [&](auto call) {
        threads.emplace_back([&, call] {
          for (;;) {
            try {
              call();
            } catch (const Error& error) {
              if (error.kind() == ErrorKind::kClosed) return;
              CHECK(error.kind() == ErrorKind::kValue || error.kind() == ErrorKind::kRuntime ||
                    error.kind() == ErrorKind::kTimeout);
            }
          }
        });
      };
      repeat([&] { pool->load_state(4, state); });
      repeat([&] { reset(*pool, {4, 5}); });
      repeat([&] { send(*pool, {1, 4}); });
      repeat([&] { pool->recycle(pool->observe(Ids{1, 4})); });
      repeat([&] { recv_working(*pool); });
      repeat([&] { take(*pool, pool->recv(1ms, nullptr)); });
      std::this_thread::sleep_for(30ms);
      CHECK(pool->close(10s));
      for (std::thread& thread : threads) thread.join();
    }
  }
}

}  // namespace

int main() {
  RUN(test_determinism);
  RUN(test_thread_bound);
  RUN(test_many_producers);
  RUN(test_send_wakes_receiver);
  RUN(test_cheap_turns_dear);
  RUN(test_async_receiver_runs);
  RUN(test_timeout);
  RUN(test_interrupt);
  RUN(test_close_busy);
  RUN(test_close_does_not_lock_out);
  RUN(test_hung);
  RUN(test_fork);
  RUN(test_visits_and_sends);
  return report();
}
