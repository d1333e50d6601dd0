// dm_control/env.hpp - any task of dm_control's suite as an env: Env<Entry list> of a family.
#pragma once

#include <cmath>
#include <cstdint>
#include <envpool/env.hpp>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "dm_control/suite.hpp"
#include "pictures.hpp"

namespace dm_control {

struct Config : mujoco::PictureConfig {
  double time_limit = 0;
  double control_timestep = 0;
  bool flat_observation = false;
  bool legacy_step = true;
  Choices choices;  // not an option itself; see PartlyObservable
};

struct Fields {
  mujoco::ModelPtr model;
  std::int64_t substeps;
  std::vector<std::uint32_t> sizes;  // of the observations, in order; none if from_pixels
  envpool::obs<std::uint8_t[]> pixels;
  envpool::action<double[]> action;
};

class Env {
 public:
  static constexpr ep_sharing sharing = EP_FREE;
  static constexpr bool batch = true;
  static constexpr std::uint32_t state_purposes = 1u << EP_STATE_CLONE | 1u << EP_STATE_PERSIST;

  using config = Config;
  using fields = Fields;
  static void options(envpool::options<Config>& o);
  static Fields describe(envpool::spec& s, const Config& c, const Entry& entry);

  Env(const Config& c, const Fields& f, const Entry& entry);

  void seed(std::uint64_t s);
  void reset();
  envpool::result step(const envpool::input& in);
  void observe(const envpool::view& v) const;
  void measure(ep_image& image) const { mujoco::measure(physics_.model(), view_, image); }
  void draw(const ep_image& image) const { mujoco::draw(physics_, view_, image); }
  void save(envpool::writer& to, std::int32_t) const;
  void load(envpool::reader& from, std::int32_t);

 private:
  const Fields fields_;
  Physics physics_;
  const std::unique_ptr<Task> task_;
  const mujoco::View view_;
  Random random_;
  mutable std::vector<double> row_;  // an observation on its way out: kept for its memory
};

// The tasks whose observation may leave out what a robot with sensors alone would not know.
struct PartlyObservableConfig : Config {
  bool fully_observable = true;
};
class PartlyObservable : public Env {
 public:
  using config = PartlyObservableConfig;
  static void options(envpool::options<config>& o);
  static Fields describe(envpool::spec& s, const config& c, const Entry& entry) {
    return Env::describe(s, plain(c), entry);
  }
  PartlyObservable(const config& c, const Fields& f, const Entry& entry)
      : Env(plain(c), f, entry) {}

 private:
  static Config plain(const config& c) {
    Config out = c;
    out.choices.fully_observable = c.fully_observable;
    return out;
  }
};

}  // namespace dm_control
