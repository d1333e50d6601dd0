// keeper.cpp - see keeper.hpp.
#include "keeper.hpp"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <envpool/env.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <thread>
#include <utility>

#include "blocks.hpp"
#include "error.hpp"
#include "host.hpp"

namespace envpool::runtime {
namespace {

constexpr std::size_t kMostLines = 1000;  // that wait for take_lines()
constexpr std::size_t kLastLines = 5;     // in an obituary
constexpr std::size_t kMostLine = 4000;   // bytes
constexpr int kReadsARound = 16;          // so that a chatterbox holds up nobody
constexpr char kFrame = '\x01';           // begins a line of the log, then its level and kFrameEnd
constexpr char kFrameEnd = '\x02';

[[noreturn]] void fail(const std::string& what, int error) {
  throw Error(ErrorKind::kRuntime,
              "a worker process can't be started: " + what + ": " + std::strerror(error));
}

class SpawnActions {
 public:
  SpawnActions() { posix_spawn_file_actions_init(&actions_); }
  ~SpawnActions() { posix_spawn_file_actions_destroy(&actions_); }
  SpawnActions(const SpawnActions&) = delete;
  SpawnActions& operator=(const SpawnActions&) = delete;
  posix_spawn_file_actions_t* get() { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_;
};

class SpawnAttributes {
 public:
  SpawnAttributes() {
    posix_spawnattr_init(&attributes_);
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes_, &none);
    posix_spawnattr_setsigdefault(&attributes_, &all);  // Python ignores SIGPIPE
    // A group of its own: Ctrl-C is the user's process's business.
    posix_spawnattr_setpgroup(&attributes_, 0);
    posix_spawnattr_setflags(
        &attributes_, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  }
  ~SpawnAttributes() { posix_spawnattr_destroy(&attributes_); }
  SpawnAttributes(const SpawnAttributes&) = delete;
  SpawnAttributes& operator=(const SpawnAttributes&) = delete;
  const posix_spawnattr_t* get() const { return &attributes_; }

 private:
  posix_spawnattr_t attributes_;
};

// Not among the numbers that the new process gets: a descriptor can't be moved onto itself.
Descriptor moved_up(int fd) {
  Descriptor moved(fcntl(fd, F_DUPFD_CLOEXEC, 10));
  if (moved.get() < 0) fail("duplicating a descriptor (ulimit -n?)", errno);
  return moved;
}

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> all;
  for (const std::string& text : texts) all.push_back(const_cast<char*>(text.c_str()));
  all.push_back(nullptr);
  return all;
}

// Two descriptors a worker: what the system allows in all, if that is more than now.
void raise_descriptor_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
  limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, 65536);
  setrlimit(RLIMIT_NOFILE, &limit);
}

std::string describe_end(const siginfo_t& how) {
  const std::string number = std::to_string(how.si_status);
  if (how.si_code == CLD_EXITED) return "exited with code " + number;
  const char* name = strsignal(how.si_status);
  return "was killed by signal " + number + " (" + (name ? name : "?") + ")";
}

}  // namespace

// ---- Child --------------------------------------------------------------------------------------

Child::Child(pid_t pid, Descriptor process, Descriptor output, std::function<void()> on_death)
    : pid_(pid),
      process_(std::move(process)),
      output_(std::move(output)),
      on_death_(std::move(on_death)) {}

void Child::kill(const std::string& why) {
  const std::lock_guard lock(mutex_);
  if (why_.empty()) why_ = why;
  syscall(SYS_pidfd_send_signal, process_.get(), SIGKILL, nullptr, 0);
}

std::string Child::obituary() const {
  const std::lock_guard lock(mutex_);
  std::string text = "its worker process " + (why_.empty() ? how_ : "was killed, since " + why_);
  if (last_.empty()) return text;
  text += "; it printed last:";
  for (const std::string& line : last_) text += "\n  " + line;
  return text;
}

std::vector<Child::Line> Child::take_lines() {
  const std::lock_guard lock(mutex_);
  has_lines_.store(false, std::memory_order_relaxed);
  std::vector<Line> lines(std::make_move_iterator(lines_.begin()),
                          std::make_move_iterator(lines_.end()));
  lines_.clear();
  return lines;
}

void Child::add_line(std::string line) {
  int level = EP_LOG_INFO;
  if (const std::size_t end = line.find(kFrameEnd); line[0] == kFrame && end != line.npos) {
    level = std::atoi(line.c_str() + 1);
    line.erase(0, end + 1);
  }
  line = shown(line.c_str());
  const std::lock_guard lock(mutex_);
  last_.push_back(line);
  if (last_.size() > kLastLines) last_.pop_front();
  lines_.push_back({level, std::move(line)});
  if (lines_.size() > kMostLines) lines_.pop_front();
  has_lines_.store(true, std::memory_order_relaxed);
}

