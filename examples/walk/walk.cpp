// walk.cpp - a corridor with a goal at its end: the least that an environment needs.
#include <cstdint>
#include <envpool/env.hpp>

namespace {

struct Walk {
  static constexpr const char* id = "Walk-v0";
  static constexpr ep_sharing sharing =
      EP_FREE;  // envs share nothing: any thread may run any of them

  struct config {
    std::int64_t length = 10;
  };
  static void options(envpool::options<config>& o) {
    o.add("length", &config::length).range(2, 100).doc("cells of the corridor");
  }

  struct fields {
    envpool::obs<float> place;
    envpool::action<std::int64_t> move;
  };
  static fields describe(envpool::spec& s, const config& c) {
    s.max_episode_steps = 10 * c.length;
    return {s.obs<float>("").within(0, 1),
            s.action<std::int64_t>("").discrete(2).labels({"LEFT", "RIGHT"})};
  }

  config c;
  fields f;
  std::int64_t at = 0;

  void reset() { at = 0; }
  envpool::result step(const envpool::input& in) {
    at += in[f.move] == 1 ? 1 : at > 0 ? -1 : 0;
    return {.reward = at == c.length ? 1. : 0., .terminated = at == c.length};
  }
  void observe(const envpool::view& v) const { v.put(f.place, double(at) / double(c.length)); }
};

}  // namespace

ENVPOOL_PLUGIN("walk", "0.1.0", Walk)
