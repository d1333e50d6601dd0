// arena.hpp - memory that a pool and its worker processes share: one sparse memfd, mapped once.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "blocks.hpp"

namespace envpool::runtime {

// A file descriptor that closes itself.
class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  ~Descriptor();
  Descriptor(Descriptor&& other) noexcept : fd_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept;
  int get() const { return fd_; }
  int release() {
    const int fd = fd_;
    fd_ = -1;
    return fd;
  }

 private:
  int fd_;
};

// Far larger than what is used: memory is taken as pages are touched, and given back when a block
// is freed. It has no name in any file system. A forked child of the user's process sees a private
// copy of it, see arena.cpp.
class Arena : public BlockMemory {
 public:
  // Of the user's process. The first `fixed` bytes are the caller's, zero; blocks come after them.
  // Throws Error(kMemory).
  static std::shared_ptr<Arena> make(std::size_t fixed, std::size_t for_blocks);
  // Of a worker: maps what it was given and closes the descriptor. Throws Error(kRuntime).
  static std::shared_ptr<Arena> open(Descriptor given);
  ~Arena() override;
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  std::byte* base() const { return base_; }
  std::size_t bytes() const { return bytes_; }
  int file() const { return file_.get(); }
  std::size_t offset_of(const std::byte* at) const { return static_cast<std::size_t>(at - base_); }
  // Gives whole pages within the range back; they read as zero then. [any-thread]
  void forget(std::byte* at, std::size_t bytes) noexcept;

  // Blocks. [any-thread]
  std::byte* allocate(std::size_t bytes) override;
  void free(std::byte* data, std::size_t bytes) noexcept override;
  bool shared() const override { return true; }

 private:
  Arena(Descriptor file, std::byte* base, std::size_t bytes, std::size_t fixed, bool ours);

  Descriptor file_;
  std::byte* const base_;
  const std::size_t bytes_;
  const bool ours_;  // made here, not opened
  const std::uint64_t born_;
  std::mutex mutex_;
  std::size_t next_;                                      // the first byte never given out
  std::map<std::size_t, std::vector<std::size_t>> free_;  // offsets by size
};

}  // namespace envpool::runtime
