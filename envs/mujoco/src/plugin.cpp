// plugin.cpp - the tasks of this library.
#include <envpool/env.hpp>

#include "gymnasium/arms.hpp"
#include "gymnasium/runners.hpp"
#include "gymnasium/walkers.hpp"

ENVPOOL_PLUGIN_ABOUT((envpool::about{"mujoco", ENVPOOL_MUJOCO_VERSION, "MIT"}), gymnasium::Ant,
                     gymnasium::HalfCheetah, gymnasium::Hopper, gymnasium::Humanoid,
                     gymnasium::HumanoidStandup, gymnasium::InvertedDoublePendulum,
                     gymnasium::InvertedPendulum, gymnasium::Pusher, gymnasium::Reacher,
                     gymnasium::Swimmer, gymnasium::Walker2d)
