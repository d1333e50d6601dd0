// env.cpp - what envpool has to know of Procgen: its sixteen games as tasks.
//
// libenv and env.h differ in three ways, which Env levels out:
//   - libenv starts the next episode by itself and shows its first picture where the last one of
//     the old should be. Env keeps the last picture that the engine drew of an episode, which is
//     the one before its end, and begins the next where the engine stands.
//   - A libenv game has no reset: Procgen ends an episode when it is given the action -1.
//   - A seed is given when a game is made: a seeded reset makes a new one.
#include <array>
#include <cstdint>
#include <cstring>
#include <envpool/env.hpp>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "game.hpp"

namespace {

struct title {
  const char *id, *name, *doc;
};
constexpr std::array titles = {
    title{"procgen-bigfish-v0", "bigfish", "Eat smaller fish, flee from bigger ones."},
    title{"procgen-bossfight-v0", "bossfight", "Shoot down a boss star ship."},
    title{"procgen-caveflyer-v0", "caveflyer", "Fly through a cave to a friendly ship."},
    title{"procgen-chaser-v0", "chaser", "Collect orbs in a maze, flee from its hunters."},
    title{"procgen-climber-v0", "climber", "Climb platforms and collect stars."},
    title{"procgen-coinrun-v0", "coinrun", "Run and jump to the coin at the far right."},
    title{"procgen-dodgeball-v0", "dodgeball", "Hit the others with balls, leave by the door."},
    title{"procgen-fruitbot-v0", "fruitbot", "Gather fruit between walls, avoid the rest."},
    title{"procgen-heist-v0", "heist", "Find keys and open locks to steal a gem."},
    title{"procgen-jumper-v0", "jumper", "Double-jump through an open world to the carrot."},
    title{"procgen-leaper-v0", "leaper", "Cross roads and rivers."},
    title{"procgen-maze-v0", "maze", "Find the cheese in a maze."},
    title{"procgen-miner-v0", "miner", "Dig for diamonds under boulders, then to the exit."},
    title{"procgen-ninja-v0", "ninja", "Jump over ledges and bombs to the mushroom."},
    title{"procgen-plunder-v0", "plunder", "Sink enemy ships, spare friends."},
    title{"procgen-starpilot-v0", "starpilot", "Shoot and dodge in a side scroller."},
};

// Procgen's library, loaded when a first env is made. Throws if it is not installed.
const libenv::library& procgen(const envpool::host& host) {
  static const libenv::library lib([&host] {
    try {
      return host.asset("procgen library");
    } catch (const envpool::error& e) {
      throw envpool::error(e.status,
                           "Procgen is not installed: pip install --no-deps procgen-mirror");
    }
  }());
  return lib;
}

std::uint64_t fnv1a(const void* data, std::size_t bytes) {
  std::uint64_t hash = UINT64_C(0xcbf29ce484222325);
  for (const auto* p = static_cast<const unsigned char*>(data); bytes-- > 0;)
    hash = (hash ^ *p++) * UINT64_C(0x100000001b3);
  return hash;
}

struct Procgen {
  // libenv.h: "different environments must be usable from different threads simultaneously".
  static constexpr ep_sharing sharing = EP_FREE;
  static constexpr envpool::size picture{frame_size, frame_size};
  static constexpr std::uint32_t state_purposes = 1u << EP_STATE_CLONE;

