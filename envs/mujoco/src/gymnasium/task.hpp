// gymnasium/task.hpp - what Gymnasium's eleven MuJoCo tasks (version 5) have in common.
//
// A task derives from Task<itself, its config> and has
//   static constexpr const char *id, *doc;  double reward_threshold;  int64 max_episode_steps
//   enum { x_position, ..., infos };  static constexpr std::array info_names = {...};
//       the scalar infos: their places in info_[], their names
//   static constexpr bool contact_forces;   // whether it looks at cfrc_ext
//   static std::size_t observation_size(const mjModel&, const config&)
//   void begin()                  // sets qpos and qvel for a new episode
//   void look()                   // sets the infos that Gymnasium's reset() gives
//   void before()                 // notes what after() compares with
//   envpool::result after(action) // judges the step and sets the infos
//   void observe(Row&) const
// Arithmetic is in the order, and of the type, that Gymnasium's Python has: an action is float32,
// so what is computed from it alone is float32, too.
#pragma once

#include <mujoco/mujoco.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <envpool/env.hpp>
#include <filesystem>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "gymnasium/options.hpp"
#include "model.hpp"
#include "numpy.hpp"
#include "physics.hpp"
#include "pictures.hpp"
#include "random.hpp"
#include "render.hpp"

namespace gymnasium {

using Action = std::span<const float>;
inline constexpr std::size_t kMostInfos = 16;  // scalar ones of a task
inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Fields {
  mujoco::ModelPtr model;
  envpool::obs<double[]> observation;
  envpool::obs<std::uint8_t[]> pixels;  // in its place, from_pixels
  envpool::action<float[]> action;
  std::vector<envpool::info<double>> infos;
  std::vector<envpool::info<double[]>> tendons;  // length and velocity, where a task shows them
};

// An observation on its way out.
class Row {
 public:
  explicit Row(double* to) : to_(to) {}
  void put(double value) { *to_++ = value; }
  void put(const double* from, std::size_t count) { to_ = std::copy_n(from, count, to_); }
  void put(std::span<const double> from) { put(from.data(), from.size()); }
  void put_clipped(std::span<const double> from, double low, double high) {
    for (const double x : from) put(numpy::clip(x, low, high));
  }
  const double* end() const { return to_; }

 private:
  double* to_;
};

inline std::filesystem::path model_file(const envpool::host& host, const std::string& name) {
  if (name.starts_with('.') || name.starts_with('/')) return name;
  if (name.starts_with('~')) {
    const char* home = std::getenv("HOME");
    return std::string(home == nullptr ? "~" : home) + name.substr(1);
  }
  return mujoco::folder(host, "gymnasium_models", "gymnasium") / name;
}

inline void check_range(const char* option, const Range& range) {
  if (range.size() != 2)
    throw envpool::error(EP_E_ARGUMENT, std::string(option) + " has " +
                                            std::to_string(range.size()) +
                                            " values: it must be (low, high)");
}

// Models of the user's own are welcome as long as what a task looks at is there.
inline void check_size(const mjModel& m, int least_positions, int least_velocities) {
  if (m.nq < least_positions || m.nv < least_velocities)
    throw envpool::error(EP_E_ARGUMENT, "this task needs a model with at least " +
                                            std::to_string(least_positions) + " positions and " +
                                            std::to_string(least_velocities) +
                                            " velocities; this one has " + std::to_string(m.nq) +
                                            " and " + std::to_string(m.nv));
}

template <class E, class C>
class Task {
 public:
  using config = C;
  using fields = Fields;
  static constexpr ep_sharing sharing = EP_FREE;
  static constexpr bool batch = true;
  static constexpr bool contact_forces = false;
  static constexpr bool shows_tendons = false;
  static constexpr double reward_threshold = std::numeric_limits<double>::quiet_NaN();
  static constexpr std::int64_t max_episode_steps = 1000;
  static constexpr std::uint32_t state_purposes = 1u << EP_STATE_CLONE | 1u << EP_STATE_PERSIST;

  static void options(envpool::options<C>& o) { add_options(o); }
  static Fields describe(envpool::spec& s, const C& c) {
    Fields f;
    f.model = mujoco::load_file(s.host(), model_file(s.host(), c.xml_file));
    const mjModel& m = *f.model;
    E::check(m, c);
    if (!c.camera_name.empty()) {
      if (c.camera_id >= 0)
        throw envpool::error(EP_E_ARGUMENT, "camera_id and camera_name: give only one of them");
      mujoco::find(m, mjOBJ_CAMERA, c.camera_name);
    }
    mujoco::check_camera(m, c.camera_id);
    if (m.nu == 0) throw envpool::error(EP_E_ARGUMENT, c.xml_file + " has no actuators");
    std::vector<float> low, high;
    for (int i = 0; i < m.nu; ++i) {
      low.push_back(static_cast<float>(m.actuator_ctrlrange[2 * i]));
      high.push_back(static_cast<float>(m.actuator_ctrlrange[2 * i + 1]));
    }
    s.max_episode_steps = E::max_episode_steps;
    s.reward_threshold = E::reward_threshold;
    s.fps = std::round(1 / (m.opt.timestep * static_cast<double>(c.frame_skip)));
    if (c.from_pixels)
      f.pixels = s.obs<std::uint8_t[]>("", {c.height, c.width, 3}).within(0, 255).image(EP_HWC);
    else
      f.observation = s.obs<double[]>("", {static_cast<std::int64_t>(E::observation_size(m, c))});
    f.action = s.action<float[]>("", {m.nu}).within(low, high).doc("control of the actuators");
    for (const char* name : E::info_names) f.infos.push_back(s.info<double>(name));
    if (E::shows_tendons && m.ntendon > 0)
      for (const char* name : {"tendon_length", "tendon_velocity"})
        f.tendons.push_back(s.info<double[]>(name, {m.ntendon}));
    return f;
  }
  static void check(const mjModel&, const C&) {}

