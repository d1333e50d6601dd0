// custom.hpp - MujocoCustom-v0: a model of the user's own as an env, without writing any C++.
#pragma once

#include <cstdint>
#include <envpool/env.hpp>
#include <string>
#include <vector>

#include "model.hpp"
#include "physics.hpp"
#include "pictures.hpp"
#include "random.hpp"

namespace custom {

struct Config : mujoco::PictureConfig {
  std::string xml_file;
  std::int64_t frame_skip = 5;
  std::string keyframe;
  double reset_noise_scale = 0.01;
  std::string reward_sensors;
  std::vector<double> reward_weights;
  double ctrl_cost_weight = 0;
  std::string healthy_sensors;
  std::vector<double> healthy_ranges;  // low, high, low, high, ...
  double healthy_reward = 0;
};

// Where a term of the reward is read, and how much it counts.
struct Term {
  int at;  // in sensordata
  double weight;
};

// A value that ends the episode when it leaves [low, high], and where it is read.
struct Bounds {
  int at;  // in sensordata
  double low, high;
};

struct Fields {
  mujoco::ModelPtr model;
  int keyframe;  // -1: none
  std::vector<Term> terms;
  std::vector<Bounds> healthy;
  std::vector<envpool::obs<double[]>> observations;  // qpos, qvel, sensordata: those that are there
  envpool::obs<std::uint8_t[]> pixels;               // in their place, from_pixels
  envpool::action<float[]> action;
  envpool::info<double> time;
};

class Custom {
 public:
  static constexpr const char* id = "MujocoCustom-v0";
  static constexpr const char* doc =
      "A model of your own: observes positions, velocities and sensors; sensors make the reward "
      "and end the episode.";
  static constexpr ep_sharing sharing = EP_FREE;
  static constexpr bool batch = true;
  static constexpr std::uint32_t state_purposes = 1u << EP_STATE_CLONE | 1u << EP_STATE_PERSIST;

  using config = Config;
  using fields = Fields;
  static void options(envpool::options<Config>& o);
  static Fields describe(envpool::spec& s, const Config& c);

  Custom(const Config& c, const Fields& f)
      : c_(c), fields_(f), physics_(f.model, {}), view_(mujoco::view_of(*f.model, c)) {}

  void seed(std::uint64_t s) { random_.word = s; }
  void reset();
  envpool::result step(const envpool::input& in);
  void observe(const envpool::view& v) const;
  void measure(ep_image& image) const { mujoco::measure(physics_.model(), view_, image); }
  void draw(const ep_image& image) const { mujoco::draw(physics_, view_, image); }
  void save(envpool::writer& to, std::int32_t) const;
  void load(envpool::reader& from, std::int32_t);

 private:
  bool is_healthy() const;

  const Config c_;
  const Fields fields_;
  mujoco::Physics physics_;
  const mujoco::View view_;
  mujoco::Random random_;
};

}  // namespace custom
