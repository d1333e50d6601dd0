// gymnasium/walkers.hpp - the ones in three dimensions: Ant, Humanoid, HumanoidStandup.
#pragma once

#include "gymnasium/task.hpp"

namespace gymnasium {

// ---- Ant ----

struct AntConfig : Config {
  AntConfig() {
    xml_file = "ant.xml";
    default_camera_config = R"({"distance": 4.0})";
  }
  double forward_reward_weight = 1;
  double ctrl_cost_weight = 0.5;
  double contact_cost_weight = 5e-4;
  double healthy_reward = 1;
  std::string main_body = "1";
  bool terminate_when_unhealthy = true;
  Range healthy_z_range = {0.2, 1};
  Range contact_force_range = {-1, 1};
  double reset_noise_scale = 0.1;
  bool exclude_current_positions_from_observation = true;
  bool include_cfrc_ext_in_observation = true;
};

class Ant : public Task<Ant, AntConfig> {
 public:
  static constexpr const char* id = "Ant-v5";
  static constexpr const char* doc = "A four-legged robot that walks (Gymnasium).";
  static constexpr double reward_threshold = 6000;
  static constexpr bool contact_forces = true;
  enum {
    x_position,
    y_position,
    distance_from_origin,
    x_velocity,
    y_velocity,
    reward_forward,
    reward_ctrl,
    reward_contact,
    reward_survive,
    infos
  };
  static constexpr std::array info_names = {"x_position",  "y_position",     "distance_from_origin",
                                            "x_velocity",  "y_velocity",     "reward_forward",
                                            "reward_ctrl", "reward_contact", "reward_survive"};
  using Task::observe;

  Ant(const config& with, const fields& f) : Task(with, f), main_body_(main_body(m, with)) {}

  static std::int64_t observation_size(const mjModel& m, const config& c) {
    return m.nq + m.nv - 2 * c.exclude_current_positions_from_observation +
           6 * (m.nbody - 1) * c.include_cfrc_ext_in_observation;
  }
  static void check(const mjModel& m, const config& c) {
    check_range("healthy_z_range", c.healthy_z_range);
    check_range("contact_force_range", c.contact_force_range);
    check_size(m, 3, 0);
    main_body(m, c);
  }

  void begin() { add_normal_noise(c.reset_noise_scale); }
  void look() {
    info_[x_position] = d.qpos[0];
    info_[y_position] = d.qpos[1];
    info_[distance_from_origin] = numpy::norm(d.qpos, 2);
  }
  void before() { before_ = {body(main_body_)[0], body(main_body_)[1]}; }
  envpool::result after(Action action) {
    const double velocity = (body(main_body_)[0] - before_[0]) / dt;
    const bool healthy = is_healthy();
    const double forward = velocity * c.forward_reward_weight;
    const double survive = healthy * c.healthy_reward;
    const double control = control_cost(c.ctrl_cost_weight, action);
    const auto forces = bodies(d.cfrc_ext, 6, 0);
    const double contact =
        c.contact_cost_weight * numpy::sum<double>(0, forces.size(), [&](std::size_t i) {
          const double force =
              numpy::clip(forces[i], c.contact_force_range[0], c.contact_force_range[1]);
          return force * force;
        });
    info_[x_velocity] = velocity;
    info_[y_velocity] = (body(main_body_)[1] - before_[1]) / dt;
    info_[reward_forward] = forward;
    info_[reward_ctrl] = -control;
    info_[reward_contact] = -contact;
    info_[reward_survive] = survive;
    return {.reward = forward + survive - (control + contact),
            .terminated = !healthy && c.terminate_when_unhealthy};
  }
  void observe(Row& row) const {
    row.put(qpos(c.exclude_current_positions_from_observation ? 2 : 0));
    row.put(qvel());
    if (c.include_cfrc_ext_in_observation)
      row.put_clipped(bodies(d.cfrc_ext, 6, 1), c.contact_force_range[0], c.contact_force_range[1]);
  }

