// game.hpp - episodes: engines played as vizdoom's DoomGame plays them.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "one_cpu.hpp"
#include "players.hpp"
#include "scenario.hpp"

namespace doom {

using Buttons = std::array<double, kButtons>;

class Game {
 public:
  // Plays the first episode of fresh engines to the scenario's start. Both are kept and must
  // outlive this.
  Game(Players& players, const Scenario& scenario);
  ~Game();  // completes a recording
  Game(const Game&) = delete;
  Game& operator=(const Game&) = delete;

  // How an episode begins. At most one of the paths is given, and none where players are several.
  struct Start {
    std::uint32_t seed = 0;  // the engine's
    std::string record;      // a demo file (.lmp) to be written until the next begin()
    std::string replay;      // a demo file to be played instead: buttons have no effect
  };
  // Begins another episode and plays to the scenario's start. Throws EP_E_ARGUMENT if a path is too
  // long for the engine.
  void begin(const Start& start);
  // Plays so many tics with these buttons of each player, fewer if the episode ends, and returns
  // how many. Then buffers and states are up to date.
  int play(std::span<const Buttons> buttons, int tics);

  bool map_end() const { return state().map_end; }
  bool timed_out() const;
  bool over() const { return (state().dead && !state().multiplayer) || map_end() || timed_out(); }

 private:
  const GameState& state() const { return players_[0].state(); }
  // A single player's engine and this thread. (Several engines run side by side.)
  std::optional<OneCpu> together();
  void play_to_start();
  void load(const std::string& command);
  void change_map();
  bool loaded() const { return !state().map_end && state().map_tic <= last_tic_; }

  Players& players_;
  const Scenario& scenario_;
  std::uint32_t last_tic_ = 0;
  bool recording_ = false;
  int engine_cpu_ = -1;  // for together()
};

}  // namespace doom
