// plugin.cpp - the Atari 2600 games of the Arcade Learning Environment, one frame a step.
//
// The picture is given as ALE has it, as palette indices with their colour and gray tables, so that
// the host converts only the frames that somebody sees. Frame skip, stacks, no-ops and the like are
// the host's as well.
#include <array>
#include <cstdint>
#include <cstring>
#include <envpool/env.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ale.hpp"

namespace {

struct Task {
  const char* id;
  const char* rom;  // file name without ".bin", which is also ALE's name of the game
};

constexpr std::array kTasks = {
#include "tasks.inc"
};

class Atari {
 public:
  static constexpr const char* doc = "An Atari 2600 game of the Arcade Learning Environment.";
  static constexpr ep_sharing sharing = EP_FREE;
  static constexpr std::uint32_t state_purposes = 1u << EP_STATE_CLONE | 1u << EP_STATE_PERSIST;

  struct config {
    bool full_action_space = false;
    double repeat_action_probability = 0;
    int mode = -1, difficulty = -1;
    envpool::path rom_path, ale_library;
  };
  static void options(envpool::options<config>& o) {
    o.add("full_action_space", &config::full_action_space)
        .shapes_spec()
        .doc("all 18 actions rather than those that the game uses");
    o.add("repeat_action_probability", &config::repeat_action_probability)
        .range(0, 1)
        .doc("chance that a frame repeats the last action instead of taking the new one");
    o.add("mode", &config::mode).min(-1).doc("game mode; -1: the game's default");
    o.add("difficulty", &config::difficulty).min(-1).doc("difficulty switches; -1: the default");
    o.add("rom_path", &config::rom_path)
        .shapes_spec()
        .doc("the game's ROM file; empty: the one in ale-py");
    o.add("ale_library", &config::ale_library)
        .shapes_spec()
        .doc("the extension module of ale-py; empty: the installed one");
  }

  struct fields {
    envpool::obs<std::uint8_t[]> screen;
    envpool::action<std::int64_t> action;
    envpool::info<std::int32_t> lives, terminated;
    envpool::info<std::uint8_t[atari::kRamSize]> ram;
  };
  static fields describe(envpool::spec& s, const config& c, const Task& task) {
    const atari::Game& game = find(s.host(), c, task).game;
    std::vector<std::string> names;
    for (const int action : actions(game, c))
      names.emplace_back(atari::kActionNames.at(static_cast<std::size_t>(action)));
    s.max_episode_steps = 27000;  // at the usual four frames a step: half an hour of play
    s.fps = 60;
    return {
        s.obs<std::uint8_t[]>(
             "", {static_cast<std::int64_t>(game.rows), static_cast<std::int64_t>(game.columns)})
            .within(0, 255)
            .indexed(game.palette.rgb, game.palette.gray)
            .doc("the screen"),
        s.action<std::int64_t>("").discrete(static_cast<std::int64_t>(names.size())).labels(names),
        s.info<std::int32_t>("lives").meaning("lives").doc(
            "lives left; 0 in games that count none"),
        s.info<std::int32_t>("terminated").within(0, 1).doc("1: the game itself is over"),
        s.info<std::uint8_t[atari::kRamSize]>("ram").within(0, 255).doc("the console's memory")};
  }

  Atari(const config& c, const fields& f, const Task& task, const envpool::host& host)
      : Atari(find(host, c, task), c, f) {}

  void seed(std::uint64_t s) { seed_ = s; }

  void reset() {
    // A console has its seed from the moment it is switched on.
    if (seed_ || !console_.loaded()) console_.load(seed_.value_or(0));
    seed_.reset();
    console_.reset();
  }

  envpool::result step(const envpool::input& in) {
    const auto choice = static_cast<std::size_t>(in[f_.action]);
    if (choice >= actions_.size()) throw envpool::error(EP_E_ARGUMENT, "no such action");
    const int reward = console_.act(actions_[choice]);
    return {.reward = static_cast<double>(reward), .terminated = console_.over()};
  }

