// mailbox.hpp - what a pool of processes and its workers say to each other, in their arena.
//
// Sending: the sender fills an env's Slot, puts the env into its worker's ring, moves `pushed` on
// (release) and rings the bell. The worker takes what is there, runs it, fills the outcome in the
// slot, and sets `done` to the number of the job (release).
//
// Waking a receiver: `done` is the truth, `arrivals` counts how often somebody finished (or
// kicked), and `wake_at` is the count at which a receiver wants to be woken, so that many workers
// cost him one wake-up. See Arrivals for why no wake-up is lost. A worker may die between any two
// of these steps: then its death wakes the receiver, who looks at `done` once more.
//
// All atomics are lock-free and so work between processes.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <span>
#include <string_view>
#include <vector>

#include "plan.hpp"

namespace envpool::runtime {

using Word = std::atomic<std::uint32_t>;
static_assert(Word::is_always_lock_free && std::atomic<std::uint64_t>::is_always_lock_free);

// ---- sleeping, between processes ----------------------------------------------------------------

// Sleeps while the word is `value`, until woken or the deadline; may return early.
inline void futex_wait(const Word& word, std::uint32_t value,
                       std::chrono::steady_clock::time_point deadline) {
  timespec until{};
  const bool forever = deadline == std::chrono::steady_clock::time_point::max();
  const auto since = std::chrono::nanoseconds(deadline.time_since_epoch()).count();
  until.tv_sec = since / 1000000000;
  until.tv_nsec = since % 1000000000;
  syscall(SYS_futex, &word, FUTEX_WAIT_BITSET, value, forever ? nullptr : &until, nullptr,
          FUTEX_BITSET_MATCH_ANY);
}

inline void futex_wake(const Word& word) { syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX); }

// Wakes whoever sleeps on it when it is rung. One sleeper.
//
// Sequentially consistent throughout: the sleeper sets `asleep` and then looks for work and reads
// `rung`, the ringer provides work, moves `rung` and then reads `asleep`; in one total order at
// least one of them sees the other.
class Bell {
 public:
  void ring() {
    rung_.fetch_add(1, std::memory_order_seq_cst);
    if (asleep_.load(std::memory_order_seq_cst)) futex_wake(rung_);
  }
  // Sleeps until rung, unless `ready` says that there is no need to.
  template <class Ready>
  void wait(Ready ready) {
    const std::uint32_t heard = rung_.load(std::memory_order_seq_cst);
    asleep_.store(1, std::memory_order_seq_cst);
    if (!ready()) futex_wait(rung_, heard, std::chrono::steady_clock::time_point::max());
    asleep_.store(0, std::memory_order_seq_cst);
  }
  // For a new sleeper in the place of one that died.
  void reset() { asleep_.store(0, std::memory_order_seq_cst); }

 private:
  alignas(64) Word rung_{0};
  alignas(64) Word asleep_{0};
};

// Counts jobs finished, and wakes receivers when as many as they want have come.
//
// Sequentially consistent: a receiver (1) reads the count, (2) looks which jobs are done, (3) sets
// `wake_at` to the count read plus what he lacks, (4) reads the count again and looks again if it
// has reached that, else (5) sleeps while the count is what he read in (4). A worker sets `done`,
// adds to the count and then reads wake_at. Of (3)-(4) and the worker's add and read, at least one
// sees the other; and since the count was read before the jobs were looked at, wake_at is never too
// high. An add between (4) and (5) makes the kernel refuse to sleep.
class Arrivals {
 public:
  std::uint32_t count() const { return count_.load(std::memory_order_seq_cst); }

  // By workers.
  void add(std::uint32_t jobs) {
    const std::uint32_t before = count_.fetch_add(jobs, std::memory_order_seq_cst);
    const std::uint32_t missing = wake_at_.load(std::memory_order_seq_cst) - before;
    if (missing - 1 < jobs) futex_wake(count_);  // 1 .. jobs were missing
  }
  // For all else that receivers must look at: a death, the end, another receiver.
  void kick() {
    count_.fetch_add(1, std::memory_order_seq_cst);
    futex_wake(count_);
  }
  // By a receiver who read `seen` before he looked and lacks `wanted` (at least 1) jobs: the count
  // to sleep at, or none: look again.
  bool arm(std::uint32_t seen, std::uint32_t wanted, std::uint32_t* sleep_at) {
    wake_at_.store(seen + wanted, std::memory_order_seq_cst);
    *sleep_at = count();
    return *sleep_at - seen < wanted;
  }
  void sleep(std::uint32_t at, std::chrono::steady_clock::time_point deadline) {
    futex_wait(count_, at, deadline);
  }

 private:
  alignas(64) Word count_{0};
  alignas(64) Word wake_at_{0};
};

// ---- the structs in the arena -------------------------------------------------------------------

struct Header {
  static constexpr std::uint64_t kMagic = 0x316c6f6f70766e65;  // "envpool1"
  std::uint64_t magic;
  char build[56];  // the SDK's version: both sides must have the same
  std::uint64_t orders_at, orders_bytes, layout_bytes;
  Arrivals arrivals;
  alignas(64) Word stopping{0};  // the pool is closing: engines that ask are told to stop
  alignas(64) Word stamp{0};     // the order of finished jobs
};

