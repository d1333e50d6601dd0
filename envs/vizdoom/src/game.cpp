// game.cpp - see game.hpp.
#include "game.hpp"

#include <algorithm>
#include <string>

namespace doom {

Game::Game(Engine& engine, const Scenario& scenario) : engine_(engine), scenario_(scenario) {
  Input& input = engine_.input();
  for (const Button button : scenario.buttons) input.available[button] = true;
  std::ranges::copy(scenario.delta_limits, input.most);
  engine_.update();  // an engine that never did spins for ever in the first change of map
  last_tic_ = state().map_tic;
}

void Game::begin(std::uint32_t seed) {
  constexpr int kAgain = 3;  // tics after which a command that was lost is given again
  constexpr int kMost = 300;
  const std::string map = "map " + scenario_.map;
  engine_.listen();
  engine_.command("viz_set_seed " + std::to_string(seed));
  engine_.command(map);
  std::ranges::fill(engine_.input().button, 0.);
  int tics = 0;
  do {
    engine_.tic(false);
    if (++tics % (kAgain + 1) == 0) engine_.command(map);
    if (tics > kMost) engine_.fail("does not begin the map " + scenario_.map);
  } while (state().map_end || state().map_tic > last_tic_);
  while (state().map_tic < scenario_.start_tic) engine_.tic(false);
  engine_.command("viz_override_player 0");
  engine_.update();
  last_tic_ = state().map_tic;
}

int Game::play(const Buttons& buttons, int tics) {
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
