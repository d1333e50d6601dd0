// queue.hpp - a message queue in shared memory, as the engine's library (Boost.Interprocess,
// message_queue) lays it out. Each engine has two; the controller makes them.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "protocol.hpp"

namespace doom {

struct Message {
  Code code;
  std::string text;
};

// One thread at a time may send or receive; the other side is the engine.
class Queue {
 public:
  using Clock = std::chrono::steady_clock;

  // Makes the object /dev/shm/<name>, which must not be there. Throws envpool::error: no shared
  // memory left.
  explicit Queue(std::string name);
  ~Queue();
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  // Removes the name: who has opened the queue goes on using it.
  void unlink() noexcept;

  // Both give up after `wait`: false, nothing. That is not an error yet: the other side may be
  // slow, or dead and gone with the lock.
  bool send(Code code, const std::string& text, std::chrono::milliseconds wait);
  std::optional<Message> receive(std::chrono::milliseconds wait);

  // When the engine is dead, by any thread: who waits here wakes up. A process killed in the middle
  // of a signal leaves a condition variable locked, and then not even a wait with a timeout ends.
  void abandon() noexcept;

 private:
  struct Image;
  struct Unmap {
    void operator()(Image* image) const noexcept;
  };

  std::string name_;
  std::unique_ptr<Image, Unmap> image_;
};

}  // namespace doom
