// loopback.cpp - see loopback.hpp.
#include "loopback.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <envpool/env.hpp>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <system_error>

namespace doom {
namespace {

// The sockets among a process' files, by the numbers that the kernel gives them.
std::set<std::string> sockets_of(const std::string& process) {
  std::set<std::string> found;
  std::error_code error;
  for (std::filesystem::directory_iterator file(process + "/fd", error), end; !error && file != end;
       file.increment(error)) {
    std::error_code closed;  // meanwhile
    const std::string target = std::filesystem::read_symlink(*file, closed).string();
    constexpr std::string_view kSocket = "socket:[";
    if (target.starts_with(kSocket))
      found.insert(target.substr(kSocket.size(), target.size() - kSocket.size() - 1));
  }
  return found;
}

}  // namespace

std::uint16_t udp_port(pid_t pid) {
  const std::string process = "/proc/" + std::to_string(pid);
  const std::set<std::string> own = sockets_of(process);
  if (own.empty()) return 0;
  // sl, local address:port (hexadecimal), remote one, state, queues, timer, retransmissions, user,
  // timeout, number.
  std::ifstream table(process + "/net/udp");
  for (std::string line; std::getline(table, line);) {
    std::istringstream words(line);
    std::string sl, local, word, number;
    words >> sl >> local;
    for (int i = 0; i < 7; ++i) words >> word;
    words >> number;
    const auto colon = local.find(':');
    std::uint16_t port = 0;
    if (!own.contains(number) || colon == std::string::npos) continue;
    std::from_chars(local.data() + colon + 1, local.data() + local.size(), port, 16);
    if (port != 0) return port;
  }
  return 0;
}

Nudge::Nudge() : socket_(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
  if (socket_ < 0)
    throw envpool::error(EP_E_FAILED, std::string("no UDP socket: ") + std::strerror(errno));
}

Nudge::~Nudge() { close(socket_); }

void Nudge::operator()(std::uint16_t port) const {
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  // A refusal is that of a dead engine, which is noticed elsewhere.
  sendto(socket_, nullptr, 0, 0, reinterpret_cast<const sockaddr*>(&to), sizeof to);
}

}  // namespace doom
