// plugin.cpp - Doom: the scenarios of ViZDoom, or any other, as tasks.
//
// An env owns one engine process for each player. frame_skip is played by the engine, which renders
// the last tic only; size, stack and gray scale are the host's.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <envpool/env.hpp>
#include <filesystem>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "actions.hpp"
#include "engine.hpp"
#include "game.hpp"
#include "names.hpp"
#include "players.hpp"
#include "rewards.hpp"
#include "scenario.hpp"

namespace {

using doom::Region;

struct Task {
  const char* id;
  const char* scenario;  // of the wheel, without ".cfg"; "": what the options say
};

constexpr std::array kTasks = {
#include "tasks.inc"
};

struct Config {
  int frame_skip = 4;
  int num_players = 1;
  envpool::path cfg_path, wad_path, iwad_path;
  std::string map_id;
  int skill = 0;
  std::string game_args;
  envpool::json config = "{}";
  std::string screen_resolution = "160x120", screen_format;
  std::string buffers = "scenario";
  bool observe_variables = false;
  std::string info_variables;
  bool use_combined_action = false;
  int max_buttons_pressed = 1;
  bool force_speed = false;
  envpool::json delta_button_config = "{}";
  envpool::json reward_config = "{}", selected_weapon_reward_config = "{}";
  int weapon_duration = 5;
  bool episodic_life = false;
  envpool::path lmp_save_dir, demo_path;
  double engine_timeout = 60;
};

// Of the task that plays any scenario of the wheel.
struct AnyConfig : Config {
  std::string scenario = "basic";
};

// What EnvPool tells of every scenario.
constexpr const char* kInfoVariables[] = {
    "AMMO2",  "AMMO3",    "AMMO4",       "AMMO5",           "AMMO6",
    "AMMO7",  "ARMOR",    "DAMAGECOUNT", "DEATHCOUNT",      "FRAGCOUNT",
    "HEALTH", "HITCOUNT", "KILLCOUNT",   "SELECTED_WEAPON", "SELECTED_WEAPON_AMMO",
    "USER2"};

std::vector<std::string> listed(const std::string& text) {
  std::vector<std::string> words(1);
  for (const char c : text) {
    if (c == ',')
      words.emplace_back();
    else if (c != ' ')
      words.back() += c;
  }
  std::erase(words, "");
  return words;
}

// Scenarios whose maps have starts for deathmatch only: without it the engine crashes.
constexpr std::string_view kDeathmatches[] = {"cig", "multi", "multi_duel"};

// Rules of a game of several players, as in the competitions for which Cig was made: the dead are
// put back at once and far from others. An option of the user comes later and prevails.
constexpr const char* kRules[] = {"+sv_forcerespawn 1",  "+sv_noautoaim 1", "+sv_respawnprotect 1",
                                  "+sv_spawnfarthest 1", "+sv_nocrouch 1",  "+viz_respawn_delay 0"};

// An image buffer as a field: height x width, of the automap and the screen maybe x 3.
struct Image {
  Region region;
  envpool::obs<std::uint8_t[]> field;
};

template <class C>
class Doom {
 public:
  static constexpr const char* doc = "Doom, played by ViZDoom's engine.";
  static constexpr ep_sharing sharing = EP_FREE;
  // Its own thread: the one of the process that makes and watches the engines (spawner.cpp).
  static constexpr std::uint64_t flags = EP_TASK_OWN_THREADS | EP_TASK_MAY_BLOCK | EP_TASK_STICKY;

