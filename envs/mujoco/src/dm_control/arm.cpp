// dm_control/arm.cpp - manipulator, stacker: a planar arm with a hand, and things to handle.
#include <string>

#include "dm_control/suite.hpp"

namespace dm_control {
namespace {

// What both tasks have: the arm.
class Arm : public Task {
 public:
  Arm(Physics& p, const Choices& choices)
      : fully_observable_(choices.fully_observable), hand_(body(p, "hand")) {
    const char* const joints[] = {"arm_root", "arm_shoulder", "arm_elbow", "arm_wrist",
                                  "finger",   "fingertip",    "thumb",     "thumbtip"};
    for (std::size_t i = 0; i < joints_.size(); ++i) joints_[i] = joint(p, joints[i]);
    const char* const touch[] = {"palm_touch", "finger_touch", "thumb_touch", "fingertip_touch",
                                 "thumbtip_touch"};
    for (std::size_t i = 0; i < touch_.size(); ++i) touch_[i] = sensor(p, touch[i]);
  }

  void observe(const Physics& p, Observer& to) const override {
    std::vector<double> angles, velocities, touch;
    for (const int j : joints_) {
      angles.push_back(std::sin(position(p, j)));
      angles.push_back(std::cos(position(p, j)));
      velocities.push_back(velocity(p, j));
    }
    for (const int s : touch_) touch.push_back(std::log1p(reading(p, s)[0]));
    to.put("arm_pos", angles, 2);
    to.put("arm_vel", velocities);
    to.put("touch", touch);
    if (!fully_observable_) return;
    to.put("hand_pos", pose(p, hand_));
    observe_objects(p, to);
  }

 protected:
  virtual void observe_objects(const Physics& p, Observer& to) const = 0;

  // The arm anywhere, the hand's two fingers alike.
  void draw_arm(Physics& p, Random& random) const {
    for (const int j : joints_) {
      const double* range = p.model().jnt_range + 2 * j;
      position(p, j) =
          p.model().jnt_limited[j] != 0 ? random.uniform(range[0], range[1]) : random.angle();
    }
    position(p, joints_[4]) = position(p, joints_[6]);
  }
  // x, z and the rotation's qw, qy.
  static std::array<double, 4> pose(const Physics& p, int id) {
    const double *at = p.data().xpos + 3 * id, *rotation = p.data().xquat + 4 * id;
    return {at[0], at[2], rotation[0], rotation[2]};
  }
  static double distance(const Physics& p, int one_site, int other_site) {
    const double* at = p.data().site_xpos;
    return norm(minus(at + 3 * one_site, at + 3 * other_site));
  }

 private:
  const bool fully_observable_;
  const int hand_;
  std::array<int, 8> joints_;
  std::array<int, 5> touch_;
};

// ---- manipulator ----

struct Job {
  bool peg, insert;
};

class Bring : public Arm {
 public:
  Bring(Physics& p, const Choices& choices, Job job)
      : Arm(p, choices),
        job_(job),
        object_(body(p, job.peg ? "peg" : "ball")),
        target_(body(p, job.peg ? "target_peg" : "target_ball")),
        receptacle_(job.insert ? body(p, job.peg ? "slot" : "cup") : -1),
        grasp_(site(p, "grasp")),
        places_(p.own(&mjModel::body_pos, 3 * p.model().nbody)),
        rotations_(p.own(&mjModel::body_quat, 4 * p.model().nbody)) {
    const std::string object = job.peg ? "peg" : "ball";
    for (std::size_t i = 0; i < 3; ++i) joints_[i] = joint(p, object + "_" + "xzy"[i]);
    if (job.peg)
      pairs_ = {{site(p, "peg_grasp"), grasp_},
                {site(p, "peg_pinch"), site(p, "pinch")},
                {site(p, "peg"), site(p, "target_peg")},
                {site(p, "target_peg_tip"), site(p, "peg_tip")}};
    else
      pairs_ = {{site(p, "ball"), site(p, "target_ball")}};
  }

