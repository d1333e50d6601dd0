// players.hpp - the engines of one game, one for each player, kept in step.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine.hpp"
#include "loopback.hpp"
#include "scenario.hpp"

namespace doom {

// Engine 0 is the host of the game, the others have joined it over loopback; each shows what its
// player sees. Used by one thread at a time; throws what Engine throws, and all engines are to be
// given up then.
class Players {
 public:
  // Starts the engines and waits until they have loaded the first map.
  Players(const Installation& files, const Scenario& scenario, std::size_t count,
          std::uint32_t seed, const envpool::host& host, Engine::Seconds patience);

  std::size_t size() const { return engines_.size(); }
  Engine& operator[](std::size_t player) { return *engines_[player]; }
  const Engine& operator[](std::size_t player) const { return *engines_[player]; }
  bool several() const { return size() > 1; }

  // All play one tic; all write their buffers and state.
  void tic(bool update);
  void update() { order(Code::kUpdate); }
  // A console command for each; done in the next tic.
  void command(const std::string& text);
  void listen();

 private:
  void order(Code code);
  // Until all have carried out what they are at.
  void wait();

  std::vector<std::unique_ptr<Engine>> engines_;
  std::unique_ptr<Nudge> nudge_;      // of several players
  std::vector<std::uint16_t> ports_;  // of those who joined
};

}  // namespace doom
