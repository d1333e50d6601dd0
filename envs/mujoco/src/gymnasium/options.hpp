// gymnasium/options.hpp - the arguments of Gymnasium's classes as options, each told once for all
// tasks that have it.
#pragma once

#include <cstdint>
#include <envpool/env.hpp>
#include <string>
#include <vector>

namespace gymnasium {

using Range = std::vector<double>;  // low, high

// What the eleven tasks have in common; they add members of the names below.
struct Config {
  std::string xml_file;
  std::int64_t frame_skip = 5;
  std::int64_t width = 480, height = 480;
  std::int64_t camera_id = -1;
  std::string camera_name;
  envpool::json default_camera_config = "{}", visual_options = "{}";
  std::int64_t max_geom = 1000;
  bool from_pixels = false;
};

// Adds an option for each of these members that C has.
template <class C>
void add_options(envpool::options<C>& o) {
#define ENVPOOL_OPTION(name) \
  if constexpr (requires { &C::name; }) o.add(#name, &C::name)

  // ---- the simulation ----
  ENVPOOL_OPTION(xml_file).shapes_spec().doc(
      "MJCF file: a path if it begins with '.', '/' or '~', else one of Gymnasium's");
  ENVPOOL_OPTION(frame_skip).range(1, 100000).doc("steps of the simulation in one step of the env");
  ENVPOOL_OPTION(reset_noise_scale)
      .min(0.)
      .doc("scale of the random offsets of position and velocity at a reset");

  // ---- rewards ----
  ENVPOOL_OPTION(forward_reward_weight).doc("weight of the forward velocity in the reward");
  ENVPOOL_OPTION(uph_cost_weight)
      .doc("accepted for Gymnasium's sake, which does not use it either");
  ENVPOOL_OPTION(ctrl_cost_weight).doc("weight of the squared control, a cost in the reward");
  ENVPOOL_OPTION(contact_cost_weight)
      .doc("weight of the squared contact forces, a cost in the reward");
  ENVPOOL_OPTION(contact_cost_range)
      .doc("(low, high): the cost of contact forces is clipped to it");
  ENVPOOL_OPTION(contact_force_range).doc("(low, high): contact forces are clipped to it");
  ENVPOOL_OPTION(impact_cost_weight)
      .doc("weight of the squared contact forces, a cost in the reward");
  ENVPOOL_OPTION(impact_cost_range).doc("(low, high): the cost of contact forces is clipped to it");
  ENVPOOL_OPTION(reward_near_weight)
      .doc("weight of the distance between arm and object, a cost in the reward");
  ENVPOOL_OPTION(reward_dist_weight)
      .doc("weight of the distance to the goal, a cost in the reward");
  ENVPOOL_OPTION(reward_control_weight).doc("weight of the squared control, a cost in the reward");
  ENVPOOL_OPTION(main_body).doc(
      "the body whose velocity is rewarded: its name, or its number as text");

  // ---- health ----
  ENVPOOL_OPTION(healthy_reward).doc("reward of each step that ends healthy");
  ENVPOOL_OPTION(terminate_when_unhealthy).doc("end the episode when unhealthy");
  ENVPOOL_OPTION(healthy_z_range)
      .doc("(low, high), exclusive but for Ant: heights of the torso that are healthy");
  ENVPOOL_OPTION(healthy_angle_range)
      .doc("(low, high), exclusive: angles of the torso that are healthy");
  ENVPOOL_OPTION(healthy_state_range)
      .doc("(low, high), exclusive: values of all other positions and velocities that are healthy");

  // ---- observations ----
  ENVPOOL_OPTION(exclude_current_positions_from_observation)
      .shapes_spec()
      .doc("leave out the place on the ground, so that walking looks alike everywhere");
  ENVPOOL_OPTION(include_cinert_in_observation)
      .shapes_spec()
      .doc("observe the bodies' inertia about the centre of mass");
  ENVPOOL_OPTION(include_cvel_in_observation)
      .shapes_spec()
      .doc("observe the bodies' velocities about the centre of mass");
  ENVPOOL_OPTION(include_qfrc_actuator_in_observation)
      .shapes_spec()
      .doc("observe the forces of the actuators");
  ENVPOOL_OPTION(include_cfrc_ext_in_observation)
      .shapes_spec()
      .doc("observe the contact forces on the bodies");
  ENVPOOL_OPTION(from_pixels).shapes_spec().doc("observe pictures: RGB, height x width x 3");

  // ---- pictures ----
  ENVPOOL_OPTION(width).range(1, 16384).unit("px").shapes_spec().doc("of pictures");
  ENVPOOL_OPTION(height).range(1, 16384).unit("px").shapes_spec().doc("of pictures");
  ENVPOOL_OPTION(camera_id)
      .min(-1)  // the most is the model's to say: check_camera()
      .doc("the model's camera that takes pictures; -1: a free one");
  ENVPOOL_OPTION(camera_name).doc("that camera by name; empty: by camera_id");
  ENVPOOL_OPTION(default_camera_config)
      .doc("a free camera's distance, azimuth, elevation and lookat");
  ENVPOOL_OPTION(visual_options)
      .doc("what pictures show, by number of the mjtVisFlag: {\"14\": true}");
  ENVPOOL_OPTION(max_geom).range(1, 1000000).doc("things in a picture, at most");
#undef ENVPOOL_OPTION
}

}  // namespace gymnasium
