// dm_control/swimming.cpp - fish, swimmer.
#include <cstdio>

#include "dm_control/suite.hpp"

namespace dm_control {
namespace {

// ---- fish ----

class Fish : public Task {
 public:
  explicit Fish(Physics& p) : root_(joint(p, "root")), torso_(body(p, "torso")) {
    const char* const names[] = {"tail1",          "tail_twist",   "tail2",        "finright_roll",
                                 "finright_pitch", "finleft_roll", "finleft_pitch"};
    for (std::size_t i = 0; i < joints_.size(); ++i) joints_[i] = joint(p, names[i]);
  }

  void begin(Physics& p, Random& random) override {
    random_rotation(&position(p, root_) + 3, random);
    for (const int j : joints_) position(p, j) = random.uniform(-0.2, 0.2);
  }
  void observe(const Physics& p, Observer& to) const override {
    std::array<double, 7> angles;
    for (std::size_t i = 0; i < joints_.size(); ++i) angles[i] = position(p, joints_[i]);
    to.put("joint_angles", angles);
    to.put("upright", upright(p));
    if (const auto* v = target(p)) to.put("target", in_frame(to_target(p, *v), frame(p, *v)));
    to.put("velocity", p.qvel());
  }

 protected:
  struct Target {
    int mouth, geom;
  };
  double upright(const Physics& p) const { return p.data().xmat[9 * torso_ + kZZ]; }
  static Vector to_target(const Physics& p, const Target& t) {
    return minus(p.data().geom_xpos + 3 * t.geom, p.data().geom_xpos + 3 * t.mouth);
  }
  static const double* frame(const Physics& p, const Target& t) {
    return p.data().geom_xmat + 9 * t.mouth;
  }

 private:
  virtual const Target* target(const Physics&) const { return nullptr; }
  const int root_, torso_;
  std::array<int, 7> joints_;
};

class Upright : public Fish {
 public:
  explicit Upright(Physics& p) : Fish(p) {
    p.own(&mjModel::geom_rgba,
          4 * p.model().ngeom)[static_cast<std::size_t>(4 * geom(p, "target") + 3)] =
        0;  // no target to be seen
  }
  double reward(const Physics& p) const override { return tolerance(upright(p), {1, 1}, 1); }
};

class Swim : public Fish {
 public:
  explicit Swim(Physics& p)
      : Fish(p),
        target_{geom(p, "mouth"), geom(p, "target")},
        places_(p.own(&mjModel::geom_pos, 3 * p.model().ngeom)) {}

  void begin(Physics& p, Random& random) override {
    Fish::begin(p, random);
    double* const place = places_.data() + 3 * target_.geom;
    place[0] = random.uniform(-0.4, 0.4);
    place[1] = random.uniform(-0.4, 0.4);
    place[2] = random.uniform(0.1, 0.3);
  }
  double reward(const Physics& p) const override {
    const double* size = p.model().geom_size;
    const double radii = size[3 * target_.mouth] + size[3 * target_.geom];
    const double near =
        tolerance(norm(in_frame(to_target(p, target_), frame(p, target_))), {0, radii}, 2 * radii);
    return (7 * near + 0.5 * (upright(p) + 1)) / 8;
  }

 private:
  const Target* target(const Physics&) const override { return &target_; }
  const Target target_;
  const std::span<double> places_;
};

// ---- swimmer ----

class Swimmer : public Task {
 public:
  explicit Swimmer(Physics& p)
      : head_(body(p, "head")),
        nose_(geom(p, "nose")),
        target_(geom(p, "target")),
        light_(mujoco::find(p.model(), mjOBJ_LIGHT, "target_light")),
        places_(p.own(&mjModel::geom_pos, 3 * p.model().ngeom)),
        lights_(p.own(&mjModel::light_pos, 3 * p.model().nlight)) {}

