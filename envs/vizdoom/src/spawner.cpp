// spawner.cpp - see spawner.hpp.
#include "spawner.hpp"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <deque>
#include <envpool/env.hpp>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <string_view>
#include <thread>
#include <utility>

namespace doom {
namespace {

constexpr std::size_t kTail = 2000;  // characters of output that are kept

// The kernel tells a child of its parent's death when the *thread* that made it ends. So all
// children are made by one thread, which never ends. It also watches them.
class Spawner {
 public:
  static Spawner& instance() {
    // Acquire and release: who sees the spawner sees it whole.
    Spawner* there = instance_.load(std::memory_order_acquire);
    if (there != nullptr) return *there;
    static const int fork_handler = pthread_atfork(nullptr, nullptr, forget);
    (void)fork_handler;
    auto made = std::make_unique<Spawner>();
    if (!instance_.compare_exchange_strong(there, made.get(), std::memory_order_acq_rel))
      return *there;
    std::thread(&Spawner::run, made.get()).detach();
    return *made.release();  // immortal
  }

  Spawner() : bell_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (bell_ < 0)
      throw envpool::error(EP_E_FAILED, std::string("no eventfd: ") + std::strerror(errno));
  }
  ~Spawner() { close(bell_); }
  Spawner(const Spawner&) = delete;
  Spawner& operator=(const Spawner&) = delete;

  // Has the thread do something and waits for the result.
  pid_t call(std::function<pid_t()> job) {
    std::packaged_task<pid_t()> task(std::move(job));
    std::future<pid_t> result = task.get_future();
    {
      const std::lock_guard lock(mutex_);
      tasks_.push_back(std::move(task));
    }
    eventfd_write(bell_, 1);
    return result.get();
  }

  // By the thread itself, in a call().
  void watch(int pidfd, std::function<void()> at_death) { watched_[pidfd] = std::move(at_death); }
  void forget(int pidfd) { watched_.erase(pidfd); }

 private:
  // In a forked child, where its thread is not: the next user makes another.
  static void forget() { instance_.store(nullptr, std::memory_order_release); }

  void run() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, nullptr);  // signals are for the user's threads
    prctl(PR_SET_NAME, "doom-spawner");
    for (;;) {
      std::vector<pollfd> files = {{bell_, POLLIN, 0}};
      for (const auto& [pidfd, at_death] : watched_) files.push_back({pidfd, POLLIN, 0});
      poll(files.data(), files.size(), -1);
      for (const pollfd& file : files) {
        if (file.revents == 0 || file.fd == bell_) continue;
        const auto died = watched_.extract(file.fd);
        died.mapped()();
      }
      eventfd_t rings;
      eventfd_read(bell_, &rings);
      std::unique_lock lock(mutex_);
      std::deque<std::packaged_task<pid_t()>> tasks = std::exchange(tasks_, {});
      lock.unlock();
      for (auto& task : tasks) task();
    }
  }

  static std::atomic<Spawner*> instance_;
  const int bell_;
  std::map<int, std::function<void()>> watched_;  // the thread's own
  std::mutex mutex_;
  std::deque<std::packaged_task<pid_t()>> tasks_;
};
std::atomic<Spawner*> Spawner::instance_{nullptr};

struct Order {
  const char* path;
  char* const* arguments;
  char* const* environment;
  const char* folder;
  int input, output;  // input -1: none
  bool outlives_us;
  pid_t parent;
  cpu_set_t cpus;  // where it may run: as the thread that wants it
};

// Between vfork and exec: shares our memory, so nothing but system calls. Returns errno.
int become(const Order& order) {
  if (!order.outlives_us) prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != order.parent) _exit(0);  // it died meanwhile
  setsid();
  sched_setaffinity(0, sizeof order.cpus, &order.cpus);
  for (int signal = 1; signal < NSIG; ++signal) ::signal(signal, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  const int null = open("/dev/null", O_RDWR);
  const int input = order.input < 0 ? null : order.input;
  if (null < 0 || dup2(input, 0) < 0 || dup2(order.output, 1) < 0 || dup2(order.output, 2) < 0)
    return errno;
  syscall(SYS_close_range, 3u, ~0u,
          0u);  // an old kernel without it leaves what is not close-on-exec
  if (chdir(order.folder) != 0) return errno;
  execve(order.path, order.arguments, order.environment);
  return errno;
}