  struct config {
    std::string distribution_mode = "hard";
    std::int32_t num_levels = 0, start_level = 0;
    bool use_sequential_levels = false, center_agent = true, use_backgrounds = true;
    bool use_monochrome_assets = false, restrict_themes = false, use_generated_assets = false;
    bool paint_vel_info = false;
  };
  static void options(envpool::options<config>& o) {
    constexpr int most = 1'000'000'000;  // the engine adds both in an int
    // The engine's "extreme" and "memory" are for some games only, and end the process elsewhere.
    o.add("distribution_mode", &config::distribution_mode)
        .choices({"easy", "hard"})
        .doc("which levels");
    o.add("num_levels", &config::num_levels).range(0, most).doc("how many levels; 0: all");
    o.add("start_level", &config::start_level)
        .range(0, most)
        .doc("seed of the first level, if num_levels says how many");
    o.add("use_sequential_levels", &config::use_sequential_levels)
        .doc("a solved level goes on to the next one, within the episode");
    o.add("center_agent", &config::center_agent).doc("the view follows the agent");
    o.add("use_backgrounds", &config::use_backgrounds).doc("pictures behind the game, not black");
    o.add("use_monochrome_assets", &config::use_monochrome_assets).doc("plain rectangles");
    o.add("restrict_themes", &config::restrict_themes).doc("one theme where there are several");
    o.add("use_generated_assets", &config::use_generated_assets).doc("random pictures");
    o.add("paint_vel_info", &config::paint_vel_info)
        .doc("the agent's speed, painted in the upper left corner");
  }

  struct fields {
    envpool::obs<std::uint8_t[frame_size][frame_size][3]> sight;
    envpool::action<std::int32_t> keys;
    envpool::info<std::int32_t> level_seed;
    envpool::info<bool> level_complete;
  };
  static fields describe(envpool::spec& s) {
    s.fps = 15;
    return {
        .sight = s.obs<std::uint8_t[frame_size][frame_size][3]>("").within(0, 255).image(EP_HWC),
        .keys = s.action<std::int32_t>("")
                    .discrete(action_count)
                    .labels({"LEFT_DOWN", "LEFT", "LEFT_UP", "DOWN", "NOOP", "UP", "RIGHT_DOWN",
                             "RIGHT", "RIGHT_UP", "D", "A", "W", "S", "Q", "E"}),
        .level_seed = s.info<std::int32_t>("level_seed").doc("which level it is"),
        .level_complete = s.info<bool>("level_complete").doc("the last action solved the level"),
    };
  }

  config c;
  fields f;
  title t;
  envpool::context host;
  const libenv::library* lib = &procgen(host);  // an env without its engine is not made
  std::unique_ptr<game> engine{};
  bool fresh = false;  // the engine shows the first picture of an episode not yet begun here
  // The present outcome: all that is observed.
  struct outcome {
    frame pixels{};
    std::int32_t level_seed = 0;
    bool level_complete = false;
  } now{};

  // A seed below 2^31 is Procgen's rand_seed, a larger one is folded into it.
  void seed(std::uint64_t s) {
    // A first game loads pictures for seconds, and can't be stopped then.
    if (host.cancelled()) throw envpool::error(EP_E_CANCELLED, "cancelled before a game was made");
    settings with;
    with.add("env_name", std::string(t.name));
    with.add("resource_root", host.asset("procgen pictures"));
    with.add("rand_seed", static_cast<std::int32_t>((s ^ s >> 31 ^ s >> 62) & 0x7fffffff));
    with.add("num_actions", std::int32_t{action_count});
    with.add("num_threads", std::int32_t{0});  // plays on the calling thread
    with.add("debug_mode", std::int32_t{0});
    with.add("render_human", false);
    with.add("distribution_mode", std::int32_t{c.distribution_mode == "easy" ? 0 : 1});
    with.add("num_levels", c.num_levels);
    with.add("start_level", c.start_level);
    with.add("use_sequential_levels", c.use_sequential_levels);
    with.add("center_agent", c.center_agent);
    with.add("use_backgrounds", c.use_backgrounds);
    with.add("use_monochrome_assets", c.use_monochrome_assets);
    with.add("restrict_themes", c.restrict_themes);
    with.add("use_generated_assets", c.use_generated_assets);
    with.add("paint_vel_info", c.paint_vel_info);
    engine = std::make_unique<game>(*lib, std::move(with));
    fresh = true;
  }

