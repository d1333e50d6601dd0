// spawner.hpp - programs started as children of this process that die with it.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

namespace doom {

struct Program {
  std::string path;
  std::vector<std::string> arguments;  // without the program's own name
  std::string folder;                  // its working directory
  std::vector<std::string> variables;  // "NAME=value", in place of ours; the others are inherited
  int input = -1;                      // its standard input, -1: nothing
  bool outlives_us = false;
};

// A running or dead child. Unless it outlives us, the kernel kills it when this process ends,
// however it ends. It has a session of its own (Ctrl-C in a terminal does not reach it) and no file
// of ours. Not for use by two threads at once.
class Child {
 public:
  // at_death is called once when it is dead, by a thread of ours, unless this object is gone
  // before. Throws envpool::error(EP_E_FAILED), naming path and reason.
  Child(const Program& program, std::function<void()> at_death);
  ~Child();  // kills it
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  pid_t pid() const { return pid_; }
  bool alive();
  void kill();  // and waits until it is gone
  // How it ended: "was killed by signal 9 (Killed)", "exited with code 3"; "is running".
  std::string fate() const;
  // The last lines of what it wrote to its standard output and error.
  std::string last_words();
  // Reads what it wrote, so that it can go on writing.
  void listen();

 private:
  pid_t pid_ = -1;
  int death_ = -1;  // a pidfd, readable when it is dead; -1: an old kernel
  int output_ = -1;
  bool gone_ = false;
  int status_ = 0;
  std::string tail_;
};

}  // namespace doom
