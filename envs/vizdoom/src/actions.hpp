// actions.hpp - how an action becomes pressed buttons.
#pragma once

#include <array>
#include <cstdint>
#include <envpool/env.hpp>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "game.hpp"
#include "json.hpp"
#include "names.hpp"

namespace doom {

struct ActionSettings {
  bool combined = false;        // EnvPool's use_combined_action
  int max_buttons_pressed = 1;  // vizdoom's; 0: any number
  bool force_speed = false;     // SPEED is always pressed
  bool per_agent = false;       // an action for each player
  // Of a delta button, in combined actions: how many values from least to most.
  struct Range {
    int count;
    double least, most;
  };
  std::map<Button, Range> deltas;
};

// Of the option delta_button_config. Throws envpool::error(EP_E_ARGUMENT).
std::map<Button, ActionSettings::Range> parse_deltas(const Json& json);

// The action space of a set of buttons. It is one of
//   - one discrete action for each combination of buttons (EnvPool's use_combined_action): at most
//   one weapon is
//     selected, opposite directions exclude each other, delta buttons take the values of
//     delta_button_config;
//   - as vizdoom's own Gymnasium env has it: for the binary buttons one discrete action for each
//   combination of at most
//     max_buttons_pressed of them, or a bit each if that is 0; for the delta buttons a number each.
//     If there are both, the fields are "binary" and "continuous".
class Actions {
 public:
  Actions(envpool::spec& spec, const std::vector<Button>& buttons, const ActionSettings& settings);

  // One player's. Throws envpool::error(EP_E_ARGUMENT) for a number that is not finite.
  void press(const envpool::input& in, Buttons& buttons) const;

 private:
  // A combination: which buttons have which value.
  using Combination = std::vector<std::pair<Button, double>>;

  static std::string names(const std::vector<Button>& buttons);
  void add_discrete(envpool::spec& spec, const std::string& name);
  template <class F>
  F each(F field) const {
    return per_agent_ ? field.per_agent() : field;
  }
  static std::vector<Combination> combined(const std::vector<Button>& buttons,
                                           const ActionSettings& settings);

  bool force_speed_, per_agent_;
  std::vector<Button> binary_, continuous_;
  std::vector<Combination> combinations_;
  std::optional<envpool::action<std::int64_t>> choice_;
  std::optional<envpool::action<std::int8_t[]>> bits_;
  std::optional<envpool::action<float[]>> numbers_;
};

}  // namespace doom