  void reset() {
    if (!fresh) engine->play(game::restart);
    if (!fresh && !engine->first())
      throw envpool::error(EP_E_FAILED, "Procgen did not begin an episode");
    now = {engine->picture(), engine->next_level_seed(), false};
    fresh = false;
  }

  envpool::result step(const envpool::input& in) {
    const std::int32_t action = in[f.keys];
    if (action < 0 || action >= action_count)
      throw envpool::error(EP_E_ARGUMENT, "action " + std::to_string(action) + " is not in 0 .. " +
                                              std::to_string(action_count - 1));
    engine->play(action);
    fresh = engine->first();
    if (!fresh) now.pixels = engine->picture();
    now.level_seed = engine->level_seed();
    now.level_complete = engine->level_complete();
    return {.reward = engine->reward(), .terminated = fresh};
  }

  void observe(const envpool::view& v) const {
    v.put(f.sight, now.pixels);
    v.put(f.level_seed, now.level_seed);
    v.put(f.level_complete, now.level_complete);
  }

  void draw(const ep_image& image) const {
    constexpr std::size_t row = frame_size * 3;
    for (std::size_t y = 0; y < frame_size; ++y)
      std::memcpy(static_cast<std::uint8_t*>(image.pixels) + y * image.row_bytes,
                  now.pixels.data() + y * row, row);
  }

  // A state: what it is of, the engine's bytes, ours; last a sum of it all, for the engine ends the
  // process over bytes that are not its own.
  void save(envpool::writer& w, std::int32_t) const {
    if (!engine) throw envpool::error(EP_E_STATE, "no state before the first reset");
    envpool::writer body;
    std::uint64_t kind = this->kind();
    std::vector<char> bytes = engine->state();
    outcome shown = now;
    bool unplayed = fresh;
    body(kind, bytes, shown.pixels, shown.level_seed, shown.level_complete, unplayed);
    const std::uint64_t sum = fnv1a(body.bytes().data(), body.bytes().size());
    w.raw(body.bytes().data(), body.bytes().size());
    w.raw(&sum, sizeof sum);
  }
  void load(envpool::reader& r, std::int32_t) {
    const auto all = r.rest();
    std::uint64_t sum = 0, made_by = 0;
    if (all.size() < sizeof sum) throw envpool::error(EP_E_ARGUMENT, "a state that is too short");
    const auto body = all.first(all.size() - sizeof sum);
    std::memcpy(&sum, all.data() + body.size(), sizeof sum);
    if (sum != fnv1a(body.data(), body.size()))
      throw envpool::error(EP_E_ARGUMENT, "a state that is damaged");
    envpool::reader from(body);
    from(made_by);
    if (made_by != kind())
      throw envpool::error(EP_E_ARGUMENT, "a state of another game or of other options");
    std::vector<char> bytes;
    outcome shown;
    bool unplayed = false;
    from(bytes, shown.pixels, shown.level_seed, shown.level_complete, unplayed);
    if (!engine) seed(0);  // any game takes the state
    engine->set_state(bytes);
    now = shown;
    fresh = unplayed;
  }

  // What has to be alike between two envs that exchange states.
  std::uint64_t kind() const {
    const std::string text =
        std::string(t.name) + ' ' + c.distribution_mode + ' ' + std::to_string(c.num_levels) + ' ' +
        std::to_string(c.start_level) + ' ' +
        std::to_string(c.use_sequential_levels | c.center_agent << 1 | c.use_backgrounds << 2 |
                       c.use_monochrome_assets << 3 | c.restrict_themes << 4 |
                       c.use_generated_assets << 5 | c.paint_vel_info << 6);
    return fnv1a(text.data(), text.size());
  }
};

}  // namespace

ENVPOOL_PLUGIN_ABOUT((envpool::about{"libenv_procgen", PLUGIN_VERSION, "MIT",
                                     "https://github.com/openai/procgen"}),
                     envpool::family<Procgen, titles>)
