// loopback.hpp - what the engines of one game need to talk to each other on this machine.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace doom {

// The port of the UDP socket that a child of ours has bound, 0: none yet.
std::uint16_t udp_port(pid_t pid);

// A socket of ours, for datagrams without content.
class Nudge {
 public:
  Nudge();  // throws envpool::error(EP_E_FAILED)
  ~Nudge();
  Nudge(const Nudge&) = delete;
  Nudge& operator=(const Nudge&) = delete;

  // One more in the queue of a port of this machine when this returns.
  void operator()(std::uint16_t port) const;

 private:
  int socket_;
};

}  // namespace doom