  using config = C;
  static void options(envpool::options<C>& o) {
    if constexpr (std::same_as<C, AnyConfig>)
      o.add("scenario", &C::scenario)
          .shapes_spec()
          .doc("a scenario file of the vizdoom wheel, without .cfg: basic, deadly_corridor, ...");
    o.add("frame_skip", &C::frame_skip)
        .range(1, 1000)
        .doc("tics (1/35 s) that an action is repeated for");
    o.add("num_players", &C::num_players)
        .range(1, static_cast<int>(doom::kMostPlayers))
        .shapes_spec()
        .doc("agents that play the same game, each with an engine of its own");
    o.add("cfg_path", &C::cfg_path).shapes_spec().doc("another scenario file, in ViZDoom's format");
    o.add("wad_path", &C::wad_path)
        .shapes_spec()
        .doc("another WAD with maps, instead of the scenario's");
    o.add("iwad_path", &C::iwad_path)
        .doc("the game's own WAD; empty: the scenario's, or freedoom2.wad of the wheel");
    o.add("map_id", &C::map_id).doc("a map, \"map01\" or \"E1M1\"; empty: the scenario's");
    o.add("skill", &C::skill).range(0, 5).doc("difficulty, 1 (easy) to 5; 0: the scenario's");
    o.add("game_args", &C::game_args).doc("further arguments of the engine, after the scenario's");
    o.add("config", &C::config)
        .shapes_spec()
        .doc(
            "settings of the scenario file to change, by name: {\"living_reward\": 0, "
            "\"render_hud\": true}");
    o.add("screen_resolution", &C::screen_resolution)
        .shapes_spec()
        .doc("in which the engine draws, \"WxH\", at least 160x120; empty: the scenario's");
    o.add("screen_format", &C::screen_format)
        .choices({"", "RGB24", "GRAY8"})
        .shapes_spec()
        .doc("of the engine's pictures; empty: GRAY8 if the scenario says so, else RGB24");
    o.add("buffers", &C::buffers)
        .shapes_spec()
        .doc(
            "what is observed beside the screen: names of depth, labels, automap, audio, "
            "notifications, with commas;"
            " \"scenario\": what the scenario file enables");
    o.add("observe_variables", &C::observe_variables)
        .shapes_spec()
        .doc("the scenario's game variables are observed too, as \"gamevariables\"");
    o.add("info_variables", &C::info_variables)
        .shapes_spec()
        .doc(
            "game variables in the info, with commas, or \"all\"; empty: EnvPool's and the "
            "scenario's");
    o.add("use_combined_action", &C::use_combined_action)
        .shapes_spec()
        .doc("one discrete action for each sensible combination of all buttons");
    o.add("max_buttons_pressed", &C::max_buttons_pressed)
        .range(0, 43)
        .shapes_spec()
        .doc(
            "one discrete action for each combination of at most so many buttons; 0: a bit for "
            "each button");
    o.add("force_speed", &C::force_speed).shapes_spec().doc("the button SPEED is always pressed");
    o.add("delta_button_config", &C::delta_button_config)
        .shapes_spec()
        .doc(
            "delta buttons in combined actions: {\"TURN_LEFT_RIGHT_DELTA\": [number of values, "
            "least, most]}");
    o.add("reward_config", &C::reward_config)
        .doc(
            "{game variable: [rise, fall]}, what a change by one is worth. If it or "
            "selected_weapon_reward_config is"
            " given, it takes the place of the scenario's reward");
    o.add("selected_weapon_reward_config", &C::selected_weapon_reward_config)
        .doc("{weapon: reward of each step with it in hand}");
    o.add("weapon_duration", &C::weapon_duration)
        .min(1)
        .doc("observations that a weapon was in hand before it is worth something");
    o.add("episodic_life", &C::episodic_life)
        .doc("death ends the episode where it would not: in games of several players");
    o.add("lmp_save_dir", &C::lmp_save_dir)
        .doc("a folder for recordings: episode e of env i becomes env<i>_<e>.lmp; empty: none");
    o.add("demo_path", &C::demo_path)
        .at_reset()
        .doc("a recording that the episode replays, whatever the actions; empty: none");
    o.add("engine_timeout", &C::engine_timeout)
        .range(1., 86400.)
        .unit("s")
        .doc("an engine that does not answer for so long is killed");
  }

