// scenario.hpp - what is played: ViZDoom's scenario files (.cfg), and options on top of them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "json.hpp"
#include "names.hpp"

namespace doom {

// Of the screen and the automap; values as the engine's +viz_screen_format takes them. Colours are
// always given as RGB: whatever else a scenario file says is about the same picture in another
// order.
enum class Format : int { kRgb = 1, kGray = 8 };

// What each event is worth; rewards.hpp tells how.
struct Worth {
  double living = 0, map_exit = 0, death = 0, kill = 0, secret = 0, item = 0, frag = 0, hit = 0,
         hit_taken = 0, damage_made = 0, damage_taken = 0, health = 0, armor = 0;
};

struct Scenario {
  std::string file;       // the .cfg, empty: none
  std::string game_path;  // the IWAD, absolute
  std::string wad_path;   // the PWAD, absolute; empty: none
  std::string map;        // empty: not said
  int skill = 3;
  int width = 320, height = 240;
  Format format = Format::kRgb;
  std::uint32_t start_tic = 1, timeout = 0;  // tics of the map's time; 0: none
  std::vector<Button> buttons;
  std::vector<Variable> variables;
  std::vector<std::string> game_args;
  Worth worth;

  bool hud = false, minimal_hud = false, weapon = true, crosshair = false, decals = true,
       particles = true, effects_sprites = true, messages = false, corpses = true,
       screen_flashes = true, all_frames = false;
  bool depth = false, labels = false, automap = false, audio = false, notifications = false;
  int automap_mode = 0;
  bool automap_rotate = false, automap_textures = true, automap_sprites = false;
  int audio_rate = 44100, audio_tics = 4, notification_tics = 4;
  std::vector<double> delta_limits = std::vector<double>(kDeltaButtons, 0.);

  // Reads a file. Relative paths in it are looked for beside it, then in `folders`. Throws
  // envpool::error: EP_E_NOT_FOUND, or EP_E_ARGUMENT with file, line and what is allowed.
  void read(const std::string& path, const std::vector<std::string>& folders);
  // The same keys from a JSON object, as vizdoom's DoomGame.set_config takes them.
  void read(const Json& json, const std::vector<std::string>& folders, const std::string& where);
  // "RES_160X120" or "160x120".
  void set_resolution(const std::string& text, const std::string& where);
  void set_format(const std::string& text, const std::string& where);

  // Looks whether what the engine would silently not find is there. The map, if none is named, is
  // the game's first. Throws EP_E_NOT_FOUND, EP_E_ARGUMENT.
  void check();

 private:
  struct Entry;
  void set(const Entry& entry);
};

// The words of a command line; double quotes keep spaces.
std::vector<std::string> split_arguments(const std::string& text);

}  // namespace doom
