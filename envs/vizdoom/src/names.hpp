// names.hpp - ViZDoom's names of buttons and game variables; their values are places in these
// lists.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "protocol.hpp"

namespace doom {

using Button = std::uint32_t;
using Variable = std::uint32_t;

const std::vector<std::string>& button_names();
const std::vector<std::string>& variable_names();

// By name, in any case. Throw envpool::error(EP_E_ARGUMENT), `where` first, that lists what there
// is.
Button button_of(std::string_view name, const std::string& where);
Variable variable_of(std::string_view name, const std::string& where);

// As vizdoom's DoomGame.get_game_variable() gives it.
double value_of(Variable variable, const GameState& state);

inline bool is_delta(Button button) { return button >= kFirstDelta; }

// "a, b, c"
std::string join(const std::vector<std::string>& words);
std::string upper(std::string_view text);

}  // namespace doom
