// gymnasium/runners.hpp - the planar ones that run or swim: HalfCheetah, Hopper, Walker2d, Swimmer.
#pragma once

#include "gymnasium/task.hpp"

namespace gymnasium {

struct RunnerConfig : Config {
  double forward_reward_weight = 1;
  double ctrl_cost_weight = 0.1;
  double reset_noise_scale = 0.1;
  bool exclude_current_positions_from_observation = true;
};

// ---- HalfCheetah ----

struct HalfCheetahConfig : RunnerConfig {
  HalfCheetahConfig() {
    xml_file = "half_cheetah.xml";
    default_camera_config = R"({"distance": 4.0})";
  }
};

class HalfCheetah : public Task<HalfCheetah, HalfCheetahConfig> {
 public:
  static constexpr const char* id = "HalfCheetah-v5";
  static constexpr const char* doc = "A planar two-legged robot that runs (Gymnasium).";
  static constexpr double reward_threshold = 4800;
  enum { x_position, x_velocity, reward_forward, reward_ctrl, infos };
  static constexpr std::array info_names = {"x_position", "x_velocity", "reward_forward",
                                            "reward_ctrl"};
  using Task::observe;
  using Task::Task;

  static std::int64_t observation_size(const mjModel& m, const config& c) {
    return m.nq + m.nv - c.exclude_current_positions_from_observation;
  }

  void begin() { add_normal_noise(c.reset_noise_scale); }
  void look() { info_[x_position] = d.qpos[0]; }
  void before() { x_before_ = d.qpos[0]; }
  envpool::result after(Action action) {
    const double velocity = (d.qpos[0] - x_before_) / dt;
    const double forward = c.forward_reward_weight * velocity;
    const double cost = control_cost(c.ctrl_cost_weight, action);
    info_[x_velocity] = velocity;
    info_[reward_forward] = forward;
    info_[reward_ctrl] = -cost;
    return {.reward = forward - cost};
  }
  void observe(Row& row) const {
    row.put(qpos(c.exclude_current_positions_from_observation ? 1 : 0));
    row.put(qvel());
  }

 private:
  double x_before_ = 0;
};

// ---- Hopper and Walker2d ----

struct LeggedConfig : RunnerConfig {
  LeggedConfig() {
    frame_skip = 4;
    ctrl_cost_weight = 1e-3;
    reset_noise_scale = 5e-3;
  }
  double healthy_reward = 1;
  bool terminate_when_unhealthy = true;
  Range healthy_z_range, healthy_angle_range;
};

// E::is_healthy() besides Task's.
template <class E, class C>
class Legged : public Task<E, C> {
  using Base = Task<E, C>;

 public:
  enum {
    x_position,
    z_distance_from_origin,
    x_velocity,
    reward_forward,
    reward_ctrl,
    reward_survive,
    infos
  };
  static constexpr std::array info_names = {"x_position",  "z_distance_from_origin",
                                            "x_velocity",  "reward_forward",
                                            "reward_ctrl", "reward_survive"};
  using Base::Base;
  using Base::observe;

  static std::int64_t observation_size(const mjModel& m, const C& c) {
    return m.nq + m.nv - c.exclude_current_positions_from_observation;
  }
  static void check(const mjModel& m, const C& c) {
    check_range("healthy_z_range", c.healthy_z_range);
    check_range("healthy_angle_range", c.healthy_angle_range);
    check_size(m, 3, 0);
  }

  void begin() { this->add_uniform_noise(this->c.reset_noise_scale); }
  void look() {
    this->info_[x_position] = this->d.qpos[0];
    this->info_[z_distance_from_origin] = this->d.qpos[1] - this->m.qpos0[1];
  }
  void before() { x_before_ = this->d.qpos[0]; }
  envpool::result after(Action action) {
    const bool healthy = static_cast<const E*>(this)->is_healthy();
    const double velocity = (this->d.qpos[0] - x_before_) / this->dt;
    const double forward = this->c.forward_reward_weight * velocity;
    const double survive = healthy * this->c.healthy_reward;
    const double cost = this->control_cost(this->c.ctrl_cost_weight, action);
    this->info_[x_velocity] = velocity;
    this->info_[reward_forward] = forward;
    this->info_[reward_ctrl] = -cost;
    this->info_[reward_survive] = survive;
    return {.reward = forward + survive - cost,
            .terminated = !healthy && this->c.terminate_when_unhealthy};
  }
  void observe(Row& row) const {
    row.put(this->qpos(this->c.exclude_current_positions_from_observation ? 1 : 0));
    row.put_clipped(this->qvel(), -10, 10);
  }

