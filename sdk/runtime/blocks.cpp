// blocks.cpp - see blocks.hpp.
#include "blocks.hpp"

#include <pthread.h>

#include <algorithm>
#include <new>
#include <string>
#include <utility>

#include "error.hpp"

namespace envpool::runtime {
namespace {

constexpr std::align_val_t kAlignment{64};

// Relaxed, as their loads. forks: the child has one thread. children: it counts what was out before
// the fork, and who gives such a block back comes after that fork in his own thread or by the
// store's mutex; a block taken or given back at the very time of the fork is not one that the child
// can read.
std::atomic<std::uint64_t> forks{0}, children{0};

void count_both() {
  static const int registered =
      pthread_atfork([] { children.fetch_add(1, std::memory_order_relaxed); }, nullptr,
                     [] { forks.fetch_add(1, std::memory_order_relaxed); });
  (void)registered;
}

class Heap : public BlockMemory {
 public:
  std::byte* allocate(std::size_t bytes) override {
    return static_cast<std::byte*>(::operator new(bytes, kAlignment));
  }
  void free(std::byte* data, std::size_t) noexcept override { ::operator delete(data, kAlignment); }
  bool shared() const override { return false; }
};

}  // namespace

std::uint64_t count_forks() {
  count_both();
  return forks.load(std::memory_order_relaxed);
}

std::uint64_t count_children() {
  count_both();
  return children.load(std::memory_order_relaxed);
}

BlockStore::BlockStore(std::vector<std::size_t> column_bytes, std::size_t limit,
                       std::shared_ptr<BlockMemory> memory)
    : column_bytes_(std::move(column_bytes)),
      limit_(limit),
      memory_(memory ? std::move(memory) : std::make_shared<Heap>()),
      free_(column_bytes_.size()) {}

BlockStore::~BlockStore() { trim(); }

void BlockStore::acquire(std::span<Block*> blocks) {
  const std::lock_guard lock(mutex_);
  std::uint32_t taken = 0;
  try {
    for (; taken < blocks.size(); ++taken) blocks[taken] = take(taken);
  } catch (...) {
    while (taken > 0) put_back(std::exchange(blocks[--taken], nullptr));
    throw;
  }
}

Block* BlockStore::take(std::uint32_t column) {
  auto& free = free_[column];
  if (free.empty()) {
    const std::size_t bytes = std::max<std::size_t>(column_bytes_[column], 1);
    if (retained_bytes() + bytes > limit_) trim();
    if (retained_bytes() + bytes > limit_) {
      throw Error(ErrorKind::kMemory,
                  "batches that are still referenced hold " + std::to_string(retained_bytes()) +
                      " bytes, the limit is " + std::to_string(limit_) +
                      ": drop references to old observations, or copy what is to be kept");
    }
    // Room for its return is made now, so that release() can't fail.
    free.reserve(free.capacity() + 1);
    auto block = std::make_unique<Block>(Block{nullptr, bytes, column, nullptr, 0});
    block->data = memory_->allocate(bytes);
    if (!block->data) throw Error(ErrorKind::kMemory, "no address space is left for batches");
    retained_.fetch_add(bytes, std::memory_order_relaxed);  // written under mutex_ only
    free.push_back(block.release());
  }
  Block* block = free.back();
  free.pop_back();
  block->store = shared_from_this();
  block->children = count_children();
  return block;
}

void BlockStore::put_back(Block* block) noexcept {
  block->store.reset();
  free_[block->column].push_back(block);
}

// Frees what nobody uses.
void BlockStore::trim() noexcept {
  for (auto& blocks : free_) {
    for (Block* block : blocks) {
      retained_.fetch_sub(block->bytes, std::memory_order_relaxed);
      memory_->free(block->data, block->bytes);
      delete block;
    }
    blocks.clear();  // keeps its capacity: room for the blocks that are out
  }
}

void BlockStore::release(Block* block) noexcept {
  if (count_forks() != born_) return;
  const std::shared_ptr<BlockStore> self = std::move(block->store);  // we may be its last use
  if (memory_->shared() && block->children != count_children()) {
    return static_cast<void>(delete block);  // a child may still read it: never written again
  }
  const std::lock_guard lock(mutex_);
  put_back(block);
  if (closed_) trim();
}

void BlockStore::close() noexcept {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  trim();
}

}  // namespace envpool::runtime
