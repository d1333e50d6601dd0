// arena.cpp - see arena.hpp.
//
// Forks of the user's process. A child that reads an array which it inherited must find what it
// was: so in the child the mapping is replaced by a private one of the same file, and the parent
// never reuses a block that was out at the fork (BlockStore sees to that), nor gives its pages
// back.
#include "arena.hpp"

#include <fcntl.h>
#include <linux/memfd.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "error.hpp"

namespace envpool::runtime {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kLine = 64;

std::size_t up(std::size_t bytes, std::size_t unit) { return (bytes + unit - 1) / unit * unit; }

// The arenas of this process, for the child of a fork. Never destroyed.
struct Arenas {
  std::mutex mutex;
  std::vector<Arena*> all;
};

Arenas& the_arenas() {
  static Arenas& arenas = *new Arenas;
  static const int registered =
      pthread_atfork([] { the_arenas().mutex.lock(); }, [] { the_arenas().mutex.unlock(); },
                     [] {
                       for (Arena* arena : the_arenas().all) {
                         mmap(arena->base(), arena->bytes(), PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, arena->file(), 0);
                       }
                       the_arenas().all.clear();
                       the_arenas().mutex.unlock();
                     });
  (void)registered;
  return arenas;
}

int make_file() {
  // Sealed against execution where the kernel knows that, as some insist on.
  constexpr unsigned kNoExec = 0x0008;
  const unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
  long fd = syscall(SYS_memfd_create, "envpool", flags | kNoExec);
  if (fd < 0 && errno == EINVAL) fd = syscall(SYS_memfd_create, "envpool", flags);
  return static_cast<int>(fd);
}

std::byte* map(int fd, std::size_t bytes) {
  void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
  if (at == MAP_FAILED) return nullptr;
  madvise(at, bytes, MADV_DONTDUMP);  // a core dump would touch every page of it
  return static_cast<std::byte*>(at);
}

}  // namespace

Descriptor::~Descriptor() {
  if (fd_ >= 0) close(fd_);
}

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  if (this != &other) {
    if (fd_ >= 0) close(fd_);
    fd_ = other.release();
  }
  return *this;
}

Arena::Arena(Descriptor file, std::byte* base, std::size_t bytes, std::size_t fixed, bool ours)
    : file_(std::move(file)),
      base_(base),
      bytes_(bytes),
      ours_(ours),
      born_(count_forks()),
      next_(up(fixed, kPage)) {
  if (!ours_) return;
  const std::lock_guard lock(the_arenas().mutex);
  the_arenas().all.push_back(this);
}

std::shared_ptr<Arena> Arena::make(std::size_t fixed, std::size_t for_blocks) {
  const std::size_t bytes = up(fixed, kPage) + up(for_blocks, kPage);
  const auto refuse = [&](const char* what) {
    return Error(ErrorKind::kMemory,
                 "shared memory for worker processes, " + std::to_string(bytes >> 20) +
                     " MiB of address space: " + what + ": " + std::strerror(errno));
  };
  Descriptor file(make_file());
  if (file.get() < 0) throw refuse("memfd_create");
  if (ftruncate(file.get(), static_cast<off_t>(bytes)) != 0) throw refuse("ftruncate");
  fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
  std::byte* base = map(file.get(), bytes);
  if (!base) throw refuse("mmap");
  return std::shared_ptr<Arena>(new Arena(std::move(file), base, bytes, fixed, true));
}

std::shared_ptr<Arena> Arena::open(Descriptor given) {
  // An argument may live as long as the caller's whole expression: for a worker that is its life.
  const Descriptor file(std::move(given));
  struct stat about{};
  if (fstat(file.get(), &about) != 0 || about.st_size <= 0) {
    throw Error(ErrorKind::kRuntime, "a worker was started without its shared memory");
  }
  const auto bytes = static_cast<std::size_t>(about.st_size);
  std::byte* base = map(file.get(), bytes);
  if (!base) {
    throw Error(ErrorKind::kRuntime,
                std::string("a worker can't map its shared memory: ") + std::strerror(errno));
  }
  return std::shared_ptr<Arena>(new Arena(Descriptor(), base, bytes, bytes, false));
}

Arena::~Arena() {
  if (count_forks() != born_) {  // the child of a fork: its arrays still lie here
    file_.release();
    return;
  }
  if (ours_) {
    const std::lock_guard lock(the_arenas().mutex);
    std::erase(the_arenas().all, this);
  }
  munmap(base_, bytes_);
}

void Arena::forget(std::byte* at, std::size_t bytes) noexcept {
  const std::size_t begin = up(offset_of(at), kPage);
  const std::size_t end = (offset_of(at) + bytes) / kPage * kPage;
  if (begin < end) madvise(base_ + begin, end - begin, MADV_REMOVE);
}

std::byte* Arena::allocate(std::size_t bytes) {
  // Large ones in pages of their own, so that they can be given back.
  bytes = up(bytes, bytes >= kPage ? kPage : kLine);
  const std::lock_guard lock(mutex_);
  auto& same = free_[bytes];
  if (!same.empty()) {
    const std::size_t at = same.back();
    same.pop_back();
    return base_ + at;
  }
  if (bytes >= kPage) next_ = up(next_, kPage);
  if (bytes > bytes_ - next_) return nullptr;
  same.reserve(same.capacity() + 1);  // room for its return
  const std::size_t at = next_;
  next_ += bytes;
  return base_ + at;
}

void Arena::free(std::byte* data, std::size_t bytes) noexcept {
  bytes = up(bytes, bytes >= kPage ? kPage : kLine);
  if (bytes >= kPage) forget(data, bytes);
  const std::lock_guard lock(mutex_);
  free_[bytes].push_back(offset_of(data));
}

}  // namespace envpool::runtime
