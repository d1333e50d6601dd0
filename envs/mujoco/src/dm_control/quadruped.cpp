// dm_control/quadruped.cpp - quadruped: a four-legged robot that walks, climbs out of a bowl and
// fetches a ball.
#include "dm_control/suite.hpp"
#include "dm_control/terrain.hpp"

namespace dm_control {
namespace {

class Quadruped : public Task {
 public:
  explicit Quadruped(Physics& p)
      : torso_(body(p, "torso")), root_(joint(p, "root")), velocity_(sensor(p, "velocimeter")) {
    const mjModel& m = p.model();
    for (int i = 0; i < m.njnt; ++i)
      if (m.jnt_type[i] == mjJNT_HINGE) hinges_.push_back(i);
    for (int i = 0; i < m.nsensor; ++i) {
      switch (m.sensor_type[i]) {
        case mjSENS_GYRO:
        case mjSENS_ACCELEROMETER:
          imu_.push_back(i);
          break;
        case mjSENS_FORCE:
        case mjSENS_TORQUE:
          forces_.push_back(i);
          break;
        case mjSENS_RANGEFINDER:
          rangefinders_.push_back(i);
          break;
        default:
          break;
      }
    }
  }

  void observe(const Physics& p, Observer& to) const override {
    std::vector<double> state;
    for (const int j : hinges_) state.push_back(position(p, j));
    for (const int j : hinges_) state.push_back(velocity(p, j));
    state.insert(state.end(), p.data().act, p.data().act + p.model().na);
    std::vector<double> forces = readings(p, forces_);
    for (double& x : forces) x = std::asinh(x);
    to.put("egocentric_state", state);
    to.put("torso_velocity", reading(p, velocity_));
    to.put("torso_upright", upright(p));
    to.put("imu", readings(p, imu_));
    to.put("force_torque", forces);
  }

 protected:
  double upright(const Physics& p) const { return p.data().xmat[9 * torso_ + kZZ]; }
  double upright_reward(const Physics& p, double tolerated_degrees = 0) const {
    const double cosine = std::cos(tolerated_degrees * (std::numbers::pi / 180));
    return tolerance(upright(p), {cosine, kInfinity}, 1 + cosine, Sigmoid::kLinear, 0);
  }
  const double* torso_frame(const Physics& p) const { return p.data().xmat + 9 * torso_; }
  const double* torso_place(const Physics& p) const { return p.data().xpos + 3 * torso_; }
  // Where the free joint's velocities begin.
  static const double* velocities(const Physics& p, int free_joint) {
    return p.data().qvel + p.model().jnt_dofadr[free_joint];
  }
  // Raises the robot from the floor until it touches nothing.
  void place(Physics& p, const std::array<double, 4>& rotation, double x, double y) const {
    double height = 0;
    place_without_contact(p, [&] {
      p.reset();
      double* const at = &position(p, root_);
      at[0] = x;
      at[1] = y;
      at[2] = height;
      std::copy(rotation.begin(), rotation.end(), at + 3);
      height += 0.01;
    });
  }
  void place_anyhow(Physics& p, Random& random) const {
    std::array<double, 4> rotation;
    random_rotation(rotation.data(), random);
    place(p, rotation, 0, 0);
  }

  const int torso_, root_, velocity_;
  std::vector<int> hinges_, imu_, forces_, rangefinders_;
};

// Speed in tenths of a metre per second.
class Move : public Quadruped {
 public:
  Move(Physics& p, int tenths) : Quadruped(p), speed_(tenths / 10.) {}
  void begin(Physics& p, Random& random) override { place_anyhow(p, random); }
  double reward(const Physics& p) const override {
    const double move =
        tolerance(reading(p, velocity_)[0], {speed_, kInfinity}, speed_, Sigmoid::kLinear, 0.5);
    return upright_reward(p) * move;
  }

 private:
  const double speed_;
};

class Escape : public Quadruped {
 public:
  explicit Escape(Physics& p)
      : Quadruped(p),
        workspace_(site(p, "workspace")),
        terrain_(p.own(&mjModel::hfield_data, p.model().nhfielddata)) {}

  void begin(Physics& p, Random& random) override {
    const mjModel& m = p.model();
    draw_bowl(terrain_.data() + m.hfield_adr[0], m.hfield_nrow[0], 2 * m.hfield_size[0], random);
    place_anyhow(p, random);
  }
  void observe(const Physics& p, Observer& to) const override {
    Quadruped::observe(p, to);
    const double* at = torso_place(p);
    Vector origin = in_frame({at[0], at[1], at[2]}, torso_frame(p));
    for (double& x : origin) x = -x;
    std::vector<double> ranges = readings(p, rangefinders_);
    for (double& x : ranges) x = x == -1 ? 1 : std::tanh(x);  // -1: nothing there
    to.put("origin", origin);
    to.put("rangefinder", ranges);
  }
  double reward(const Physics& p) const override {
    const double size = p.model().hfield_size[0];
    const double escaped = tolerance(numpy::norm(p.data().site_xpos + 3 * workspace_, 3),
                                     {size, kInfinity}, size, Sigmoid::kLinear, 0);
    return upright_reward(p, 20) * escaped;
  }

