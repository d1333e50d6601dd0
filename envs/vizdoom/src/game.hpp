// game.hpp - episodes: an engine played as vizdoom's DoomGame plays it.
#pragma once

#include <array>
#include <cstdint>

#include "engine.hpp"
#include "scenario.hpp"

namespace doom {

using Buttons = std::array<double, kButtons>;

class Game {
 public:
  // Starts the engine. Both are kept and must outlive this.
  Game(Engine& engine, const Scenario& scenario);

  // Begins an episode whose engine has this seed, and plays to the scenario's start.
  void begin(std::uint32_t seed);
  // Plays so many tics with these buttons, fewer if the episode ends, and returns how many. Then
  // buffers and state are up to date.
  int play(const Buttons& buttons, int tics);

  bool dead() const { return state().dead; }
  bool map_end() const { return state().map_end; }
  bool timed_out() const;
  bool over() const { return dead() || map_end() || timed_out(); }
  const GameState& state() const { return engine_.state(); }

 private:
  Engine& engine_;
  const Scenario& scenario_;
  std::uint32_t last_tic_ = 0;
};

}  // namespace doom
