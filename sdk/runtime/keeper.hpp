// keeper.hpp - the one thread that starts this process's worker processes, sees them end, and reads
// what they print. It lives as long as the process: workers are told by the kernel when the thread
// that started them ends (PR_SET_PDEATHSIG), and that must mean that the process did.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "arena.hpp"

namespace envpool::runtime {

// One worker process. The keeper and its pool hold it together. [any-thread]
class Child {
 public:
  struct Line {
    int level;  // EP_LOG_*; EP_LOG_INFO for what was just printed
    std::string text;
  };

  // Sends SIGKILL, if it still lives; `why` is then how it ended.
  void kill(const std::string& why);
  // Acquire: it is gone for certain, and what it wrote is there.
  bool dead() const { return dead_.load(std::memory_order_acquire); }
  // Of one that is dead: "killed by signal 11 (Segmentation fault)", and its last lines.
  std::string obituary() const;
  pid_t pid() const { return pid_; }
  // Lines since the last call; the oldest are dropped when nobody calls.
  std::vector<Line> take_lines();
  bool has_lines() const { return has_lines_.load(std::memory_order_relaxed); }  // a hint

  Child(pid_t pid, Descriptor process, Descriptor output, std::function<void()> on_death);

 private:
  friend class Keeper;

  void read_output();  // by the keeper
  void add_line(std::string line);
  void bury();  // by the keeper

  const pid_t pid_;
  const Descriptor process_, output_;  // pidfd, the reading end of its stdout and stderr
  const std::function<void()> on_death_;
  std::atomic<bool> dead_{false}, has_lines_{false};
  bool output_ended_ = false;  // the keeper's
  std::string partial_;        // the keeper's: the line not yet ended
  mutable std::mutex mutex_;
  std::string how_;  // it ended
  std::string why_;  // it was killed
  std::deque<Line> lines_;
  std::deque<std::string> last_;
};

class Keeper {
 public:
  // Of this process, started at the first call. In the child of a fork: a new one.
  static Keeper& get();

  struct Program {
    std::vector<std::string> command;
    std::vector<std::string> environment;
    int arena;  // becomes descriptor 3
  };
  // Starts a process, in a process group of its own, with standard input closed. on_death: called
  // by the keeper after dead() is set; must not wait for anything. Throws Error(kRuntime).
  std::shared_ptr<Child> spawn(const Program& program, std::function<void()> on_death);

 private:
  struct Request;
  Keeper();
  void run();
  void serve(Request& request);
  void poll_children();

  Descriptor wake_;  // an eventfd
  std::mutex mutex_;
  std::deque<Request*> requests_;
  std::vector<std::shared_ptr<Child>> children_;  // the keeper's own
};

// As a worker writes a line of its log, so that take_lines() knows its level.
std::string framed(int level, const std::string& text);

}  // namespace envpool::runtime
