{% set many = cookiecutter.players | int > 1 %}
{% set each = ".per_agent()" if many else "" %}
{% set sharing = {"free": "EP_FREE", "one thread": "EP_THREAD_BOUND", "own process": "EP_ONE_PER_PROCESS"}[cookiecutter.sharing] %}
// env.cpp - what envpool has to know of the engine. To wrap your own, rewrite the members of Env;
// the opening comment of sdk/include/envpool/env.hpp lists all that there may be.
#include <cstdint>
#include <envpool/env.hpp>

#include "game.hpp"

namespace {

struct Env {
  static constexpr const char* id = "{{ cookiecutter.env_id }}";
  static constexpr const char* doc = "{{ cookiecutter.description }}";
  static constexpr ep_sharing sharing = {{ sharing }};
  static constexpr envpool::size picture{256, 256};

  struct config {
    double hunter_speed = 0.02;
  };
  static void options(envpool::options<config>& o) {
    o.add("hunter_speed", &config::hunter_speed)
        .range(0.0, 0.1)
        .doc("how far the hunter goes in a step; a player goes 0.04");
  }

  struct fields {
{% if cookiecutter.observation == "vector" %}
    envpool::obs<float[6]> places;
{% elif cookiecutter.observation == "image" %}
    envpool::obs<std::uint8_t[64][64][3]> sight;
{% else %}
    envpool::obs<float[2]> self, coin, hunter;
    envpool::obs<std::uint8_t[32][32][3]> sight;
{% endif %}
{% if cookiecutter.action == "continuous" %}
    envpool::action<float[2]> move;
{% elif cookiecutter.action == "multi-discrete" %}
    envpool::action<std::int64_t[2]> move;
{% else %}
    envpool::action<std::int64_t> move;
{% endif %}
    envpool::info<std::int32_t> coins;
  };
  static fields describe(envpool::spec& s) {
    s.max_episode_steps = 500;
    s.fps = 30;
{% if many %}
    s.max_agents = Game::player_count;
{% endif %}
    return {
{% if cookiecutter.observation == "vector" %}
        .places = s.obs<float[6]>("").within(0, 1).doc("x, y of self, coin, hunter"){{ each }},
{% elif cookiecutter.observation == "image" %}
        .sight = s.obs<std::uint8_t[64][64][3]>("").within(0, 255).image(EP_HWC){{ each }},
{% else %}
        .self = s.obs<float[2]>("self").within(0, 1){{ each }},
        .coin = s.obs<float[2]>("coin").within(0, 1){{ each }},
        .hunter = s.obs<float[2]>("hunter").within(0, 1){{ each }},
        .sight = s.obs<std::uint8_t[32][32][3]>("sight").within(0, 255).image(EP_HWC){{ each }},
{% endif %}
{% if cookiecutter.action == "continuous" %}
        .move = s.action<float[2]>("").within(-1, 1).doc("right, down"){{ each }},
{% elif cookiecutter.action == "multi-discrete" %}
        .move = s.action<std::int64_t[2]>("").discrete(3).doc("to the right, down"){{ each }},
{% else %}
{% if many %}
        .move = s.action<std::int64_t>("")
                    .discrete(5)
                    .labels({"STAY", "UP", "DOWN", "LEFT", "RIGHT"})
                    .per_agent(),
{% else %}
        .move =
            s.action<std::int64_t>("").discrete(5).labels({"STAY", "UP", "DOWN", "LEFT", "RIGHT"}),
{% endif %}
{% endif %}
        .coins = s.info<std::int32_t>("coins").doc("collected so far"){{ each }},
    };
  }

  config c;
  fields f;
  Game game{};

  void seed(std::uint64_t s) { game.random = s; }

  void reset() {
    game.hunter_speed = static_cast<float>(c.hunter_speed);
    game.start();
  }

{% if many %}
  void step(const envpool::input& in, envpool::results& out) {
    for (int i = 0; i < Game::player_count; ++i) {
      out.alive(i, game.players[i].in_play);
      move(i, in.agent(i));
    }
    game.advance();
    for (int i = 0; i < Game::player_count; ++i) {
      const Player& p = game.players[i];
      out.reward[i] = p.points;
      out.terminated[i] = p.points < 0 || !p.in_play;
    }
    out.end_episode(game.over());
  }

  void observe(const envpool::view& all) const {
    for (int i = 0; i < Game::player_count; ++i) look(i, all.agent(i));
  }
{% else %}
  envpool::result step(const envpool::input& in) {
    move(0, in);
    game.advance();
    return {.reward = game.players[0].points, .terminated = game.over()};
  }

  void observe(const envpool::view& v) const { look(0, v); }
{% endif %}

  void draw(const ep_image& image) const {
    game.draw(static_cast<std::uint8_t*>(image.pixels), image.row_bytes, picture.width, 0);
  }

  // All that a step depends on: makes envs savable, for search and checkpoints.
  template <class Archive>
  void state(Archive& a) {
    a(game);
  }

  // An action becomes a move of a player.
  void move(int player, const envpool::input& in) {
{% if cookiecutter.action == "continuous" %}
    game.move(player, in[f.move][0], in[f.move][1]);
{% elif cookiecutter.action == "multi-discrete" %}
    const auto part = [&](int i) { return static_cast<float>(in[f.move][i] - 1); };
    game.move(player, part(0), part(1));
{% else %}
    const std::int64_t way = in[f.move];
    game.move(player, float(way == 4) - float(way == 3), float(way == 2) - float(way == 1));
{% endif %}
  }

  // Writes what a player observes.
  void look(int player, const envpool::view& v) const {
    const Player& p = game.players[player];
{% if cookiecutter.observation == "vector" %}
    v.put(f.places, p.at.x, p.at.y, game.coin.x, game.coin.y, game.hunter.x, game.hunter.y);
{% elif cookiecutter.observation == "image" %}
    if (const auto pixels = v[f.sight]) game.draw(pixels.data(), 64 * 3, 64, player);
{% else %}
    v.put(f.self, p.at.x, p.at.y);
    v.put(f.coin, game.coin.x, game.coin.y);
    v.put(f.hunter, game.hunter.x, game.hunter.y);
    if (const auto pixels = v[f.sight]) game.draw(pixels.data(), 32 * 3, 32, player);
{% endif %}
    v.put(f.coins, p.coins);
  }
};

}  // namespace

ENVPOOL_PLUGIN("{{ cookiecutter.package_name }}", PLUGIN_VERSION, Env)
