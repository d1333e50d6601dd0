// model.hpp - compiled models, shared by all envs of equal XML.
#pragma once

#include <mujoco/mujoco.h>

#include <envpool/env.hpp>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "library.hpp"

namespace mujoco {

// Never changed once it is made: any number of envs on any threads read it. An env whose task
// changes the model has arrays of its own (Physics::own).
using ModelPtr = std::shared_ptr<const mjModel>;

// A change to a parsed model before it is compiled, and its name: equal names, equal changes. It is
// run within guarded(): no destructors.
struct Edit {
  std::string name;
  std::function<void(mjSpec*)> apply;
};

// The model in an MJCF or URDF file. Compiled once as long as somebody holds it (the latest one
// always is held); a file whose text changed is another model, but files that it includes are not
// looked at again. Opens MuJoCo's library first. Throws envpool::error naming the file and the line
// (EP_E_NOT_FOUND, EP_E_ARGUMENT). [any thread]
ModelPtr load_file(const envpool::host& host, const std::filesystem::path& file,
                   const Edit& edit = {});

// The same for MJCF given as text; relative paths in it start at the working directory.
ModelPtr load_text(const envpool::host& host, const std::string& xml);

// The folder that the host's asset names; EP_E_NOT_FOUND, saying what to install, if there is none.
std::filesystem::path folder(const envpool::host& host, const char* asset, const char* package);

// Number of the object of that name. Throws envpool::error(EP_E_ARGUMENT) listing the names there
// are.
int find(const mjModel& model, mjtObj type, const std::string& name);

// An object's name; empty if it has none.
std::string_view name_of(const mjModel& model, mjtObj type, int id);

}  // namespace mujoco
