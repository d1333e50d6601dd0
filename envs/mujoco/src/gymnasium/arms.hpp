// gymnasium/arms.hpp - the ones that balance and reach: InvertedPendulum, InvertedDoublePendulum,
// Reacher, Pusher.
#pragma once

#include "gymnasium/task.hpp"

namespace gymnasium {

// ---- InvertedPendulum ----

struct InvertedPendulumConfig : Config {
  InvertedPendulumConfig() {
    xml_file = "inverted_pendulum.xml";
    default_camera_config = R"({"trackbodyid": 0, "distance": 2.04})";
    frame_skip = 2;
  }
  double reset_noise_scale = 0.01;
};

class InvertedPendulum : public Task<InvertedPendulum, InvertedPendulumConfig> {
 public:
  static constexpr const char* id = "InvertedPendulum-v5";
  static constexpr const char* doc = "A cart that balances a pole (Gymnasium).";
  static constexpr double reward_threshold = 950;
  enum { reward_survive, infos };
  static constexpr std::array info_names = {"reward_survive"};
  using Task::observe;
  using Task::Task;

  static std::int64_t observation_size(const mjModel& m, const config&) { return m.nq + m.nv; }
  static void check(const mjModel& m, const config&) { check_size(m, 2, 0); }

  void begin() { add_uniform_noise(c.reset_noise_scale); }
  void look() {}
  envpool::result after(Action) {
    const auto finite = [](double x) { return std::isfinite(x); };
    const bool up = std::ranges::all_of(qpos(), finite) && std::ranges::all_of(qvel(), finite) &&
                    !(std::abs(d.qpos[1]) > 0.2);
    info_[reward_survive] = up;
    return {.reward = up ? 1. : 0., .terminated = !up};
  }
  void observe(Row& row) const {
    row.put(qpos());
    row.put(qvel());
  }
};

// ---- InvertedDoublePendulum ----

struct InvertedDoublePendulumConfig : Config {
  InvertedDoublePendulumConfig() { xml_file = "inverted_double_pendulum.xml"; }
  double healthy_reward = 10;
  double reset_noise_scale = 0.1;
};

class InvertedDoublePendulum : public Task<InvertedDoublePendulum, InvertedDoublePendulumConfig> {
 public:
  static constexpr const char* id = "InvertedDoublePendulum-v5";
  static constexpr const char* doc =
      "A cart that balances two poles, one on the other (Gymnasium).";
  static constexpr double reward_threshold = 9100;
  enum { reward_survive, distance_penalty, velocity_penalty, infos };
  static constexpr std::array info_names = {"reward_survive", "distance_penalty",
                                            "velocity_penalty"};
  using Task::observe;
  using Task::Task;

  static std::int64_t observation_size(const mjModel&, const config&) { return 9; }
  static void check(const mjModel& m, const config& c) {
    if (m.nq != 3 || m.nv != 3 || m.nsite < 1)
      throw envpool::error(EP_E_ARGUMENT,
                           c.xml_file + " is no double pendulum: 3 joints and a site at the tip");
  }

  void begin() { add_normal_noise(c.reset_noise_scale); }
  void look() {}
  envpool::result after(Action) {
    const double x = d.site_xpos[0], y = d.site_xpos[2];
    const bool fallen = y <= 1;
    const double v1 = d.qvel[1], v2 = d.qvel[2];
    const double distance = 0.01 * (x * x) + (y - 2) * (y - 2);
    const double velocity = 1e-3 * (v1 * v1) + 5e-3 * (v2 * v2);
    const double alive = c.healthy_reward * !fallen;
    info_[reward_survive] = alive;
    info_[distance_penalty] = -distance;
    info_[velocity_penalty] = -velocity;
    return {.reward = alive - distance - velocity, .terminated = fallen};
  }
  void observe(Row& row) const {
    row.put(d.qpos[0]);
    for (int i = 1; i < 3; ++i) row.put(std::sin(d.qpos[i]));
    for (int i = 1; i < 3; ++i) row.put(std::cos(d.qpos[i]));
    row.put_clipped(qvel(), -10, 10);
    row.put(numpy::clip(d.qfrc_constraint[0], -10, 10));
  }
};

// ---- Reacher ----

struct ReacherConfig : Config {
  ReacherConfig() {
    xml_file = "reacher.xml";
    default_camera_config = R"({"trackbodyid": 0})";
    frame_skip = 2;
  }
  double reward_dist_weight = 1, reward_control_weight = 1;
};

class Reacher : public Task<Reacher, ReacherConfig> {
 public:
  static constexpr const char* id = "Reacher-v5";
  static constexpr const char* doc = "A two-link arm that reaches for a target (Gymnasium).";
  static constexpr double reward_threshold = -3.75;
  static constexpr std::int64_t max_episode_steps = 50;
  enum { reward_dist, reward_ctrl, infos };
  static constexpr std::array info_names = {"reward_dist", "reward_ctrl"};
  using Task::observe;

