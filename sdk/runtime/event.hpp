// event.hpp - sleeping until something changed, with a notify that costs one atomic when nobody
// sleeps.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>

#if defined(__x86_64__) || defined(__i386__)
#include <immintrin.h>
#endif

namespace envpool::runtime {

inline void cpu_relax() {
#if defined(__x86_64__) || defined(__i386__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// An event count. The waiter: key(), then look at the condition, then wait(key); the notifier:
// change the condition, then notify(). No wake-up is lost, whatever the order.
class Event {
 public:
  using Clock = std::chrono::steady_clock;

  // Sequentially consistent, like every access here: a waiter announces itself (sleepers_) and then
  // reads the epoch, a notifier moves the epoch and then reads sleepers_; in one total order at
  // least one of them sees the other.
  std::uint64_t key() const { return epoch_.load(std::memory_order_seq_cst); }

  void notify() {
    epoch_.fetch_add(1, std::memory_order_seq_cst);
    if (sleepers_.load(std::memory_order_seq_cst) == 0) return;
    {
      const std::lock_guard lock(mutex_);
    }  // a sleeper between its check and its wait is let through
    wake_.notify_all();
  }

  // Until the epoch has left `key` or the deadline passed. Spins for `spin` first. True if the
  // epoch moved.
  bool wait(std::uint64_t key, Clock::time_point deadline, std::chrono::nanoseconds spin) {
    if (spin_until_moved(key, spin)) return true;
    std::unique_lock lock(mutex_);
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    const bool moved = wake_.wait_until(lock, deadline, [&] { return this->key() != key; });
    sleepers_.fetch_sub(1, std::memory_order_seq_cst);
    return moved;
  }

 private:
  bool spin_until_moved(std::uint64_t key, std::chrono::nanoseconds spin) const {
    if (this->key() != key) return true;
    if (spin.count() == 0) return false;
    const auto end = Clock::now() + spin;
    do {
      for (int i = 0; i < 16; ++i) {
        cpu_relax();
        if (this->key() != key) return true;
      }
    } while (Clock::now() < end);
    return false;
  }

  alignas(64) std::atomic<std::uint64_t> epoch_{0};
  alignas(64) std::atomic<std::uint32_t> sleepers_{0};
  std::mutex mutex_;
  std::condition_variable wake_;
};

}  // namespace envpool::runtime
