// one_cpu.cpp - see one_cpu.hpp.
#include "one_cpu.hpp"

#include <array>
#include <atomic>
#include <cstddef>

namespace doom {
namespace {

// How many of our threads are bound to each CPU. Relaxed: a hint for the choice, nothing follows
// from it.
std::array<std::atomic<int>, CPU_SETSIZE> bound;

std::atomic<int>& bound_to(int cpu) { return bound[static_cast<std::size_t>(cpu)]; }

void bind(pid_t thread, int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<std::size_t>(cpu), &set);
  sched_setaffinity(thread, sizeof set, &set);
}

int choose(const cpu_set_t& allowed) {
  const int here = sched_getcpu();
  if (here < 0 || bound_to(here).load(std::memory_order_relaxed) == 0) return here;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(static_cast<std::size_t>(cpu), &allowed) &&
        bound_to(cpu).load(std::memory_order_relaxed) == 0)
      return cpu;
  return here;
}

}  // namespace

OneCpu::OneCpu(pid_t engine, int& engine_cpu) {
  if (sched_getaffinity(0, sizeof before_, &before_) != 0) return;
  const int cpu = choose(before_);
  if (cpu < 0) return;
  bind(0, cpu);
  if (engine_cpu != cpu) bind(engine, engine_cpu = cpu);
  cpu_ = cpu;
  bound_to(cpu).fetch_add(1, std::memory_order_relaxed);
}

OneCpu::~OneCpu() {
  if (cpu_ < 0) return;
  bound_to(cpu_).fetch_sub(1, std::memory_order_relaxed);
  sched_setaffinity(0, sizeof before_, &before_);
}

}  // namespace doom