  void begin(Physics& p, Random& random) override {
    place_without_contact(p, [&] {
      draw_arm(p, random);
      const double x = random.uniform(-0.4, 0.4), z = random.uniform(0.1, 0.4);
      const double widest = job_.insert ? std::numbers::pi / 3 : std::numbers::pi;
      const double angle = random.uniform(-widest, widest);
      if (job_.insert) place(receptacle_, x, z, angle);
      place(target_, x, z, angle);

      std::array<double, 3> object;  // x, z, angle
      const double how = random.uniform(0, 1);
      if (how < 0.1) {  // in the hand
        p.forward();
        const double *grasp = p.data().site_xpos + 3 * grasp_,
                     *frame = p.data().site_xmat + 9 * grasp_;
        object = {grasp[0], grasp[2], std::numbers::pi - std::atan2(frame[kZX], frame[kXX])};
      } else if (how < 0.2) {  // at the target
        object = {x, z, angle};
      } else {
        object = {random.uniform(-0.5, 0.5), random.uniform(0, 0.7),
                  random.uniform(0, 2 * std::numbers::pi)};
        p.data().qvel[p.model().jnt_dofadr[joints_[0]]] = random.uniform(-5, 5);
      }
      for (std::size_t i = 0; i < 3; ++i) position(p, joints_[i]) = object[i];
    });
  }
  double reward(const Physics& p) const override {
    const auto close = [&](std::size_t i) {
      return tolerance(distance(p, pairs_[i].first, pairs_[i].second), {0, 0.01}, 0.01 * 2);
    };
    if (!job_.peg) return close(0);
    const double grasping = (close(0) + close(1)) / 2, bringing = (close(2) + close(3)) / 2;
    return std::max(bringing, grasping / 3);
  }

 private:
  void observe_objects(const Physics& p, Observer& to) const override {
    to.put("object_pos", pose(p, object_));
    to.put("object_vel",
           {velocity(p, joints_[0]), velocity(p, joints_[1]), velocity(p, joints_[2])});
    to.put("target_pos", pose(p, target_));
  }
  void place(int id, double x, double z, double angle) const {
    double *at = places_.data() + 3 * id, *rotation = rotations_.data() + 4 * id;
    at[0] = x;
    at[2] = z;
    rotation[0] = std::cos(angle / 2);
    rotation[2] = std::sin(angle / 2);
  }

  const Job job_;
  const int object_, target_, receptacle_, grasp_;
  std::array<int, 3> joints_;               // of the object: x, z, angle
  std::vector<std::pair<int, int>> pairs_;  // of sites that are to be close
  const std::span<double> places_, rotations_;
};

template <bool Peg, bool Insert>
std::unique_ptr<Task> make_bring(Physics& p, const Choices& choices) {
  return std::make_unique<Bring>(p, choices, Job{Peg, Insert});
}

void remove_body(mjSpec* spec, const char* name) {
  const auto& mj = mujoco::lib();
  mj.mjs_delete(spec, mj.mjs_findElement(spec, mjOBJ_BODY, name));
}

template <bool Peg, bool Insert>
mujoco::Edit props() {
  return {std::string(Peg ? "peg" : "ball") + (Insert ? ", insert" : ""), [](mjSpec* spec) {
            for (const char* other : {Peg ? "ball" : "peg", Peg ? "target_ball" : "target_peg"})
              remove_body(spec, other);
            if (Peg || !Insert) remove_body(spec, "cup");
            if (!Peg || !Insert) remove_body(spec, "slot");
          }};
}

// ---- stacker ----

class Stack : public Arm {
 public:
  Stack(Physics& p, const Choices& choices, int boxes)
      : Arm(p, choices),
        target_(body(p, "target")),
        target_geom_(geom(p, "target")),
        target_site_(site(p, "target")),
        grasp_(site(p, "grasp")),
        places_(p.own(&mjModel::body_pos, 3 * p.model().nbody)) {
    for (int i = 0; i < boxes; ++i) {
      const std::string name = "box" + std::to_string(i);
      boxes_.push_back({body(p, name),
                        site(p, name),
                        {joint(p, name + "_x"), joint(p, name + "_y"), joint(p, name + "_z")}});
    }
  }

