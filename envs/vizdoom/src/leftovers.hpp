// leftovers.hpp - sees to it that a process killed while its engines start leaves no shared memory.
#pragma once

#include <string>

namespace doom {

// While it lives, the end of this process removes the names of the engine with this id from
// /dev/shm, even if it is killed. That takes somebody who outlives it: a shell that waits for the
// end of what we say, one for all engines that are starting. Where there is no shell there is no
// such help.
class Leftovers {
 public:
  explicit Leftovers(const std::string& id);
  ~Leftovers();
  Leftovers(const Leftovers&) = delete;
  Leftovers& operator=(const Leftovers&) = delete;
};

}  // namespace doom