  Reacher(const config& with, const fields& f)
      : Task(with, f),
        fingertip_(mujoco::find(m, mjOBJ_BODY, "fingertip")),
        target_(mujoco::find(m, mjOBJ_BODY, "target")) {}

  static std::int64_t observation_size(const mjModel&, const config&) { return 10; }
  static void check(const mjModel& m, const config& c) {
    if (m.nq != 4 || m.nv != 4)
      throw envpool::error(EP_E_ARGUMENT,
                           c.xml_file + " is no reacher: 2 joints of the arm, then the target's 2");
  }

  void begin() {
    for (int i = 0; i < m.nq; ++i) d.qpos[i] += random.uniform(-0.1, 0.1);
    do {
      for (int i = 2; i < 4; ++i) d.qpos[i] = random.uniform(-0.2, 0.2);
    } while (numpy::norm(d.qpos + 2, 2) >= 0.2);
    for (int i = 0; i < 2; ++i) d.qvel[i] += random.uniform(-0.005, 0.005);
  }
  void look() {}
  envpool::result after(Action action) {
    const auto apart = difference();
    const double distance = -numpy::norm(apart.data(), 3) * c.reward_dist_weight;
    const double control = -control_cost(c.reward_control_weight, action);
    info_[reward_dist] = distance;
    info_[reward_ctrl] = control;
    return {.reward = distance + control};
  }
  void observe(Row& row) const {
    for (int i = 0; i < 2; ++i) row.put(std::cos(d.qpos[i]));
    for (int i = 0; i < 2; ++i) row.put(std::sin(d.qpos[i]));
    row.put(d.qpos + 2, 2);
    row.put(d.qvel, 2);
    row.put(difference().data(), 2);
  }

 private:
  std::array<double, 3> difference() const {
    const double *tip = body(fingertip_), *target = body(target_);
    return {tip[0] - target[0], tip[1] - target[1], tip[2] - target[2]};
  }
  const int fingertip_, target_;
};

// ---- Pusher ----

struct PusherConfig : Config {
  PusherConfig() {
    xml_file = "pusher_v5.xml";
    default_camera_config = R"({"trackbodyid": -1, "distance": 4.0})";
  }
  double reward_near_weight = 0.5, reward_dist_weight = 1, reward_control_weight = 0.1;
};

class Pusher : public Task<Pusher, PusherConfig> {
 public:
  static constexpr const char* id = "Pusher-v5";
  static constexpr const char* doc =
      "A seven-joint arm that pushes a cylinder to a goal (Gymnasium).";
  static constexpr double reward_threshold = 0;
  static constexpr std::int64_t max_episode_steps = 100;
  enum { reward_dist, reward_ctrl, reward_near, infos };
  static constexpr std::array info_names = {"reward_dist", "reward_ctrl", "reward_near"};
  using Task::observe;

  Pusher(const config& with, const fields& f)
      : Task(with, f),
        object_(mujoco::find(m, mjOBJ_BODY, "object")),
        tips_(mujoco::find(m, mjOBJ_BODY, "tips_arm")),
        goal_(mujoco::find(m, mjOBJ_BODY, "goal")) {}

  static std::int64_t observation_size(const mjModel&, const config&) { return 23; }
  static void check(const mjModel& m, const config& c) {
    if (m.nq < 11 || m.nv < 11)
      throw envpool::error(EP_E_ARGUMENT, c.xml_file +
                                              " is no pusher: 7 joints of the arm, then 2 "
                                              "of the object and 2 of the goal");
  }

  void begin() {
    double* const object = d.qpos + m.nq - 4;
    do {
      object[0] = random.uniform(-0.3, 0);
      object[1] = random.uniform(-0.2, 0.2);
    } while (numpy::norm(object, 2) <= 0.17);
    object[2] = object[3] = 0;  // the goal
    for (int i = 0; i < m.nv - 4; ++i) d.qvel[i] += random.uniform(-0.005, 0.005);
  }
  void look() {}
  envpool::result after(Action action) {
    const double near = -distance(tips_) * c.reward_near_weight;
    const double dist = -distance(goal_) * c.reward_dist_weight;
    const double control = -control_cost(c.reward_control_weight, action);
    info_[reward_dist] = dist;
    info_[reward_ctrl] = control;
    info_[reward_near] = near;
    return {.reward = dist + control + near};
  }
  void observe(Row& row) const {
    row.put(d.qpos, 7);
    row.put(d.qvel, 7);
    for (const int id_of : {tips_, object_, goal_}) row.put(body(id_of), 3);
  }

 private:
  double distance(int other) const {
    const double *a = body(object_), *b = body(other);
    const double apart[] = {a[0] - b[0], a[1] - b[1], a[2] - b[2]};
    return numpy::norm(apart, 3);
  }
  const int object_, tips_, goal_;
};

}  // namespace gymnasium
