#include "dm_control/task.hpp"

namespace dm_control {

void random_rotation(double* quaternion, Random& random) {
  for (int i = 0; i < 4; ++i) quaternion[i] = random.normal();
  const double length = numpy::norm(quaternion, 4);
  for (int i = 0; i < 4; ++i) quaternion[i] /= length;
}

void randomize_joints(Physics& p, Random& random) {
  const mjModel& m = p.model();
  for (int i = 0; i < m.njnt; ++i) {
    double* const at = p.data().qpos + m.jnt_qposadr[i];
    const double low = m.jnt_range[2 * i], high = m.jnt_range[2 * i + 1];
    const bool limited = m.jnt_limited[i] != 0;
    switch (m.jnt_type[i]) {
      case mjJNT_HINGE:
        *at = limited ? random.uniform(low, high) : random.angle();
        break;
      case mjJNT_SLIDE:
        if (limited) *at = random.uniform(low, high);
        break;
      case mjJNT_BALL:
        if (limited) {
          Vector axis = {random.normal(), random.normal(), random.normal()};
          const double length = norm(axis);
          for (double& x : axis) x /= length;
          mujoco::lib().mju_axisAngle2Quat(at, axis.data(), random.uniform(0, 1) * high);
        } else {
          random_rotation(at, random);
        }
        break;
      case mjJNT_FREE:
        if (!limited) {
          for (int k = 3; k < 7; ++k) at[k] = random.uniform(0, 1);
          const double length = numpy::norm(at + 3, 4);
          for (int k = 3; k < 7; ++k) at[k] /= length;
        }
        break;
    }
  }
}

}  // namespace dm_control
