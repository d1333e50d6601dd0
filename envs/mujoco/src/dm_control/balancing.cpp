// dm_control/balancing.cpp - acrobot, cartpole, pendulum: poles to swing up and balance; lqr.
#include <cstdio>

#include "dm_control/suite.hpp"

namespace dm_control {
namespace {

// ---- acrobot ----

class Acrobot : public Task {
 public:
  Acrobot(Physics& p, bool sparse)
      : sparse_(sparse),
        joints_{joint(p, "shoulder"), joint(p, "elbow")},
        arms_{body(p, "upper_arm"), body(p, "lower_arm")},
        tip_(site(p, "tip")),
        target_(site(p, "target")) {}

  void begin(Physics& p, Random& random) override {
    for (const int j : joints_) position(p, j) = random.angle();
  }
  void observe(const Physics& p, Observer& to) const override {
    const double *upper = p.data().xmat + 9 * arms_[0], *lower = p.data().xmat + 9 * arms_[1];
    to.put("orientations", {upper[kXZ], lower[kXZ], upper[kZZ], lower[kZZ]});
    to.put("velocity", p.qvel());
  }
  double reward(const Physics& p) const override {
    const double* at = p.data().site_xpos;
    return tolerance(norm(minus(at + 3 * target_, at + 3 * tip_)),
                     {0, p.model().site_size[3 * target_]}, sparse_ ? 0 : 1);
  }

 private:
  const bool sparse_;
  const int joints_[2], arms_[2], tip_, target_;
};

// ---- cartpole ----

struct PoleTask {
  bool swing_up, sparse;
};

class Cartpole : public Task {
 public:
  Cartpole(Physics& p, PoleTask which)
      : which_(which), slider_(joint(p, "slider")), hinge_(joint(p, "hinge_1")) {}

  void begin(Physics& p, Random& random) override {
    const auto qpos = p.qpos();
    if (which_.swing_up) {
      position(p, slider_) = 0.01 * random.normal();
      position(p, hinge_) = std::numbers::pi + 0.01 * random.normal();
      for (double& x : qpos.subspan(2)) x = 0.1 * random.normal();
    } else {
      position(p, slider_) = random.uniform(-0.1, 0.1);
      for (double& x : qpos.subspan(1)) x = random.uniform(-0.034, 0.034);
    }
    for (double& x : p.qvel()) x = 0.01 * random.normal();
  }
  void observe(const Physics& p, Observer& to) const override {
    std::vector<double> at = {position(p, slider_)};
    for (int i = 2; i < p.model().nbody; ++i) {
      at.push_back(p.data().xmat[9 * i + kZZ]);
      at.push_back(p.data().xmat[9 * i + kXZ]);
    }
    to.put("position", at);
    to.put("velocity", p.qvel());
  }
  double reward(const Physics& p) const override {
    std::vector<double> cosines;
    for (int i = 2; i < p.model().nbody; ++i) cosines.push_back(p.data().xmat[9 * i + kZZ]);
    const double cart = position(p, slider_);
    if (which_.sparse) {
      double all = tolerance(cart, {-0.25, 0.25});
      for (const double c : cosines) all *= tolerance(c, {0.995, 1});
      return all;
    }
    const double upright = mean(cosines, [](double c) { return (c + 1) / 2; });
    const double centered = (1 + tolerance(cart, {}, 2)) / 2;
    const double control = (4 + tolerance(p.ctrl()[0], {}, 1, Sigmoid::kQuadratic, 0)) / 5;
    double slow = 1;
    for (const double v : p.qvel().subspan(1)) slow = std::min(slow, tolerance(v, {}, 5));
    return upright * control * ((1 + slow) / 2) * centered;
  }

