// physics.hpp - one simulation: an mjData over a shared model.
#pragma once

#include <mujoco/mujoco.h>

#include <algorithm>
#include <cstdint>
#include <envpool/env.hpp>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "model.hpp"

namespace mujoco {

// Used by one thread at a time, any thread.
//
// Between two steps everything in mjData is what the last substep left there. So that a saved state
// gives all of it again, bit for bit, the state before that substep is kept: restore() sets it and
// repeats the substep.
class Physics {
 public:
  explicit Physics(ModelPtr model);
  Physics(const Physics&) = delete;
  Physics& operator=(const Physics&) = delete;

  const mjModel& model() const { return *model_; }
  mjData& data() { return *data_; }
  const mjData& data() const { return *data_; }
  std::span<mjtNum> qpos() { return {data_->qpos, static_cast<std::size_t>(model_->nq)}; }
  std::span<mjtNum> qvel() { return {data_->qvel, static_cast<std::size_t>(model_->nv)}; }

  // Begins an episode at the model's own configuration; what is set in data() afterwards is taken
  // up by forward(), which ends the reset.
  void reset();
  void forward();

  // Takes the control (model().nu values) for `substeps` steps of the model's timestep; then
  // computes cfrc_ext if `contact_forces`, which MuJoCo does by itself only for some sensors.
  // Throws envpool::error (EP_E_FAILED) if the control or the simulation went bad; reset() mends
  // that.
  template <class T>
  void step(std::span<const T> control, std::int64_t substeps, bool contact_forces) {
    std::copy(control.begin(), control.end(), data_->ctrl);
    advance(substeps, contact_forces);
  }

  // What restore() needs; of size state_size().
  const std::vector<mjtNum>& state() const { return before_; }
  std::size_t state_size() const { return before_.size(); }
  // Whether the state is that of a reset; else a step follows it.
  bool fresh() const { return fresh_; }
  // Afterwards everything is as it was when state() and fresh() were read. Takes a state of this
  // model only.
  void restore(const std::vector<mjtNum>& state, bool fresh);

 private:
  struct Delete {
    void operator()(mjData* d) const { lib().mj_deleteData(d); }
  };
  void advance(std::int64_t substeps, bool contact_forces);
  void keep_state();
  void check(const char* warning);

  ModelPtr model_;
  std::unique_ptr<mjData, Delete> data_;
  std::vector<mjtNum> before_;
  bool fresh_ = true;
};

}  // namespace mujoco
