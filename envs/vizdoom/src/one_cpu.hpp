// one_cpu.hpp - keeps a thread and the engine that it waits for on one CPU.
#pragma once

#include <sched.h>
#include <sys/types.h>

namespace doom {

// While it lives, the calling thread stays on the CPU where it is, and so does the engine. They
// take turns, tens of thousands of times a second: on two CPUs each turn would wake a sleeping one,
// which costs more than the tic itself. If another thread of this process is already bound there
// while some CPU has none, that one is taken instead. Without effect where the system refuses.
class OneCpu {
 public:
  // engine_cpu: where the engine was bound to last, -1: nowhere yet; kept up to date.
  OneCpu(pid_t engine, int& engine_cpu);
  ~OneCpu();
  OneCpu(const OneCpu&) = delete;
  OneCpu& operator=(const OneCpu&) = delete;

 private:
  cpu_set_t before_;  // where the thread was allowed to run
  int cpu_ = -1;
};

}  // namespace doom