 private:
  const int workspace_;
  const std::span<float> terrain_;
};

class Fetch : public Quadruped {
 public:
  explicit Fetch(Physics& p)
      : Quadruped(p),
        floor_(geom(p, "floor")),
        ball_(body(p, "ball")),
        ball_geom_(geom(p, "ball")),
        ball_root_(joint(p, "ball_root")),
        workspace_(site(p, "workspace")),
        target_(site(p, "target")) {}

  void begin(Physics& p, Random& random) override {
    const double azimuth = random.uniform(0, 2 * std::numbers::pi);
    const double radius = 0.9 * p.model().geom_size[3 * floor_];
    const double x = random.uniform(-radius, radius), y = random.uniform(-radius, radius);
    place(p, {std::cos(azimuth / 2), 0, 0, std::sin(azimuth / 2)}, x, y);
    double* const ball = &position(p, ball_root_);
    ball[0] = random.uniform(-radius, radius);
    ball[1] = random.uniform(-radius, radius);
    ball[2] = 2;
    for (int k = 0; k < 2; ++k)
      p.data().qvel[p.model().jnt_dofadr[ball_root_] + k] = 5 * random.normal();
  }
  void observe(const Physics& p, Observer& to) const override {
    Quadruped::observe(p, to);
    const double *own = velocities(p, root_), *its = velocities(p, ball_root_);
    const Vector seen[] = {minus(p.data().xpos + 3 * ball_, torso_place(p)),
                           minus(its, own),
                           {its[3], its[4], its[5]}};
    std::vector<double> state;
    for (const Vector& v : seen)
      for (const double x : in_frame(v, torso_frame(p))) state.push_back(x);
    to.put("ball_state", state);
    to.put("target_position",
           in_frame(minus(p.data().site_xpos + 3 * target_, torso_place(p)), torso_frame(p)));
  }
  double reward(const Physics& p) const override {
    const mjModel& m = p.model();
    const double arena = m.geom_size[3 * floor_] * std::sqrt(2);
    const double reach = tolerance(to_ball(p, workspace_),
                                   {0, m.site_size[3 * workspace_] + m.geom_size[3 * ball_geom_]},
                                   arena, Sigmoid::kLinear, 0);
    const double fetch =
        tolerance(to_ball(p, target_), {0, m.site_size[3 * target_]}, arena, Sigmoid::kLinear, 0);
    return upright_reward(p) * (reach * (0.5 + 0.5 * fetch));
  }

 private:
  // Along the ground.
  double to_ball(const Physics& p, int site_id) const {
    return numpy::norm(minus(p.data().site_xpos + 3 * site_id, p.data().xpos + 3 * ball_).data(),
                       2);
  }
  const int floor_, ball_, ball_geom_, ball_root_, workspace_, target_;
};

// ---- models ----

void remove(mjSpec* spec, mjtObj type, const char* name) {
  const auto& mj = mujoco::lib();
  mj.mjs_delete(spec, mj.mjs_findElement(spec, type, name));
}

void set_floor(mjSpec* spec, double size) {
  const auto& mj = mujoco::lib();
  mjsGeom* const floor = mj.mjs_asGeom(mj.mjs_findElement(spec, mjOBJ_GEOM, "floor"));
  floor->size[0] = floor->size[1] = size;
  floor->size[2] = 0.5;
}

void remove_ball(mjSpec* spec) {
  for (const char* wall : {"wall_px", "wall_py", "wall_nx", "wall_ny"})
    remove(spec, mjOBJ_GEOM, wall);
  remove(spec, mjOBJ_BODY, "ball");
  remove(spec, mjOBJ_SITE, "target");
}

void remove_terrain(mjSpec* spec) {
  const auto& mj = mujoco::lib();
  remove(spec, mjOBJ_GEOM, "terrain");
  for (mjsElement* e = mj.mjs_firstElement(spec, mjOBJ_SENSOR); e != nullptr;) {
    mjsElement* const next = mj.mjs_nextElement(spec, e);
    if (mj.mjs_asSensor(e)->type == mjSENS_RANGEFINDER) mj.mjs_delete(spec, e);
    e = next;
  }
}

template <int Floor>
mujoco::Edit flat() {
  return {"flat, floor of " + std::to_string(Floor), [](mjSpec* spec) {
            set_floor(spec, Floor);
            remove_ball(spec);
            remove_terrain(spec);
          }};
}
mujoco::Edit bowl() {
  return {"bowl", [](mjSpec* spec) {
            set_floor(spec, 40);
            remove_ball(spec);
          }};
}
mujoco::Edit arena() { return {"arena", remove_terrain}; }

}  // namespace

const std::array<Entry, 4> quadruped = {{
    {"QuadrupedEscape-v1", "quadruped: climb out of a bowl", 20, 0.02, "quadruped.xml", bowl,
     make<Escape>},
    {"QuadrupedFetch-v1", "quadruped: bring a ball to a target", 20, 0.02, "quadruped.xml", arena,
     make<Fetch>},
    {"QuadrupedRun-v1", "quadruped: run", 20, 0.02, "quadruped.xml", flat<100>, make<Move, 50>},
    {"QuadrupedWalk-v1", "quadruped: walk", 20, 0.02, "quadruped.xml", flat<10>, make<Move, 5>},
}};

}  // namespace dm_control
