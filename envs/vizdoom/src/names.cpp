// names.cpp - see names.hpp.
#include "names.hpp"

#include <algorithm>
#include <cctype>
#include <envpool/env.hpp>

namespace doom {
namespace {

// Places in variable_names(). A range starts where its first member stands.
enum : Variable {
  kKills,
  kItems,
  kSecrets,
  kFrags,
  kDeaths,
  kHits,
  kHitsTaken,
  kDamage,
  kDamageTaken,
  kHealth,
  kArmor,
  kDead,
  kOnGround,
  kAttackReady,
  kAltAttackReady,
  kSelectedWeapon,
  kSelectedWeaponAmmo,
  kAmmo,
  kWeapon = kAmmo + kSlots,
  kMovement = kWeapon + kSlots,
  kCamera = kMovement + 10,
  kPlayerNumber = kCamera + 7,
  kPlayerCount,
  kPlayerFrags,
  kUser = kPlayerFrags + kMostPlayers,
  kVariables = kUser + kUserVariables
};

std::uint32_t place_of(std::string_view name, const std::vector<std::string>& names,
                       const char* noun, const std::string& where) {
  const auto found = std::ranges::find(names, upper(name));
  if (found == names.end())
    throw envpool::error(EP_E_ARGUMENT, where + ": there is no " + noun + " \"" +
                                            std::string(name) + "\"; there are " + join(names));
  return static_cast<std::uint32_t>(found - names.begin());
}

}  // namespace

const std::vector<std::string>& button_names() {
  static const std::vector<std::string> names = {"ATTACK",
                                                 "USE",
                                                 "JUMP",
                                                 "CROUCH",
                                                 "TURN180",
                                                 "ALTATTACK",
                                                 "RELOAD",
                                                 "ZOOM",
                                                 "SPEED",
                                                 "STRAFE",
                                                 "MOVE_RIGHT",
                                                 "MOVE_LEFT",
                                                 "MOVE_BACKWARD",
                                                 "MOVE_FORWARD",
                                                 "TURN_RIGHT",
                                                 "TURN_LEFT",
                                                 "LOOK_UP",
                                                 "LOOK_DOWN",
                                                 "MOVE_UP",
                                                 "MOVE_DOWN",
                                                 "LAND",
                                                 "SELECT_WEAPON1",
                                                 "SELECT_WEAPON2",
                                                 "SELECT_WEAPON3",
                                                 "SELECT_WEAPON4",
                                                 "SELECT_WEAPON5",
                                                 "SELECT_WEAPON6",
                                                 "SELECT_WEAPON7",
                                                 "SELECT_WEAPON8",
                                                 "SELECT_WEAPON9",
                                                 "SELECT_WEAPON0",
                                                 "SELECT_NEXT_WEAPON",
                                                 "SELECT_PREV_WEAPON",
                                                 "DROP_SELECTED_WEAPON",
                                                 "ACTIVATE_SELECTED_ITEM",
                                                 "SELECT_NEXT_ITEM",
                                                 "SELECT_PREV_ITEM",
                                                 "DROP_SELECTED_ITEM",
                                                 "LOOK_UP_DOWN_DELTA",
                                                 "TURN_LEFT_RIGHT_DELTA",
                                                 "MOVE_FORWARD_BACKWARD_DELTA",
                                                 "MOVE_LEFT_RIGHT_DELTA",
                                                 "MOVE_UP_DOWN_DELTA"};
  return names;
}

const std::vector<std::string>& variable_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> v = {
        "KILLCOUNT",           "ITEMCOUNT",    "SECRETCOUNT",     "FRAGCOUNT",
        "DEATHCOUNT",          "HITCOUNT",     "HITS_TAKEN",      "DAMAGECOUNT",
        "DAMAGE_TAKEN",        "HEALTH",       "ARMOR",           "DEAD",
        "ON_GROUND",           "ATTACK_READY", "ALTATTACK_READY", "SELECTED_WEAPON",
        "SELECTED_WEAPON_AMMO"};
    for (std::size_t i = 0; i < kSlots; ++i) v.push_back("AMMO" + std::to_string(i));
    for (std::size_t i = 0; i < kSlots; ++i) v.push_back("WEAPON" + std::to_string(i));
    for (const char* name :
         {"POSITION_X", "POSITION_Y", "POSITION_Z", "ANGLE", "PITCH", "ROLL", "VIEW_HEIGHT",
          "VELOCITY_X", "VELOCITY_Y", "VELOCITY_Z", "CAMERA_POSITION_X", "CAMERA_POSITION_Y",
          "CAMERA_POSITION_Z", "CAMERA_ANGLE", "CAMERA_PITCH", "CAMERA_ROLL", "CAMERA_FOV",
          "PLAYER_NUMBER", "PLAYER_COUNT"})
      v.emplace_back(name);
    for (std::size_t i = 1; i <= kMostPlayers; ++i)
      v.push_back("PLAYER" + std::to_string(i) + "_FRAGCOUNT");
    for (std::size_t i = 1; i <= kUserVariables; ++i) v.push_back("USER" + std::to_string(i));
    return v;
  }();
  return names;
}

Button button_of(std::string_view name, const std::string& where) {
  return place_of(name, button_names(), "button", where);
}

Variable variable_of(std::string_view name, const std::string& where) {
  return place_of(name, variable_names(), "game variable", where);
}

double value_of(Variable variable, const GameState& s) {
  switch (variable) {
    case kKills:
      return s.kills;
    case kItems:
      return s.items;
    case kSecrets:
      return s.secrets;
    case kFrags:
      return s.frags;
    case kDeaths:
      return s.deaths;
    case kHits:
      return s.hits;
    case kHitsTaken:
      return s.hits_taken;
    case kDamage:
      return s.damage;
    case kDamageTaken:
      return s.damage_taken;
    case kHealth:
      return s.health;
    case kArmor:
      return s.armor;
    case kDead:
      return s.dead;
    case kOnGround:
      return s.on_ground;
    case kAttackReady:
      return s.attack_ready;
    case kAltAttackReady:
      return s.alt_attack_ready;
    case kSelectedWeapon:
      return s.selected_weapon;
    case kSelectedWeaponAmmo:
      return s.selected_weapon_ammo;
    case kPlayerNumber:
      return s.player_number;
    case kPlayerCount:
      return s.player_count;
    default:
      break;
  }
  if (variable < kWeapon) return s.ammo[variable - kAmmo];
  if (variable < kMovement) return s.weapon[variable - kWeapon];
  if (variable < kCamera) return s.movement[variable - kMovement];
  if (variable < kPlayerNumber) return s.camera[variable - kCamera];
  if (variable < kUser) return s.player_frags[variable - kPlayerFrags];
  return variable < kVariables ? s.user[variable - kUser] : 0;
}

std::string join(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : ", ") + word;
  return out;
}

std::string upper(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return out;
}

}  // namespace doom