  struct fields {
    doom::Scenario scenario;
    std::shared_ptr<const doom::Actions> actions;
    std::vector<Image> images;
    std::optional<envpool::obs<std::int16_t[]>> audio;
    std::optional<envpool::obs<envpool::text>> notifications;
    std::optional<envpool::obs<float[]>> variables;
    std::vector<std::pair<doom::Variable, envpool::info<double>>> infos;
  };
  static const char* agent_name(std::uint32_t player) {
    static const std::vector<std::string>& names = *[] {
      auto all = std::make_unique<std::vector<std::string>>();
      for (std::size_t i = 0; i < doom::kMostPlayers; ++i)
        all->push_back("player_" + std::to_string(i));
      return all.release();  // immortal
    }();
    return names[player].c_str();
  }

  static fields describe(envpool::spec& s, const C& c, const Task& task) {
    fields f;
    f.scenario = scenario(s.host(), c, task);
    const doom::Scenario& of = f.scenario;
    s.fps = 35. / c.frame_skip;
    s.max_agents = static_cast<std::uint32_t>(c.num_players);
    const bool several = c.num_players > 1;
    const auto each = [several](auto field) { return several ? field.per_agent() : field; };

    const bool alone = !(of.depth || of.labels || of.automap || of.audio || of.notifications ||
                         c.observe_variables);
    const auto image = [&](Region region, const char* name, bool coloured, bool picture,
                           const char* doc) {
      std::vector<std::int64_t> shape = {of.height, of.width};
      if (coloured) shape.push_back(3);
      auto field = each(s.obs<std::uint8_t[]>(name, shape).within(0, 255).doc(doc));
      if (picture) field.image(coloured ? EP_HWC : EP_HW);
      f.images.push_back({region, field});
    };
    const bool coloured = of.format != doom::Format::kGray;
    image(Region::kScreen, alone ? "" : "screen", coloured, true, "the screen");
    if (of.depth) image(Region::kDepth, "depth", false, true, "distance of what each pixel shows");
    // No picture to the host: a mean of two labels is a third.
    if (of.labels)
      image(Region::kLabels, "labels", false, false, "which object each pixel shows, 0: none");
    if (of.automap) image(Region::kAutomap, "automap", coloured, true, "the map from above");
    if (of.audio)
      f.audio = each(s.obs<std::int16_t[]>("audio", {of.audio_rate / 35 * of.audio_tics, 2})
                         .within(-32768, 32767)
                         .doc("the sound of the last tics, left and right"));
    if (of.notifications)
      f.notifications =
          each(s.obs<envpool::text>("notifications", {sizeof doom::GameState::notifications_text})
                   .doc("messages of the game since the last step"));
    if (c.observe_variables && !of.variables.empty())
      f.variables =
          each(s.obs<float[]>("gamevariables", {static_cast<std::int64_t>(of.variables.size())})
                   .doc("game variables of the scenario"));

    doom::ActionSettings settings;
    settings.combined = c.use_combined_action;
    settings.max_buttons_pressed = c.max_buttons_pressed;
    settings.force_speed = c.force_speed;
    settings.per_agent = several;
    settings.deltas =
        doom::parse_deltas(doom::parse_json(c.delta_button_config, "delta_button_config"));
    f.actions = std::make_shared<const doom::Actions>(s, of.buttons, settings);

    for (const doom::Variable v : info_variables(c, of))
      f.infos.emplace_back(v, each(s.info<double>(doom::variable_names()[v])));
    return f;
  }

  Doom(const C& c, const fields& f, const Task&, const envpool::context& x)
      : f_(f),
        frame_skip_(c.frame_skip),
        episodic_life_(c.episodic_life),
        recordings_(recordings(c.lmp_save_dir, x.env_id)),
        buttons_(static_cast<std::size_t>(c.num_players)),
        scenario_rewards_(buttons_.size(), doom::ScenarioReward(f.scenario.worth)),
        shaped_rewards_(buttons_.size(),
                        doom::ShapedReward(doom::parse_json(c.reward_config, "reward_config"),
                                           doom::parse_json(c.selected_weapon_reward_config,
                                                            "selected_weapon_reward_config"),
                                           c.weapon_duration)),
        host_(x),
        patience_(c.engine_timeout) {}