// kSweep: a step of all envs of the worker at once, resets of those that are over included.
enum class Work : std::uint32_t { kNone, kCreate, kStep, kReset, kVisit, kSweep };

struct Mailbox {
  Bell bell;
  alignas(64) Word pushed{0};  // envs put into the ring so far
  Word ready{0};               // all envs are made
  Word failed{0};              // one could not be made: its slot's first text says why
  // What the worker is at: nanoseconds of the steady clock times 8, plus Work. 0: nothing. Relaxed:
  // it stands for nothing else.
  alignas(64) std::atomic<std::uint64_t> at_work{0};
  std::atomic<std::uint64_t> steps{0}, episodes{0};  // of this worker's life. Relaxed.
};

enum class Ask : std::uint32_t { kStep, kReset, kObserve, kRender, kSave, kLoad };

// An env's job and its outcome.
struct alignas(64) Slot {
  // By the sender, before the push.
  Ask ask;
  std::uint32_t job;    // its number
  std::uint32_t batch;  // in the table of batches
  std::uint32_t row;
  std::uint32_t has_seed;
  std::uint32_t render_width, render_height, render_camera;
  std::uint64_t seed;
  std::uint64_t payload_bytes;  // kReset: options; kLoad: the state
  // For a worker that makes the env anew: 1 and what Env::inherit() takes, if it was played before.
  std::uint32_t inherits;
  std::uint32_t reserved;
  std::uint64_t past_seed, past_respawns;

  // By the worker; valid once `done` is `job` (acquire).
  alignas(64) Word done;
  std::uint32_t stamp;
  std::uint8_t over, played, fault_count, has_final, first_failed, visit_failed;
  std::int32_t elapsed;
  std::int32_t error_kind;  // visit_failed: ErrorKind
  std::uint64_t now_seed, now_respawns;
  std::uint32_t picture_width, picture_height;
  std::uint64_t result_bytes;  // kRender, kSave: in the payload
};

// Texts of up to two faults (of the episode that ended, and of the reset after it).
constexpr std::size_t kTextBytes = 1024;
constexpr std::size_t kTexts = 2;

// At most this much of a state, a picture or reset options goes through the arena.
constexpr std::size_t kPayloadBytes = std::size_t{64} << 20;

// Where everything is, computed alike on both sides.
class Layout {
 public:
  Layout(const Plan& plan, std::uint32_t num_envs, std::uint32_t envs_per_worker);

  std::size_t bytes() const { return bytes_; }
  std::uint32_t workers() const { return workers_; }
  std::uint32_t first_env(std::uint32_t worker) const { return worker * envs_per_worker_; }
  std::uint32_t envs_of(std::uint32_t worker) const;

  static Header& header(std::byte* base) { return *reinterpret_cast<Header*>(base); }
  Mailbox& mailbox(std::byte* base, std::uint32_t worker) const {
    return reinterpret_cast<Mailbox*>(base + mailboxes_)[worker];
  }
  // Env numbers; entry i of the worker's ring is at i modulo envs_of(worker).
  std::uint32_t* ring(std::byte* base, std::uint32_t worker) const {
    return reinterpret_cast<std::uint32_t*>(base + rings_) + first_env(worker);
  }
  Slot& slot(std::byte* base, std::uint32_t env) const {
    return reinterpret_cast<Slot*>(base + slots_)[env];
  }
  double* returned(std::byte* base, std::uint32_t env) const {
    return reinterpret_cast<double*>(base + returned_) + std::size_t{env} * agents_;
  }
  std::uint8_t* alive(std::byte* base, std::uint32_t env) const {
    return reinterpret_cast<std::uint8_t*>(base + alive_) + std::size_t{env} * agents_;
  }
  char* text(std::byte* base, std::uint32_t env, std::size_t i) const {
    return reinterpret_cast<char*>(base + texts_) + (std::size_t{env} * kTexts + i) * kTextBytes;
  }
  std::byte* actions(std::byte* base) const { return base + actions_; }
  std::byte* payload(std::byte* base, std::uint32_t env) const {
    return base + payloads_ + std::size_t{env} * kPayloadBytes;
  }

  // Batches by number: the offsets of their columns, then of their finals. Number 0 is not in the
  // table: rows that each env has for itself.
  static constexpr std::uint32_t kOwnRows = 0;
  std::uint32_t batches() const { return num_envs_ + 1; }
  std::uint64_t* columns_of(std::byte* base, std::uint32_t batch) const {
    return reinterpret_cast<std::uint64_t*>(base + table_) + std::size_t{batch} * 2 * columns_;
  }
  // Sets the entries of kOwnRows.
  void set_own_rows(std::byte* base) const;

 private:
  std::size_t take(std::size_t bytes, std::size_t align);

  const std::uint32_t num_envs_, envs_per_worker_, workers_, agents_;
  const std::size_t columns_;
  std::size_t bytes_ = 0;
  std::size_t mailboxes_, rings_, slots_, returned_, alive_, texts_, table_, actions_, payloads_;
  std::vector<std::uint64_t> own_rows_;  // offsets, columns then finals
};

// Copies as much as fits, and ends it with a NUL, not within a UTF-8 sequence.
void put_text(char* to, std::string_view text);

// A hash of what both sides must agree on: names, types and sizes of columns and actions.
std::uint64_t digest(const Plan& plan);

}  // namespace envpool::runtime