 private:
  static int main_body(const mjModel& m, const config& c) {
    const std::string& name = c.main_body;
    if (name.empty() || name.find_first_not_of("0123456789") != name.npos)
      return mujoco::find(m, mjOBJ_BODY, name);
    const unsigned long number = name.size() > 9 ? 1'000'000'000 : std::stoul(name);
    if (number >= static_cast<unsigned long>(m.nbody))
      throw envpool::error(EP_E_ARGUMENT, "main_body=" + name + ": the model has bodies 0 to " +
                                              std::to_string(m.nbody - 1));
    return static_cast<int>(number);
  }
  bool is_healthy() const {
    const auto finite = [](double x) { return std::isfinite(x); };
    return std::ranges::all_of(qpos(), finite) && std::ranges::all_of(qvel(), finite) &&
           c.healthy_z_range[0] <= d.qpos[2] && d.qpos[2] <= c.healthy_z_range[1];
  }

  const int main_body_;
  std::array<double, 2> before_{};
};

// ---- Humanoid and HumanoidStandup ----

struct AnyHumanoidConfig : Config {
  double ctrl_cost_weight = 0.1;
  double reset_noise_scale = 1e-2;
  bool exclude_current_positions_from_observation = true;
  bool include_cinert_in_observation = true;
  bool include_cvel_in_observation = true;
  bool include_qfrc_actuator_in_observation = true;
  bool include_cfrc_ext_in_observation = true;
};

template <class E, class C>
class AnyHumanoid : public Task<E, C> {
 public:
  static constexpr bool contact_forces = true;
  static constexpr bool shows_tendons = true;
  using Task<E, C>::Task;
  using Task<E, C>::observe;

  static std::int64_t observation_size(const mjModel& m, const C& c) {
    return m.nq + m.nv - 2 * c.exclude_current_positions_from_observation +
           (m.nbody - 1) *
               (10 * c.include_cinert_in_observation + 6 * c.include_cvel_in_observation +
                6 * c.include_cfrc_ext_in_observation) +
           (m.nv - 6) * c.include_qfrc_actuator_in_observation;
  }
  static void check(const mjModel& m, const C&) { check_size(m, 3, 6); }
  void begin() { this->add_uniform_noise(this->c.reset_noise_scale); }
  void observe(Row& row) const {
    const C& with = this->c;
    const mjData& now = this->d;
    row.put(this->qpos(with.exclude_current_positions_from_observation ? 2 : 0));
    row.put(this->qvel());
    if (with.include_cinert_in_observation) row.put(this->bodies(now.cinert, 10, 1));
    if (with.include_cvel_in_observation) row.put(this->bodies(now.cvel, 6, 1));
    if (with.include_qfrc_actuator_in_observation)
      row.put(now.qfrc_actuator + 6, static_cast<std::size_t>(this->m.nv - 6));
    if (with.include_cfrc_ext_in_observation) row.put(this->bodies(now.cfrc_ext, 6, 1));
  }

 protected:
  double squared_control() const {
    return numpy::sum_of_squares(std::span(this->d.ctrl, static_cast<std::size_t>(this->m.nu)));
  }
  double squared_contact_forces() const {
    return numpy::sum_of_squares(this->bodies(this->d.cfrc_ext, 6, 0));
  }
};

struct HumanoidConfig : AnyHumanoidConfig {
  HumanoidConfig() {
    xml_file = "humanoid.xml";
    default_camera_config =
        R"({"trackbodyid": 1, "distance": 4.0, "lookat": [0.0, 0.0, 2.0], "elevation": -20.0})";
  }
  double forward_reward_weight = 1.25;
  double contact_cost_weight = 5e-7;
  Range contact_cost_range = {-kInfinity, 10};
  double healthy_reward = 5;
  bool terminate_when_unhealthy = true;
  Range healthy_z_range = {1, 2};
};

class Humanoid : public AnyHumanoid<Humanoid, HumanoidConfig> {
 public:
  static constexpr const char* id = "Humanoid-v5";
  static constexpr const char* doc = "A two-legged robot of human shape that walks (Gymnasium).";
  enum {
    x_position,
    y_position,
    distance_from_origin,
    x_velocity,
    y_velocity,
    reward_survive,
    reward_forward,
    reward_ctrl,
    reward_contact,
    infos
  };
  static constexpr std::array info_names = {"x_position",     "y_position",  "distance_from_origin",
                                            "x_velocity",     "y_velocity",  "reward_survive",
                                            "reward_forward", "reward_ctrl", "reward_contact"};
  using AnyHumanoid::AnyHumanoid;