  Task(const C& with, const Fields& f)
      : c(with),
        physics_(f.model, {}),
        m(physics_.model()),
        d(physics_.data()),
        dt(m.opt.timestep * static_cast<double>(c.frame_skip)),
        fields_(f),
        view_(view()) {}

  void seed(std::uint64_t s) { random.word = s; }

  void reset() {
    physics_.reset();
    self().begin();
    physics_.forward();
    info_.fill(0);
    self().look();
  }

  envpool::result step(const envpool::input& in) {
    const auto taken = in[fields_.action];
    const Action action(taken.data(), taken.size());
    self().before();
    std::copy(action.begin(), action.end(), d.ctrl);
    physics_.step(c.frame_skip, E::contact_forces);
    self().look();
    return self().after(action);
  }

  void observe(const envpool::view& v) const {
    if (c.from_pixels) {
      if (const auto to = v[fields_.pixels]) mujoco::draw(physics_, view_, to.data());
    } else if (const auto to = v[fields_.observation]) {
      Row row(to.data());
      static_cast<const E*>(this)->observe(row);
    }
    for (std::size_t i = 0; i < fields_.infos.size(); ++i) v.put(fields_.infos[i], info_[i]);
    if (!fields_.tendons.empty()) {
      const auto n = static_cast<std::size_t>(m.ntendon);
      v.put(fields_.tendons[0], std::span(d.ten_length, n));
      v.put(fields_.tendons[1], std::span(d.ten_velocity, n));
    }
  }

  void measure(ep_image& image) const { mujoco::measure(m, view_, image); }
  void draw(const ep_image& image) const { mujoco::draw(physics_, view_, image); }

  void save(envpool::writer& to, std::int32_t) const {
    mujoco::Physics::State physics = physics_.state();
    to(random, info_, physics);
  }
  void load(envpool::reader& from, std::int32_t) {
    mujoco::Random saved_random;
    std::array<double, kMostInfos> saved_info;
    mujoco::Physics::State physics;
    from(saved_random, saved_info, physics);
    if (from.left() != 0) throw envpool::error(EP_E_ARGUMENT, "a state that is too long");
    physics_.restore(physics);
    random = saved_random;
    info_ = saved_info;
  }

 protected:
  void before() {}

  // ---- resets ----

  // qpos and qvel, at the model's own configuration now, each plus uniform noise.
  void add_uniform_noise(double scale) {
    for (double& x : physics_.qpos()) x += random.uniform(-scale, scale);
    for (double& x : physics_.qvel()) x += random.uniform(-scale, scale);
  }
  // The same, but for normal noise of the velocity.
  void add_normal_noise(double scale) {
    for (double& x : physics_.qpos()) x += random.uniform(-scale, scale);
    for (double& x : physics_.qvel()) x += scale * random.normal();
  }

  // ---- what is looked at ----

  std::span<const double> qpos(std::size_t from = 0) const {
    return std::span<const double>(d.qpos, static_cast<std::size_t>(m.nq)).subspan(from);
  }
  std::span<const double> qvel() const { return {d.qvel, static_cast<std::size_t>(m.nv)}; }
  // An array of `width` values a body: those of body `from` and the ones after it.
  std::span<const double> bodies(const mjtNum* array, std::size_t width, std::size_t from) const {
    return std::span<const double>(array, width * static_cast<std::size_t>(m.nbody))
        .subspan(width * from);
  }
  const double* body(int id) const { return d.xpos + 3 * id; }

  // ---- rewards ----

  // weight * np.sum(np.square(action)), all in float32.
  static double control_cost(double weight, Action action) {
    return static_cast<float>(weight) * numpy::sum_of_squares(action);
  }

  const C c;

 private:
  mujoco::Physics physics_;

 protected:
  const mjModel& m;
  mjData& d;
  const double dt;  // seconds in one step
  mujoco::Random random;
  std::array<double, kMostInfos> info_{};

 private:
  E& self() { return static_cast<E&>(*this); }

  // As Gymnasium's: the camera asked for, else a free one that looks at the median of all geoms, in
  // the initial pose (there: in the first picture's).
  mujoco::View view() {
    mujoco::View v;
    v.width = static_cast<std::uint32_t>(c.width);
    v.height = static_cast<std::uint32_t>(c.height);
    v.max_geom = static_cast<int>(c.max_geom);
    v.flags = mujoco::visual_flags(c.visual_options);
    v.camera = c.camera_name.empty() ? static_cast<int>(c.camera_id)
                                     : mujoco::find(m, mjOBJ_CAMERA, c.camera_name);
    if (v.camera >= 0) return v;
    mujoco::lib().mjv_defaultCamera(&v.free);
    v.free.distance = m.stat.extent;
    physics_.reset();
    physics_.forward();
    for (std::size_t k = 0; k < 3; ++k) {
      std::vector<double> places;
      for (int i = 0; i < m.ngeom; ++i)
        places.push_back(d.geom_xpos[3 * static_cast<std::size_t>(i) + k]);
      v.free.lookat[k] = numpy::median(std::move(places));
    }
    mujoco::configure(v.free, c.default_camera_config);
    return v;
  }

  const Fields fields_;
  const mujoco::View view_;
};

}  // namespace gymnasium
