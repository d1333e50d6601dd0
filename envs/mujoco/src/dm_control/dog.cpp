// dm_control/dog.cpp - dog: stands, walks, trots, runs and fetches a ball.
#include "dm_control/suite.hpp"

namespace dm_control {
namespace {

class Dog : public Task {
 public:
  explicit Dog(Physics& p)
      : torso_(body(p, "torso")),
        pelvis_(body(p, "pelvis")),
        skull_(body(p, "skull")),
        root_(joint(p, "root")),
        velocity_(sensor(p, "torso_linvel")) {
    const mjModel& m = p.model();
    for (int i = 0; i < m.njnt; ++i)
      if (m.jnt_type[i] == mjJNT_HINGE) hinges_.push_back(i);
    for (const char* name : {"accelerometer", "velocimeter", "gyro"})
      inertial_.push_back(sensor(p, name));
    for (const char* name : {"foot_L", "foot_R", "hand_L", "hand_R"})
      feet_.push_back(sensor(p, name));
    for (const char* name : {"palm_L", "palm_R", "sole_L", "sole_R"})
      touch_.push_back(sensor(p, name));
    memory.resize(2);
  }

  void begin(Physics& p, Random& random) override {
    // memory: the heights of torso and pelvis that count as standing, from the initial pose.
    memory = {0.9 * height(p, torso_), 0.9 * height(p, pelvis_)};
    const double azimuth = random.uniform(0, 2 * std::numbers::pi);
    double* const rotation = &position(p, root_) + 3;
    rotation[0] = std::cos(azimuth / 2);
    rotation[1] = rotation[2] = 0;
    rotation[3] = std::sin(azimuth / 2);
    for (const std::size_t i : {0, 1, 5}) p.qvel()[i] = 2 * random.normal();
    for (int i = 0; i < p.model().na; ++i) {
      const double* range = p.model().actuator_ctrlrange + 2 * i;
      p.data().act[i] = random.uniform(range[0], range[1]);
    }
  }
  void observe(const Physics& p, Observer& to) const override {
    std::vector<double> angles, velocities, projections;
    for (const int j : hinges_) angles.push_back(position(p, j));
    for (const int j : hinges_) velocities.push_back(velocity(p, j));
    for (const int id : {skull_, torso_, pelvis_})
      for (const int k : {kZX, kZY, kZZ}) projections.push_back(p.data().xmat[9 * id + k]);
    to.put("joint_angles", angles);
    to.put("joint_velocites", velocities);  // so spelt
    to.put("torso_pelvis_height", {height(p, torso_), height(p, pelvis_)});
    to.put("z_projection", projections);
    to.put("torso_com_velocity", com_velocity(p));
    to.put("inertial_sensors", readings(p, inertial_));
    to.put("foot_forces", readings(p, feet_));
    to.put("touch_sensors", readings(p, touch_));
    to.put("actuator_state",
           std::span<const double>(p.data().act, static_cast<std::size_t>(p.model().na)));
  }
  // The product of the reward's factors.
  double reward(const Physics& p) const override {
    double all = tolerance(height(p, torso_), {memory[0], kInfinity}, memory[0]);
    all *= tolerance(height(p, pelvis_), {memory[1], kInfinity}, memory[1]);
    const double least_cosine = std::cos(30 * (std::numbers::pi / 180));
    for (const int id : {skull_, torso_, pelvis_})
      all *= tolerance(p.data().xmat[9 * id + kZZ], {least_cosine, kInfinity}, least_cosine + 1,
                       Sigmoid::kLinear, 0);
    double touch = 0;
    for (const double x : readings(p, touch_)) touch += x;
    const double weight = -p.model().opt.gravity[2] * p.model().body_subtreemass[torso_];
    return all * tolerance(touch, {weight, kInfinity}, weight, Sigmoid::kLinear, 0.9);
  }

 protected:
  static double height(const Physics& p, int id) { return p.data().xpos[3 * id + 2]; }
  // Of the centre of mass, in the frame of the torso.
  Vector com_velocity(const Physics& p) const {
    const auto v = reading(p, velocity_);
    return in_frame({v[0], v[1], v[2]}, p.data().xmat + 9 * torso_);
  }

 private:
  const int torso_, pelvis_, skull_, root_, velocity_;
  std::vector<int> hinges_, inertial_, feet_, touch_;
};

class Move : public Dog {
 public:
  Move(Physics& p, int speed) : Dog(p), speed_(speed) {}
  double reward(const Physics& p) const override {
    const double forward = tolerance(com_velocity(p)[0], {speed_, 2 * speed_}, std::max(1., speed_),
                                     Sigmoid::kLinear, 0);
    return Dog::reward(p) * ((4 * forward + 1) / 5);
  }

