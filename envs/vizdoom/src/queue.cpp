// queue.cpp - see queue.hpp.
#include "queue.hpp"

#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <cstring>
#include <envpool/env.hpp>
#include <utility>

namespace doom {
namespace {

constexpr std::uint32_t kMost = 64;  // messages in a queue
constexpr std::uint32_t kReady = 2;  // Image::state: whoever waits to open it may
constexpr std::size_t kMessageSize = 1 + kMessageText;

struct Slot {
  std::uint64_t length;
  std::uint32_t priority, padding;
  std::uint8_t code;
  char text[kMessageText];
  char rest[7];
};
static_assert(sizeof(Slot) == 152);

timespec after(std::chrono::milliseconds wait) {
  timespec t;
  clock_gettime(CLOCK_REALTIME, &t);  // the clock of condition variables that the engine knows
  const auto ns = t.tv_nsec + std::chrono::nanoseconds(wait).count();
  t.tv_sec += ns / 1000000000;
  t.tv_nsec = ns % 1000000000;
  return t;
}

}  // namespace

// Pointers in it are relative to where they stand, since each side maps it elsewhere. Messages are
// ordered by priority and age; all ours have priority 0, so that the index is a ring: the newest is
// at `first`.
struct Queue::Image {
  std::uint32_t state;
  std::uint32_t padding[3];
  std::int64_t index_from_here;
  std::uint64_t most, message_size, count;
  pthread_mutex_t mutex;
  pthread_cond_t came, left;  // for receivers, for senders
  std::uint64_t first, senders_waiting, receivers_waiting;
  std::int64_t slot_from_here[kMost];
  Slot slots[kMost];

  Slot& slot(std::uint64_t at) { return slots[at % kMost]; }

  bool lock(const timespec& until) { return pthread_mutex_timedlock(&mutex, &until) == 0; }
};

Queue::Queue(std::string name) : name_('/' + std::move(name)) {
  static_assert(offsetof(Image, mutex) == 0x30 && offsetof(Image, came) == 0x58);
  static_assert(offsetof(Image, first) == 0xb8 && offsetof(Image, slot_from_here) == 0xd0);
  static_assert(offsetof(Image, slots) == 0x2d0);
  constexpr std::size_t kSize = 10448;  // the engine expects some bytes more than it uses
  static_assert(sizeof(Image) <= kSize);

  const auto refuse = [&](const char* what, int error) {
    throw envpool::error(
        error == ENOSPC || error == ENOMEM ? EP_E_NOMEM : EP_E_FAILED,
        std::string("no shared memory for an engine: ") + what + " of /dev/shm" + name_ +
            " failed: " + std::strerror(error) +
            (error == ENOSPC ? " (is /dev/shm full? In a container: --shm-size)" : ""));
  };
  const int fd = shm_open(name_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) refuse("shm_open", errno);
  // Allocated now: a page that could not be had later would be a SIGBUS.
  if (const int error = posix_fallocate(fd, 0, kSize); error != 0) {
    close(fd);
    unlink();
    refuse("posix_fallocate", error);
  }
  void* memory = mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (memory == MAP_FAILED) {
    const int error = errno;
    unlink();
    refuse("mmap", error);
  }
  image_.reset(static_cast<Image*>(memory));

  const auto from = [](const auto& to, const auto& here) {
    return reinterpret_cast<const char*>(&to) - reinterpret_cast<const char*>(&here);
  };
  Image& m = *image_;
  m.index_from_here = from(m.slot_from_here, m.index_from_here);
  m.most = kMost;
  m.message_size = kMessageSize;
  for (std::uint32_t i = 0; i < kMost; ++i)
    m.slot_from_here[i] = from(m.slots[i], m.slot_from_here[i]);
  pthread_mutexattr_t mutex;
  pthread_mutexattr_init(&mutex);
  pthread_mutexattr_setpshared(&mutex, PTHREAD_PROCESS_SHARED);
  pthread_mutex_init(&m.mutex, &mutex);
  pthread_mutexattr_destroy(&mutex);
  pthread_condattr_t condition;
  pthread_condattr_init(&condition);
  pthread_condattr_setpshared(&condition, PTHREAD_PROCESS_SHARED);
  pthread_cond_init(&m.came, &condition);
  pthread_cond_init(&m.left, &condition);
  pthread_condattr_destroy(&condition);
  // Release: who sees kReady sees the rest.
  std::atomic_ref(m.state).store(kReady, std::memory_order_release);
}

Queue::~Queue() { unlink(); }

void Queue::Unmap::operator()(Image* image) const noexcept { munmap(image, 10448); }

void Queue::unlink() noexcept {
  if (!name_.empty()) shm_unlink(name_.c_str());
  name_.clear();
}

// Whatever the words of a condition variable mean, all zero is a fresh one; who sleeps, sleeps on
// one of them.
void Queue::abandon() noexcept {
  for (pthread_cond_t* condition : {&image_->came, &image_->left}) {
    auto* words = reinterpret_cast<std::uint32_t*>(condition);
    for (std::size_t i = 0; i < sizeof *condition / sizeof *words; ++i) {
      // Relaxed: the C library's own accesses, woken by the call below, are what is to see it.
      std::atomic_ref(words[i]).store(0, std::memory_order_relaxed);
      syscall(SYS_futex, words + i, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
    }
  }
}

bool Queue::send(Code code, const std::string& text, std::chrono::milliseconds wait) {
  Image& m = *image_;
  const timespec until = after(wait);
  if (!m.lock(until)) return false;
  while (m.count == kMost) {
    ++m.senders_waiting;
    const int failed = pthread_cond_timedwait(&m.left, &m.mutex, &until);
    --m.senders_waiting;
    if (failed != 0 && m.count == kMost) {
      pthread_mutex_unlock(&m.mutex);
      return false;
    }
  }
  m.first = (m.first == 0 ? kMost : m.first) - 1;
  ++m.count;
  Slot& slot = m.slot(m.first);
  slot.length = kMessageSize;
  slot.priority = 0;
  slot.code = static_cast<std::uint8_t>(code);
  const std::size_t size = std::min(text.size(), kMessageText - 1);
  std::memcpy(slot.text, text.data(), size);
  slot.text[size] = '\0';
  const bool awaited = m.receivers_waiting != 0;
  pthread_mutex_unlock(&m.mutex);
  if (awaited) pthread_cond_signal(&m.came);
  return true;
}

std::optional<Message> Queue::receive(std::chrono::milliseconds wait) {
  Image& m = *image_;
  const timespec until = after(wait);
  if (!m.lock(until)) return std::nullopt;
  while (m.count == 0) {
    ++m.receivers_waiting;
    const int failed = pthread_cond_timedwait(&m.came, &m.mutex, &until);
    --m.receivers_waiting;
    if (failed != 0 && m.count == 0) {
      pthread_mutex_unlock(&m.mutex);
      return std::nullopt;
    }
  }
  Slot& slot = m.slot(m.first + m.count - 1);
  Message message{static_cast<Code>(slot.code), {}};
  if (message.code == Code::kError)
    message.text.assign(slot.text, strnlen(slot.text, sizeof slot.text));
  slot.length = 0;
  slot.priority = 0;
  --m.count;
  const bool awaited = m.senders_waiting != 0;
  pthread_mutex_unlock(&m.mutex);
  if (awaited) pthread_cond_signal(&m.left);
  return message;
}

}  // namespace doom
