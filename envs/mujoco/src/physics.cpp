#include "physics.hpp"

#include <new>

namespace mujoco {

Physics::Physics(ModelPtr model) : model_(std::move(model)) {
  guarded([this] { data_.reset(lib().mj_makeData(model_.get())); });
  if (data_ == nullptr) throw std::bad_alloc();
  before_.resize(static_cast<std::size_t>(lib().mj_stateSize(model_.get(), mjSTATE_INTEGRATION)));
}

void Physics::reset() {
  guarded([this] { lib().mj_resetData(model_.get(), data_.get()); });
}

void Physics::forward() {
  fresh_ = true;
  keep_state();
  check(guarded([this] { lib().mj_forward(model_.get(), data_.get()); }));
}

void Physics::advance(std::int64_t substeps, bool contact_forces) {
  fresh_ = false;
  check(guarded([&] {
    const mjModel* const m = model_.get();
    mjData* const d = data_.get();
    for (std::int64_t i = 1; i < substeps; ++i) lib().mj_step(m, d);
    keep_state();
    lib().mj_step(m, d);
    if (contact_forces) lib().mj_rnePostConstraint(m, d);
  }));
}

void Physics::restore(const std::vector<mjtNum>& state, bool fresh) {
  reset();  // arrays that only some calls compute are zero then, as they were
  lib().mj_setState(model_.get(), data_.get(), state.data(), mjSTATE_INTEGRATION);
  if (fresh) return forward();
  fresh_ = false;
  keep_state();
  check(guarded([this] {
    lib().mj_step(model_.get(), data_.get());
    lib().mj_rnePostConstraint(model_.get(), data_.get());
  }));
}

void Physics::keep_state() {
  lib().mj_getState(model_.get(), data_.get(), before_.data(), mjSTATE_INTEGRATION);
}

// MuJoCo goes on from the initial state when numbers went bad, and without control when that is
// bad. An episode that goes on as if nothing had happened teaches wrong things, so it ends here.
void Physics::check(const char* warning) {
  for (const mjtWarning bad : {mjWARN_BADQPOS, mjWARN_BADQVEL, mjWARN_BADQACC, mjWARN_BADCTRL}) {
    if (data_->warning[bad].number == 0) continue;
    throw envpool::error(EP_E_FAILED, bad == mjWARN_BADCTRL
                                          ? std::string("the action is not finite, or beyond 1e10")
                                          : "the simulation diverged: " +
                                                std::string(*warning ? warning : "bad state"));
  }
}

}  // namespace mujoco
