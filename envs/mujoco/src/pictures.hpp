// pictures.hpp - options about pictures, for tasks that have none of their own from elsewhere.
#pragma once

#include <cstdint>
#include <envpool/env.hpp>
#include <string>

#include "render.hpp"

namespace mujoco {

struct PictureConfig {
  bool from_pixels = false;
  std::int64_t width = 320, height = 240;
  std::int64_t camera_id = -1;
};

template <class C>
void add_picture_options(envpool::options<C>& o) {
  o.add("from_pixels", &C::from_pixels)
      .shapes_spec()
      .doc("observe pictures alone, as \"pixels\": RGB, height x width x 3");
  o.add("width", &C::width).range(1, 16384).unit("px").shapes_spec().doc("of pictures");
  o.add("height", &C::height).range(1, 16384).unit("px").shapes_spec().doc("of pictures");
  o.add("camera_id", &C::camera_id)
      .min(-1)  // the most is the model's to say: check_camera()
      .doc("the model's camera that takes pictures; -1: a free one that sees all");
}

// Throws envpool::error (EP_E_ARGUMENT) if the model has no such camera.
inline void check_camera(const mjModel& model, std::int64_t camera_id) {
  if (camera_id >= model.ncam)
    throw envpool::error(EP_E_ARGUMENT, "camera_id=" + std::to_string(camera_id) +
                                            ": the model has " + std::to_string(model.ncam) +
                                            " cameras");
}

inline View view_of(const mjModel& model, const PictureConfig& c) {
  View view;
  view.width = static_cast<std::uint32_t>(c.width);
  view.height = static_cast<std::uint32_t>(c.height);
  view.camera = static_cast<int>(c.camera_id);
  view.free = free_camera(model);
  return view;
}

// The field of an observation from pixels.
inline envpool::obs<std::uint8_t[]> add_pixels(envpool::spec& s, const PictureConfig& c) {
  return s.obs<std::uint8_t[]>("pixels", {c.height, c.width, 3}).within(0, 255).image(EP_HWC);
}

}  // namespace mujoco
