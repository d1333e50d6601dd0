// dm_control/reaching.cpp - ball_in_cup, finger, point_mass, reacher: something is to get
// somewhere.
#include "dm_control/suite.hpp"

namespace dm_control {
namespace {

// ---- ball_in_cup ----

class BallInCup : public Task {
 public:
  explicit BallInCup(Physics& p)
      : x_(joint(p, "ball_x")),
        z_(joint(p, "ball_z")),
        ball_(body(p, "ball")),
        ball_geom_(geom(p, "ball")),
        target_(site(p, "target")) {}

  void begin(Physics& p, Random& random) override {
    place_without_contact(p, [&] {
      position(p, x_) = random.uniform(-0.2, 0.2);
      position(p, z_) = random.uniform(0.2, 0.5);
    });
  }
  void observe(const Physics& p, Observer& to) const override {
    to.put("position", p.qpos());
    to.put("velocity", p.qvel());
  }
  double reward(const Physics& p) const override {
    const Vector apart = minus(p.data().site_xpos + 3 * target_, p.data().xpos + 3 * ball_);
    const double* size = p.model().site_size + 3 * target_;
    const double ball = p.model().geom_size[3 * ball_geom_];
    return std::abs(apart[0]) < size[0] - ball && std::abs(apart[2]) < size[2] - ball;
  }

 private:
  const int x_, z_, ball_, ball_geom_, target_;
};

// ---- finger ----

class Finger : public Task {
 public:
  explicit Finger(Physics& p)
      : touch_{sensor(p, "touchtop"), sensor(p, "touchbottom")},
        angles_{sensor(p, "proximal"), sensor(p, "distal")},
        velocities_{sensor(p, "proximal_velocity"), sensor(p, "distal_velocity"),
                    sensor(p, "hinge_velocity")},
        tip_(sensor(p, "tip")),
        spinner_(sensor(p, "spinner")) {}

  void observe(const Physics& p, Observer& to) const override {
    const auto tip = from_spinner(p, tip_);
    to.put("position", {reading(p, angles_[0])[0], reading(p, angles_[1])[0], tip[0], tip[1]});
    to.put("velocity", readings(p, velocities_));
    to.put("touch", {std::log1p(reading(p, touch_[0])[0]), std::log1p(reading(p, touch_[1])[0])});
  }

 protected:
  // (x, z) of what a sensor sees, from the spinner's hinge.
  std::array<double, 2> from_spinner(const Physics& p, int id) const {
    const auto at = reading(p, id), from = reading(p, spinner_);
    return {at[0] - from[0], at[2] - from[2]};
  }
  double hinge_velocity(const Physics& p) const { return reading(p, velocities_[2])[0]; }
  static void draw_angles(Physics& p, Random& random) {
    place_without_contact(p, [&] { randomize_joints(p, random); });
  }

  const int touch_[2], angles_[2], velocities_[3], tip_, spinner_;
};

class Spin : public Finger {
 public:
  explicit Spin(Physics& p) : Finger(p) {
    p.own(&mjModel::dof_damping,
          p.model().nv)[static_cast<std::size_t>(p.model().jnt_dofadr[joint(p, "hinge")])] = 0.03;
    const auto colours = p.own(&mjModel::site_rgba, 4 * p.model().nsite);
    for (const char* hidden : {"target", "tip"})
      colours[static_cast<std::size_t>(4 * site(p, hidden) + 3)] = 0;
  }
  void begin(Physics& p, Random& random) override { draw_angles(p, random); }
  double reward(const Physics& p) const override { return hinge_velocity(p) <= -15; }
};

class Turn : public Finger {
 public:
  Turn(Physics& p, int radius_in_mm)
      : Finger(p),
        hinge_(joint(p, "hinge")),
        cap_(geom(p, "cap1")),
        site_(site(p, "target")),
        target_(sensor(p, "target")),
        places_(p.own(&mjModel::site_pos, 3 * p.model().nsite)) {
    p.own(&mjModel::site_size, 3 * p.model().nsite)[static_cast<std::size_t>(3 * site_)] =
        radius_in_mm / 1000.;
  }

  void begin(Physics& p, Random& random) override {
    const double angle = random.angle();
    const double *hinge = p.data().xanchor + 3 * hinge_, *cap = p.model().geom_size + 3 * cap_;
    const double radius = cap[0] + cap[1] + cap[2];
    double* const place = places_.data() + 3 * site_;
    place[0] = hinge[0] + radius * std::sin(angle);
    place[2] = hinge[2] + radius * std::cos(angle);
    draw_angles(p, random);
  }
  void observe(const Physics& p, Observer& to) const override {
    Finger::observe(p, to);
    to.put("target_position", from_spinner(p, target_));
    to.put("dist_to_target", distance(p));
  }
  double reward(const Physics& p) const override { return distance(p) <= 0; }

