// scenario.cpp - see scenario.hpp.
#include "scenario.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <envpool/env.hpp>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>
#include <utility>

#include "wad.hpp"

namespace doom {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse(const std::string& what) { throw envpool::error(EP_E_ARGUMENT, what); }

// Keys are compared without case and underscores.
std::string plain(const std::string& key) {
  std::string out;
  for (const char c : key)
    if (c != '_') out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

std::string trimmed(const std::string& text) {
  const auto is_space = [](unsigned char c) { return std::isspace(c) != 0; };
  const auto begin = std::ranges::find_if_not(text, is_space);
  auto end = text.end();
  while (end != begin && is_space(static_cast<unsigned char>(*(end - 1)))) --end;
  return {begin, end};
}

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

}  // namespace

// One setting.
struct Scenario::Entry {
  std::string key, value, where;  // where: for messages
  std::vector<std::string> words;
  bool append = false;
  std::vector<std::string> folders;

  [[noreturn]] void bad(const std::string& allowed) const {
    refuse(where + ": " + key + " = " + value + ": must be " + allowed);
  }
  bool boolean() const {
    const std::string v = upper(value);
    if (v == "TRUE" || v == "1") return true;
    if (v == "FALSE" || v == "0") return false;
    bad("true or false");
  }
  double number() const {
    char* end = nullptr;
    const double v = std::strtod(value.c_str(), &end);
    if (value.empty() || *end != '\0' || !std::isfinite(v)) bad("a number");
    return v;
  }
  int integer(int least, int most) const {
    int v = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), v);
    if (error != std::errc() || end != value.data() + value.size() || v < least || v > most)
      bad("an integer, " + std::to_string(least) + " to " + std::to_string(most));
    return v;
  }
  template <class T>
  T choice(const std::vector<std::pair<std::string, T>>& values) const {
    std::vector<std::string> names;
    for (const auto& [name, meaning] : values) {
      if (upper(value) == name) return meaning;
      names.push_back(name);
    }
    bad("one of " + join(names));
  }
  std::string path() const {
    std::string tried;
    for (const std::string& folder : folders) {
      const fs::path path = fs::path(folder) / value;  // an absolute value stays as it is
      std::error_code ignored;
      if (fs::is_regular_file(path, ignored)) return fs::absolute(path).lexically_normal().string();
      if (!tried.empty()) tried += " or ";
      tried += path.string();
      if (fs::path(value).is_absolute()) break;
    }
    throw envpool::error(EP_E_NOT_FOUND,
                         where + ": " + key + " = " + value + ": there is no file " + tried);
  }
};