 private:
  const PoleTask which_;
  const int slider_, hinge_;
};

template <int Poles>
void add_poles(mjSpec* spec) {
  const auto& mj = mujoco::lib();
  const mjsDefault* const pole = mj.mjs_findDefault(spec, "pole");
  mjsBody* parent = mj.mjs_findBody(spec, "pole_1");
  for (int i = 2; i <= Poles; ++i) {
    char name[16];
    parent = mj.mjs_addBody(parent, pole);
    parent->pos[2] = 1;
    std::snprintf(name, sizeof name, "pole_%d", i);
    mj.mjs_setName(parent->element, name);
    mj.mjs_setName(mj.mjs_addGeom(parent, pole)->element, name);
    std::snprintf(name, sizeof name, "hinge_%d", i);
    mj.mjs_setName(mj.mjs_addJoint(parent, pole)->element, name);
  }
  mj.mjs_asGeom(mj.mjs_findElement(spec, mjOBJ_GEOM, "floor"))->pos[2] = 1 - Poles - 0.05;
  mj.mjs_asCamera(mj.mjs_findElement(spec, mjOBJ_CAMERA, "fixed"))->pos[1] = -1 - 2 * Poles;
  mj.mjs_asCamera(mj.mjs_findElement(spec, mjOBJ_CAMERA, "lookatcart"))->pos[1] = -2 * Poles;
}

// ---- pendulum ----

class Pendulum : public Task {
 public:
  explicit Pendulum(Physics& p) : hinge_(joint(p, "hinge")), pole_(body(p, "pole")) {}

  void begin(Physics& p, Random& random) override { position(p, hinge_) = random.angle(); }
  void observe(const Physics& p, Observer& to) const override {
    const double* frame = p.data().xmat + 9 * pole_;
    to.put("orientation", {frame[kZZ], frame[kXZ]});
    to.put("velocity", {velocity(p, hinge_)});
  }
  double reward(const Physics& p) const override {
    const double within_8_degrees = std::cos(8 * (std::numbers::pi / 180));
    return tolerance(p.data().xmat[9 * pole_ + kZZ], {within_8_degrees, 1});
  }

 private:
  const int hinge_, pole_;
};

// ---- lqr ----

// Bodies on springs of random stiffness, which are drawn when the env is seeded: dm_control draws
// them when it makes the env.
class Lqr : public Task {
 public:
  explicit Lqr(Physics& p) : stiffness_(p.own(&mjModel::jnt_stiffness, p.model().njnt)) {}

  void seeded(Random& random) override {
    for (double& k : stiffness_) k = random.uniform(15, 25);
  }
  void begin(Physics& p, Random& random) override {
    const auto qpos = p.qpos();
    for (double& x : qpos) x = random.normal();
    const double length = numpy::norm(qpos.data(), qpos.size());
    for (double& x : qpos) x *= std::sqrt(2) / length;
  }
  void observe(const Physics& p, Observer& to) const override {
    to.put("position", p.qpos());
    to.put("velocity", p.qvel());
  }
  double reward(const Physics& p) const override {
    const double state = 0.5 * squares(p.qpos()), control = 0.5 * squares(p.ctrl());
    return 1 - (state + control * 0.1);
  }
  bool finished(const Physics& p) const override {
    return std::sqrt(squares(p.qpos()) + squares(p.qvel())) < 1e-6;
  }