 protected:
  static bool within(double x, const Range& range) { return range[0] < x && x < range[1]; }

 private:
  double x_before_ = 0;
};

struct HopperConfig : LeggedConfig {
  HopperConfig() {
    xml_file = "hopper.xml";
    default_camera_config =
        R"({"trackbodyid": 2, "distance": 3.0, "lookat": [0.0, 0.0, 1.15], "elevation": -20.0})";
    healthy_z_range = {0.7, kInfinity};
    healthy_angle_range = {-0.2, 0.2};
  }
  Range healthy_state_range = {-100, 100};
};

class Hopper : public Legged<Hopper, HopperConfig> {
 public:
  static constexpr const char* id = "Hopper-v5";
  static constexpr const char* doc = "A planar one-legged robot that hops (Gymnasium).";
  static constexpr double reward_threshold = 3800;
  using Legged::Legged;

  static void check(const mjModel& m, const config& c) {
    Legged::check(m, c);
    check_range("healthy_state_range", c.healthy_state_range);
  }
  bool is_healthy() const {
    const auto good = [this](double x) { return within(x, c.healthy_state_range); };
    return std::ranges::all_of(qpos(2), good) && std::ranges::all_of(qvel(), good) &&
           within(d.qpos[1], c.healthy_z_range) && within(d.qpos[2], c.healthy_angle_range);
  }
};

struct Walker2dConfig : LeggedConfig {
  Walker2dConfig() {
    xml_file = "walker2d_v5.xml";
    default_camera_config =
        R"({"trackbodyid": 2, "distance": 4.0, "lookat": [0.0, 0.0, 1.15], "elevation": -20.0})";
    healthy_z_range = {0.8, 2};
    healthy_angle_range = {-1, 1};
  }
};

class Walker2d : public Legged<Walker2d, Walker2dConfig> {
 public:
  static constexpr const char* id = "Walker2d-v5";
  static constexpr const char* doc = "A planar two-legged robot that walks (Gymnasium).";
  using Legged::Legged;

  bool is_healthy() const {
    return within(d.qpos[1], c.healthy_z_range) && within(d.qpos[2], c.healthy_angle_range);
  }
};

// ---- Swimmer ----

struct SwimmerConfig : RunnerConfig {
  SwimmerConfig() {
    xml_file = "swimmer.xml";
    frame_skip = 4;
    ctrl_cost_weight = 1e-4;
  }
};

class Swimmer : public Task<Swimmer, SwimmerConfig> {
 public:
  static constexpr const char* id = "Swimmer-v5";
  static constexpr const char* doc = "A three-link robot that swims in a plane (Gymnasium).";
  static constexpr double reward_threshold = 360;
  enum {
    x_position,
    y_position,
    distance_from_origin,
    x_velocity,
    y_velocity,
    reward_forward,
    reward_ctrl,
    infos
  };
  static constexpr std::array info_names = {"x_position", "y_position", "distance_from_origin",
                                            "x_velocity", "y_velocity", "reward_forward",
                                            "reward_ctrl"};
  using Task::observe;
  using Task::Task;

  static std::int64_t observation_size(const mjModel& m, const config& c) {
    return m.nq + m.nv - 2 * c.exclude_current_positions_from_observation;
  }
  static void check(const mjModel& m, const config&) { check_size(m, 3, 0); }

  void begin() { add_uniform_noise(c.reset_noise_scale); }
  void look() {
    info_[x_position] = d.qpos[0];
    info_[y_position] = d.qpos[1];
    info_[distance_from_origin] = numpy::norm(d.qpos, 2);
  }
  void before() { before_ = {d.qpos[0], d.qpos[1]}; }
  envpool::result after(Action action) {
    const double velocity = (d.qpos[0] - before_[0]) / dt;
    const double forward = c.forward_reward_weight * velocity;
    const double cost = control_cost(c.ctrl_cost_weight, action);
    info_[x_velocity] = velocity;
    info_[y_velocity] = (d.qpos[1] - before_[1]) / dt;
    info_[reward_forward] = forward;
    info_[reward_ctrl] = -cost;
    return {.reward = forward - cost};
  }
  void observe(Row& row) const {
    row.put(qpos(c.exclude_current_positions_from_observation ? 2 : 0));
    row.put(qvel());
  }

 private:
  std::array<double, 2> before_{};
};

}  // namespace gymnasium