void Scenario::set(const Entry& e) {
  using Setter = std::function<void(Scenario&, const Entry&)>;
  const auto flag = [](bool Scenario::* to) -> Setter {
    return [to](Scenario& s, const Entry& v) { s.*to = v.boolean(); };
  };
  const auto worth_of = [](double Worth::* to, double sign = 1) -> Setter {
    return [to, sign](Scenario& s, const Entry& v) { s.worth.*to = sign * v.number(); };
  };
  const auto tics = [](int Scenario::* to) -> Setter {
    return [to](Scenario& s, const Entry& v) { s.*to = v.integer(1, 1000); };
  };
  const auto time = [](std::uint32_t Scenario::* to) -> Setter {
    return [to](Scenario& s, const Entry& v) {
      s.*to = static_cast<std::uint32_t>(v.integer(0, 1 << 30));
    };
  };
  const Setter ignored = [](Scenario&, const Entry&) {};
  static const std::map<std::string, Setter> setters = {
      {"doomscenariopath", [](Scenario& s, const Entry& v) { s.wad_path = v.path(); }},
      {"doomgamepath", [](Scenario& s, const Entry& v) { s.game_path = v.path(); }},
      {"doommap", [](Scenario& s, const Entry& v) { s.map = v.value; }},
      {"doomskill", [](Scenario& s, const Entry& v) { s.skill = v.integer(1, 5); }},
      {"screenresolution", [](Scenario& s, const Entry& v) { s.set_resolution(v.value, v.where); }},
      {"screenformat", [](Scenario& s, const Entry& v) { s.set_format(v.value, v.where); }},
      {"episodestarttime", time(&Scenario::start_tic)},
      {"episodetimeout", time(&Scenario::timeout)},
      {"gameargs",
       [](Scenario& s, const Entry& v) {
         if (!v.append) s.game_args.clear();
         for (const std::string& word : split_arguments(v.value)) s.game_args.push_back(word);
       }},
      {"availablebuttons",
       [](Scenario& s, const Entry& v) {
         if (!v.append) s.buttons.clear();
         for (const std::string& word : v.words) {
           const Button button = button_of(word, v.where);
           if (std::ranges::find(s.buttons, button) == s.buttons.end()) s.buttons.push_back(button);
         }
       }},
      {"availablegamevariables",
       [](Scenario& s, const Entry& v) {
         if (!v.append) s.variables.clear();
         for (const std::string& word : v.words) {
           const Variable variable = variable_of(word, v.where);
           if (std::ranges::find(s.variables, variable) == s.variables.end())
             s.variables.push_back(variable);
         }
       }},
      {"livingreward", worth_of(&Worth::living)},
      {"mapexitreward", worth_of(&Worth::map_exit)},
      {"deathreward", worth_of(&Worth::death)},
      {"deathpenalty", worth_of(&Worth::death, -1)},
      {"killreward", worth_of(&Worth::kill)},
      {"secretreward", worth_of(&Worth::secret)},
      {"itemreward", worth_of(&Worth::item)},
      {"fragreward", worth_of(&Worth::frag)},
      {"hitreward", worth_of(&Worth::hit)},
      {"hittakenreward", worth_of(&Worth::hit_taken)},
      {"hittakenpenalty", worth_of(&Worth::hit_taken, -1)},
      {"damagemadereward", worth_of(&Worth::damage_made)},
      {"damagetakenreward", worth_of(&Worth::damage_taken)},
      {"damagetakenpenalty", worth_of(&Worth::damage_taken, -1)},
      {"healthreward", worth_of(&Worth::health)},
      {"armorreward", worth_of(&Worth::armor)},
      {"renderhud", flag(&Scenario::hud)},
      {"renderminimalhud", flag(&Scenario::minimal_hud)},
      {"renderweapon", flag(&Scenario::weapon)},
      {"rendercrosshair", flag(&Scenario::crosshair)},
      {"renderdecals", flag(&Scenario::decals)},
      {"renderparticles", flag(&Scenario::particles)},
      {"rendereffectssprites", flag(&Scenario::effects_sprites)},
      {"rendermessages", flag(&Scenario::messages)},
      {"rendercorpses", flag(&Scenario::corpses)},
      {"renderscreenflashes", flag(&Scenario::screen_flashes)},
      {"renderallframes", flag(&Scenario::all_frames)},
      {"depthbufferenabled", flag(&Scenario::depth)},
      {"labelsbufferenabled", flag(&Scenario::labels)},
      {"automapbufferenabled", flag(&Scenario::automap)},
      {"audiobufferenabled", flag(&Scenario::audio)},
      {"notificationsbufferenabled", flag(&Scenario::notifications)},
      {"automapmode",
       [](Scenario& s, const Entry& v) {
         s.automap_mode =
             v.choice<int>({{"NORMAL", 0}, {"WHOLE", 1}, {"OBJECTS", 2}, {"OBJECTS_WITH_SIZE", 3}});
       }},
      {"automaprotate", flag(&Scenario::automap_rotate)},
      {"automaprendertextures", flag(&Scenario::automap_textures)},
      {"automaprenderobjectsassprites", flag(&Scenario::automap_sprites)},
      {"audiosamplingrate",
       [](Scenario& s, const Entry& v) {
         s.audio_rate =
             v.choice<int>({{"SR_11025", 11025}, {"SR_22050", 22050}, {"SR_44100", 44100}});
       }},
      {"audiobuffersize", tics(&Scenario::audio_tics)},
      {"notificationsbuffersize", tics(&Scenario::notification_tics)},
      // About windows, sound, real time and vizdoom's own objects: without meaning here.
      {"mode", ignored},
      {"windowvisible", ignored},
      {"soundenabled", ignored},
      {"consoleenabled", ignored},
      {"ticrate", ignored},
      {"seed", ignored},
      {"objectsinfoenabled", ignored},
      {"sectorsinfoenabled", ignored},
  };
  const auto setter = setters.find(plain(e.key));
  if (setter == setters.end())
    refuse(e.where + ": there is no setting \"" + e.key + "\" in ViZDoom's configuration files");
  setter->second(*this, e);
}

void Scenario::read(const std::string& path, const std::vector<std::string>& folders) {
  std::ifstream in(path);
  if (!in) throw envpool::error(EP_E_NOT_FOUND, "there is no scenario file " + path);
  file = path;
  std::vector<std::string> places = {fs::absolute(path).parent_path().string()};
  places.insert(places.end(), folders.begin(), folders.end());

  int number = 0;
  const auto next = [&](std::string& line) {
    if (!std::getline(in, line)) return false;
    ++number;
    line = trimmed(line.substr(0, line.find('#')));
    return true;
  };
  for (std::string line; next(line);) {
    if (line.empty()) continue;
    Entry e;
    e.folders = places;
    e.where = path + ":" + std::to_string(number);
    const auto sign = line.find('=');
    if (sign == std::string::npos) refuse(e.where + ": \"" + line + "\" is no \"key = value\"");
    e.append = sign > 0 && line[sign - 1] == '+';
    e.key = trimmed(line.substr(0, sign - (e.append ? 1 : 0)));
    e.value = trimmed(line.substr(sign + 1));
    // A list stands in braces, here or on the lines that follow.
    const auto opens = [&] { return !e.value.empty() && e.value.front() == '{'; };
    while (e.value.empty() || (opens() && e.value.back() != '}')) {
      if (!next(line))
        refuse(e.where + ": the value of " + e.key + " is missing, or its brace is not closed");
      e.value = trimmed(e.value + " " + line);
    }
    if (opens()) e.value = trimmed(e.value.substr(1, e.value.size() - 2));
    e.words = words_of(e.value);
    set(e);
  }
}

