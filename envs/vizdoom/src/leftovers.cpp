// leftovers.cpp - see leftovers.hpp.
#include "leftovers.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <envpool/env.hpp>
#include <memory>
#include <mutex>

#include "spawner.hpp"

namespace doom {
namespace {

// Ids come line by line. At the end of them the engines are killed as well; they may have made a
// name just before.
constexpr const char* kScript =
    "while read -r id; do ids=\"$ids $id\"; done; sleep 0.1;"
    " for id in $ids; do rm -f /dev/shm/ViZDoomMQDoom$id /dev/shm/ViZDoomMQCtr$id "
    "/dev/shm/ViZDoomSM$id; done";

struct Shell {
  std::mutex mutex;
  int users = 0;
  std::unique_ptr<Child> child;
  int line = -1;  // to its standard input

  void start() {
    int ends[2];
    // A socket, since it can be written to without a SIGPIPE should the shell be dead.
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return;
    Program program{"/bin/sh", {"-c", kScript}, "/", {}};
    program.input = ends[0];
    program.outlives_us = true;
    try {
      child = std::make_unique<Child>(program, [] {});
      line = ends[1];
    } catch (const envpool::error&) {
      close(ends[1]);
    }
    close(ends[0]);
  }
  void stop() {
    child.reset();  // killed before it sees the end
    if (line >= 0) close(line);
    line = -1;
  }
};

Shell& shell() {
  static Shell& one = *new Shell;  // immortal: engines may start while the process ends
  return one;
}

}  // namespace

Leftovers::Leftovers(const std::string& id) {
  Shell& s = shell();
  const std::lock_guard lock(s.mutex);
  if (s.users++ == 0) s.start();
  const std::string text = id + "\n";
  if (s.line >= 0 && send(s.line, text.data(), text.size(), MSG_NOSIGNAL) < 0) s.stop();
}

Leftovers::~Leftovers() {
  Shell& s = shell();
  const std::lock_guard lock(s.mutex);
  if (--s.users == 0) s.stop();
}

}  // namespace doom