  void observe(const envpool::view& v) const {
    if (const auto to = v[f_.screen]) std::memcpy(to.data(), console_.screen().pixels, to.size());
    if (v.wants(f_.lives)) v.put(f_.lives, console_.lives());
    if (v.wants(f_.terminated)) v.put(f_.terminated, console_.over());
    if (const auto to = v[f_.ram]) std::memcpy(to.data(), console_.ram().data(), to.size());
  }

  void measure(ep_image& image) const {
    const auto height = static_cast<std::uint32_t>(game_.rows),
               width = static_cast<std::uint32_t>(game_.columns);
    if (image.height == 0) image.height = height;
    if (image.width == 0) image.width = width;
    if (image.height != height || image.width != width || image.camera != 0)
      throw envpool::error(EP_E_ARGUMENT, std::string(game_.name) + " is drawn by one camera at " +
                                              std::to_string(width) + " x " +
                                              std::to_string(height));
  }

  void draw(const ep_image& image) const {
    const atari::Screen screen = console_.screen();
    const std::uint8_t* from = screen.pixels;
    for (std::size_t row = 0; row < screen.rows; ++row) {
      std::uint8_t* to = static_cast<std::uint8_t*>(image.pixels) + row * image.row_bytes;
      for (std::size_t column = 0; column < screen.columns; ++column, to += 3)
        std::memcpy(to, &game_.palette.rgb[std::size_t{3} * *from++], 3);
    }
  }

  void save(envpool::writer& to, std::int32_t) const {
    const std::string bytes = console_.save();
    to.raw(bytes.data(), bytes.size());
  }

  void load(envpool::reader& from, std::int32_t) {
    const auto bytes = from.take(from.left());
    if (!console_.loaded()) console_.load(0);
    argument(
        [&] { console_.restore({reinterpret_cast<const char*>(bytes.data()), bytes.size()}); });
    seed_.reset();
  }

 private:
  struct Found {
    atari::Library& library;
    const atari::Game& game;
  };

  Atari(const Found& found, const config& c, const fields& f)
      : f_(f),
        game_(found.game),
        actions_(actions(found.game, c)),
        console_(found.library, found.game, argument([&] {
                   const atari::Console::Settings settings{
                       static_cast<float>(c.repeat_action_probability), c.mode, c.difficulty};
                   settings.check(found.game);
                   return settings;
                 })) {}

  // What is wrong here is wrong with an option or with what is installed.
  template <class F>
  static auto argument(F&& f) -> decltype(f()) {
    try {
      return f();
    } catch (const atari::Error& e) {
      throw envpool::error(EP_E_ARGUMENT, e.what());
    }
  }

  static Found find(const envpool::host& host, const config& c, const Task& task) {
    const std::string &own_library = c.ale_library, &own_rom = c.rom_path;
    const std::string library = own_library.empty() ? host.asset("ale_library") : own_library;
    const std::string rom =
        own_rom.empty() ? host.asset("roms") + "/" + task.rom + ".bin" : own_rom;
    return argument([&]() -> Found {
      atari::Library& ale = atari::Library::open(library);
      return {ale, ale.game(task.rom, rom)};
    });
  }

  static const std::vector<int>& actions(const atari::Game& game, const config& c) {
    return c.full_action_space ? game.legal_actions : game.minimal_actions;
  }

  const fields f_;
  const atari::Game& game_;
  const std::vector<int>& actions_;  // ALE's action of each of ours
  atari::Console console_;
  std::optional<std::uint64_t> seed_;  // to be applied at the next reset
};

}  // namespace

ENVPOOL_PLUGIN_ABOUT((envpool::about{"atari", ENVPOOL_ATARI_VERSION, "MIT", nullptr}),
                     envpool::family<Atari, kTasks>)