  // vizdoom's own: a generator whose numbers are the engine's seeds, one an episode.
  void seed(std::uint64_t s) {
    rng_.seed(static_cast<std::uint32_t>(s ^ s >> 32));
    // An episode of several players follows from its seed and from those before it (a map that is
    // changed is not entered as one that is begun with). So a seed comes with new engines.
    if (players() > 1) played_.reset();
  }

  void reset(const C& c) {
    doom::Game::Start start;
    start.seed = static_cast<std::uint32_t>(rng_());
    if (!c.demo_path.empty())
      start.replay = file(c.demo_path, "demo_path");
    else if (!recordings_.empty())
      start.record = recordings_ + std::to_string(episode_) + ".lmp";
    if (players() > 1 && !(start.replay.empty() && start.record.empty()))
      throw envpool::error(EP_E_ARGUMENT,
                           "lmp_save_dir, demo_path: only games of one player are recorded");
    ++episode_;
    // Engines are started with the seed of their first episode, as vizdoom's controller does it.
    const bool fresh = !played_;
    if (fresh)
      played_ = std::make_unique<Played>(host_, f_.scenario, players(), start.seed, patience_);
    if (!fresh || !start.record.empty() || !start.replay.empty()) played_->game.begin(start);
    for (std::size_t i = 0; i < players(); ++i) {
      scenario_rewards_[i].begin(state(i));
      shaped_rewards_[i].begin(state(i));
    }
  }

  void step(const envpool::input& in, envpool::results& out) {
    for (std::uint32_t i = 0; i < players(); ++i) f_.actions->press(in.agent(i), buttons_[i]);
    doom::Game& game = played_->game;
    const int tics = game.play(buttons_, frame_skip_);
    bool terminated = game.map_end();
    for (std::size_t i = 0; i < players(); ++i) {
      const doom::GameState& s = state(i);
      const double own = scenario_rewards_[i].step(s, tics), shaped = shaped_rewards_[i].step(s);
      out.reward[i] = shaped_rewards_[i].empty() ? own : shaped;
      terminated = terminated || (s.dead && (episodic_life_ || !s.multiplayer));
    }
    const bool truncated = !terminated && game.timed_out();
    std::ranges::fill(out.terminated, terminated);
    std::ranges::fill(out.truncated, truncated);
    out.end_episode(terminated || truncated);
  }

  void observe(const envpool::view& all) const {
    for (std::uint32_t i = 0; i < players(); ++i) observe(i, all.agent(i));
  }

  // A camera is a player's eyes: 1 the first one's, as 0, the default.
  void measure(ep_image& image) const {
    const auto height = static_cast<std::uint32_t>(f_.scenario.height),
               width = static_cast<std::uint32_t>(f_.scenario.width);
    if (image.height == 0) image.height = height;
    if (image.width == 0) image.width = width;
    if (image.height != height || image.width != width || image.camera > players())
      throw envpool::error(EP_E_ARGUMENT, "Doom is drawn at " + std::to_string(width) + " x " +
                                              std::to_string(height) + " (screen_resolution), by " +
                                              std::to_string(players()) +
                                              " camera(s), one a player");
  }

  void draw(const ep_image& image) const {
    if (!played_) throw envpool::error(EP_E_STATE, "nothing to draw before the first reset()");
    const auto* from = reinterpret_cast<const std::uint8_t*>(
        played_->players[std::max(image.camera, 1u) - 1].region(Region::kScreen).data());
    const bool gray = f_.scenario.format == doom::Format::kGray;
    for (std::uint32_t row = 0; row < image.height; ++row) {
      std::uint8_t* to = static_cast<std::uint8_t*>(image.pixels) + row * image.row_bytes;
      if (!gray) {
        std::memcpy(to, from, std::size_t{3} * image.width);
        from += std::size_t{3} * image.width;
        continue;
      }
      for (std::uint32_t column = 0; column < image.width; ++column, to += 3)
        std::memset(to, *from++, 3);
    }
  }

