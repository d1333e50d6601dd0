// game.cpp - see game.hpp.
#include "game.hpp"

#include <algorithm>
#include <exception>
#include <string>

#include "one_cpu.hpp"

namespace doom {

Game::Game(Engine& engine, const Scenario& scenario) : engine_(engine), scenario_(scenario) {
  const OneCpu together(engine_.pid(), engine_cpu_);
  play_to_start();
  engine_.update();  // an engine that never did spins for ever in the first change of map
  Input& input = engine_.input();
  for (const Button button : scenario.buttons) input.available[button] = true;
  std::ranges::copy(scenario.delta_limits, input.most);
  last_tic_ = state().map_tic;
}

Game::~Game() {
  if (!recording_) return;
  try {
    engine_.command("stop");
    engine_.tic(false);
  } catch (const std::exception&) {
    // The engine is dead or closing; what it has written is there.
  }
}

void Game::play_to_start() {
  while (state().map_tic < scenario_.start_tic) engine_.tic(false);
}

void Game::begin(const Start& start) {
  const OneCpu together(engine_.pid(), engine_cpu_);
  constexpr int kAgain = 3;  // tics after which a command that was lost is given again
  constexpr int kMost = 300;
  const std::string map = !start.record.empty() ? "recordmap " + start.record + " " + scenario_.map
                          : !start.replay.empty() ? "playdemo " + start.replay
                                                  : "map " + scenario_.map;
  engine_.listen();
  if (recording_) engine_.command("stop");
  recording_ = !start.record.empty();
  engine_.command("viz_set_seed " + std::to_string(start.seed));
  engine_.command(map);
  std::ranges::fill(engine_.input().button, 0.);
  int tics = 0;
  do {
    engine_.tic(false);
    if (++tics % (kAgain + 1) == 0) engine_.command(map);
    if (tics > kMost) engine_.fail("does not begin the map " + scenario_.map);
  } while (state().map_end || state().map_tic > last_tic_);
  play_to_start();
  engine_.command("viz_override_player 0");
  engine_.update();
  last_tic_ = state().map_tic;
}

int Game::play(const Buttons& buttons, int tics) {
  const OneCpu together(engine_.pid(), engine_cpu_);
  std::ranges::copy(buttons, engine_.input().button);
  int played = 0;
  while (played < tics && !over()) {
    const bool last = ++played == tics;
    last_tic_ = state().map_tic + 1;  // a map that ends takes its clock with it
    engine_.tic(last);
    if (!last && over()) engine_.update();
  }
  return played;
}

bool Game::timed_out() const {
  return scenario_.timeout != 0 && state().map_tic >= scenario_.timeout + scenario_.start_tic;
}

}  // namespace doom
