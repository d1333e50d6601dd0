// dm_control/humanoid.cpp - humanoid, humanoid_CMU: two robots of human shape, one reward.
#include "dm_control/suite.hpp"

namespace dm_control {
namespace {

// What the two models call their parts, and where their torso's frame points up.
struct Anatomy {
  const char *torso, *com_velocity;
  const char* limbs[4];
  int up;
};
constexpr Anatomy kPlain = {
    "torso", "torso_subtreelinvel", {"left_hand", "left_foot", "right_hand", "right_foot"}, kZZ};
constexpr Anatomy kCmu = {
    "thorax", "thorax_subtreelinvel", {"lhand", "lfoot", "rhand", "rfoot"}, kZY};

class Humanoid : public Task {
 public:
  Humanoid(Physics& p, const Anatomy& anatomy, double speed, bool pure_state)
      : speed_(speed),
        pure_state_(pure_state),
        up_(anatomy.up),
        torso_(body(p, anatomy.torso)),
        head_(body(p, "head")),
        velocity_(sensor(p, anatomy.com_velocity)) {
    for (std::size_t i = 0; i < limbs_.size(); ++i) limbs_[i] = body(p, anatomy.limbs[i]);
  }

  void begin(Physics& p, Random& random) override {
    place_without_contact(p, [&] { randomize_joints(p, random); });
  }
  void observe(const Physics& p, Observer& to) const override {
    if (pure_state_) {
      to.put("position", p.qpos());
      to.put("velocity", p.qvel());
      return;
    }
    const double *frame = p.data().xmat + 9 * torso_, *xpos = p.data().xpos;
    std::vector<double> extremities;
    for (const int limb : limbs_)
      for (const double x : in_frame(minus(xpos + 3 * limb, xpos + 3 * torso_), frame))
        extremities.push_back(x);
    to.put("joint_angles", p.qpos().subspan(7));
    to.put("head_height", head_height(p));
    to.put("extremities", extremities);
    to.put("torso_vertical", {frame[kZX], frame[kZY], frame[kZZ]});
    to.put("com_velocity", reading(p, velocity_));
    to.put("velocity", p.qvel());
  }
  double reward(const Physics& p) const override {
    const double standing = tolerance(head_height(p), {1.4, kInfinity}, 1.4 / 4);
    const double upright =
        tolerance(p.data().xmat[9 * torso_ + up_], {0.9, kInfinity}, 1.9, Sigmoid::kLinear, 0);
    const double stand = standing * upright;
    const double control = (4 + small_control(p)) / 5;
    const auto velocity = reading(p, velocity_);
    if (speed_ == 0) {
      const double still = mean(velocity.first(2), [](double v) { return tolerance(v, {}, 2); });
      return control * stand * still;
    }
    const double move = tolerance(numpy::norm(velocity.data(), 2), {speed_, kInfinity}, speed_,
                                  Sigmoid::kLinear, 0);
    return control * stand * ((5 * move + 1) / 6);
  }

 private:
  double head_height(const Physics& p) const { return p.data().xpos[3 * head_ + 2]; }

  const double speed_;
  const bool pure_state_;
  const int up_, torso_, head_, velocity_;
  std::array<int, 4> limbs_;
};

template <const Anatomy& A, int Speed, bool PureState = false>
std::unique_ptr<Task> make_humanoid(Physics& p, const Choices&) {
  return std::make_unique<Humanoid>(p, A, Speed, PureState);
}

}  // namespace

const std::array<Entry, 4> humanoid = {{
    {"HumanoidRun-v1", "humanoid: run", 25, 0.025, "humanoid.xml", nullptr,
     make_humanoid<kPlain, 10>},
    {"HumanoidRunPureState-v1", "humanoid: run, seeing positions and velocities only", 25, 0.025,
     "humanoid.xml", nullptr, make_humanoid<kPlain, 10, true>},
    {"HumanoidStand-v1", "humanoid: stand", 25, 0.025, "humanoid.xml", nullptr,
     make_humanoid<kPlain, 0>},
    {"HumanoidWalk-v1", "humanoid: walk", 25, 0.025, "humanoid.xml", nullptr,
     make_humanoid<kPlain, 1>},
}};

const std::array<Entry, 3> humanoid_cmu = {{
    {"HumanoidCMURun-v1", "humanoid_CMU: run", 20, 0.02, "humanoid_CMU.xml", nullptr,
     make_humanoid<kCmu, 10>},
    {"HumanoidCMUStand-v1", "humanoid_CMU: stand", 20, 0.02, "humanoid_CMU.xml", nullptr,
     make_humanoid<kCmu, 0>},
    {"HumanoidCMUWalk-v1", "humanoid_CMU: walk", 20, 0.02, "humanoid_CMU.xml", nullptr,
     make_humanoid<kCmu, 1>},
}};

}  // namespace dm_control
