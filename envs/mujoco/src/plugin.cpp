// plugin.cpp - the tasks of this library.
#include <envpool/env.hpp>

#include "custom.hpp"
#include "dm_control/env.hpp"
#include "gymnasium/arms.hpp"
#include "gymnasium/runners.hpp"
#include "gymnasium/walkers.hpp"

namespace {

template <const auto& Domain>
using Suite = envpool::family<dm_control::Env, Domain>;
template <const auto& Domain>
using ArmSuite = envpool::family<dm_control::PartlyObservable, Domain>;

}  // namespace

ENVPOOL_PLUGIN_ABOUT((envpool::about{"mujoco", ENVPOOL_MUJOCO_VERSION, "MIT"}), gymnasium::Ant,
                     gymnasium::HalfCheetah, gymnasium::Hopper, gymnasium::Humanoid,
                     gymnasium::HumanoidStandup, gymnasium::InvertedDoublePendulum,
                     gymnasium::InvertedPendulum, gymnasium::Pusher, gymnasium::Reacher,
                     gymnasium::Swimmer, gymnasium::Walker2d,  //
                     Suite<dm_control::acrobot>, Suite<dm_control::ball_in_cup>,
                     Suite<dm_control::cartpole>, Suite<dm_control::cheetah>,
                     Suite<dm_control::dog>, Suite<dm_control::finger>, Suite<dm_control::fish>,
                     Suite<dm_control::hopper>, Suite<dm_control::humanoid>,
                     Suite<dm_control::humanoid_cmu>, Suite<dm_control::lqr>,
                     ArmSuite<dm_control::manipulator>, Suite<dm_control::pendulum>,
                     Suite<dm_control::point_mass>, Suite<dm_control::quadruped>,
                     Suite<dm_control::reacher>, ArmSuite<dm_control::stacker>,
                     Suite<dm_control::swimmer>, Suite<dm_control::walker>,  //
                     custom::Custom)