// Ours, with these variables in place of those of the same names; for exec. Points into both.
std::vector<char*> environment_with(const std::vector<std::string>& variables) {
  std::vector<char*> all;
  for (const std::string& variable : variables) all.push_back(const_cast<char*>(variable.c_str()));
  for (char** own = environ; *own != nullptr; ++own) {
    const std::string_view text(*own);
    const auto replaced = [&](const std::string& v) {
      return text.starts_with(std::string_view(v).substr(0, v.find('=') + 1));
    };
    if (std::ranges::none_of(variables, replaced)) all.push_back(*own);
  }
  all.push_back(nullptr);
  return all;
}

// On the spawner's thread. The pid, or -errno.
pid_t start(const Order& order) {
  volatile int failed = 0;
  const pid_t pid = vfork();
  if (pid < 0) return -errno;
  if (pid == 0) {
    failed = become(order);
    _exit(127);
  }
  if (failed == 0) return pid;
  waitpid(pid, nullptr, 0);
  return -failed;
}

}  // namespace

Child::Child(const Program& program, std::function<void()> at_death) {
  std::vector<char*> arguments = {const_cast<char*>(program.path.c_str())};
  for (const std::string& argument : program.arguments)
    arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  std::vector<char*> environment = environment_with(program.variables);
  int ends[2];
  // Not blocking, at both ends: a child never waits for a reader, what does not fit is lost.
  if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0)
    throw envpool::error(EP_E_FAILED,
                         std::string("no pipe for an engine: ") + std::strerror(errno));
  Order order = {program.path.c_str(),   arguments.data(), environment.data(),
                 program.folder.c_str(), program.input,    ends[1],
                 program.outlives_us,    getpid(),         {}};
  sched_getaffinity(0, sizeof order.cpus, &order.cpus);
  Spawner& spawner = Spawner::instance();
  const pid_t pid = spawner.call([&] {
    const pid_t made = start(order);
    if (made > 0) death_ = static_cast<int>(syscall(SYS_pidfd_open, made, 0u));
    if (death_ >= 0) spawner.watch(death_, std::move(at_death));
    return made;
  });
  close(ends[1]);
  if (pid < 0) {
    close(ends[0]);
    throw envpool::error(EP_E_FAILED, program.path + " could not be started in " + program.folder +
                                          ": " + std::strerror(-pid));
  }
  pid_ = pid;
  output_ = ends[0];
}

Child::~Child() {
  if (death_ >= 0) {
    Spawner& spawner = Spawner::instance();
    spawner.call([&] {
      spawner.forget(death_);
      return 0;
    });
    close(death_);
  }
  kill();
  close(output_);
}

bool Child::alive() {
  if (gone_) return false;
  const pid_t pid = waitpid(pid_, &status_, WNOHANG);
  if (pid == 0 || (pid < 0 && errno == EINTR)) return true;
  if (pid < 0) status_ = -1;  // somebody else in this process has reaped it
  return !(gone_ = true);
}

void Child::kill() {
  if (!alive()) return;
  ::kill(pid_, SIGKILL);
  while (waitpid(pid_, &status_, 0) < 0 && errno == EINTR) {
  }
  gone_ = true;
}

std::string Child::fate() const {
  if (!gone_) return "is running";
  if (status_ == -1) return "ended";
  if (WIFSIGNALED(status_))
    return "was killed by signal " + std::to_string(WTERMSIG(status_)) + " (" +
           strsignal(WTERMSIG(status_)) + ")";
  return "exited with code " + std::to_string(WEXITSTATUS(status_));
}

void Child::listen() {
  char buffer[4096];
  for (ssize_t got; (got = read(output_, buffer, sizeof buffer)) > 0;) {
    tail_.append(buffer, static_cast<std::size_t>(got));
    if (tail_.size() > 2 * kTail) tail_.erase(0, tail_.size() - kTail);
  }
}

std::string Child::last_words() {
  listen();
  std::string words = tail_.size() > kTail ? tail_.substr(tail_.size() - kTail) : tail_;
  for (char& c : words)
    if (static_cast<unsigned char>(c) < ' ' && c != '\n') c = ' ';
  while (!words.empty() && (words.back() == '\n' || words.back() == ' ')) words.pop_back();
  return words;
}

}  // namespace doom
