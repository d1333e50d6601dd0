#include "custom.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string_view>

#include "numpy.hpp"

namespace custom {
namespace {

std::string_view trimmed(std::string_view text) {
  const std::size_t from = text.find_first_not_of(' ');
  if (from == text.npos) return {};
  return text.substr(from, text.find_last_not_of(' ') - from + 1);
}

// The place in sensordata of a term of `option`: "name" of a sensor with one value, or "name[2]".
int place_of(const mjModel& m, const char* option, std::string_view term) {
  int component = -1;
  std::string_view name = term;
  if (term.ends_with(']') && term.find('[') != term.npos) {
    name = term.substr(0, term.find('['));
    const std::string_view number = term.substr(name.size() + 1, term.size() - name.size() - 2);
    const auto [end, bad] =
        std::from_chars(number.data(), number.data() + number.size(), component);
    if (bad != std::errc() || end != number.data() + number.size()) component = -2;
  }
  const int id = mujoco::find(m, mjOBJ_SENSOR, std::string(name));
  const int size = m.sensor_dim[id];
  if (component == -1 && size == 1) component = 0;
  if (component < 0 || component >= size)
    throw envpool::error(EP_E_ARGUMENT, std::string(option) + ": \"" + std::string(term) +
                                            "\": the sensor has " + std::to_string(size) +
                                            " values: " + std::string(name) + "[0] to [" +
                                            std::to_string(size - 1) + "]");
  return m.sensor_adr[id] + component;
}

// The places of all terms, which have commas between them.
std::vector<int> places_of(const mjModel& m, const char* option, std::string_view terms) {
  std::vector<int> places;
  while (!trimmed(terms).empty()) {
    const std::size_t comma = std::min(terms.find(','), terms.size());
    places.push_back(place_of(m, option, trimmed(terms.substr(0, comma))));
    terms.remove_prefix(std::min(comma + 1, terms.size()));
  }
  return places;
}

std::vector<Term> terms_of(const mjModel& m, const Config& c) {
  std::vector<Term> terms;
  for (const int at : places_of(m, "reward_sensors", c.reward_sensors)) terms.push_back({at, 1});
  if (!c.reward_weights.empty() && c.reward_weights.size() != terms.size())
    throw envpool::error(EP_E_ARGUMENT,
                         "reward_weights has " + std::to_string(c.reward_weights.size()) +
                             " values for " + std::to_string(terms.size()) + " reward_sensors");
  for (std::size_t i = 0; i < c.reward_weights.size(); ++i) terms[i].weight = c.reward_weights[i];
  return terms;
}

std::vector<Bounds> bounds_of(const mjModel& m, const Config& c) {
  const std::vector<int> places = places_of(m, "healthy_sensors", c.healthy_sensors);
  const std::vector<double>& ranges = c.healthy_ranges;
  if (ranges.size() != 2 * places.size())
    throw envpool::error(EP_E_ARGUMENT, "healthy_ranges has " + std::to_string(ranges.size()) +
                                            " values for " + std::to_string(places.size()) +
                                            " healthy_sensors: it must be low and high of each");
  std::vector<Bounds> bounds;
  for (std::size_t i = 0; i < places.size(); ++i) {
    const double low = ranges[2 * i], high = ranges[2 * i + 1];
    if (!(low <= high))
      throw envpool::error(EP_E_ARGUMENT, "healthy_ranges: " + std::to_string(low) + " to " +
                                              std::to_string(high) + " is empty");
    bounds.push_back({places[i], low, high});
  }
  return bounds;
}

mujoco::ModelPtr model_of(const envpool::host& host, const std::string& xml) {
  const bool is_text = trimmed(xml).starts_with('<') || xml.find('\n') != xml.npos;
  return is_text ? mujoco::load_text(host, xml) : mujoco::load_file(host, xml);
}

}  // namespace

void Custom::options(envpool::options<Config>& o) {
  o.add("xml_file", &Config::xml_file)
      .required()
      .shapes_spec()
      .doc("the model: path of an MJCF or URDF file, or the MJCF text itself");
  o.add("frame_skip", &Config::frame_skip)
      .range(1, 100000)
      .doc("steps of the simulation in one step of the env");
  o.add("keyframe", &Config::keyframe)
      .doc("name of the model's keyframe that episodes begin with; empty: its initial state");
  o.add("reset_noise_scale", &Config::reset_noise_scale)
      .min(0.)
      .doc("scale of the uniform offsets of position and velocity at a reset");
  o.add("reward_sensors", &Config::reward_sensors)
      .doc("names of the sensors that the reward is made of, with commas: \"speed, pose[2]\"");
  o.add("reward_weights", &Config::reward_weights).doc("how much each of them counts; empty: 1");
  o.add("ctrl_cost_weight", &Config::ctrl_cost_weight)
      .doc("weight of the squared control, a cost in the reward");
  o.add("healthy_sensors", &Config::healthy_sensors)
      .doc("names of the sensors that end the episode when they leave their ranges");
  o.add("healthy_ranges", &Config::healthy_ranges)
      .doc("low and high, inclusive, of each of them: [low, high, low, high, ...]");
  o.add("healthy_reward", &Config::healthy_reward)
      .doc("reward of each step that ends within all of these ranges");
  mujoco::add_picture_options(o);
}

Fields Custom::describe(envpool::spec& s, const Config& c) {
  Fields f;
  f.model = model_of(s.host(), c.xml_file);
  const mjModel& m = *f.model;
  if (m.nu == 0) throw envpool::error(EP_E_ARGUMENT, "the model has no actuators");
  f.keyframe = c.keyframe.empty() ? -1 : mujoco::find(m, mjOBJ_KEY, c.keyframe);
  f.terms = terms_of(m, c);
  f.healthy = bounds_of(m, c);

  s.max_episode_steps = 1000;
  s.fps = 1 / (m.opt.timestep * static_cast<double>(c.frame_skip));
  const std::pair<const char*, std::int64_t> parts[] = {
      {"qpos", m.nq}, {"qvel", m.nv}, {"sensordata", m.nsensordata}};
  mujoco::check_camera(m, c.camera_id);
  if (c.from_pixels) f.pixels = mujoco::add_pixels(s, c);
  for (const auto& [name, size] : parts)
    if (size > 0 && !c.from_pixels) f.observations.push_back(s.obs<double[]>(name, {size}));
  std::vector<float> low, high;
  for (int i = 0; i < m.nu; ++i) {
    const bool limited = m.actuator_ctrllimited[i] != 0;
    low.push_back(limited ? static_cast<float>(m.actuator_ctrlrange[2 * i]) : -1e10f);
    high.push_back(limited ? static_cast<float>(m.actuator_ctrlrange[2 * i + 1]) : 1e10f);
  }
  f.action = s.action<float[]>("", {m.nu}).within(low, high).doc("control of the actuators");
  f.time = s.info<double>("time").unit("s").doc("simulated since the reset");
  return f;
}

void Custom::reset() {
  physics_.reset(fields_.keyframe);
  const double scale = c_.reset_noise_scale;
  for (double& x : physics_.qpos()) x += random_.uniform(-scale, scale);
  for (double& x : physics_.qvel()) x += random_.uniform(-scale, scale);
  mujoco::lib().mj_normalizeQuat(&physics_.model(), physics_.data().qpos);
  physics_.forward();
}

envpool::result Custom::step(const envpool::input& in) {
  const auto action = in[fields_.action];
  std::copy(action.begin(), action.end(), physics_.data().ctrl);
  physics_.step(c_.frame_skip);
  double reward = 0;
  for (const Term& term : fields_.terms)
    reward += term.weight * physics_.data().sensordata[term.at];
  reward -= c_.ctrl_cost_weight * numpy::sum_of_squares(physics_.ctrl());
  const bool healthy = is_healthy();
  if (healthy) reward += c_.healthy_reward;
  return {.reward = reward, .terminated = !healthy};
}

bool Custom::is_healthy() const {
  return std::ranges::all_of(fields_.healthy, [this](const Bounds& bounds) {
    const double value = physics_.data().sensordata[bounds.at];
    return bounds.low <= value && value <= bounds.high;
  });
}

void Custom::observe(const envpool::view& v) const {
  const mjModel& m = physics_.model();
  const mjData& d = physics_.data();
  if (c_.from_pixels)
    if (const auto to = v[fields_.pixels]) mujoco::draw(physics_, view_, to.data());
  std::size_t next = 0;
  const auto put = [&](const double* from, mjtSize size) {
    if (size > 0 && !c_.from_pixels)
      v.put(fields_.observations[next++], std::span(from, static_cast<std::size_t>(size)));
  };
  put(d.qpos, m.nq);
  put(d.qvel, m.nv);
  put(d.sensordata, m.nsensordata);
  v.put(fields_.time, d.time);
}

void Custom::save(envpool::writer& to, std::int32_t) const {
  mujoco::Physics::State physics = physics_.state();
  to(random_, physics);
}

void Custom::load(envpool::reader& from, std::int32_t) {
  mujoco::Random random;
  mujoco::Physics::State physics;
  from(random, physics);
  if (from.left() != 0) throw envpool::error(EP_E_ARGUMENT, "a state that is too long");
  physics_.restore(physics);
  random_ = random;
}

}  // namespace custom
