// cpus.cpp - affinity and cgroup limits, as Linux tells them.
#include "cpus.hpp"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <optional>
#include <string>
#include <thread>

namespace envpool::runtime {
namespace {

// "quota period" of cgroup v2's cpu.max, "max" meaning no limit.
std::optional<double> quota_v2(const std::string& folder) {
  std::ifstream file(folder + "/cpu.max");
  double quota = 0, period = 0;  // "max" is no number
  if (!(file >> quota >> period) || quota <= 0 || period <= 0) return std::nullopt;
  return quota / period;
}

std::optional<double> quota_v1(const std::string& folder) {
  std::ifstream quota_file(folder + "/cpu.cfs_quota_us"),
      period_file(folder + "/cpu.cfs_period_us");
  double quota = 0, period = 0;
  if (!(quota_file >> quota) || !(period_file >> period) || quota <= 0 || period <= 0) {
    return std::nullopt;
  }
  return quota / period;
}

}  // namespace

// The least quota on the way from this process's cgroup up to the root, since each of them binds.
double cgroup_cpus(const std::string& root) {
  double least = INFINITY;
  std::ifstream groups(root + "/proc/self/cgroup");  // lines "id:controllers:path"
  for (std::string line; std::getline(groups, line);) {
    const auto first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool v2 = controllers.empty();
    if (!v2 && ("," + controllers + ",").find(",cpu,") == std::string::npos) continue;
    const std::string top = root + (v2 ? "/sys/fs/cgroup" : "/sys/fs/cgroup/cpu");
    for (std::string path = line.substr(second + 1);;) {
      const auto quota = v2 ? quota_v2(top + path) : quota_v1(top + path);
      if (quota) least = std::min(least, *quota);
      if (path.empty() || path == "/") break;
      path.erase(path.rfind('/'));
    }
  }
  return least;
}

std::vector<int> allowed_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cpus;
  if (sched_getaffinity(0, sizeof set, &set) == 0) {
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
    }
  }
  return cpus;
}

int available_cpus() {
  int count = static_cast<int>(allowed_cpus().size());
  if (count == 0) count = static_cast<int>(std::thread::hardware_concurrency());
  const double quota = cgroup_cpus();
  if (quota < count) count = static_cast<int>(std::ceil(quota));
  return std::max(count, 1);
}

void bind_to_cpu(int cpu) noexcept {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<unsigned>(cpu), &set);
  sched_setaffinity(0, sizeof set, &set);
}

}  // namespace envpool::runtime
