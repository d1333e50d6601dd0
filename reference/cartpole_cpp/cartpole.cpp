// cartpole.cpp - CartPole-v1 over env.hpp: the same bits, options, state format and extensions as
// cartpole_c/cartpole.c.
#include <cmath>
#include <envpool/env.hpp>
#include <limits>
#include <numbers>
#include <string>

#include "../common/cartpole_draw.h"

namespace {

constexpr double kTau = 0.02, kMassPole = 0.1, kMass = kMassPole + 1.0;
constexpr double kXLimit = 2.4, kThetaLimit = 12 * 2 * std::numbers::pi / 360;

class CartPole {
 public:
  static constexpr const char* id = "CartPole-v1";
  static constexpr const char* doc = "Balance a pole on a cart.";
  static constexpr ep_sharing sharing = EP_FREE;
  static constexpr bool batch = true;
  static constexpr envpool::size picture{CARTPOLE_WIDTH, CARTPOLE_HEIGHT};

  struct config {
    double gravity = 9.8, force = 10, length = 0.5;
    bool sutton_barto = false;
    std::string integrator = "euler";
    double low = -0.05, high = 0.05;
  };
  static void options(envpool::options<config>& o) {
    o.add("gravity", &config::gravity).unit("m/s^2");
    o.add("force_mag", &config::force).unit("N").min(0).doc("force of a push");
    o.add("length", &config::length).unit("m").min(0.01).doc("half the pole's length");
    o.add("sutton_barto_reward", &config::sutton_barto)
        .doc("0 a step and -1 at the fall, rather than 1 a step");
    o.add("kinematics_integrator", &config::integrator).choices({"euler", "semi-implicit"});
    o.add("low", &config::low).at_reset().doc("least value of a start");
    o.add("high", &config::high).at_reset().doc("greatest value of a start");
  }

  struct fields {
    envpool::obs<float[4]> state;
    envpool::action<std::int64_t> push;
  };
  static fields describe(envpool::spec& s, const config& c) {
    constexpr float inf = std::numeric_limits<float>::infinity();
    constexpr auto x = static_cast<float>(2 * kXLimit), theta = static_cast<float>(2 * kThetaLimit);
    s.max_episode_steps = 500;
    s.reward_threshold = c.sutton_barto ? 0 : 475;
    s.fps = 1 / kTau;
    return {s.obs<float[4]>("")
                .doc("x, x_dot, theta, theta_dot")
                .within({-x, -inf, -theta, -inf}, {x, inf, theta, inf}),
            s.action<std::int64_t>("").discrete(2).labels({"LEFT", "RIGHT"})};
  }

  CartPole(const config& c, const fields& f)
      : c_(c), f_(f), semi_implicit_(c.integrator == "semi-implicit") {}

  void seed(std::uint64_t s) { rng_.word = s; }

  void reset(const config& c) {
    if (!(c.low <= c.high)) throw envpool::error(EP_E_ARGUMENT, "cartpole: low is above high");
    for (double* v : {&x_, &x_dot_, &theta_, &theta_dot_}) *v = rng_.uniform(c.low, c.high);
  }

  envpool::result step(const envpool::input& in) {
    const double polemass_length = kMassPole * c_.length,
                 force = in[f_.push] == 1 ? c_.force : -c_.force;
    const double c = std::cos(theta_), s = std::sin(theta_);
    const double temp = (force + polemass_length * (theta_dot_ * theta_dot_) * s) / kMass;
    const double theta_acc =
        (c_.gravity * s - c * temp) / (c_.length * (4.0 / 3.0 - kMassPole * (c * c) / kMass));
    const double x_acc = temp - polemass_length * theta_acc * c / kMass;
    if (!semi_implicit_) {
      x_ += kTau * x_dot_;
      x_dot_ += kTau * x_acc;
      theta_ += kTau * theta_dot_;
      theta_dot_ += kTau * theta_acc;
    } else {
      x_dot_ += kTau * x_acc;
      x_ += kTau * x_dot_;
      theta_dot_ += kTau * theta_acc;
      theta_ += kTau * theta_dot_;
    }
    const bool fell =
        x_ < -kXLimit || x_ > kXLimit || theta_ < -kThetaLimit || theta_ > kThetaLimit;
    return {.reward = c_.sutton_barto ? (fell ? -1. : 0.) : 1., .terminated = fell};
  }

  void observe(const envpool::view& v) const { v.put(f_.state, x_, x_dot_, theta_, theta_dot_); }

  void draw(const ep_image& to) const {
    cartpole_draw(x_, theta_, c_.length, static_cast<std::uint8_t*>(to.pixels), to.row_bytes);
  }

  template <class A>
  void state(A& a) {
    a(x_, x_dot_, theta_, theta_dot_, rng_);
  }

 private:
  const config c_;
  const fields f_;
  const bool semi_implicit_;
  double x_ = 0, x_dot_ = 0, theta_ = 0, theta_dot_ = 0;
  envpool::rng rng_;
};

}  // namespace

ENVPOOL_PLUGIN("cartpole-cpp", "1.0.0", CartPole)