  static void check(const mjModel& m, const config& c) {
    AnyHumanoid::check(m, c);
    check_range("healthy_z_range", c.healthy_z_range);
    check_range("contact_cost_range", c.contact_cost_range);
  }

  void look() {
    info_[x_position] = d.qpos[0];
    info_[y_position] = d.qpos[1];
    info_[distance_from_origin] = numpy::norm(d.qpos, 2);
  }
  void before() { before_ = mass_center(); }
  envpool::result after(Action) {
    const auto now = mass_center();
    const double velocity = (now[0] - before_[0]) / dt;
    const bool healthy = c.healthy_z_range[0] < d.qpos[2] && d.qpos[2] < c.healthy_z_range[1];
    const double forward = c.forward_reward_weight * velocity;
    const double survive = healthy * c.healthy_reward;
    const double control = c.ctrl_cost_weight * squared_control();
    const double contact = numpy::clip(c.contact_cost_weight * squared_contact_forces(),
                                       c.contact_cost_range[0], c.contact_cost_range[1]);
    info_[x_velocity] = velocity;
    info_[y_velocity] = (now[1] - before_[1]) / dt;
    info_[reward_survive] = survive;
    info_[reward_forward] = forward;
    info_[reward_ctrl] = -control;
    info_[reward_contact] = -contact;
    return {.reward = forward + survive - (control + contact),
            .terminated = !healthy && c.terminate_when_unhealthy};
  }

 private:
  // Where the centre of mass is, seen from above. NumPy's einsum adds body by body, its sum in
  // blocks.
  std::array<double, 2> mass_center() const {
    const auto n = static_cast<std::size_t>(m.nbody);
    double x = 0, y = 0;
    for (std::size_t i = 0; i < n; ++i) {
      x += m.body_mass[i] * d.xipos[3 * i];
      y += m.body_mass[i] * d.xipos[3 * i + 1];
    }
    const double mass = numpy::sum<double>(0, n, [this](std::size_t i) { return m.body_mass[i]; });
    return {x / mass, y / mass};
  }

  std::array<double, 2> before_{};
};

struct HumanoidStandupConfig : AnyHumanoidConfig {
  HumanoidStandupConfig() {
    xml_file = "humanoidstandup.xml";
    default_camera_config =
        R"({"trackbodyid": 1, "distance": 4.0, "lookat": [0.0, 0.0, 0.8925], "elevation": -20.0})";
  }
  double uph_cost_weight = 1;
  double impact_cost_weight = 0.5e-6;
  Range impact_cost_range = {-kInfinity, 10};
};

class HumanoidStandup : public AnyHumanoid<HumanoidStandup, HumanoidStandupConfig> {
 public:
  static constexpr const char* id = "HumanoidStandup-v5";
  static constexpr const char* doc = "A robot of human shape that gets up (Gymnasium).";
  enum {
    x_position,
    y_position,
    z_distance_from_origin,
    reward_linup,
    reward_quadctrl,
    reward_impact,
    infos
  };
  static constexpr std::array info_names = {
      "x_position",   "y_position",      "z_distance_from_origin",
      "reward_linup", "reward_quadctrl", "reward_impact"};
  using AnyHumanoid::AnyHumanoid;

  static void check(const mjModel& m, const config& c) {
    AnyHumanoid::check(m, c);
    check_range("impact_cost_range", c.impact_cost_range);
  }

  void look() {
    info_[x_position] = d.qpos[0];
    info_[y_position] = d.qpos[1];
    info_[z_distance_from_origin] = d.qpos[2] - m.qpos0[2];
  }
  envpool::result after(Action) {
    const double up = d.qpos[2] / m.opt.timestep;
    const double control = c.ctrl_cost_weight * squared_control();
    const double impact = numpy::clip(c.impact_cost_weight * squared_contact_forces(),
                                      c.impact_cost_range[0], c.impact_cost_range[1]);
    info_[reward_linup] = up;
    info_[reward_quadctrl] = -control;
    info_[reward_impact] = -impact;
    return {.reward = up - control - impact + 1};
  }
};

}  // namespace gymnasium