  void begin(Physics& p, Random& random) override {
    const double size = box_size(p);
    place_without_contact(p, [&] {
      draw_arm(p, random);
      const double height = 2. * random.below(static_cast<std::uint32_t>(boxes_.size())) + 1;
      places_[static_cast<std::size_t>(3 * target_ + 2)] = size * height;
      places_[static_cast<std::size_t>(3 * target_)] = random.uniform(-0.37, 0.37);
      for (const Box& box : boxes_) {
        position(p, box.joints[0]) = random.uniform(0.1, 0.3);
        position(p, box.joints[2]) = random.uniform(0, 0.7);
        position(p, box.joints[1]) = random.uniform(0, 2 * std::numbers::pi);
      }
    });
  }
  double reward(const Physics& p) const override {
    double nearest = kInfinity;
    for (const Box& box : boxes_) nearest = std::min(nearest, distance(p, box.site, target_site_));
    const double close = tolerance(nearest, {}, 2 * box_size(p));
    return close * tolerance(distance(p, grasp_, target_site_), {0.1, kInfinity}, 0.01);
  }

 private:
  struct Box {
    int body, site, joints[3];  // joints: x, y (its angle), z
  };
  double box_size(const Physics& p) const { return p.model().geom_size[3 * target_geom_]; }
  void observe_objects(const Physics& p, Observer& to) const override {
    std::vector<double> poses, velocities;
    for (const Box& box : boxes_) {
      for (const double x : pose(p, box.body)) poses.push_back(x);
      for (const int j : box.joints) velocities.push_back(velocity(p, j));
    }
    to.put("box_pos", poses, 4);
    to.put("box_vel", velocities);
    const double* target = p.data().xpos + 3 * target_;
    to.put("target_pos", {target[0], target[2]});
  }

  const int target_, target_geom_, target_site_, grasp_;
  std::vector<Box> boxes_;
  const std::span<double> places_;
};

template <int Boxes>
std::unique_ptr<Task> make_stack(Physics& p, const Choices& choices) {
  return std::make_unique<Stack>(p, choices, Boxes);
}

mujoco::Edit two_boxes() {
  return {"2 boxes", [](mjSpec* spec) {
            for (const char* box : {"box2", "box3"}) remove_body(spec, box);
          }};
}

}  // namespace

const std::array<Entry, 4> manipulator = {{
    {"ManipulatorBringBall-v1", "manipulator: bring a ball to a target", 10, 0.01,
     "manipulator.xml", props<false, false>, make_bring<false, false>},
    {"ManipulatorBringPeg-v1", "manipulator: bring a peg to a target", 10, 0.01, "manipulator.xml",
     props<true, false>, make_bring<true, false>},
    {"ManipulatorInsertBall-v1", "manipulator: put a ball into a cup", 10, 0.01, "manipulator.xml",
     props<false, true>, make_bring<false, true>},
    {"ManipulatorInsertPeg-v1", "manipulator: put a peg into a slot", 10, 0.01, "manipulator.xml",
     props<true, true>, make_bring<true, true>},
}};

const std::array<Entry, 2> stacker = {{
    {"StackerStack2-v1", "stacker: stack 2 boxes at a target", 10, 0.01, "stacker.xml", two_boxes,
     make_stack<2>},
    {"StackerStack4-v1", "stacker: stack 4 boxes at a target", 10, 0.01, "stacker.xml", nullptr,
     make_stack<4>},
}};

}  // namespace dm_control
