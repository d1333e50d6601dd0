// actions.cpp - see actions.hpp.
#include "actions.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace doom {
namespace {

constexpr std::size_t kMostActions = 1000000;
constexpr Button kSpeed = 8, kMoveRight = 10, kMoveBackward = 12, kTurnRight = 14, kLookUp = 16,
                 kMoveUp = 18, kFirstWeapon = 21, kNextWeapon = 31, kNextItem = 35;

[[noreturn]] void refuse(const std::string& what) { throw envpool::error(EP_E_ARGUMENT, what); }

// Buttons that exclude each other, by the first of them: opposite directions stand side by side in
// ViZDoom's list, weapons together.
Button group_of(Button button) {
  for (const Button first :
       {kMoveRight, kMoveBackward, kTurnRight, kLookUp, kMoveUp, kNextWeapon, kNextItem})
    if (button == first + 1) return first;
  if (kFirstWeapon <= button && button < kNextWeapon) return kFirstWeapon;
  return button;
}

}  // namespace

std::map<Button, ActionSettings::Range> parse_deltas(const Json& json) {
  const auto* entries = std::get_if<Json::Object>(&json.value);
  if (entries == nullptr)
    refuse("delta_button_config must be a dictionary {button: [number, least, most]}");
  std::map<Button, ActionSettings::Range> out;
  for (const auto& [name, value] : *entries) {
    const std::string where = "delta_button_config[\"" + name + "\"]";
    const Button button = button_of(name, "delta_button_config");
    if (!is_delta(button)) refuse(where + ": takes only 0 and 1; it is no delta button");
    std::vector<double> numbers;
    if (const auto* list = std::get_if<Json::Array>(&value.value)) {
      for (const Json& one : *list)
        if (const auto* number = std::get_if<double>(&one.value)) numbers.push_back(*number);
    }
    if (numbers.size() != 3 || numbers[0] < 1 || numbers[0] > 10000 ||
        numbers[0] != std::floor(numbers[0]) || numbers[1] > numbers[2])
      refuse(where + " must be three numbers: how many values, the least, the most");
    out[button] = {static_cast<int>(numbers[0]), numbers[1], numbers[2]};
  }
  return out;
}

Actions::Actions(envpool::spec& spec, const std::vector<Button>& buttons,
                 const ActionSettings& settings)
    : force_speed_(settings.force_speed), per_agent_(settings.per_agent) {
  for (const Button button : buttons) {
    if (force_speed_ && button == kSpeed) continue;
    (is_delta(button) ? continuous_ : binary_).push_back(button);
  }
  if (settings.combined) {
    combinations_ = combined(buttons, settings);
    add_discrete(spec, "");
    return;
  }
  const bool both = !binary_.empty() && !continuous_.empty();
  const auto count = static_cast<int>(binary_.size());
  if (binary_.empty()) {
    // No button at all: only SPEED, which is always pressed.
    if (continuous_.empty()) combinations_.emplace_back();
  } else if (settings.max_buttons_pressed == 0) {
    bits_ = each(spec.action<std::int8_t[]>(both ? "binary" : "", {count})
                     .multi_binary()
                     .doc("pressed buttons: " + names(binary_)));
  } else {
    // As binary numbers in rising order, the first button the highest bit.
    if (count > 30) refuse("max_buttons_pressed: too many buttons; use 0, a bit for each");
    for (std::uint32_t bits = 0; bits < 1u << count; ++bits) {
      if (std::popcount(bits) > settings.max_buttons_pressed) continue;
      Combination& c = combinations_.emplace_back();
      for (int i = 0; i < count; ++i)
        if ((bits >> (count - 1 - i) & 1) != 0)
          c.emplace_back(binary_[static_cast<std::size_t>(i)], 1.);
      if (combinations_.size() > kMostActions)
        refuse("max_buttons_pressed: more than a million actions");
    }
  }
  if (!combinations_.empty()) add_discrete(spec, both ? "binary" : "");
  if (!continuous_.empty())
    numbers_ = each(spec.action<float[]>(both ? "continuous" : "",
                                         {static_cast<std::int64_t>(continuous_.size())})
                        .doc("values of " + names(continuous_)));
}

std::string Actions::names(const std::vector<Button>& buttons) {
  std::vector<std::string> out;
  for (const Button button : buttons) out.push_back(button_names()[button]);
  return join(out);
}

void Actions::add_discrete(envpool::spec& spec, const std::string& name) {
  constexpr std::size_t kMostLabels = 1000;
  const auto field = each(
      spec.action<std::int64_t>(name).discrete(static_cast<std::int64_t>(combinations_.size())));
  if (combinations_.size() <= kMostLabels) {
    std::vector<std::string> labels;
    for (const Combination& c : combinations_) {
      std::string label;
      for (const auto& [button, value] : c) {
        if (!label.empty()) label += '+';
        label += button_names()[button];
        if (is_delta(button)) label.append(1, '=').append(std::to_string(value));
      }
      labels.push_back(label.empty() ? "NOOP" : label);
    }
    field.labels(labels);
  }
  choice_ = field;
}

// Groups in the order of ViZDoom's list; the last one changes fastest.
std::vector<Actions::Combination> Actions::combined(const std::vector<Button>& buttons,
                                                    const ActionSettings& settings) {
  std::map<Button, std::vector<Combination>> groups;
  std::vector<Button> sorted = buttons;
  std::ranges::sort(sorted);
  for (const Button button : sorted) {
    if (settings.force_speed && button == kSpeed) continue;
    std::vector<Combination>& group = groups[group_of(button)];
    if (!is_delta(button)) {
      if (group.empty()) group.emplace_back();  // none of them
      group.push_back({{button, 1.}});
      continue;
    }
    const auto range = settings.deltas.find(button);
    if (range == settings.deltas.end()) {
      group.emplace_back();
      continue;
    }
    const auto [count, least, most] = range->second;
    for (int i = 0; i < count; ++i)
      group.push_back({{button, count == 1 ? least : least + (most - least) * i / (count - 1)}});
  }
  std::vector<Combination> out(1);
  for (const auto& [first, group] : groups) {
    if (out.size() * group.size() > kMostActions)
      refuse("use_combined_action: more than a million actions");
    std::vector<Combination> more;
    for (const Combination& before : out) {
      for (const Combination& one : group) {
        Combination& c = more.emplace_back(before);
        c.insert(c.end(), one.begin(), one.end());
      }
    }
    out = std::move(more);
  }
  return out;
}

void Actions::press(const envpool::input& in, Buttons& buttons) const {
  buttons.fill(0);
  if (force_speed_) buttons[kSpeed] = 1;
  if (choice_) {
    const auto chosen = static_cast<std::uint64_t>(in[*choice_]);
    if (chosen >= combinations_.size()) refuse("no such action");
    for (const auto& [button, value] : combinations_[chosen]) buttons[button] = value;
  }
  if (bits_) {
    const auto bits = in[*bits_];
    for (std::size_t i = 0; i < binary_.size(); ++i) buttons[binary_[i]] = bits[i] != 0;
  }
  if (numbers_) {
    const auto numbers = in[*numbers_];
    for (std::size_t i = 0; i < continuous_.size(); ++i) {
      if (!std::isfinite(numbers[i]))
        refuse("the action of " + button_names()[continuous_[i]] + " must be a finite number");
      buttons[continuous_[i]] = static_cast<double>(numbers[i]);
    }
  }
}

}  // namespace doom
