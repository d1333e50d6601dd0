// blocks.hpp - memory of batches: one pool of equal blocks for each column, reused only when nobody
// holds them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

namespace envpool::runtime {

// Where blocks come from. [any-thread]
class BlockMemory {
 public:
  virtual ~BlockMemory() = default;
  virtual std::byte* allocate(std::size_t bytes) = 0;  // 64-byte aligned; nullptr: there is no more
  virtual void free(std::byte* data, std::size_t bytes) noexcept = 0;
  // Whether the child of a fork sees what its parent writes here later.
  virtual bool shared() const = 0;
};

// How often this process is the child of a fork. There, a mutex that another thread held in the
// parent stays locked for ever: what was made before the fork must be left alone. [any-thread]
std::uint64_t count_forks();
// How often it was the parent of one. [any-thread]
std::uint64_t count_children();

class BlockStore;

// One column of one batch: `capacity` rows, 64-byte aligned. Owned by whoever got it from acquire()
// until release().
struct Block {
  std::byte* data;
  std::size_t bytes;
  std::uint32_t column;
  std::shared_ptr<BlockStore>
      store;               // set while the block is out, so that arrays may outlive the pool
  std::uint64_t children;  // count_children() when it went out
};

// Keeping one column's array (a reward) never keeps another's (observations) alive. Memory that was
// filled once stays here for the next batch: steady state allocates nothing. [any-thread]
class BlockStore : public std::enable_shared_from_this<BlockStore> {
 public:
  // `limit` bounds the bytes of all blocks, out or free; free ones make room for others. memory:
  // nullptr: the heap.
  BlockStore(std::vector<std::size_t> column_bytes, std::size_t limit,
             std::shared_ptr<BlockMemory> memory = nullptr);
  ~BlockStore();
  BlockStore(const BlockStore&) = delete;
  BlockStore& operator=(const BlockStore&) = delete;

  // One block for each column, in order. Throws Error(kMemory) when the limit would be passed
  // (then nothing was taken, and all of `blocks` is null), saying how much is held and how it can
  // be freed.
  void acquire(std::span<Block*> blocks);
  // In a forked child the block is leaked.
  void release(Block* block) noexcept;

  // No more will be acquired: frees what is here, and what comes back as it comes.
  void close() noexcept;

  std::size_t retained_bytes() const noexcept {
    return retained_.load(std::memory_order_relaxed);  // a figure for people
  }

 private:
  Block* take(std::uint32_t column);
  void put_back(Block* block) noexcept;
  void trim() noexcept;

  const std::uint64_t born_ = count_forks();
  const std::vector<std::size_t> column_bytes_;
  const std::size_t limit_;
  const std::shared_ptr<BlockMemory> memory_;
  std::mutex mutex_;
  std::vector<std::vector<Block*>> free_;  // [column]
  bool closed_ = false;
  std::atomic<std::size_t> retained_{0};
};

}  // namespace envpool::runtime
