// test_lane.cpp - the lock-free parts: Lane, Event, and how a Batch knows that it is complete.
#include "lane.hpp"

#include <array>
#include <numeric>
#include <thread>

#include "batch.hpp"
#include "event.hpp"
#include "fake_env.hpp"

using namespace envpool::test;

namespace {

void test_order() {
  Lane lane(5);
  std::vector<std::uint32_t> out(8);
  CHECK(lane.take(out) == 0 && lane.size() == 0);
  for (int round = 0; round < 100; ++round) {  // many times round the ring
    lane.push(std::array<std::uint32_t, 3>{4, 0, 2});
    lane.push({});
    lane.push(std::array<std::uint32_t, 2>{1, 3});
    CHECK(lane.size() == 5);
    CHECK(lane.take(std::span(out).first(0)) == 0);
    CHECK(lane.take(std::span(out).first(2)) == 2 && out[0] == 4 && out[1] == 0);
    CHECK(lane.take(out) == 3 && out[0] == 2 && out[1] == 1 && out[2] == 3);
    CHECK(lane.take(out) == 0);
  }
}

// Each env goes round through several takers; plain memory that belongs to it must be handed over
// with it, and nobody gets it twice.
void test_many_takers() {
  constexpr std::uint32_t kEnvs = 13;
  constexpr std::uint32_t kRounds = 3000;
  Lane lane(kEnvs), back(kEnvs);
  std::array<std::uint32_t, kEnvs> laps{};
  std::mutex back_mutex;
  std::atomic<std::uint32_t> left{kEnvs};
  std::vector<std::thread> takers;
  for (std::uint32_t k = 1; k <= 3; ++k) {
    takers.emplace_back([&, k] {
      std::vector<std::uint32_t> out(k * 2);
      while (left > 0) {
        const std::uint32_t count = lane.take(out);
        if (count == 0) {
          std::this_thread::yield();
          continue;
        }
        for (std::uint32_t i = 0; i < count; ++i) ++laps[out[i]];
        const std::lock_guard lock(back_mutex);
        back.push(std::span(out).first(count));
      }
    });
  }
  std::vector<std::uint32_t> all(kEnvs), out(kEnvs), again;
  std::iota(all.begin(), all.end(), 0u);
  lane.push(all);
  while (left > 0) {
    const std::uint32_t count = back.take(out);
    if (count == 0) std::this_thread::yield();
    again.clear();
    for (std::uint32_t i = 0; i < count; ++i) {
      if (laps[out[i]] < kRounds) {
        again.push_back(out[i]);
      } else {
        --left;
      }
    }
    lane.push(again);
  }
  for (std::thread& taker : takers) taker.join();
  for (const std::uint32_t n : laps) CHECK(n == kRounds);
}

void test_event() {
  Event event;
  const std::uint64_t key = event.key();
  const auto start = Event::Clock::now();
  CHECK(!event.wait(key, start + 20ms, 0ns));
  CHECK(Event::Clock::now() - start >= 20ms);
  CHECK(!event.wait(key, start, 1us));  // long past
  event.notify();
  CHECK(event.wait(key, Event::Clock::time_point::max(), 0ns));
  CHECK(!event.wait(event.key(), Event::Clock::now() + 1ms, 1ms));
}

// Two threads wake each other in turn: a single lost wake-up would hang.
void test_ping_pong() {
  for (const std::chrono::nanoseconds spin : {0ns, 2000ns}) {
    Event ping, pong;
    std::atomic<int> turn{0};
    constexpr int kRounds = 4000;
    const auto play = [&](Event& mine, Event& other, int parity) {
      for (;;) {
        const std::uint64_t key = mine.key();
        const int now = turn.load(std::memory_order_relaxed);
        if (now >= kRounds) break;
        if (now % 2 == parity) {
          turn.store(now + 1, std::memory_order_relaxed);
          other.notify();
        } else {
          CHECK(mine.wait(key, Event::Clock::now() + 20s, spin));
        }
      }
      other.notify();
    };
    std::thread one([&] { play(ping, pong, 0); });
    std::thread two([&] { play(pong, ping, 1); });
    one.join();
    two.join();
    CHECK(turn == kRounds);
  }
}

// Rows are claimed and finished by several threads while the receiver cuts the batch when no more
// are to come: somebody sees that it is complete, once.
void test_cut() {
  PoolPtr pool = make_pool(free_task(), sizes(1, 1, 1));
  const auto store = std::make_shared<BlockStore>(
      std::vector<std::size_t>(pool->plan().columns.size(), 64), 1 << 20);
  Batch batch(pool->plan());
  for (int round = 0; round < 2000; ++round) {
    const std::uint32_t rows = 3, size = round % 2 ? 3 : 5;
    batch.open(*store, size, false);
    std::array<int, 3> written{};
    std::atomic<int> completed{0};
    std::vector<std::thread> writers;
    for (std::uint32_t k = 0; k < 2; ++k) {
      writers.emplace_back([&, k] {
        for (std::uint32_t row = k; row < rows; row += 2) {
          written[row] = 1;
          if (batch.finish(1)) ++completed;
        }
      });
    }
    if (size != rows) batch.cut(rows);
    const bool at_once = batch.complete();
    while (!batch.complete()) std::this_thread::yield();
    for (const int row : written) CHECK(row == 1);  // ordered by complete()
    CHECK(batch.rows() == rows);
    for (std::thread& writer : writers) writer.join();
    CHECK(completed <= 1 && (completed == 1 || at_once));
    batch.clear();
  }
}

}  // namespace

int main() {
  RUN(test_order);
  RUN(test_many_takers);
  RUN(test_event);
  RUN(test_ping_pong);
  RUN(test_cut);
  return report();
}
