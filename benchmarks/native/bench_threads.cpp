// bench_threads.cpp - what threads pay for each other, whatever they do: the constants of
// benchmarks/growth.py that no single-threaded measurement gives. Prints one line of JSON:
//
//   claim_ns      an atomic addition by one thread
//   contended_ns  the same while another thread adds to the same number: one cache line's way
//   spin_ns       a hand-over by Event to a thread that spins
//   sleep_ns      the same to one that sleeps
//   wake_ns       what the notifier of a sleeper pays himself
//
//   bench_threads [SECONDS each]
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "event.hpp"

using namespace envpool::runtime;
using Clock = std::chrono::steady_clock;
using std::chrono::nanoseconds;

namespace {

double nanoseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::nano>(Clock::now() - start).count();
}

// Nanoseconds for each addition, of all threads together.
double addition(int threads, double seconds) {
  alignas(64) std::atomic<std::uint64_t> number{0};
  alignas(64) std::atomic<int> ready{0};
  std::atomic<bool> stop{false};
  std::vector<std::thread> adders;
  for (int i = 0; i < threads; ++i) {
    adders.emplace_back([&] {
      ready.fetch_add(1);
      // Relaxed: a flag that is seen at some time; acq_rel as the pool's counters.
      while (!stop.load(std::memory_order_relaxed)) number.fetch_add(1, std::memory_order_acq_rel);
    });
  }
  while (ready.load() < threads) std::this_thread::yield();
  const auto start = Clock::now();
  const std::uint64_t before = number.load();
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  const std::uint64_t after = number.load();
  const double spent = nanoseconds_since(start);
  stop.store(true);
  for (std::thread& adder : adders) adder.join();
  return spent / static_cast<double>(after - before);
}

struct HandOver {
  double latency_ns, notify_ns;  // medians: until the other runs; what notify() took
};

// Two threads that wake each other by turns. pause: how long each waits before it does, so that
// the other sleeps when he does not spin for longer.
HandOver hand_over(nanoseconds spin, nanoseconds pause, double seconds) {
  Event ping, pong;
  std::atomic<bool> stop{false};
  std::thread other([&] {
    for (std::uint64_t key = 0; !stop.load(); ++key) {
      while (ping.key() == key) ping.wait(key, Clock::time_point::max(), spin);
      pong.notify();
    }
  });
  std::vector<double> turns, notifies;
  const auto begin = Clock::now();
  for (std::uint64_t key = 0; nanoseconds_since(begin) < seconds * 1e9 || turns.size() < 9; ++key) {
    for (const auto start = Clock::now(); Clock::now() - start < pause;) cpu_relax();
    const auto start = Clock::now();
    ping.notify();
    notifies.push_back(nanoseconds_since(start));
    while (pong.key() == key) pong.wait(key, Clock::time_point::max(), spin);
    turns.push_back(nanoseconds_since(start));
  }
  stop.store(true);
  ping.notify();
  other.join();
  const auto median = [](std::vector<double>& values) {
    std::ranges::nth_element(values, values.begin() + static_cast<long>(values.size() / 2));
    return values[values.size() / 2];
  };
  return {median(turns) / 2, median(notifies)};
}

}  // namespace

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::atof(argv[1]) : 0.5;
  const double claim = addition(1, seconds), contended = addition(2, seconds);
  const HandOver spinning = hand_over(std::chrono::seconds(1), nanoseconds(0), seconds);
  const HandOver sleeping = hand_over(nanoseconds(0), std::chrono::microseconds(100), seconds);
  std::printf(
      "{\"claim_ns\": %.4g, \"contended_ns\": %.4g, \"spin_ns\": %.4g, \"sleep_ns\": %.4g, "
      "\"wake_ns\": %.4g}\n",
      claim, contended, spinning.latency_ns, sleeping.latency_ns, sleeping.notify_ns);
  return 0;
}
