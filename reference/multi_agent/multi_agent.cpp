// multi_agent.cpp - Pursuit-v0: chasers on a grid hunt a target. Per-agent fields, agents that
// leave before the episode's end, names of agents, a field all agents share, fields of the whole
// game.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <envpool/env.hpp>
#include <vector>

namespace {

using std::int32_t;
using std::int64_t;
using std::int8_t;
using std::uint32_t;
using std::uint8_t;

// Each move costs an agent one of its 10 (i + 1) energy (option `energy`, times i + 1), staying
// costs none; without energy agent i terminates and takes no part from the next step on. Sharing
// the target's cell after a step ends the episode with reward 1 for every agent in play; any other
// step costs each 0.01. All out of energy: the end too.
class Pursuit {
 public:
  static constexpr const char* id = "Pursuit-v0";
  static constexpr const char* doc = "Chasers on a grid hunt a target.";
  static constexpr ep_sharing sharing = EP_FREE;
  static const char* agent_name(uint32_t i) {
    static constexpr const char* names[] = {"chaser_0", "chaser_1", "chaser_2"};
    return names[i];
  }

  struct config {
    int64_t agents = 3, size = 7, energy = 10;
  };
  static void options(envpool::options<config>& o) {
    o.add("agents", &config::agents).range(1, 3).shapes_spec();
    o.add("size", &config::size).range(4, 64).shapes_spec().unit("cells");
    o.add("energy", &config::energy)
        .min(1)
        .doc("moves of agent 0; agent i has i + 1 times as many");
  }

  struct fields {
    envpool::obs<int32_t[2]> place;   // per agent: row, column
    envpool::obs<float[2]> target;    // per agent: where the target is from here, in cells
    envpool::obs<int8_t[5]> mask;     // per agent: which moves stay on the grid
    envpool::obs<int64_t> clock;      // shared: steps
    envpool::action<int64_t> move;    // per agent
    envpool::info<int32_t> energy;    // per agent
    envpool::info<int32_t[]> others;  // per agent, ragged: the other agents in play
    envpool::global<uint8_t[]> grid;  // cell: 0, 1 + agent (the last one there), 9 target
    envpool::global<int32_t> in_play;
  };
  static fields describe(envpool::spec& s, const config& c) {
    const auto last = static_cast<int32_t>(c.size - 1);
    const auto span = static_cast<float>(last);
    s.max_agents = static_cast<uint32_t>(c.agents);
    s.max_episode_steps = 200;
    s.reward_threshold = 0.5;
    return {
        .place = s.obs<int32_t[2]>("place").within(0, last).per_agent(),
        .target = s.obs<float[2]>("target").within(-span, span).per_agent(),
        .mask = s.obs<int8_t[5]>("mask").multi_binary().meaning("action_mask").per_agent(),
        .clock = s.obs<int64_t>("clock"),
        .move = s.action<int64_t>("")
                    .discrete(5)
                    .labels({"STAY", "UP", "DOWN", "LEFT", "RIGHT"})
                    .per_agent(),
        .energy = s.info<int32_t>("energy").per_agent(),
        .others = s.info<int32_t[]>("others", {3}).ragged().per_agent(),
        .grid = s.global<uint8_t[]>("grid", {c.size, c.size}),
        .in_play = s.global<int32_t>("in_play"),
    };
  }

  Pursuit(const config& c, const fields& f)
      : c_(c), f_(f), agents_(static_cast<std::size_t>(c.agents)) {}

  void seed(std::uint64_t s) { rng_.word = s; }

  void reset() {
    t_ = 0;
    for (std::size_t i = 0; i < agents_.size(); ++i)
      agents_[i] = {somewhere(), somewhere(),
                    static_cast<int32_t>(c_.energy) * static_cast<int32_t>(i + 1), true};
    do target_ = {somewhere(), somewhere(), 0, true};
    while (caught());
  }

  void step(const envpool::input& in, envpool::results& out) {
    for (uint32_t i = 0; i < agents_.size(); ++i) {
      const int64_t move = in.agent(i)[f_.move];
      if (move < 0 || move > 4) throw envpool::error(EP_E_ARGUMENT, "a move is 0 to 4");
    }
    ++t_;
    for (uint32_t i = 0; i < agents_.size(); ++i) {
      agent& a = agents_[i];
      a.in_play = a.in_play && a.energy > 0;
      if (!a.in_play) continue;
      const int64_t move = in.agent(i)[f_.move];
      if (move != 0) --a.energy;
      go(a, move);
    }
    go(target_, rng_.below(5));
    const bool won = caught();
    bool any = false;
    for (uint32_t i = 0; i < agents_.size(); ++i) {
      const agent& a = agents_[i];
      out.alive(i, a.in_play);
      if (!a.in_play) continue;
      out.reward[i] = won ? 1 : -0.01;
      out.terminated[i] = won || a.energy == 0;
      any = any || a.energy > 0;
    }
    out.end_episode(won || !any);
  }

  void observe(const envpool::view& all) const {
    for (uint32_t i = 0; i < agents_.size(); ++i) {
      const agent& a = agents_[i];
      const envpool::view v = all.agent(i);
      v.put(f_.place, a.row, a.column);
      v.put(f_.target, target_.row - a.row, target_.column - a.column);
      v.put(f_.mask, 1, a.row > 0, a.row < c_.size - 1, a.column > 0, a.column < c_.size - 1);
      v.put(f_.energy, a.energy);
      std::vector<int32_t> others;
      for (std::size_t j = 0; j < agents_.size(); ++j)
        if (j != i && agents_[j].in_play) others.push_back(static_cast<int32_t>(j));
      v.put(f_.others, others);
    }
    all.put(f_.clock, t_);
    if (const auto grid = all[f_.grid]) {
      std::ranges::fill(grid, uint8_t{0});
      for (std::size_t i = 0; i < agents_.size(); ++i)
        if (agents_[i].in_play) grid[cell(agents_[i])] = static_cast<uint8_t>(1 + i);
      grid[cell(target_)] = 9;
    }
    all.put(f_.in_play, std::ranges::count_if(agents_, &agent::in_play));
  }

  template <class A>
  void state(A& a) {
    a(t_, agents_, target_, rng_);
  }

 private:
  struct agent {
    int32_t row = 0, column = 0, energy = 0;
    bool in_play = true;
    template <class A>
    void state(A& a) {
      a(row, column, energy, in_play);
    }
  };
  int32_t somewhere() { return static_cast<int32_t>(rng_.below(static_cast<uint32_t>(c_.size))); }
  std::size_t cell(const agent& a) const {
    return static_cast<std::size_t>(a.row * c_.size + a.column);
  }
  void go(agent& a, int64_t move) const {
    static constexpr int32_t way[5][2] = {{0, 0}, {-1, 0}, {1, 0}, {0, -1}, {0, 1}};
    const auto last = static_cast<int32_t>(c_.size - 1);
    a.row = std::clamp(a.row + way[move][0], 0, last);
    a.column = std::clamp(a.column + way[move][1], 0, last);
  }
  bool caught() const {
    return std::ranges::any_of(
        agents_, [&](const agent& a) { return a.in_play && cell(a) == cell(target_); });
  }

  const config c_;
  const fields f_;
  std::vector<agent> agents_;
  agent target_;
  int64_t t_ = 0;
  envpool::rng rng_;
};

}  // namespace

ENVPOOL_PLUGIN("multi-agent", "0.1.0", Pursuit)
