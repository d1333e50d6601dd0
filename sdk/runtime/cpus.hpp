// cpus.hpp - how much of the machine this process may use.
#pragma once

#include <string>
#include <vector>

namespace envpool::runtime {

// Numbers of the CPUs in this process's affinity mask.
std::vector<int> allowed_cpus();

// How many CPUs' time the cgroups of this process give it (v2 or v1), infinity if they set no
// limit. root: the directory below which /proc and /sys are looked for.
double cgroup_cpus(const std::string& root = "");

// How many threads can run at once: the affinity mask, or the cgroup's CPU quota (v2 or v1, rounded
// up) where that is less; at least 1.
int available_cpus();

// Binds the calling thread to one CPU. Without effect where the system refuses.
void bind_to_cpu(int cpu) noexcept;

}  // namespace envpool::runtime
