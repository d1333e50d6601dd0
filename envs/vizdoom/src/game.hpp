// game.hpp - episodes: an engine played as vizdoom's DoomGame plays it.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "engine.hpp"
#include "scenario.hpp"

namespace doom {

using Buttons = std::array<double, kButtons>;

class Game {
 public:
  // Plays the first episode of a fresh engine to the scenario's start. Both are kept and must
  // outlive this.
  Game(Engine& engine, const Scenario& scenario);
  ~Game();  // completes a recording
  Game(const Game&) = delete;
  Game& operator=(const Game&) = delete;

  // How an episode begins. At most one of the paths is given.
  struct Start {
    std::uint32_t seed = 0;  // the engine's
    std::string record;      // a demo file (.lmp) to be written until the next begin()
    std::string replay;      // a demo file to be played instead: buttons have no effect
  };
  // Begins another episode and plays to the scenario's start. Throws EP_E_ARGUMENT if a path is too
  // long for the engine.
  void begin(const Start& start);
  // Plays so many tics with these buttons, fewer if the episode ends, and returns how many. Then
  // buffers and state are up to date.
  int play(const Buttons& buttons, int tics);

  bool dead() const { return state().dead; }
  bool map_end() const { return state().map_end; }
  bool timed_out() const;
  bool over() const { return (dead() && !state().multiplayer) || map_end() || timed_out(); }
  const GameState& state() const { return engine_.state(); }

 private:
  void play_to_start();

  Engine& engine_;
  const Scenario& scenario_;
  std::uint32_t last_tic_ = 0;
  bool recording_ = false;
  int engine_cpu_ = -1;
};

}  // namespace doom