 private:
  double distance(const Physics& p) const {
    const auto target = from_spinner(p, target_), tip = from_spinner(p, tip_);
    const double apart[] = {target[0] - tip[0], target[1] - tip[1]};
    return numpy::norm(apart, 2) - p.model().site_size[3 * site_];
  }
  const int hinge_, cap_, site_, target_;
  const std::span<double> places_;
};

// ---- point_mass ----

class PointMass : public Task {
 public:
  PointMass(Physics& p, bool random_gains)
      : mass_(geom(p, "pointmass")), target_(geom(p, "target")) {
    if (random_gains) gains_ = p.own(&mjModel::wrap_prm, p.model().nwrap);
  }

  void begin(Physics& p, Random& random) override {
    randomize_joints(p, random);
    if (gains_.empty()) return;
    const auto direction = [&](double* to) {
      to[0] = random.normal();
      to[1] = random.normal();
      const double length = numpy::norm(to, 2);
      to[0] /= length;
      to[1] /= length;
    };
    direction(&gains_[0]);
    do direction(&gains_[2]);
    while (std::abs(gains_[0] * gains_[2] + gains_[1] * gains_[3]) > 0.9);
  }
  void observe(const Physics& p, Observer& to) const override {
    to.put("position", p.qpos());
    to.put("velocity", p.qvel());
  }
  double reward(const Physics& p) const override {
    const double* at = p.data().geom_xpos;
    const double size = p.model().geom_size[3 * target_];
    const double near = tolerance(norm(minus(at + 3 * target_, at + 3 * mass_)), {0, size}, size);
    return near * ((small_control(p) + 4) / 5);
  }

 private:
  const int mass_, target_;
  std::span<double> gains_;  // empty: the model's
};

// ---- reacher ----

class Reacher : public Task {
 public:
  Reacher(Physics& p, int radius_in_mm)
      : finger_(geom(p, "finger")),
        target_(geom(p, "target")),
        places_(p.own(&mjModel::geom_pos, 3 * p.model().ngeom)) {
    p.own(&mjModel::geom_size, 3 * p.model().ngeom)[static_cast<std::size_t>(3 * target_)] =
        radius_in_mm / 1000.;
  }

  void begin(Physics& p, Random& random) override {
    randomize_joints(p, random);
    const double angle = random.uniform(0, 2 * std::numbers::pi);
    const double radius = random.uniform(0.05, 0.20);
    places_[static_cast<std::size_t>(3 * target_)] = radius * std::sin(angle);
    places_[static_cast<std::size_t>(3 * target_ + 1)] = radius * std::cos(angle);
  }
  void observe(const Physics& p, Observer& to) const override {
    to.put("position", p.qpos());
    to.put("to_target", to_target(p));
    to.put("velocity", p.qvel());
  }
  double reward(const Physics& p) const override {
    const double* size = p.model().geom_size;
    return tolerance(numpy::norm(to_target(p).data(), 2),
                     {0, size[3 * target_] + size[3 * finger_]});
  }

 private:
  std::array<double, 2> to_target(const Physics& p) const {
    const Vector v = minus(p.data().geom_xpos + 3 * target_, p.data().geom_xpos + 3 * finger_);
    return {v[0], v[1]};
  }
  const int finger_, target_;
  const std::span<double> places_;
};

}  // namespace

const std::array<Entry, 1> ball_in_cup = {{
    {"BallInCupCatch-v1", "ball_in_cup: swing a ball on a string into a cup", 20, 0.02,
     "ball_in_cup.xml", nullptr, make<BallInCup>},
}};

const std::array<Entry, 3> finger = {{
    {"FingerSpin-v1", "finger: keep a body on a hinge spinning", 20, 0.02, "finger.xml", nullptr,
     make<Spin>},
    {"FingerTurnEasy-v1", "finger: turn a body on a hinge to a target", 20, 0.02, "finger.xml",
     nullptr, make<Turn, 70>},
    {"FingerTurnHard-v1", "finger: the same, with a small target", 20, 0.02, "finger.xml", nullptr,
     make<Turn, 30>},
}};

const std::array<Entry, 2> point_mass = {{
    {"PointMassEasy-v1", "point_mass: move a mass to a target", 20, 0, "point_mass.xml", nullptr,
     make<PointMass, false>},
    {"PointMassHard-v1", "point_mass: the same, by motors in random directions", 20, 0,
     "point_mass.xml", nullptr, make<PointMass, true>},
}};

const std::array<Entry, 2> reacher = {{
    {"ReacherEasy-v1", "reacher: reach a target with a two-link arm", 20, 0, "reacher.xml", nullptr,
     make<Reacher, 50>},
    {"ReacherHard-v1", "reacher: the same, with a small target", 20, 0, "reacher.xml", nullptr,
     make<Reacher, 15>},
}};

}  // namespace dm_control