 private:
  std::size_t players() const { return buttons_.size(); }
  const doom::GameState& state(std::size_t player) const {
    return played_->players[player].state();
  }

  void observe(std::uint32_t player, const envpool::view& v) const {
    const doom::Engine& engine = played_->players[player];
    for (const Image& image : f_.images) copy(v, image.field, engine, image.region);
    if (f_.audio) copy(v, *f_.audio, engine, Region::kAudio);
    const doom::GameState& s = engine.state();
    if (f_.notifications)
      v.put(*f_.notifications,
            std::string_view(s.notifications_text,
                             strnlen(s.notifications_text, sizeof s.notifications_text)));
    if (f_.variables) {
      if (const auto to = v[*f_.variables]) {
        for (std::size_t i = 0; i < to.size(); ++i)
          to[i] = static_cast<float>(doom::value_of(f_.scenario.variables[i], s));
      }
    }
    for (const auto& [variable, field] : f_.infos)
      if (v.wants(field)) v.put(field, doom::value_of(variable, s));
  }

  template <class T>
  static void copy(const envpool::view& v, const envpool::obs<T>& field, const doom::Engine& engine,
                   Region region) {
    const auto to = v[field];
    if (!to) return;
    const auto from = engine.region(region);
    const std::size_t bytes = to.size() * sizeof to[0];
    if (from.size() < bytes)
      throw envpool::error(EP_E_BROKEN, "the Doom engine gives " + std::to_string(from.size()) +
                                            " bytes where " + std::to_string(bytes) +
                                            " are expected");
    std::memcpy(to.data(), from.data(), bytes);
  }

  static doom::Scenario scenario(const envpool::host& host, const C& c, const Task& task) {
    const std::string scenarios = host.asset("scenarios"), package = host.asset("package");
    const std::vector<std::string> folders = {scenarios, package};
    std::string name = task.scenario;
    if constexpr (std::same_as<C, AnyConfig>) name = c.scenario;
    const std::string& own = c.cfg_path;
    doom::Scenario s;
    if (!own.empty())
      s.read(own, folders);
    else if (!name.empty())
      s.read(scenarios + "/" + name + ".cfg", folders);
    else
      throw envpool::error(EP_E_ARGUMENT,
                           "cfg_path=\"\": name a scenario file in ViZDoom's format");
    // As vizdoom's Gymnasium env has it: what happened since the last step.
    s.audio_tics = s.notification_tics = c.frame_skip;
    s.read(doom::parse_json(c.config, "config"), {".", scenarios, package}, "config");

    if (!c.wad_path.empty()) s.wad_path = c.wad_path;
    if (!c.iwad_path.empty()) s.game_path = c.iwad_path;
    if (s.game_path.empty()) s.game_path = package + "/freedoom2.wad";
    if (!c.map_id.empty()) s.map = c.map_id;
    if (c.skill != 0) s.skill = c.skill;
    const auto add = [&](std::string_view arguments) {
      for (const std::string& word : doom::split_arguments(std::string(arguments)))
        s.game_args.push_back(word);
    };
    if (std::ranges::find(kDeathmatches, name) != std::end(kDeathmatches)) add("-deathmatch");
    if (c.num_players > 1) std::ranges::for_each(kRules, add);
    add(c.game_args);
    if (!c.screen_resolution.empty()) s.set_resolution(c.screen_resolution, "screen_resolution");
    if (!c.screen_format.empty()) s.set_format(c.screen_format, "screen_format");
    if (c.buffers != "scenario") choose_buffers(c.buffers, s);
    s.check();
    return s;
  }

