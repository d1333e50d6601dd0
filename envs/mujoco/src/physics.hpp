// physics.hpp - one simulation: an mjData over a shared model.
#pragma once

#include <mujoco/mujoco.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <envpool/env.hpp>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "model.hpp"

namespace mujoco {

// How the two families of tasks step.
struct Style {
  // After a step, positions and what follows from them are computed anew (dm_control), rather than
  // left as at the beginning of the last substep (Gymnasium).
  bool up_to_date = false;
  // Whether the actuators act in what a reset computes.
  bool actuated_reset = true;
};

// Used by one thread at a time, any thread.
//
// Between two steps everything in mjData is what the last substep left there. So that a saved state
// gives all of it again, bit for bit, the state before that substep is kept: restore() sets it and
// repeats the substep.
class Physics {
 public:
  Physics(ModelPtr model, Style style);
  Physics(const Physics&) = delete;
  Physics& operator=(const Physics&) = delete;

  const mjModel& model() const { return *m_; }
  const ModelPtr& shared_model() const { return shared_; }
  bool owns_model() const { return !owned_.empty(); }  // in part
  mjData& data() { return *data_; }
  const mjData& data() const { return *data_; }
  std::span<mjtNum> qpos() { return {data_->qpos, static_cast<std::size_t>(m_->nq)}; }
  std::span<const mjtNum> qpos() const { return {data_->qpos, static_cast<std::size_t>(m_->nq)}; }
  std::span<mjtNum> qvel() { return {data_->qvel, static_cast<std::size_t>(m_->nv)}; }
  std::span<const mjtNum> qvel() const { return {data_->qvel, static_cast<std::size_t>(m_->nv)}; }
  std::span<mjtNum> ctrl() { return {data_->ctrl, static_cast<std::size_t>(m_->nu)}; }
  std::span<const mjtNum> ctrl() const { return {data_->ctrl, static_cast<std::size_t>(m_->nu)}; }

  // An array of the model as this env's own, to change at will; it becomes part of the state. To
  // be called at construction, once an array.
  template <class T>
  std::span<T> own(T* mjModel::* array, int count) {
    const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(T);
    std::unique_ptr<std::byte[]>& copy = owned_.emplace_back(new std::byte[bytes], bytes).first;
    if (bytes != 0) std::memcpy(copy.get(), own_.*array, bytes);
    own_.*array = reinterpret_cast<T*>(copy.get());
    m_ = &own_;
    return {own_.*array, static_cast<std::size_t>(count)};
  }

  // Begins an episode at the model's own configuration, or at a keyframe of it. What is set in
  // data() afterwards is taken up by forward(), which ends the reset. Both throw as step() does.
  void reset(int keyframe = -1);
  void forward();

  // `substeps` steps of the model's timestep with the control in data(); then computes cfrc_ext if
  // `contact_forces`, which MuJoCo does by itself only for some sensors. Throws envpool::error
  // (EP_E_FAILED) if the control or the simulation went bad; reset() mends that.
  void step(std::int64_t substeps, bool contact_forces = false);

  // All of it, as at the end of the last step or reset.
  struct State {
    std::uint32_t fresh = 1;  // 1: a reset's, 0: from before the last substep
    std::vector<mjtNum> integration;
    std::vector<std::uint8_t> model;  // the arrays that are the env's own, one after the other
    template <class A>
    void state(A& a) {
      a(fresh, integration, model);
    }
  };
  State state() const;
  // Throws envpool::error, having changed nothing, if it is of another model.
  void restore(const State& state);

 private:
  struct Delete {
    void operator()(mjData* d) const { lib().mj_deleteData(d); }
  };
  void compute();
  void keep_state();
  void check(const char* warning);

  ModelPtr shared_;
  mjModel own_;  // the shared one's arrays, but for those that are owned
  const mjModel* m_;
  std::vector<std::pair<std::unique_ptr<std::byte[]>, std::size_t>> owned_;
  std::unique_ptr<mjData, Delete> data_;
  const Style style_;
  std::vector<mjtNum> before_;
  bool fresh_ = true;
};

}  // namespace mujoco
