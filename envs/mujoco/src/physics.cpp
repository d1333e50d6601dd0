#include "physics.hpp"

#include <new>

namespace mujoco {

Physics::Physics(ModelPtr model, Style style)
    : shared_(std::move(model)), own_(*shared_), m_(shared_.get()), style_(style) {
  guarded([this] { data_.reset(lib().mj_makeData(m_)); });
  if (data_ == nullptr) throw std::bad_alloc();
  before_.resize(static_cast<std::size_t>(lib().mj_stateSize(m_, mjSTATE_INTEGRATION)));
}

void Physics::reset(int keyframe) {
  guarded([&] { lib().mj_resetDataKeyframe(m_, data_.get(), keyframe); });
  if (!style_.actuated_reset) compute();  // where dm_control's tasks look at it
}

void Physics::forward() {
  fresh_ = true;
  keep_state();
  compute();
}

void Physics::compute() {
  if (style_.actuated_reset) {
    check(guarded([this] { lib().mj_forward(m_, data_.get()); }));
    return;
  }
  mjModel limp = *m_;  // the arrays are the same
  limp.opt.disableflags |= mjDSBL_ACTUATION;
  check(guarded([&] { lib().mj_forward(&limp, data_.get()); }));
}

void Physics::step(std::int64_t substeps, bool contact_forces) {
  fresh_ = false;
  check(guarded([&] {
    mjData* const d = data_.get();
    // With positions up to date, the first half of the first substep is done already.
    const bool half_done = style_.up_to_date && m_->opt.integrator != mjINT_RK4;
    for (std::int64_t i = 0; i < substeps; ++i) {
      if (i == substeps - 1) keep_state();
      (half_done && i == 0 ? lib().mj_step2 : lib().mj_step)(m_, d);
    }
    if (style_.up_to_date) lib().mj_step1(m_, d);
    if (contact_forces) lib().mj_rnePostConstraint(m_, d);
  }));
}

Physics::State Physics::state() const {
  State s{fresh_, before_, {}};
  for (const auto& [bytes, size] : owned_) {
    const auto* from = reinterpret_cast<const std::uint8_t*>(bytes.get());
    s.model.insert(s.model.end(), from, from + size);
  }
  return s;
}

void Physics::restore(const State& s) {
  std::size_t owned = 0;
  for (const auto& entry : owned_) owned += entry.second;
  if (s.fresh > 1 || s.integration.size() != before_.size() || s.model.size() != owned)
    throw envpool::error(EP_E_ARGUMENT, "a state of another model");
  const std::uint8_t* from = s.model.data();
  for (const auto& [bytes, size] : owned_) {
    if (size != 0) std::memcpy(bytes.get(), from, size);
    from += size;
  }
  // First, since arrays that only some calls compute are zero then, as they were.
  guarded([this] { lib().mj_resetData(m_, data_.get()); });
  lib().mj_setState(m_, data_.get(), s.integration.data(), mjSTATE_INTEGRATION);
  if (s.fresh != 0) return forward();
  fresh_ = false;
  keep_state();
  check(guarded([this] {
    lib().mj_step(m_, data_.get());
    if (style_.up_to_date) lib().mj_step1(m_, data_.get());
    lib().mj_rnePostConstraint(m_, data_.get());
  }));
}

void Physics::keep_state() {
  lib().mj_getState(m_, data_.get(), before_.data(), mjSTATE_INTEGRATION);
}

// MuJoCo goes on from the initial state when numbers went bad, and without control when that is
// bad. An episode that goes on as if nothing had happened teaches wrong things, so it ends here.
void Physics::check(const char* warning) {
  for (const mjtWarning bad : {mjWARN_BADQPOS, mjWARN_BADQVEL, mjWARN_BADQACC, mjWARN_BADCTRL}) {
    if (data_->warning[bad].number == 0) continue;
    if (bad == mjWARN_BADCTRL)
      throw envpool::error(EP_E_FAILED, "the action is not finite, or beyond 1e10");
    throw envpool::error(EP_E_FAILED, std::string("the simulation diverged: ") +
                                          (*warning != 0 ? warning : "a bad number in its state"));
  }
}

}  // namespace mujoco