  static std::string file(const std::string& path, const char* option) {
    if (!std::filesystem::is_regular_file(path))
      throw envpool::error(EP_E_NOT_FOUND, std::string(option) + ": there is no file " + path);
    return std::filesystem::absolute(path).string();
  }

  // What the names of an env's recordings begin with.
  static std::string recordings(const std::string& folder, std::uint64_t env_id) {
    if (folder.empty()) return {};
    if (!std::filesystem::is_directory(folder))
      throw envpool::error(EP_E_NOT_FOUND, "lmp_save_dir: there is no folder " + folder);
    return (std::filesystem::absolute(folder) / ("env" + std::to_string(env_id) + "_")).string();
  }

  static void choose_buffers(const std::string& names, doom::Scenario& s) {
    const std::pair<const char*, bool*> all[] = {{"depth", &s.depth},
                                                 {"labels", &s.labels},
                                                 {"automap", &s.automap},
                                                 {"audio", &s.audio},
                                                 {"notifications", &s.notifications}};
    for (const auto& [name, on] : all) *on = false;
    for (const std::string& name : listed(names)) {
      const auto found =
          std::ranges::find_if(all, [&](const auto& one) { return name == one.first; });
      if (found == std::end(all))
        throw envpool::error(EP_E_ARGUMENT,
                             "buffers=\"" + names + "\": there is no \"" + name +
                                 "\"; there are depth, labels, automap, audio, notifications");
      *found->second = true;
    }
  }

  static std::vector<doom::Variable> info_variables(const C& c, const doom::Scenario& s) {
    std::vector<doom::Variable> out;
    if (upper_is(c.info_variables, "ALL")) {
      for (doom::Variable v = 0; v < doom::variable_names().size(); ++v) out.push_back(v);
      return out;
    }
    const auto add = [&](doom::Variable v) {
      if (std::ranges::find(out, v) == out.end()) out.push_back(v);
    };
    for (const std::string& name : listed(c.info_variables))
      add(doom::variable_of(name, "info_variables"));
    if (!out.empty()) return out;
    for (const char* name : kInfoVariables) add(doom::variable_of(name, "info_variables"));
    for (const doom::Variable v : s.variables) add(v);
    return out;
  }
  static bool upper_is(const std::string& text, std::string_view word) {
    return doom::upper(text) == word;
  }

  const fields f_;
  const int frame_skip_;
  const bool episodic_life_;
  const std::string recordings_;
  std::uint64_t episode_ = 0;
  std::mt19937 rng_;
  // Of each player.
  std::vector<doom::Buttons> buttons_;
  std::vector<doom::ScenarioReward> scenario_rewards_;
  std::vector<doom::ShapedReward> shaped_rewards_;

  // From the first reset on.
  struct Played {
    doom::Players players;
    doom::Game game;
    Played(const envpool::host& host, const doom::Scenario& scenario, std::size_t count,
           std::uint32_t seed, doom::Engine::Seconds patience)
        : players({host.asset("engine"), host.asset("home"), host.asset("openal")}, scenario, count,
                  seed, host, patience),
          game(players, scenario) {
      if (scenario.audio && !players[0].has_library("libopenal"))
        throw envpool::error(
            EP_E_NOT_FOUND,
            "the observation \"audio\" needs OpenAL, and Doom's engine found none: "
            "pip install 'envpool-vizdoom[audio]' brings it; buffers=\"\" leaves sound out");
    }
  };
  const envpool::host host_;
  const doom::Engine::Seconds patience_;
  std::unique_ptr<Played> played_;
};

constexpr std::array kAny = {Task{"Doom-v1", ""}};

}  // namespace

ENVPOOL_PLUGIN_ABOUT((envpool::about{"vizdoom", ENVPOOL_VIZDOOM_VERSION, "MIT", nullptr}),
                     envpool::family<Doom<AnyConfig>, kAny>, envpool::family<Doom<Config>, kTasks>)