 private:
  const double speed_;
};

class Fetch : public Dog {
 public:
  explicit Fetch(Physics& p)
      : Dog(p),
        ball_root_(joint(p, "ball_root")),
        ball_(geom(p, "ball")),
        target_(geom(p, "target")),
        floor_(geom(p, "floor")),
        head_(site(p, "head")),
        upper_bite_(site(p, "upper_bite")),
        lower_bite_(site(p, "lower_bite")) {}

  void begin(Physics& p, Random& random) override {
    Dog::begin(p, random);
    const double radius = 0.75 * p.model().geom_size[3 * floor_];
    const double azimuth = random.uniform(0, 2 * std::numbers::pi);
    double* const at = &position(p, ball_root_);
    at[0] = radius * std::sin(azimuth);
    at[1] = radius * std::cos(azimuth);
    at[2] = 0.05;
    // Thrown up to 3 metres high, roughly towards the middle.
    const double gravity = -p.model().opt.gravity[2];
    double* const v = p.data().qvel + p.model().jnt_dofadr[ball_root_];
    v[2] = std::sqrt(2 * gravity * random.uniform(0, 3));
    const double speed = random.uniform(0, 5);
    v[0] = speed * (-std::sin(azimuth) + 0.05 * random.normal());
    v[1] = speed * (-std::cos(azimuth) + 0.05 * random.normal());
  }
  void observe(const Physics& p, Observer& to) const override {
    Dog::observe(p, to);
    const mjData& d = p.data();
    const double *frame = d.site_xmat + 9 * head_, *head = d.site_xpos + 3 * head_;
    const Vector at = in_frame(minus(d.geom_xpos + 3 * ball_, head), frame);
    double own[6], its[6];  // angular, linear
    mujoco::lib().mj_objectVelocity(&p.model(), &d, mjOBJ_SITE, head_, own, 0);
    mujoco::lib().mj_objectVelocity(&p.model(), &d, mjOBJ_GEOM, ball_, its, 0);
    const Vector v = in_frame(minus(its + 3, own + 3), frame);
    to.put("ball_state", {at[0], at[1], at[2], v[0], v[1], v[2]});
    to.put("target_position", in_frame(minus(d.geom_xpos + 3 * target_, head), frame));
  }
  double reward(const Physics& p) const override {
    const mjModel& m = p.model();
    const double* ball = p.data().geom_xpos + 3 * ball_;
    const double to_mouth = 0.5 * (norm(minus(ball, p.data().site_xpos + 3 * upper_bite_)) +
                                   norm(minus(ball, p.data().site_xpos + 3 * lower_bite_)));
    const double to_target = norm(minus(ball, p.data().geom_xpos + 3 * target_));
    const double radius = m.geom_size[3 * target_];
    const double reach =
        tolerance(to_mouth, {0, m.site_size[3 * upper_bite_]}, 2, Sigmoid::kReciprocal);
    const double bring =
        tolerance(to_target, {0, radius}, m.geom_size[3 * floor_], Sigmoid::kReciprocal);
    const bool fetched = to_target < 2 * radius;  // let go of the ball then
    return Dog::reward(p) * (fetched ? 1 : (6 * reach + 1) / 7) * ((bring + 1) / 2);
  }

 private:
  const int ball_root_, ball_, target_, floor_, head_, upper_bite_, lower_bite_;
};

// ---- models ----

template <int Floor, bool Ball>
mujoco::Edit yard() {
  return {"floor of " + std::to_string(Floor) + (Ball ? ", ball" : ""), [](mjSpec* spec) {
            const auto& mj = mujoco::lib();
            mjsGeom* const floor = mj.mjs_asGeom(mj.mjs_findElement(spec, mjOBJ_GEOM, "floor"));
            floor->size[0] = floor->size[1] = Floor;
            floor->size[2] = 0.1;
            if (Ball) return;
            const auto remove = [&](mjtObj type, const char* name) {
              mj.mjs_delete(spec, mj.mjs_findElement(spec, type, name));
            };
            remove(mjOBJ_BODY, "ball");
            remove(mjOBJ_GEOM, "target");
            for (const char* camera : {"ball", "head"}) remove(mjOBJ_CAMERA, camera);
            for (const char* wall : {"wall_px", "wall_nx", "wall_py", "wall_ny"})
              remove(mjOBJ_GEOM, wall);
          }};
}

}  // namespace

const std::array<Entry, 5> dog = {{
    {"DogFetch-v1", "dog: fetch a ball", 15, 0.015, "dog.xml", yard<10, true>, make<Fetch>},
    {"DogRun-v1", "dog: run", 15, 0.015, "dog.xml", yard<135, false>, make<Move, 9>},
    {"DogStand-v1", "dog: stand", 15, 0.015, "dog.xml", yard<15, false>, make<Dog>},
    {"DogTrot-v1", "dog: trot", 15, 0.015, "dog.xml", yard<45, false>, make<Move, 3>},
    {"DogWalk-v1", "dog: walk", 15, 0.015, "dog.xml", yard<15, false>, make<Move, 1>},
}};

}  // namespace dm_control
