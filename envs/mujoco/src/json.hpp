// json.hpp - flat JSON objects of numbers, which a few options are.
#pragma once

#include <envpool/env.hpp>
#include <functional>
#include <span>
#include <string>

namespace mujoco {

// Calls f(key, values) for each member of an object whose values are numbers, booleans (1, 0) or
// arrays of these. Throws envpool::error (EP_E_ARGUMENT) naming the option if it is something else.
// The text is JSON: the host has checked that.
void for_each_member(const char* option, const std::string& json,
                     const std::function<void(const std::string&, std::span<const double>)>& f);

}  // namespace mujoco