 private:
  static double squares(std::span<const double> x) {
    double all = 0;
    for (const double v : x) all += v * v;
    return all;
  }
  const std::span<double> stiffness_;
};

template <int Bodies, int Actuators>
void add_springs(mjSpec* spec) {
  const auto& mj = mujoco::lib();
  const mjsDefault* const plain = mj.mjs_getSpecDefault(spec);
  mjsBody* parent = mj.mjs_findBody(spec, "world");
  for (int i = 0; i < Bodies; ++i) {
    char name[16], next[16];
    parent = mj.mjs_addBody(parent, plain);
    parent->pos[0] = 0.25;
    parent->pos[2] = i == 0 ? 0.1 : 0;
    std::snprintf(name, sizeof name, "body_%d", i);
    mj.mjs_setName(parent->element, name);
    std::snprintf(name, sizeof name, "geom_%d", i);
    mj.mjs_setName(mj.mjs_addGeom(parent, plain)->element, name);
    std::snprintf(name, sizeof name, "joint_%d", i);
    mjsJoint* const spring = mj.mjs_addJoint(parent, plain);
    spring->stiffness[0] = 20;  // each env has its own
    mj.mjs_setName(spring->element, name);
    if (i < Actuators) {
      mjsActuator* const motor = mj.mjs_addActuator(spec, plain);
      mj.mjs_setToMotor(motor);
      motor->trntype = mjTRN_JOINT;
      mj.mjs_setString(motor->target, name);
      std::snprintf(name, sizeof name, "motor_%d", i);
      mj.mjs_setName(motor->element, name);
    }
    std::snprintf(name, sizeof name, "site_%d", i);
    mj.mjs_setName(mj.mjs_addSite(parent, plain)->element, name);
    if (i < Bodies - 1) {
      mjsTendon* const tendon = mj.mjs_addTendon(spec, plain);
      std::snprintf(next, sizeof next, "site_%d", i + 1);
      mj.mjs_wrapSite(tendon, name);
      mj.mjs_wrapSite(tendon, next);
      std::snprintf(name, sizeof name, "tendon_%d", i);
      mj.mjs_setName(tendon->element, name);
    }
  }
}

}  // namespace

const std::array<Entry, 2> acrobot = {{
    {"AcrobotSwingup-v1", "acrobot: swing up a two-link pole", 10, 0, "acrobot.xml", nullptr,
     make<Acrobot, false>},
    {"AcrobotSwingupSparse-v1", "acrobot: the same, sparsely rewarded", 10, 0, "acrobot.xml",
     nullptr, make<Acrobot, true>},
}};

const std::array<Entry, 6> cartpole = {{
    {"CartpoleBalance-v1", "cartpole: balance a pole on a cart", 10, 0, "cartpole.xml", nullptr,
     make<Cartpole, PoleTask{false, false}>},
    {"CartpoleBalanceSparse-v1", "cartpole: the same, sparsely rewarded", 10, 0, "cartpole.xml",
     nullptr, make<Cartpole, PoleTask{false, true}>},
    {"CartpoleSwingup-v1", "cartpole: swing the pole up", 10, 0, "cartpole.xml", nullptr,
     make<Cartpole, PoleTask{true, false}>},
    {"CartpoleSwingupSparse-v1", "cartpole: the same, sparsely rewarded", 10, 0, "cartpole.xml",
     nullptr, make<Cartpole, PoleTask{true, true}>},
    {"CartpoleThreePoles-v1", "cartpole: swing up a chain of three poles", 10, 0, "cartpole.xml",
     [] { return mujoco::Edit{"3 poles", add_poles<3>}; }, make<Cartpole, PoleTask{true, false}>},
    {"CartpoleTwoPoles-v1", "cartpole: swing up a chain of two poles", 10, 0, "cartpole.xml",
     [] { return mujoco::Edit{"2 poles", add_poles<2>}; }, make<Cartpole, PoleTask{true, false}>},
}};

const std::array<Entry, 1> pendulum = {{
    {"PendulumSwingup-v1", "pendulum: swing up a pole whose motor is weak", 20, 0, "pendulum.xml",
     nullptr, make<Pendulum>},
}};

const std::array<Entry, 2> lqr = {{
    {"LqrLqr21-v1", "lqr: bring 2 bodies on springs to rest by 1 motor", kInfinity, 0, "lqr.xml",
     [] { return mujoco::Edit{"2 bodies, 1 motor", add_springs<2, 1>}; }, make<Lqr>},
    {"LqrLqr62-v1", "lqr: bring 6 bodies on springs to rest by 2 motors", kInfinity, 0, "lqr.xml",
     [] { return mujoco::Edit{"6 bodies, 2 motors", add_springs<6, 2>}; }, make<Lqr>},
}};

}  // namespace dm_control