void Child::read_output() {
  std::array<char, 4096> buffer;
  for (int i = 0; i < kReadsARound && !output_ended_; ++i) {
    const ssize_t count = read(output_.get(), buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return;  // nothing there at present
    output_ended_ = count == 0;
    partial_.append(buffer.data(), static_cast<std::size_t>(count));
    for (;;) {
      const std::size_t end = std::min(partial_.find('\n'), kMostLine);
      if (end >= partial_.size()) break;
      if (end > 0) add_line(partial_.substr(0, end));
      partial_.erase(0, end + (partial_[end] == '\n'));
    }
  }
}

void Child::bury() {
  siginfo_t how{};
  const auto wait = [&](int options) {
    constexpr auto kPidfd = static_cast<idtype_t>(3);  // P_PIDFD
    return waitid(kPidfd, static_cast<id_t>(process_.get()), &how, WEXITED | WNOHANG | options);
  };
  // Engines may have started processes of their own in the group, whose number is ours until we
  // reap.
  if (wait(WNOWAIT) == 0) ::kill(-pid_, SIGKILL);
  const int waited = wait(0);
  // What it printed before is in the pipe; whoever inherited the other end may go on printing.
  read_output();
  if (!partial_.empty()) add_line(std::exchange(partial_, {}));
  {
    const std::lock_guard lock(mutex_);
    // Somebody else in this process may have waited for all children.
    how_ = waited == 0 && how.si_pid != 0 ? describe_end(how) : "ended, nobody knows how";
  }
  // Release: who sees it sees how it ended, and what it wrote to the arena.
  dead_.store(true, std::memory_order_release);
  on_death_();
}

// ---- Keeper -------------------------------------------------------------------------------------

struct Keeper::Request {
  const Program& program;
  std::function<void()> on_death;
  std::shared_ptr<Child> child;
  std::exception_ptr error;
  bool done = false;
  std::condition_variable finished;
};

Keeper& Keeper::get() {
  static std::mutex* mutex = new std::mutex;
  static Keeper* keeper = nullptr;
  static std::uint64_t forks = 0;
  // In the child of a fork the mutex may be held by a thread that isn't there, and the keeper has
  // no thread: new ones. Its only thread calls this first.
  static std::uint64_t mutex_forks = count_forks();
  if (count_forks() != mutex_forks) {
    mutex_forks = count_forks();
    mutex = new std::mutex;
  }
  const std::lock_guard lock(*mutex);
  if (!keeper || forks != count_forks()) {
    keeper = new Keeper;  // lives as long as the process
    forks = count_forks();
  }
  return *keeper;
}

Keeper::Keeper() : wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (wake_.get() < 0) fail("eventfd", errno);
  raise_descriptor_limit();
  // Signals are for the threads that know what to do about them.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    std::thread([this] { run(); }).detach();
  } catch (const std::exception& error) {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw Error(ErrorKind::kRuntime, std::string("can't start a thread: ") + error.what());
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

std::shared_ptr<Child> Keeper::spawn(const Program& program, std::function<void()> on_death) {
  Request request{program, std::move(on_death), nullptr, nullptr, false, {}};
  std::unique_lock lock(mutex_);
  requests_.push_back(&request);
  eventfd_write(wake_.get(), 1);
  request.finished.wait(lock, [&] { return request.done; });
  if (request.error) std::rethrow_exception(request.error);
  return request.child;
}

void Keeper::run() {
  for (;;) {
    poll_children();
    std::unique_lock lock(mutex_);
    while (!requests_.empty()) {
      Request& request = *requests_.front();
      requests_.pop_front();
      lock.unlock();
      try {
        serve(request);
      } catch (...) {
        request.error = std::current_exception();
      }
      lock.lock();
      request.done = true;
      request.finished.notify_all();
    }
  }
}

void Keeper::serve(Request& request) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) fail("pipe (ulimit -n?)", errno);
  Descriptor reading(ends[0]), writing(ends[1]);
  fcntl(reading.get(), F_SETFL, O_NONBLOCK);
  const Descriptor out = moved_up(writing.get()), arena = moved_up(request.program.arena);

  SpawnActions actions;
  posix_spawn_file_actions_addopen(actions.get(), 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(actions.get(), out.get(), 1);
  posix_spawn_file_actions_adddup2(actions.get(), out.get(), 2);
  posix_spawn_file_actions_adddup2(actions.get(), arena.get(), 3);
  const SpawnAttributes attributes;
  const auto command = pointers(request.program.command);
  const auto environment = pointers(request.program.environment);
  pid_t pid = 0;
  if (const int error = posix_spawn(&pid, command[0], actions.get(), attributes.get(),
                                    command.data(), environment.data())) {
    fail(request.program.command[0], error);
  }
  Descriptor process(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (process.get() < 0) {
    const int error = errno;
    ::kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
    fail("pidfd_open (needs Linux 5.3, and descriptors: ulimit -n)", error);
  }
  request.child = std::make_shared<Child>(pid, std::move(process), std::move(reading),
                                          std::move(request.on_death));
  children_.push_back(request.child);
}

void Keeper::poll_children() {
  std::vector<pollfd> events{{wake_.get(), POLLIN, 0}};
  for (const auto& child : children_) {
    events.push_back({child->process_.get(), POLLIN, 0});
    events.push_back({child->output_ended_ ? -1 : child->output_.get(), POLLIN, 0});
  }
  if (poll(events.data(), events.size(), -1) < 0) return;
  eventfd_t ignored;
  eventfd_read(wake_.get(), &ignored);
  std::vector<std::shared_ptr<Child>> living;
  for (std::size_t i = 0; i < children_.size(); ++i) {
    if (events[2 * i + 2].revents) children_[i]->read_output();
    if (events[2 * i + 1].revents) {
      children_[i]->bury();
    } else {
      living.push_back(std::move(children_[i]));
    }
  }
  children_ = std::move(living);
}

std::string framed(int level, const std::string& text) {
  std::string line = kFrame + std::to_string(level) + kFrameEnd + text;
  std::ranges::replace(line, '\n', ' ');
  return line + '\n';
}

}  // namespace envpool::runtime