  void begin(Physics& p, Random& random) override {
    randomize_joints(p, random);
    const double box = random.uniform(0, 1) < 0.2 ? 0.3 : 2;
    for (int k = 0; k < 2; ++k)
      places_[static_cast<std::size_t>(3 * target_ + k)] =
          lights_[static_cast<std::size_t>(3 * light_ + k)] = random.uniform(-box, box);
  }
  void observe(const Physics& p, Observer& to) const override {
    to.put("joints", p.qpos().subspan(3));
    to.put("to_target", to_target(p));
    // Of each segment: linear x and y, angular z.
    std::vector<double> velocities;
    for (int i = 12; i < p.model().nsensordata; i += 6)
      for (const int k : {0, 1, 5}) velocities.push_back(p.data().sensordata[i + k]);
    to.put("body_velocities", velocities);
  }
  double reward(const Physics& p) const override {
    const double size = p.model().geom_size[3 * target_];
    return tolerance(numpy::norm(to_target(p).data(), 2), {0, size}, 5 * size, Sigmoid::kLongTail);
  }

 private:
  std::array<double, 2> to_target(const Physics& p) const {
    const double* at = p.data().geom_xpos;
    const Vector v = in_frame(minus(at + 3 * target_, at + 3 * nose_), p.data().xmat + 9 * head_);
    return {v[0], v[1]};
  }
  const int head_, nose_, target_, light_;
  const std::span<double> places_, lights_;
};

template <int Links>
void add_segments(mjSpec* spec) {
  const auto& mj = mujoco::lib();
  const mjsDefault* const plain = mj.mjs_getSpecDefault(spec);
  const mjsDefault* const segment = mj.mjs_findDefault(spec, "swimmer");
  mjsBody* parent = mj.mjs_findBody(spec, "head");
  for (int i = 0; i < Links - 1; ++i) {
    char name[24], site_name[24];
    const auto named = [&](const char* kind) {
      std::snprintf(name, sizeof name, "%s_%d", kind, i);
      return name;
    };
    parent = mj.mjs_addBody(parent, segment);
    parent->pos[1] = 0.1;
    mj.mjs_setName(parent->element, named("segment"));
    for (const char* kind : {"visual", "inertial"})
      mj.mjs_setName(mj.mjs_addGeom(parent, mj.mjs_findDefault(spec, kind))->element, named(kind));
    std::snprintf(site_name, sizeof site_name, "site_%d", i);
    mj.mjs_setName(mj.mjs_addSite(parent, segment)->element, site_name);
    mjsJoint* const hinge = mj.mjs_addJoint(parent, segment);
    hinge->range[0] = -360.0 / Links;
    hinge->range[1] = 360.0 / Links;
    mj.mjs_setName(hinge->element, named("joint"));
    mjsActuator* const motor = mj.mjs_addActuator(spec, plain);
    mj.mjs_setToMotor(motor);
    motor->trntype = mjTRN_JOINT;
    mj.mjs_setString(motor->target, name);
    mj.mjs_setName(motor->element, named("motor"));
    const auto add_sensor = [&](const char* kind, mjtSensor type) {
      mjsSensor* const added = mj.mjs_addSensor(spec);
      added->type = type;
      added->objtype = mjOBJ_SITE;
      mj.mjs_setString(added->objname, site_name);
      mj.mjs_setName(added->element, named(kind));
    };
    add_sensor("velocimeter", mjSENS_VELOCIMETER);
    add_sensor("gyro", mjSENS_GYRO);
  }
  for (const char* name : {"tracking1", "tracking2"}) {
    mjsCamera* const camera = mj.mjs_asCamera(mj.mjs_findElement(spec, mjOBJ_CAMERA, name));
    for (double& x : camera->pos) x *= Links / 6.0;
  }
}

}  // namespace

const std::array<Entry, 2> fish = {{
    {"FishSwim-v1", "fish: swim to a target", 40, 0.04, "fish.xml", nullptr, make<Swim>},
    {"FishUpright-v1", "fish: swim upright", 40, 0.04, "fish.xml", nullptr, make<Upright>},
}};

const std::array<Entry, 2> swimmer = {{
    {"SwimmerSwimmer6-v1", "swimmer: swim to a target with 6 links", 30, 0.03, "swimmer.xml",
     [] { return mujoco::Edit{"6 links", add_segments<6>}; }, make<Swimmer>},
    {"SwimmerSwimmer15-v1", "swimmer: swim to a target with 15 links", 30, 0.03, "swimmer.xml",
     [] { return mujoco::Edit{"15 links", add_segments<15>}; }, make<Swimmer>},
}};

}  // namespace dm_control
