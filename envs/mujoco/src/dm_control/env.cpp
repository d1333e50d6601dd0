#include "dm_control/env.hpp"

#include <cstring>

namespace dm_control {
namespace {

mujoco::Style style(const Config& c) {
  return {.up_to_date = c.legacy_step, .actuated_reset = false};
}

constexpr int kMostSubsteps = 100000;  // as Gymnasium's tasks allow for frame_skip

// Substeps of a step, as dm_control counts them.
std::int64_t substeps_of(const mjModel& m, double control_timestep) {
  if (control_timestep == 0) return 1;
  const double ratio = control_timestep / m.opt.timestep;
  if (control_timestep < m.opt.timestep || std::abs(ratio - std::round(ratio)) > 1e-8)
    throw envpool::error(EP_E_ARGUMENT, "control_timestep=" + std::to_string(control_timestep) +
                                            " must be a multiple of the model's timestep, " +
                                            std::to_string(m.opt.timestep));
  if (!(ratio <= kMostSubsteps))
    throw envpool::error(EP_E_ARGUMENT, "control_timestep=" + std::to_string(control_timestep) +
                                            " must be at most " + std::to_string(kMostSubsteps) +
                                            " of the model's timesteps");
  return static_cast<std::int64_t>(std::round(ratio));
}

template <class C>
void add_options(envpool::options<C>& o) {
  o.add("time_limit", &C::time_limit)
      .min(0.)
      .unit("s")
      .doc("length of an episode; 0: the task's own, inf: none");
  o.add("control_timestep", &C::control_timestep)
      .min(0.)
      .unit("s")
      .doc("length of a step, a multiple of the model's timestep; 0: the task's own");
  o.add("flat_observation", &C::flat_observation)
      .shapes_spec()
      .doc("all observations as one row, \"observations\"");
  o.add("legacy_step", &C::legacy_step)
      .doc("bring positions and what follows from them up to date after each step");
  mujoco::add_picture_options(o);
}

}  // namespace

void Env::options(envpool::options<Config>& o) { add_options(o); }

void PartlyObservable::options(envpool::options<config>& o) {
  add_options(o);
  o.add("fully_observable", &config::fully_observable)
      .shapes_spec()
      .doc("observe the objects and the target, not only the arm");
}

Fields Env::describe(envpool::spec& s, const Config& c, const Entry& entry) {
  Fields f;
  const auto folder = mujoco::folder(s.host(), "dm_control_models", "dm-control");
  f.model = mujoco::load_file(s.host(), folder / entry.file,
                              entry.edit == nullptr ? mujoco::Edit{} : entry.edit());
  const mjModel& m = *f.model;
  f.substeps =
      substeps_of(m, c.control_timestep == 0 ? entry.control_timestep : c.control_timestep);
  const double step = m.opt.timestep * static_cast<double>(f.substeps);
  const double limit = (c.time_limit == 0 ? entry.time_limit : c.time_limit) / step;
  s.max_episode_steps =
      limit < 1e15 ? static_cast<std::int64_t>(std::max(1., std::ceil(limit))) : 0;
  s.fps = 1 / step;

  std::vector<double> low, high;
  for (int i = 0; i < m.nu; ++i) {
    const bool limited = m.actuator_ctrllimited[i] != 0;
    low.push_back(limited ? m.actuator_ctrlrange[2 * i] : -mjMAXVAL);
    high.push_back(limited ? m.actuator_ctrlrange[2 * i + 1] : mjMAXVAL);
  }
  f.action = s.action<double[]>("", {m.nu}).within(low, high).doc("control of the actuators");

  mujoco::check_camera(m, c.camera_id);
  if (c.from_pixels) {
    f.pixels = mujoco::add_pixels(s, c);
    return f;
  }
  // What is observed does not depend on the state, so an initial one tells names and shapes.
  Physics physics(f.model, style(c));
  std::vector<double> row;
  std::vector<Observation> observations;
  Observer observer(row, &observations);
  const std::unique_ptr<Task> task = entry.make(physics, c.choices);
  task->observe(physics, observer);
  if (c.flat_observation)
    observations = {{"observations", {static_cast<std::int64_t>(row.size())}}};
  for (const Observation& o : observations) {
    if (o.shape.empty()) {
      s.obs<double>(o.name);
      f.sizes.push_back(1);
    } else {
      const envpool::obs<double[]> field = s.obs<double[]>(o.name, o.shape);
      f.sizes.push_back(field.count);
    }
  }
  return f;
}

Env::Env(const Config& c, const Fields& f, const Entry& entry)
    : fields_(f),
      physics_(f.model, style(c)),
      task_(entry.make(physics_, c.choices)),
      view_(mujoco::view_of(*f.model, c)) {}

void Env::seed(std::uint64_t s) {
  random_.word = s;
  task_->seeded(random_);
}

void Env::reset() {
  physics_.reset();
  task_->begin(physics_, random_);
  physics_.forward();
}

envpool::result Env::step(const envpool::input& in) {
  const auto action = in[fields_.action];
  std::copy(action.begin(), action.end(), physics_.ctrl().begin());
  physics_.step(fields_.substeps);
  return {.reward = task_->reward(physics_), .terminated = task_->finished(physics_)};
}

void Env::observe(const envpool::view& v) const {
  if (v.raw().obs == nullptr) return;
  if (fields_.sizes.empty()) {
    if (const auto to = v[fields_.pixels]) mujoco::draw(physics_, view_, to.data());
    return;
  }
  row_.clear();
  Observer observer(row_);
  task_->observe(physics_, observer);
  const double* from = row_.data();
  for (std::size_t i = 0; i < fields_.sizes.size(); from += fields_.sizes[i++])
    if (void* const to = v.raw().obs[i]) std::memcpy(to, from, fields_.sizes[i] * sizeof *from);
}

void Env::save(envpool::writer& to, std::int32_t) const {
  Physics::State physics = physics_.state();
  to(random_, task_->memory, physics);
}

void Env::load(envpool::reader& from, std::int32_t) {
  Random random;
  std::vector<double> memory;
  Physics::State physics;
  from(random, memory, physics);
  if (from.left() != 0) throw envpool::error(EP_E_ARGUMENT, "a state that is too long");
  physics_.restore(physics);
  random_ = random;
  task_->memory = std::move(memory);
}

}  // namespace dm_control
