// test_cpus.cpp - what cgroups of either version say, read from files as Linux shows them.
#include <stdlib.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>

#include "check.hpp"
#include "cpus.hpp"

using namespace envpool::runtime;
using envpool::test::report;

namespace {

namespace fs = std::filesystem;

// A directory that holds /proc and /sys as they would be.
class Root {
 public:
  Root() {
    std::string name = (fs::temp_directory_path() / "test_cpus.XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  ~Root() { fs::remove_all(path_); }
  Root(const Root&) = delete;
  Root& operator=(const Root&) = delete;

  Root& file(const std::string& name, const std::string& text) {
    const fs::path file = path_ / name;
    fs::create_directories(file.parent_path());
    std::ofstream(file) << text;
    return *this;
  }
  double cpus() const { return cgroup_cpus(path_.string()); }

 private:
  fs::path path_;
};

const std::string kGroups = "proc/self/cgroup", kV2 = "sys/fs/cgroup", kV1 = "sys/fs/cgroup/cpu";

void version_2() {
  const auto unlimited =
      Root().file(kGroups, "0::/\n").file(kV2 + "/cpu.max", "max 100000\n").cpus();
  CHECK(std::isinf(unlimited));
  CHECK(Root().file(kGroups, "0::/\n").file(kV2 + "/cpu.max", "250000 100000\n").cpus() == 2.5);
  // Each on the way up binds.
  Root nested;
  nested.file(kGroups, "0::/a/b\n")
      .file(kV2 + "/a/b/cpu.max", "400000 100000\n")
      .file(kV2 + "/a/cpu.max", "50000 50000\n");
  CHECK(nested.cpus() == 1);
  // In a container the path is the host's, and only the top is there.
  CHECK(
      Root().file(kGroups, "0::/docker/0123\n").file(kV2 + "/cpu.max", "300000 100000\n").cpus() ==
      3);
}

void version_1() {
  Root root;
  root.file(kGroups, "12:memory:/x\n4:cpu,cpuacct:/x\n0::/\n")
      .file(kV1 + "/x/cpu.cfs_quota_us", "150000\n")
      .file(kV1 + "/x/cpu.cfs_period_us", "100000\n")
      .file(kV1 + "/cpu.cfs_quota_us", "-1\n")
      .file(kV1 + "/cpu.cfs_period_us", "100000\n");
  CHECK(root.cpus() == 1.5);
  root.file(kV1 + "/x/cpu.cfs_quota_us", "-1\n");
  CHECK(std::isinf(root.cpus()));
}

void nothing_and_nonsense() {
  CHECK(std::isinf(Root().cpus()));
  CHECK(std::isinf(Root().file(kGroups, "nonsense\n").cpus()));
  CHECK(std::isinf(Root().file(kGroups, "0::/\n").file(kV2 + "/cpu.max", "many few\n").cpus()));
  CHECK(std::isinf(Root().file(kGroups, "0::/\n").file(kV2 + "/cpu.max", "1 0\n").cpus()));
}

}  // namespace

int main() {
  version_2();
  version_1();
  nothing_and_nonsense();
  CHECK(available_cpus() >= 1);
  CHECK(available_cpus() <= static_cast<int>(allowed_cpus().size()));
  return report();
}
