// render.hpp - pictures of a simulation.
#pragma once

#include <mujoco/mujoco.h>

#include <cstdint>
#include <envpool/env.hpp>
#include <string>
#include <utility>
#include <vector>

#include "physics.hpp"

namespace mujoco {

// What a task's pictures are like unless somebody says otherwise.
struct View {
  std::uint32_t width = 480, height = 480;
  int camera = -1;                          // of the model; -1: a free one, as below
  mjvCamera free{};                         // see free_camera()
  int max_geom = 1000;                      // things in a picture, at most
  std::vector<std::pair<int, bool>> flags;  // of mjvOption (mjtVisFlag) that are not as usual
};

// A free camera that sees the whole model, as MuJoCo's viewer has it.
mjvCamera free_camera(const mjModel& model);

// Changes a free camera as Gymnasium's default_camera_config says: distance, azimuth, elevation,
// lookat, each of them or none; other members of mjvCamera have no effect on a free one.
void configure(mjvCamera& camera, const std::string& json);

// Gymnasium's visual_options, {number of an mjtVisFlag: boolean}.
std::vector<std::pair<int, bool>> visual_flags(const std::string& json);

// The runtime's cameras: 0 is the view's own, k the model's camera k - 1.
// Fills in the view's size where none is told; throws envpool::error (EP_E_ARGUMENT) for a camera
// that the model does not have, or a size that is too large.
void measure(const mjModel& model, const View& view, ep_image& image);

// Draws into image.pixels (EP_RGB8). Each thread has an OpenGL context of its own, made at its
// first picture, and in it what it needs for the models that it drew lately; both go with the
// thread. [any thread; the simulation's turn]
void draw(const Physics& physics, const View& view, const ep_image& image);

// The same at the view's own size into `pixels`, rows of RGB.
void draw(const Physics& physics, const View& view, std::uint8_t* pixels);

}  // namespace mujoco
