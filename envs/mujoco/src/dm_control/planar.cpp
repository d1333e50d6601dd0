// dm_control/planar.cpp - cheetah, hopper, walker: runners in a plane.
#include "dm_control/suite.hpp"

namespace dm_control {
namespace {

// ---- cheetah ----

class Cheetah : public Task {
 public:
  explicit Cheetah(Physics& p) : speed_(sensor(p, "torso_subtreelinvel")) {}

  void begin(Physics& p, Random& random) override {
    const mjModel& m = p.model();
    for (int i = 0; i < m.njnt; ++i)
      if (m.jnt_limited[i] != 0)
        position(p, i) = random.uniform(m.jnt_range[2 * i], m.jnt_range[2 * i + 1]);
    p.step(200);  // comes to rest
    p.data().time = 0;
  }
  void observe(const Physics& p, Observer& to) const override {
    to.put("position", p.qpos().subspan(1));
    to.put("velocity", p.qvel());
  }
  double reward(const Physics& p) const override {
    return tolerance(reading(p, speed_)[0], {10, kInfinity}, 10, Sigmoid::kLinear, 0);
  }

 private:
  const int speed_;
};

// ---- hopper ----

class Hopper : public Task {
 public:
  Hopper(Physics& p, bool hopping)
      : hopping_(hopping),
        torso_(body(p, "torso")),
        foot_(body(p, "foot")),
        speed_(sensor(p, "torso_subtreelinvel")),
        touch_{sensor(p, "touch_toe"), sensor(p, "touch_heel")} {}

  void begin(Physics& p, Random& random) override { randomize_joints(p, random); }
  void observe(const Physics& p, Observer& to) const override {
    to.put("position", p.qpos().subspan(1));
    to.put("velocity", p.qvel());
    to.put("touch", {std::log1p(reading(p, touch_[0])[0]), std::log1p(reading(p, touch_[1])[0])});
  }
  double reward(const Physics& p) const override {
    const double height = p.data().xipos[3 * torso_ + 2] - p.data().xipos[3 * foot_ + 2];
    const double standing = tolerance(height, {0.6, 2});
    if (hopping_)
      return standing * tolerance(reading(p, speed_)[0], {2, kInfinity}, 1, Sigmoid::kLinear, 0.5);
    return standing * ((small_control(p) + 4) / 5);
  }

 private:
  const bool hopping_;
  const int torso_, foot_, speed_, touch_[2];
};

// ---- walker ----

class Walker : public Task {
 public:
  Walker(Physics& p, int speed)
      : speed_(speed), torso_(body(p, "torso")), velocity_(sensor(p, "torso_subtreelinvel")) {}

  void begin(Physics& p, Random& random) override { randomize_joints(p, random); }
  void observe(const Physics& p, Observer& to) const override {
    std::vector<double> orientations;
    for (int i = 1; i < p.model().nbody; ++i) {
      orientations.push_back(p.data().xmat[9 * i + kXX]);
      orientations.push_back(p.data().xmat[9 * i + kXZ]);
    }
    to.put("orientations", orientations);
    to.put("height", p.data().xpos[3 * torso_ + 2]);
    to.put("velocity", p.qvel());
  }
  double reward(const Physics& p) const override {
    const double standing = tolerance(p.data().xpos[3 * torso_ + 2], {1.2, kInfinity}, 1.2 / 2);
    const double upright = (1 + p.data().xmat[9 * torso_ + kZZ]) / 2;
    const double stand = (3 * standing + upright) / 4;
    if (speed_ == 0) return stand;
    const double move =
        tolerance(reading(p, velocity_)[0], {speed_, kInfinity}, speed_ / 2, Sigmoid::kLinear, 0.5);
    return stand * (5 * move + 1) / 6;
  }

 private:
  const double speed_;
  const int torso_, velocity_;
};

}  // namespace

const std::array<Entry, 1> cheetah = {{
    {"CheetahRun-v1", "cheetah: run", 10, 0, "cheetah.xml", nullptr, make<Cheetah>},
}};

const std::array<Entry, 2> hopper = {{
    {"HopperHop-v1", "hopper: hop forward on one leg", 20, 0.02, "hopper.xml", nullptr,
     make<Hopper, true>},
    {"HopperStand-v1", "hopper: stand on one leg", 20, 0.02, "hopper.xml", nullptr,
     make<Hopper, false>},
}};

const std::array<Entry, 3> walker = {{
    {"WalkerRun-v1", "walker: run", 25, 0.025, "walker.xml", nullptr, make<Walker, 8>},
    {"WalkerStand-v1", "walker: stand", 25, 0.025, "walker.xml", nullptr, make<Walker, 0>},
    {"WalkerWalk-v1", "walker: walk", 25, 0.025, "walker.xml", nullptr, make<Walker, 1>},
}};

}  // namespace dm_control
