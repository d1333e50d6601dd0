// rewards.hpp - what a step is worth.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "json.hpp"
#include "names.hpp"
#include "scenario.hpp"

namespace doom {

// The scenario's own reward, as vizdoom's DoomGame counts it: what the map's script gives and, as
// the scenario file says, something for each tic lived, for death, for changes of counters.
class ScenarioReward {
 public:
  explicit ScenarioReward(const Worth& worth) : worth_(worth) {}
  void begin(const GameState& s) { remember(s); }
  double step(const GameState& s, int tics);

 private:
  void remember(const GameState& s);

  Worth worth_;
  double map_reward_ = 0;
  std::vector<double> counters_;
};

// EnvPool's shaping: a rise of a game variable by d is worth d * rise, a fall by d is worth d *
// fall; and a weapon that was in hand for weapon_duration observations is worth something in each
// step from then on.
class ShapedReward {
 public:
  // Of the options reward_config, selected_weapon_reward_config and weapon_duration. Throws
  // envpool::error( EP_E_ARGUMENT) that names the option and the entry.
  ShapedReward(const Json& variables, const Json& weapons, int weapon_duration);

  bool empty() const { return terms_.empty() && weapons_.empty(); }
  void begin(const GameState& s);
  double step(const GameState& s);

 private:
  struct Term {
    Variable variable;
    double rise, fall;
    double last;
  };
  std::vector<Term> terms_;
  std::map<int, double> weapons_;
  int weapon_duration_;
  int weapon_ = -1, held_ = 0;  // the weapon in hand, and for how many observations
};

}  // namespace doom
