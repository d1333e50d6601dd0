// bench_exchange.cpp - the ceiling of worker processes: a bare exchange by futex with N processes,
// round after round, and nothing else. Prints exchanges a second.
//
//   bench_exchange [processes=64] [seconds=2]
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <climits>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace {

using Word = std::atomic<std::uint32_t>;

struct Shared {
  alignas(64) Word arrived{0};
  struct alignas(64) Peer {
    Word round{0};
  } peers[1];
};

void wait_while(const Word& word, std::uint32_t value) {
  while (word.load(std::memory_order_acquire) == value) {  // the peer's release
    syscall(SYS_futex, &word, FUTEX_WAIT, value, nullptr, nullptr, 0);
  }
}

void wake(const Word& word) { syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX); }

[[noreturn]] void serve(Shared& shared, std::uint32_t me, std::uint32_t count) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (std::uint32_t round = 0;; ++round) {
    wait_while(shared.peers[me].round, round);
    // Only the last one of a round wakes the one who waits for all.
    const std::uint32_t arrived = shared.arrived.fetch_add(1, std::memory_order_acq_rel) + 1;
    if (arrived == (round + 1) * count) wake(shared.arrived);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const auto count = static_cast<std::uint32_t>(argc > 1 ? std::atoi(argv[1]) : 64);
  const double seconds = argc > 2 ? std::atof(argv[2]) : 2;
  const std::size_t bytes = sizeof(Shared) + count * sizeof(Shared::Peer);
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return 1;
  auto& shared = *static_cast<Shared*>(memory);  // zero, as new
  for (std::uint32_t i = 0; i < count; ++i) {
    if (fork() == 0) serve(shared, i, count);
  }
  std::uint32_t round = 0;
  const auto play = [&](double time) {
    const auto start = std::chrono::steady_clock::now();
    const std::uint32_t first = round;
    std::chrono::duration<double> spent{};
    do {
      ++round;
      for (std::uint32_t i = 0; i < count; ++i) {
        shared.peers[i].round.store(round, std::memory_order_release);
        wake(shared.peers[i].round);
      }
      for (;;) {
        const std::uint32_t seen = shared.arrived.load(std::memory_order_acquire);
        if (seen == round * count) break;
        syscall(SYS_futex, &shared.arrived, FUTEX_WAIT, seen, nullptr, nullptr, 0);
      }
      spent = std::chrono::steady_clock::now() - start;
    } while (spent.count() < time);
    return (round - first) * count / spent.count();
  };
  play(seconds / 4);
  std::printf("%.0f exchanges a second with %u processes\n", play(seconds), count);
}
