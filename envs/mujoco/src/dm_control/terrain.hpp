// dm_control/terrain.hpp - the bowl that the quadruped is to climb out of.
#pragma once

#include "random.hpp"

namespace dm_control {

// Fills `resolution` x `resolution` heights: a bowl, times random bumps of about 2 metres on a
// terrain of `metres` x `metres`, made smooth by cubic splines as scipy.ndimage.zoom does.
void draw_bowl(float* heights, int resolution, double metres, mujoco::Random& random);

}  // namespace dm_control
