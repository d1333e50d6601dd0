// rewards.cpp - see rewards.hpp.
#include "rewards.hpp"

#include <charconv>
#include <envpool/env.hpp>

namespace doom {
namespace {

struct Counter {
  double Worth::* worth;
  std::int32_t GameState::* value;
  bool only_rises = false;  // a fall is worth nothing
};
constexpr Counter kCounters[] = {{&Worth::kill, &GameState::kills},
                                 {&Worth::item, &GameState::items},
                                 {&Worth::secret, &GameState::secrets},
                                 {&Worth::frag, &GameState::frags, true},
                                 {&Worth::hit, &GameState::hits},
                                 {&Worth::hit_taken, &GameState::hits_taken},
                                 {&Worth::damage_made, &GameState::damage},
                                 {&Worth::damage_taken, &GameState::damage_taken},
                                 {&Worth::health, &GameState::health, true},
                                 {&Worth::armor, &GameState::armor, true}};

double from_fixed(std::int32_t value) { return value / 65536.; }

}  // namespace

void ScenarioReward::remember(const GameState& s) {
  map_reward_ = from_fixed(s.map_reward);
  counters_.clear();
  for (const Counter& c : kCounters) counters_.push_back(s.*c.value);
}

double ScenarioReward::step(const GameState& s, int tics) {
  double reward = from_fixed(s.map_reward) - map_reward_ + tics * worth_.living;
  if (s.dead) reward += worth_.death;
  if (s.map_end && !s.dead) reward += worth_.map_exit;
  for (std::size_t i = 0; i < std::size(kCounters); ++i) {
    const Counter& c = kCounters[i];
    const double change = s.*c.value - counters_[i];
    if (change > 0 || !c.only_rises) reward += change * worth_.*c.worth;
  }
  remember(s);
  return reward;
}

ShapedReward::ShapedReward(const Json& variables, const Json& weapons, int weapon_duration)
    : weapon_duration_(weapon_duration) {
  const auto refuse = [](const std::string& what) { throw envpool::error(EP_E_ARGUMENT, what); };
  const auto* entries = std::get_if<Json::Object>(&variables.value);
  if (entries == nullptr)
    refuse("reward_config must be a dictionary {game variable: [rise, fall]}");
  for (const auto& [name, value] : *entries) {
    const auto* pair = std::get_if<Json::Array>(&value.value);
    const double *rise = nullptr, *fall = nullptr;
    if (pair != nullptr && pair->size() == 2) {
      rise = std::get_if<double>(&(*pair)[0].value);
      fall = std::get_if<double>(&(*pair)[1].value);
    }
    if (rise == nullptr || fall == nullptr)
      refuse("reward_config[\"" + name + "\"] must be two numbers: for a rise, for a fall");
    else
      terms_.push_back({variable_of(name, "reward_config"), *rise, *fall, 0});
  }
  entries = std::get_if<Json::Object>(&weapons.value);
  if (entries == nullptr)
    refuse("selected_weapon_reward_config must be a dictionary {weapon: reward}");
  for (const auto& [name, value] : *entries) {
    int weapon = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), weapon);
    const auto* reward = std::get_if<double>(&value.value);
    if (error != std::errc() || end != name.data() + name.size() || reward == nullptr)
      refuse("selected_weapon_reward_config[\"" + name +
             "\"]: must be a weapon's number and a reward");
    else
      weapons_[weapon] = *reward;
  }
}

void ShapedReward::begin(const GameState& s) {
  for (Term& t : terms_) t.last = value_of(t.variable, s);
  weapon_ = s.selected_weapon;
  held_ = 1;
}

double ShapedReward::step(const GameState& s) {
  double reward = 0;
  for (Term& t : terms_) {
    const double now = value_of(t.variable, s), change = now - t.last;
    reward += change > 0 ? change * t.rise : -change * t.fall;
    t.last = now;
  }
  held_ = s.selected_weapon == weapon_ ? held_ + 1 : 1;
  weapon_ = s.selected_weapon;
  const auto found = weapons_.find(weapon_);
  if (held_ >= weapon_duration_ && found != weapons_.end()) reward += found->second;
  return reward;
}

}  // namespace doom
