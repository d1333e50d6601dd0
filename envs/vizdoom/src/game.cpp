// game.cpp - see game.hpp.
#include "game.hpp"

#include <algorithm>
#include <exception>
#include <string>
#include <utility>
#include <vector>

namespace doom {
namespace {

constexpr int kMost = 300;  // tics in which a map begins, or never
constexpr Button kUse = 1;

}  // namespace

Game::Game(Players& players, const Scenario& scenario) : players_(players), scenario_(scenario) {
  const auto bound = together();
  play_to_start();
  players_.update();  // an engine that never did spins for ever in the first change of map
  for (std::size_t i = 0; i < players_.size(); ++i) {
    Input& input = players_[i].input();
    for (const Button button : scenario.buttons) input.available[button] = true;
    std::ranges::copy(scenario.delta_limits, input.most);
  }
  last_tic_ = state().map_tic;
}

Game::~Game() {
  if (!recording_) return;
  try {
    players_.command("stop");
    players_.tic(false);
  } catch (const std::exception&) {
    // The engine is dead or closing; what it has written is there.
  }
}

std::optional<OneCpu> Game::together() {
  if (players_.several()) return std::nullopt;
  return std::optional<OneCpu>(std::in_place, players_[0].pid(), engine_cpu_);
}

void Game::play_to_start() {
  while (state().map_tic < scenario_.start_tic) players_.tic(false);
}

void Game::begin(const Start& start) {
  const auto bound = together();
  players_.listen();
  if (recording_) players_.command("stop");
  recording_ = !start.record.empty();
  players_.command("viz_set_seed " + std::to_string(start.seed));
  for (std::size_t i = 0; i < players_.size(); ++i)
    std::ranges::fill(players_[i].input().button, 0.);
  if (players_.several())
    change_map();
  else if (recording_)
    load("recordmap " + start.record + " " + scenario_.map);
  else
    load(start.replay.empty() ? "map " + scenario_.map : "playdemo " + start.replay);
  play_to_start();
  players_.command("viz_override_player 0");
  players_.update();
  last_tic_ = state().map_tic;
}

void Game::load(const std::string& command) {
  constexpr int kAgain = 3;  // tics after which a command that was lost is given again
  players_.command(command);
  int tics = 0;
  do {
    players_.tic(false);
    if (++tics % (kAgain + 1) == 0) players_.command(command);
    if (tics > kMost) players_[0].fail("does not begin the map " + scenario_.map);
  } while (!loaded());
}

// The host changes the map for all. Who sees the score meanwhile leaves it by USE.
void Game::change_map() {
  players_[0].command("changemap " + scenario_.map);
  const auto use = [&](bool down) { players_.command(down ? "+use" : "-use"); };
  std::vector<bool> available;
  for (std::size_t i = 0; i < players_.size(); ++i)
    available.push_back(std::exchange(players_[i].input().available[kUse], true));
  int tics = 0;
  do {
    use(++tics % 2 == 1);
    players_.tic(false);
    if (tics > kMost) players_[0].fail("does not begin the map " + scenario_.map);
  } while (!loaded());
  use(false);
  for (std::size_t i = 0; i < players_.size(); ++i)
    players_[i].input().available[kUse] = available[i];
}

int Game::play(std::span<const Buttons> buttons, int tics) {
  const auto bound = together();
  for (std::size_t i = 0; i < players_.size(); ++i)
    std::ranges::copy(buttons[i], players_[i].input().button);
  int played = 0;
  while (played < tics && !over()) {
    const bool last = ++played == tics;
    last_tic_ = state().map_tic + 1;  // a map that ends takes its clock with it
    players_.tic(last);
    if (!last && over()) players_.update();
  }
  return played;
}

bool Game::timed_out() const {
  return scenario_.timeout != 0 && state().map_tic >= scenario_.timeout + scenario_.start_tic;
}

}  // namespace doom