void Scenario::read(const Json& json, const std::vector<std::string>& folders,
                    const std::string& where) {
  const auto* settings = std::get_if<Json::Object>(&json.value);
  if (settings == nullptr) refuse(where + " must be a dictionary of ViZDoom's settings");
  for (const auto& setting : *settings) {
    const std::string& key = setting.first;
    const Json& value = setting.second;
    Entry e;
    e.key = key;
    e.folders = folders;
    e.where = where;
    const auto text = [&](const Json& one) -> std::string {
      if (const auto* s = std::get_if<std::string>(&one.value)) return *s;
      if (const auto* b = std::get_if<bool>(&one.value)) return *b ? "true" : "false";
      const auto* number = std::get_if<double>(&one.value);
      if (number == nullptr)
        refuse(where + "[\"" + key + "\"] must be a text, a number, a bool or a list of texts");
      std::ostringstream out;
      out.precision(17);
      out << *number;
      return out.str();
    };
    if (const auto* list = std::get_if<Json::Array>(&value.value)) {
      for (const Json& one : *list) {
        if (!e.value.empty()) e.value += ' ';
        e.value += text(one);
      }
    } else {
      e.value = text(value);
    }
    e.words = words_of(e.value);
    set(e);
  }
}

void Scenario::set_resolution(const std::string& text, const std::string& where) {
  std::string size = upper(text);
  if (size.starts_with("RES_")) size.erase(0, 4);
  const auto by = size.find('X');
  const auto number = [&](const std::string& digits) {
    int v = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), v);
    return error == std::errc() && end == digits.data() + digits.size() ? v : 0;
  };
  const int w = by == std::string::npos ? 0 : number(size.substr(0, by));
  const int h = by == std::string::npos ? 0 : number(size.substr(by + 1));
  if (w < 160 || w > 3840 || h < 120 || h > 2160)
    refuse(where + ": screen_resolution " + text + ": must be WxH, 160x120 to 3840x2160");
  width = w;
  height = h;
}

void Scenario::set_format(const std::string& text, const std::string& where) {
  Entry e;
  e.key = "screen_format";
  e.value = text;
  e.where = where;
  format = e.choice<Format>({{"RGB24", Format::kRgb},
                             {"GRAY8", Format::kGray},
                             {"CRCGCB", Format::kRgb},
                             {"RGBA32", Format::kRgb},
                             {"ARGB32", Format::kRgb},
                             {"CBCGCR", Format::kRgb},
                             {"BGR24", Format::kRgb},
                             {"BGRA32", Format::kRgb},
                             {"ABGR32", Format::kRgb},
                             {"DOOM_256_COLORS8", Format::kRgb}});
}

void Scenario::check() {
  const std::string of = file.empty() ? "" : file + ": ";
  if (buttons.empty())
    refuse(of + "available_buttons names no button: there would be nothing to do");
  std::vector<std::string> wads = {game_path};
  if (!wad_path.empty()) wads.insert(wads.begin(), wad_path);
  const std::vector<std::string> maps =
      map.empty() ? std::vector<std::string>{"map01", "E1M1"} : std::vector{map};
  for (const std::string& wad : wads) {
    const Wad directory(wad);
    for (const std::string& name : maps) {
      if (!directory.has(name)) continue;
      map = name;
      return;
    }
  }
  std::string where = wads[0];
  if (wads.size() > 1) where += " or " + wads[1];
  throw envpool::error(EP_E_NOT_FOUND, of + "there is no map \"" + maps[0] + "\" in " + where);
}

std::vector<std::string> split_arguments(const std::string& text) {
  std::vector<std::string> words;
  std::string word;
  bool quoted = false, any = false;
  for (const char c : text + " ") {
    if (c == '"') {
      quoted = !quoted;
      any = true;
    } else if (quoted || std::isspace(static_cast<unsigned char>(c)) == 0) {
      word += c;
      any = true;
    } else if (any) {
      words.push_back(std::exchange(word, {}));
      any = false;
    }
  }
  return words;
}

}  // namespace doom
