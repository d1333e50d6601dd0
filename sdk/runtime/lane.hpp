// lane.hpp - a queue of env numbers from one sender to any number of takers, without a lock.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>
#include <span>
#include <vector>

namespace envpool::runtime {

// Senders must be serialised by their caller. No env may be pushed again before it was taken and
// its taker is done with it (the pool's in-flight marks see to that), so at most `envs` entries
// wait at any time and push never finds it full.
class Lane {
 public:
  explicit Lane(std::uint32_t envs) : ring_(std::bit_ceil(std::max(envs, 1u))) {}

  void push(std::span<const std::uint32_t> envs) {
    std::uint64_t tail = tail_.load(std::memory_order_relaxed);  // only senders write it
    for (const std::uint32_t env : envs) {
      slot(tail++).store(env, std::memory_order_relaxed);  // ordered by the release below
    }
    // Release: who sees the new tail sees the entries, and all that the sender wrote to these envs.
    tail_.store(tail, std::memory_order_release);
  }

  // Takes up to out.size() entries and returns how many.
  std::uint32_t take(std::span<std::uint32_t> out) {
    // Acquire: pairs with the release of the taker before us, so that `head` never runs ahead of
    // the tail read next.
    std::uint64_t head = head_.load(std::memory_order_acquire);
    for (;;) {
      // Acquire: pairs with push, for the entries and for what they stand for.
      const std::uint64_t tail = tail_.load(std::memory_order_acquire);
      const auto count =
          static_cast<std::uint32_t>(std::min<std::uint64_t>(tail - head, out.size()));
      if (count == 0) return 0;
      // Read before claiming. An entry is overwritten only after some taker moved head past it, and
      // then the exchange below fails; its release keeps these relaxed loads above it.
      for (std::uint32_t i = 0; i < count; ++i) {
        out[i] = slot(head + i).load(std::memory_order_relaxed);
      }
      if (head_.compare_exchange_weak(head, head + count, std::memory_order_acq_rel,
                                      std::memory_order_acquire)) {
        return count;
      }
    }
  }

  // How many wait; only a hint while others push or take. Acquire, head first: as in take(), so
  // that it never seems ahead of the tail.
  std::uint64_t size() const {
    const std::uint64_t head = head_.load(std::memory_order_acquire);
    return tail_.load(std::memory_order_acquire) - head;
  }

 private:
  std::atomic<std::uint32_t>& slot(std::uint64_t at) { return ring_[at & (ring_.size() - 1)]; }

  std::vector<std::atomic<std::uint32_t>> ring_;
  // Takers fight over head, the sender writes tail: not on one cache line.
  alignas(64) std::atomic<std::uint64_t> head_{0};
  alignas(64) std::atomic<std::uint64_t> tail_{0};
};

}  // namespace envpool::runtime
