// dm_control/suite.hpp - the tasks of the suite: names, times, and how to make them.
#pragma once

#include <array>
#include <envpool/env.hpp>
#include <memory>

#include "dm_control/task.hpp"

namespace dm_control {

// What the suite's functions take for a task.
struct Choices {
  bool fully_observable = true;  // of manipulator and stacker
};

struct Entry {
  const char* id;
  const char* doc;
  double time_limit;        // seconds of an episode
  double control_timestep;  // seconds of a step; 0: one of the model's
  const char* file;         // the model's, in the suite
  mujoco::Edit (*edit)();   // what the suite changes in it; nullptr: nothing
  std::unique_ptr<Task> (*make)(Physics&, const Choices&);
};

// The domains, in the order of the suite.
extern const std::array<Entry, 2> acrobot;
extern const std::array<Entry, 1> ball_in_cup;
extern const std::array<Entry, 6> cartpole;
extern const std::array<Entry, 1> cheetah;
extern const std::array<Entry, 5> dog;
extern const std::array<Entry, 3> finger;
extern const std::array<Entry, 2> fish;
extern const std::array<Entry, 2> hopper;
extern const std::array<Entry, 4> humanoid;
extern const std::array<Entry, 3> humanoid_cmu;
extern const std::array<Entry, 2> lqr;
extern const std::array<Entry, 4> manipulator;
extern const std::array<Entry, 1> pendulum;
extern const std::array<Entry, 2> point_mass;
extern const std::array<Entry, 4> quadruped;
extern const std::array<Entry, 2> reacher;
extern const std::array<Entry, 2> stacker;
extern const std::array<Entry, 2> swimmer;
extern const std::array<Entry, 3> walker;

// A task made with these arguments after the Physics.
template <class T, auto... Arguments>
std::unique_ptr<Task> make(Physics& p, const Choices&) {
  return std::make_unique<T>(p, Arguments...);
}

}  // namespace dm_control
