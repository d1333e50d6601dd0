// players.cpp - see players.hpp.
#include "players.hpp"

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>

namespace doom {

Players::Players(const Installation& files, const Scenario& scenario, std::size_t count,
                 std::uint32_t seed, const envpool::host& host, Engine::Seconds patience) {
  const auto start = [&](const std::vector<std::string>& arguments) {
    engines_.push_back(std::make_unique<Engine>(files, scenario, seed, arguments, host, patience));
  };
  const auto port_of = [&](Engine& engine) {
    const auto since = Queue::Clock::now();
    std::uint16_t port = 0;
    while ((port = udp_port(engine.pid())) == 0) {
      for (const auto& one : engines_) one->check(since);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return port;
  };
  if (count == 1) {
    start({});
  } else {
    // The kernel chooses a free port, and only then can anybody join: no two games ever meet.
    start({"-host", std::to_string(count), "-port", "0", "-netmode", "0"});
    const std::string port = std::to_string(port_of(*engines_[0]));
    while (engines_.size() < count) start({"-join", "127.0.0.1", "-port", port});
  }
  wait();
  for (const auto& engine : engines_) engine->connect();
  if (count == 1) return;
  // The host numbers players as they come.
  std::ranges::sort(engines_, {}, [](const auto& engine) { return engine->state().player_number; });
  nudge_ = std::make_unique<Nudge>();
  for (std::size_t i = 1; i < count; ++i) ports_.push_back(port_of(*engines_[i]));
}

// In each tic an engine tells the others what its player does, and runs the tic when it has heard
// of all. One that has joined compares its clock with the host's when it has sent its part and read
// what has come: was the host's part there, it believes to be late and sends a part more, so that
// from then on its player acts a tic later. So that this does not depend on who is faster, it finds
// a datagram of ours in front of the host's: an unknown sender's, at which it stops reading.
void Players::tic(bool update) {
  for (const std::uint16_t port : ports_) (*nudge_)(port);
  order(update ? Code::kTicAndUpdate : Code::kTic);
}

void Players::command(const std::string& text) {
  for (const auto& engine : engines_) engine->command(text);
}

void Players::listen() {
  for (const auto& engine : engines_) engine->listen();
}

void Players::order(Code code) {
  for (const auto& engine : engines_) engine->order(code);
  wait();
}

void Players::wait() {
  const auto since = Queue::Clock::now();
  for (const auto& engine : engines_) {
    // It may wait for another one, which is dead.
    while (!engine->finished())
      for (const auto& one : engines_) one->check(since);
  }
}

}  // namespace doom
