// batch.hpp - the rows of one send (synchronous) or of batch_size finished envs (asynchronous), on
// their way to the user.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "blocks.hpp"
#include "env.hpp"

namespace envpool::runtime {

struct Fault {
  std::int32_t env_id;
  std::string message;
};

// One array for each of Plan::columns, as rows of a batch.
struct Columns {
  std::vector<Block*> blocks;
  std::vector<std::byte*> data;

  explicit Columns(std::size_t count) : blocks(count), data(count) {}
  ~Columns() { release(); }
  Columns(const Columns&) = delete;
  Columns& operator=(const Columns&) = delete;

  void acquire(BlockStore& store) {
    store.acquire(blocks);
    for (std::size_t i = 0; i < blocks.size(); ++i) data[i] = blocks[i]->data;
  }
  // What a receiver took is null, and so is all before acquire() and after it threw.
  void release() noexcept {
    for (Block*& block : blocks) {
      if (Block* mine = std::exchange(block, nullptr)) mine->store->release(mine);
    }
  }
};

class Batch {
 public:
  // in_place: the columns' memory is the same at each use, and outlives what a receiver takes.
  explicit Batch(const Plan& plan, bool in_place = false)
      : columns(plan.columns.size()), in_place_(in_place), finals_(plan.columns.size()) {}

  // Begins anew, with blocks from the store: room for final rows too if `with_finals`, since a
  // worker that needs it can't tell a user that there is no memory. Throws as BlockStore::acquire;
  // then the batch is as after clear().
  void open(BlockStore& store, std::uint32_t rows, bool with_finals) {
    if (!in_place_ || !opened_) columns.acquire(store);
    opened_ = true;
    if (with_finals) {
      try {
        finals_.acquire(store);
      } catch (...) {
        if (!in_place_) columns.release();
        throw;
      }
    }
    claimed = 0;
    // Relaxed: the batch is handed to workers by a Lane's release, or under the pool's mutex.
    state_.store(std::uint64_t{rows} << 32, std::memory_order_relaxed);
  }

  // Begins anew, over memory that is somebody else's: who calls sets the data of the columns.
  void begin(std::uint32_t rows) noexcept {
    clear();
    state_.store(std::uint64_t{rows} << 32, std::memory_order_relaxed);  // as in open()
  }

  // For the next use. The receiver has what it wants.
  void clear() noexcept {
    if (!in_place_) columns.release();
    finals_.release();
    envs.clear();
    final_mask.clear();
    faults.clear();
    failure.clear();
  }

  // Relaxed: only open() and cut() change it, and the pool's mutex orders those.
  std::uint32_t rows() const {
    return static_cast<std::uint32_t>(state_.load(std::memory_order_relaxed) >> 32);
  }

  // Notes that `count` more rows are written; then the batch may be gone. True for the one that
  // completes the batch. Rows and finished ones are one atomic, so that an asynchronous batch that
  // is cut short is completed by its last writer or by the one who cuts, never by none.
  bool finish(std::uint32_t count) {
    // Release the rows written, to who acquires them in complete().
    return all(state_.fetch_add(count, std::memory_order_acq_rel) + count);
  }
  // By one thread at a time: complete() tells whether that was all.
  void cut(std::uint32_t rows_left) {
    // A read-modify-write: what finish() released stays released.
    state_.fetch_sub(std::uint64_t{rows() - rows_left} << 32, std::memory_order_acq_rel);
  }
  // How many rows are not finished. Acquire: as complete().
  std::uint32_t missing() const {
    const std::uint64_t state = state_.load(std::memory_order_acquire);
    return static_cast<std::uint32_t>(state >> 32) - static_cast<std::uint32_t>(state);
  }
  bool complete() const { return all(state_.load(std::memory_order_acquire)); }

  // Opened with finals: the row of columns in which the ended episode is kept. Any worker.
  Row final_row(std::uint32_t row) {
    const std::lock_guard lock(mutex_);
    if (final_mask.empty()) final_mask.assign(rows(), 0);
    final_mask[row] = 1;
    return {finals_.data, row};
  }
  void add_fault(std::int32_t env_id, std::string message) {
    const std::lock_guard lock(mutex_);
    faults.push_back({env_id, std::move(message)});
  }

  void add_failure(const std::string& message) {
    const std::lock_guard lock(mutex_);
    if (failure.empty()) failure = message;
  }

  Row row(std::uint32_t index) { return {columns.data, index}; }

  Columns columns;
  std::uint32_t number = 0;   // of a pool of processes: in the table of batches
  std::uint32_t claimed = 0;  // asynchronous: rows given out so far; guarded by the pool's mutex
  std::vector<std::uint32_t> envs;  // of each row given out; empty: row i is env i's. Likewise
  // What follows is for the receiver of a complete batch.
  std::vector<std::uint8_t> final_mask;  // empty: no episode ended
  Columns& finals() { return finals_; }
  std::vector<Fault> faults;
  std::string failure;  // not empty: a first reset failed, the rows are of no use

 private:
  static bool all(std::uint64_t state) {
    return (state >> 32) == static_cast<std::uint32_t>(state);
  }

  // Rows in the upper half, how many of them are finished in the lower one. Written by every worker
  // that finishes a chunk: on a line of its own.
  alignas(64) std::atomic<std::uint64_t> state_{0};
  alignas(64) std::mutex mutex_;  // of final_mask and faults while rows are written
  const bool in_place_;
  bool opened_ = false;
  Columns finals_;
};

}  // namespace envpool::runtime
