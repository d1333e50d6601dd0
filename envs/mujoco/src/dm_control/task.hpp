// dm_control/task.hpp - what a task of the suite is to the env that plays it, and what the tasks
// share.
//
// A task is written after its Python class in dm_control/suite: begin() is initialize_episode(),
// observe() get_observation(), reward() get_reward(). Sensors and bodies are found by name once,
// when the task is made. It samples from the same distributions, by a generator of the env's own.
#pragma once

#include <mujoco/mujoco.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <numbers>
#include <span>
#include <string>
#include <vector>

#include "dm_control/tolerance.hpp"
#include "model.hpp"
#include "numpy.hpp"
#include "physics.hpp"
#include "random.hpp"

namespace dm_control {

using mujoco::Physics;
using mujoco::Random;
using Vector = std::array<double, 3>;

struct Observation {
  std::string name;
  std::vector<std::int64_t> shape;  // empty: one number
};

// Takes an observation entry by entry: the values, and the entries' names and shapes if somebody
// asks.
class Observer {
 public:
  explicit Observer(std::vector<double>& values, std::vector<Observation>* entries = nullptr)
      : values_(values), entries_(entries) {}
  void put(const char* name, double value) {
    if (entries_ != nullptr) entries_->push_back({name, {}});
    values_.push_back(value);
  }
  void put(const char* name, std::span<const double> row) {
    if (entries_ != nullptr) entries_->push_back({name, {static_cast<std::int64_t>(row.size())}});
    values_.insert(values_.end(), row.begin(), row.end());
  }
  void put(const char* name, std::initializer_list<double> row) {
    put(name, std::span(row.begin(), row.size()));
  }
  // Rows of `width` values.
  void put(const char* name, std::span<const double> rows, std::size_t width) {
    put(name, rows);
    if (entries_ != nullptr)
      entries_->back().shape = {static_cast<std::int64_t>(rows.size() / width),
                                static_cast<std::int64_t>(width)};
  }

 private:
  std::vector<double>& values_;
  std::vector<Observation>* entries_;
};

class Task {
 public:
  Task() = default;
  Task(const Task&) = delete;
  Task& operator=(const Task&) = delete;
  virtual ~Task() = default;

  // Called when the env is seeded, before begin(): what is drawn once rather than each episode.
  virtual void seeded(Random&) {}
  virtual void begin(Physics& p, Random& random) = 0;
  virtual void observe(const Physics& p, Observer& to) const = 0;
  virtual double reward(const Physics& p) const = 0;
  virtual bool finished(const Physics&) const { return false; }

  // What begin() found out and the others look at: part of the env's state.
  std::vector<double> memory;
};

// ---- looking at a simulation --------------------------------------------------------------------

inline int body(const Physics& p, const std::string& name) {
  return mujoco::find(p.model(), mjOBJ_BODY, name);
}
inline int geom(const Physics& p, const std::string& name) {
  return mujoco::find(p.model(), mjOBJ_GEOM, name);
}
inline int site(const Physics& p, const std::string& name) {
  return mujoco::find(p.model(), mjOBJ_SITE, name);
}
inline int sensor(const Physics& p, const std::string& name) {
  return mujoco::find(p.model(), mjOBJ_SENSOR, name);
}
inline int joint(const Physics& p, const std::string& name) {
  return mujoco::find(p.model(), mjOBJ_JOINT, name);
}

inline std::span<const double> reading(const Physics& p, int sensor_id) {
  return {p.data().sensordata + p.model().sensor_adr[sensor_id],
          static_cast<std::size_t>(p.model().sensor_dim[sensor_id])};
}
// Sensors, one after the other.
inline std::vector<double> readings(const Physics& p, std::span<const int> sensors) {
  std::vector<double> all;
  for (const int id : sensors) {
    const auto one = reading(p, id);
    all.insert(all.end(), one.begin(), one.end());
  }
  return all;
}
inline double& position(Physics& p, int joint_id) {
  return p.data().qpos[p.model().jnt_qposadr[joint_id]];
}
inline double position(const Physics& p, int joint_id) {
  return p.data().qpos[p.model().jnt_qposadr[joint_id]];
}
inline double velocity(const Physics& p, int joint_id) {
  return p.data().qvel[p.model().jnt_dofadr[joint_id]];
}

inline Vector minus(const double* a, const double* b) {
  return {a[0] - b[0], a[1] - b[1], a[2] - b[2]};
}
inline double norm(const Vector& v) { return numpy::norm(v.data(), 3); }
// The vector in the axes of a frame: v . frame (3 x 3, by rows).
inline Vector in_frame(const Vector& v, const double* frame) {
  Vector out;
  for (std::size_t j = 0; j < 3; ++j)
    out[j] = v[0] * frame[j] + v[1] * frame[3 + j] + v[2] * frame[6 + j];
  return out;
}
// Entries of a 3 x 3 rotation matrix, by dm_control's names for them.
enum { kXX = 0, kXZ = 2, kZX = 6, kZY = 7, kZZ = 8 };

template <class F>
double mean(std::span<const double> values, F f) {
  return numpy::sum<double>(0, values.size(), [&](std::size_t i) { return f(values[i]); }) /
         static_cast<double>(values.size());
}
// How small the control is: 1 for none, 0 for all actuators at 1.
inline double small_control(const Physics& p) {
  return mean(p.ctrl(), [](double u) { return tolerance(u, {}, 1, Sigmoid::kQuadratic, 0); });
}

// ---- beginning an episode -----------------------------------------------------------------------

// A unit quaternion, uniformly.
void random_rotation(double* quaternion, Random& random);

// Joints with limits uniformly within them, hinges without at any angle, balls at any rotation (or
// within their limit). Free joints: the rotation only, by positive numbers, as dm_control has it.
void randomize_joints(Physics& p, Random& random);

// Calls place() until nothing touches anything. Throws envpool::error after 10,000 attempts.
template <class F>
void place_without_contact(Physics& p, F place) {
  for (int attempt = 0; attempt < 10000; ++attempt) {
    place();
    p.forward();
    if (p.data().ncon == 0) return;
  }
  throw envpool::error(EP_E_FAILED, "found no initial state without contacts");
}

}  // namespace dm_control
