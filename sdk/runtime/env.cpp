// env.cpp - see env.hpp. docs/dev/atari-semantics.md is the source of the order of things at reset
// and in a skip.
#include "env.hpp"

#include <envpool/ext/render.h>
#include <envpool/ext/state.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "error.hpp"

namespace envpool::runtime {
namespace {

// If the column is wanted.
template <class T>
void put(const Plan& plan, const Row& row, std::optional<std::uint32_t> column, std::size_t agent,
         T value) {
  if (column) std::memcpy(row.at(plan, *column) + agent * sizeof(T), &value, sizeof(T));
}

constexpr std::uint32_t kMostPixels = 1 << 16;  // of a picture, along a side

double sign(double value) { return static_cast<double>((value > 0) - (value < 0)); }

// The seed of an env that is made anew: it must not play its past again.
std::uint64_t respawn_seed(std::uint64_t seed, std::uint64_t env, std::uint64_t respawns) {
  std::uint64_t state = seed;
  state = ep_rand(&state) ^ env;
  state = ep_rand(&state) ^ respawns;
  return ep_rand(&state);
}

// One env's part of an array [env][agent].
template <class T>
std::span<T> agents_of(std::vector<T>& all, std::uint32_t place, std::uint32_t agents) {
  return std::span(all).subspan(std::size_t{place} * agents, agents);
}

template <class T>
T* data_or_null(std::vector<T>& pointers) {
  return pointers.empty() ? nullptr : pointers.data();
}

}  // namespace

Scratch::Scratch(const Plan& plan)
    : newest(plan.raw_frame_bytes),
      before(plan.raw_frame_bytes),
      image(plan.scratch_bytes),
      obs(plan.obs.size()),
      info(plan.info.size()),
      global(plan.global.size()),
      obs_length(plan.obs.size()),
      info_length(plan.info.size()),
      global_length(plan.global.size()),
      reward(plan.agents),
      terminated(plan.agents),
      truncated(plan.agents),
      alive(plan.agents) {}

Env::Env(const Plan& plan, std::uint32_t id, std::shared_ptr<const Options> options,
         Episodes& episodes, std::uint32_t place)
    : plan_(plan),
      id_(id),
      options_(std::move(options)),
      at_reset_(options_->at_reset({})),
      handle_(episodes.handle[place]),
      elapsed_(episodes.elapsed[place]),
      over_(episodes.over[place]),
      reward_(agents_of(episodes.reward, place, plan.agents)),
      return_(agents_of(episodes.returned, place, plan.agents)),
      terminated_(agents_of(episodes.terminated, place, plan.agents)),
      truncated_(agents_of(episodes.truncated, place, plan.agents)),
      alive_(plan.agents, 1) {
  const bool stale = plan.settings.transforms.last_frame == LastFrame::kStale;
  for (const ImageTarget& target : plan.images) {
    const ImageTransform& image = *plan.obs[target.obs].image;
    Frames frames;
    frames.ring.resize(image.stack_num() * image.frame_bytes());
    if (stale) {
      frames.pooled.resize(image.converted_bytes());
      frames.before.resize(image.converted_bytes());
    }
    frames_.push_back(std::move(frames));
  }
}

// ---- life of the handle -------------------------------------------------------------------------

bool Env::create() {
  const ep_create how{sizeof how, static_cast<std::uint32_t>(options_->values().size()),
                      options_->values().data(), id_};
  void* handle = nullptr;
  const ep_status status = plan_.task.create(plan_.host.abi(), &how, &handle);
  if (status == EP_OK && handle) {
    handle_ = handle;
    return true;
  }
  if (status == EP_OK) {
    fail(EP_E_FAILED, "create", "returned EP_OK without an env");
  } else {
    fail(status, "create", take_explanation(status));
  }
  return false;
}

void Env::destroy() noexcept {
  if (handle_) plan_.task.destroy(handle_);
  handle_ = nullptr;
  begun_ = false;
}

// Ends the episode for a failure of the plugin, and keeps its text.
void Env::fail(ep_status status, const char* call, const std::string& why) {
  message_ = std::string(plan_.task.id) + ", env " + std::to_string(id_) + ": " + call + ": " + why;
  over_ = 1;
  fault_ = game_over_ = episode_over_ = true;
  life_over_ = false;
  std::fill(reward_.begin(), reward_.end(), 0.0);
  std::fill(terminated_.begin(), terminated_.end(), std::uint8_t{0});
  std::fill(truncated_.begin(), truncated_.end(), std::uint8_t{1});
  if (status == EP_E_BROKEN) destroy();
}

// For a call that no row tells of: makes the Error, and ends an env that broke.
Error Env::refusal(ErrorKind kind, ep_status status, const std::string& call) {
  const std::string why = take_explanation(status);
  if (status == EP_E_BROKEN) fail(status, call.c_str(), why);
  return Error(
      kind, std::string(plan_.task.id) + ", env " + std::to_string(id_) + ": " + call + ": " + why);
}

void Env::lost(std::span<const std::uint8_t> alive) {
  std::ranges::copy(alive, alive_.begin());
  fail(EP_E_FAILED, "step", "its process is gone");
}

void Env::inherit(std::uint64_t seed, std::uint64_t respawns) {
  seed_ = seed;
  respawns_ = respawns;
  played_ = true;
}

void Env::step_failed(ep_status status) { fail(status, "step", take_explanation(status)); }

bool Env::check(ep_status status, const char* call) {
  if (status == EP_OK) [[likely]]
    return true;
  fail(status, call, take_explanation(status));
  return false;
}

// ---- reset --------------------------------------------------------------------------------------

void Env::clear_outcome() {
  fault_ = false;
  episode_over_ = false;
  std::fill(reward_.begin(), reward_.end(), 0.0);
  std::fill(terminated_.begin(), terminated_.end(), std::uint8_t{0});
  std::fill(truncated_.begin(), truncated_.end(), std::uint8_t{0});
}

void Env::reset(std::optional<std::uint64_t> seed, const Options* at_reset, Scratch& scratch) {
  const bool go_on = life_over_ && !game_over_ && !seed && !at_reset &&
                     plan_.settings.transforms.life_loss_reset == LifeLossReset::kContinue;
  begin(seed, go_on, at_reset ? *at_reset : at_reset_, scratch);
}

void Env::begin(std::optional<std::uint64_t> seed, bool go_on, const Options& at_reset,
                Scratch& scratch) {
  clear_outcome();
  if (!handle_ && !create()) return;
  if (!begun_ && !seed) seed = respawn_seed(seed_, id_, ++respawns_);
  if (seed) {
    seed_ = *seed;
    noop_generator_.seed(static_cast<std::uint32_t>(*seed));
  }
  if (!go_on) {
    if (!reset_handle(seed, at_reset)) return;
    elapsed_ = 0;
    std::fill(return_.begin(), return_.end(), 0.0);
  }
  if (!play_in(at_reset, scratch)) return;
  clear_outcome();  // what the no-ops brought belongs to no step
  over_ = game_over_ = life_over_ = false;
  lives_ = std::numeric_limits<std::int32_t>::min();  // so that no life counts as lost here
  if (plan_.lives && !look_at_lives(scratch)) return;
  if (!observe_frames(scratch.newest, scratch)) return;
  push_frames(scratch.newest.data(), nullptr, go_on ? Fill::kPush : Fill::kAll, scratch);
  played_ = true;
}

bool Env::reset_handle(std::optional<std::uint64_t> seed, const Options& at_reset) {
  ep_reset how{};
  how.size = sizeof how;
  how.has_seed = seed.has_value();
  how.seed = seed.value_or(0);
  how.options = at_reset.values().data();
  how.option_count = static_cast<std::uint32_t>(at_reset.values().size());
  std::fill(alive_.begin(), alive_.end(), std::uint8_t{1});
  if (!check(plan_.task.reset(handle_, &how), "reset")) return false;
  begun_ = true;
  return true;
}

// The no-ops and FIRE after a reset, one frame each.
bool Env::play_in(const Options& at_reset, Scratch& scratch) {
  const Transforms& t = plan_.settings.transforms;
  const bool fire =
      t.use_fire_reset && std::any_of(plan_.actions.begin(), plan_.actions.end(),
                                      [](const ActionColumn& a) { return !a.fire.empty(); });
  if (t.noop_max == 0 && !fire) return true;

  std::vector<const void*> noop_action, fire_action;
  std::vector<std::uint32_t> no_lengths(plan_.agents, 0);
  std::vector<const std::uint32_t*> lengths;
  for (const ActionColumn& action : plan_.actions) {
    noop_action.push_back(action.noop.data());
    fire_action.push_back(action.fire.data());
    lengths.push_back(action.has_length ? no_lengths.data() : nullptr);
  }
  const auto play = [&](std::span<const void* const> action) {
    clear_outcome();
    return advance(action, lengths, scratch) &&
           (!episode_over_ || reset_handle(std::nullopt, at_reset));
  };

  std::int64_t noops = 0;
  if (t.noop_max > 0) {
    noops =
        std::max<std::int64_t>(0, t.noop_min + draw(static_cast<std::uint32_t>(t.noop_max)) - fire);
  }
  if (fire && t.fire_order == FireOrder::kFirst && !play(fire_action)) return false;
  for (; noops > 0; --noops) {
    if (!play(noop_action)) return false;
  }
  return !fire || t.fire_order == FireOrder::kFirst || play(fire_action);
}

// Uniform in 0 .. n-1, the numbers of libstdc++'s uniform_int_distribution over mt19937 (Lemire's
// method), which ale_py and EnvPool draw their no-ops from.
std::uint32_t Env::draw(std::uint32_t n) {
  std::uint64_t product = std::uint64_t{noop_generator_()} * n;
  const std::uint32_t least = (0 - n) % n;
  while (static_cast<std::uint32_t>(product) < least)
    product = std::uint64_t{noop_generator_()} * n;
  return static_cast<std::uint32_t>(product >> 32);
}

// ---- step ---------------------------------------------------------------------------------------

void Env::step(std::span<const void* const> action, std::span<const std::uint32_t* const> lengths,
               Scratch& scratch) {
  clear_outcome();
  if (!repeat_action(action, lengths, scratch)) return;
  if (elapsed_ < std::numeric_limits<std::int32_t>::max())
    ++elapsed_;  // no limit: it may get there
  for (std::uint32_t agent = 0; agent < plan_.agents; ++agent) return_[agent] += reward_[agent];
  game_over_ = episode_over_;
  if (life_over_) {
    std::fill(terminated_.begin(), terminated_.end(), std::uint8_t{1});
    episode_over_ = true;
  }
  apply_limit();
  over_ = episode_over_;
}

bool Env::repeat_action(std::span<const void* const> action,
                        std::span<const std::uint32_t* const> lengths, Scratch& scratch) {
  const Transforms& t = plan_.settings.transforms;
  const bool stale = t.last_frame == LastFrame::kStale && !frames_.empty();
  bool have_before = false;
  for (std::int64_t frame = 1;; ++frame) {
    if (!advance(action, lengths, scratch)) return false;
    bool stop = episode_over_;
    if (plan_.lives && (t.stop_on_life_loss || stop || frame == t.frame_skip)) {
      if (!look_at_lives(scratch)) return false;
      stop = stop || (life_over_ && t.stop_on_life_loss);
    }
    if (stale) {
      if (!stop && !keep_stale_frame(frame, t.frame_skip, scratch)) return false;
    } else if (t.max_last_two && !stop && frame == t.frame_skip - 1) {
      if (!observe_frames(scratch.before, scratch)) return false;
      have_before = true;
    }
    if (stop || frame == t.frame_skip) break;
  }
  if (stale) {
    push_stale_frames(scratch);
    return true;
  }
  if (!observe_frames(scratch.newest, scratch)) return false;
  push_frames(scratch.newest.data(), have_before ? scratch.before.data() : nullptr, Fill::kPush,
              scratch);
  return true;
}

// One step of the plugin's; adds to the outcome.
bool Env::advance(std::span<const void* const> action,
                  std::span<const std::uint32_t* const> lengths, Scratch& scratch) {
  const std::uint32_t agents = plan_.agents;
  std::fill(scratch.reward.begin(), scratch.reward.end(), 0.0);
  std::fill(scratch.terminated.begin(), scratch.terminated.end(), std::uint8_t{0});
  std::fill(scratch.truncated.begin(), scratch.truncated.end(), std::uint8_t{0});
  std::fill(scratch.alive.begin(), scratch.alive.end(), std::uint8_t{1});
  std::uint8_t episode_over = 0;
  const ep_input in{sizeof in, agents, action.data(), lengths.data()};
  const ep_result out{sizeof out,
                      agents,
                      scratch.reward.data(),
                      scratch.terminated.data(),
                      scratch.truncated.data(),
                      agents > 1 ? scratch.alive.data() : nullptr,
                      agents > 1 ? &episode_over : nullptr};
  if (!check(plan_.task.step(handle_, &in, &out), "step")) return false;
  for (std::uint32_t agent = 0; agent < agents; ++agent) {
    reward_[agent] += scratch.reward[agent];
    terminated_[agent] |= static_cast<std::uint8_t>(scratch.terminated[agent] != 0);
    truncated_[agent] |= static_cast<std::uint8_t>(scratch.truncated[agent] != 0);
    alive_[agent] = scratch.alive[agent] != 0;
  }
  episode_over_ = agents > 1 ? episode_over != 0 : terminated_[0] || truncated_[0];
  return true;
}

void Env::apply_limit() {
  if (plan_.limit == 0 || elapsed_ < plan_.limit) return;
  game_over_ = true;  // out of time: the next reset is a real one
  for (std::uint32_t agent = 0; agent < plan_.agents; ++agent) {
    if (plan_.settings.both_flags || !terminated_[agent]) truncated_[agent] = 1;
  }
  episode_over_ = true;
}

// Reads the lives and notes a lost one.
bool Env::look_at_lives(Scratch& scratch) {
  std::int32_t lives = 0;
  std::fill(scratch.info.begin(), scratch.info.end(), nullptr);
  std::fill(scratch.info_length.begin(), scratch.info_length.end(), nullptr);
  scratch.info[*plan_.lives] = &lives;
  const ep_view view{sizeof view,
                     plan_.agents,
                     nullptr,
                     scratch.info.data(),
                     nullptr,
                     nullptr,
                     scratch.info_length.data(),
                     nullptr};
  if (!check(plan_.task.observe(handle_, &view), "observe")) return false;
  const bool enough = lives > 0 || plan_.settings.transforms.life_loss_at_zero;
  life_over_ = life_over_ || (lives < lives_ && enough);
  lives_ = lives;
  return true;
}

// ---- frames -------------------------------------------------------------------------------------

// The plugin's present raw frames of all image fields that have a transform, one after the other.
bool Env::observe_frames(std::vector<std::uint8_t>& raw, Scratch& scratch) {
  if (frames_.empty()) return true;
  std::uint8_t* at = raw.data();
  for (std::size_t i = 0; i < plan_.obs.size(); ++i) {
    scratch.obs[i] = plan_.obs[i].image ? at : nullptr;
    scratch.obs_length[i] = nullptr;
    at += plan_.obs[i].raw_bytes;
  }
  const ep_view view{sizeof view, plan_.agents, scratch.obs.data(),
                     nullptr,     nullptr,      scratch.obs_length.data(),
                     nullptr,     nullptr};
  return check(plan_.task.observe(handle_, &view), "observe");
}

void Env::push_frames(const std::uint8_t* newest, const std::uint8_t* before, Fill fill,
                      Scratch& scratch) {
  for (std::size_t i = 0; i < frames_.size(); ++i) {
    const ImageTransform& image = image_of(i);
    Frames& frames = frames_[i];
    frames.newest = (frames.newest + 1) % image.stack_num();
    std::uint8_t* slot = frames.ring.data() + frames.newest * image.frame_bytes();
    image.run(newest, before, slot, scratch.image.data());
    if (fill == Fill::kAll) {
      for (std::size_t other = 0; other < image.stack_num(); ++other) {
        std::uint8_t* to = frames.ring.data() + other * image.frame_bytes();
        if (to == slot) continue;
        if (plan_.settings.transforms.stack_pad == StackPad::kFirst) {
          std::memcpy(to, slot, image.frame_bytes());
        } else {
          std::memset(to, 0, image.frame_bytes());
        }
      }
    }
    if (!frames.pooled.empty()) {  // LastFrame::kStale: this is what a reset shows
      image.convert(newest, frames.pooled.data(), scratch.image.data());
      std::fill(frames.before.begin(), frames.before.end(), std::uint8_t{0});
    }
    newest += image.raw_bytes();
    if (before) before += image.raw_bytes();
  }
}

// LastFrame::kStale: two converted frames live from step to step. The last but one of a whole skip
// goes to `before`, the last one to `pooled`; a frame that stopped the skip to neither.
bool Env::keep_stale_frame(std::int64_t frame, std::int64_t skip, Scratch& scratch) {
  const bool last = frame == skip;
  if (!last && frame != skip - 1) return true;
  if (!observe_frames(scratch.newest, scratch)) return false;
  const std::uint8_t* raw = scratch.newest.data();
  for (std::size_t i = 0; i < frames_.size(); ++i) {
    Frames& frames = frames_[i];
    image_of(i).convert(raw, last ? frames.pooled.data() : frames.before.data(),
                        scratch.image.data());
    raw += image_of(i).raw_bytes();
  }
  return true;
}

void Env::push_stale_frames(Scratch& scratch) {
  const Transforms& t = plan_.settings.transforms;
  for (std::size_t i = 0; i < frames_.size(); ++i) {
    const ImageTransform& image = image_of(i);
    Frames& frames = frames_[i];
    if (t.max_last_two && t.frame_skip > 1) {
      max_into(frames.pooled.data(), frames.before.data(), frames.pooled.size());
    }
    frames.newest = (frames.newest + 1) % image.stack_num();
    image.finish(frames.pooled.data(), frames.ring.data() + frames.newest * image.frame_bytes(),
                 scratch.image.data());
  }
}

// ---- rows ---------------------------------------------------------------------------------------

void Env::write(const Row& row, Scratch& scratch) {
  if (!write_fields(row, scratch)) zero_fields(row);
  write_pool_columns(row);
}

// Asks the plugin for all fields but transformed images, straight into the row.
bool Env::write_fields(const Row& row, Scratch& scratch) {
  if (!begun_) return false;
  const auto aim = [&](const std::vector<Target>& targets, std::vector<void*>& to,
                       std::vector<std::uint32_t*>& lengths) {
    for (std::size_t i = 0; i < targets.size(); ++i) {
      to[i] = targets[i].image ? nullptr : row.at(plan_, targets[i].column);
      lengths[i] = targets[i].length_column
                       ? reinterpret_cast<std::uint32_t*>(row.at(plan_, *targets[i].length_column))
                       : nullptr;
    }
  };
  aim(plan_.obs, scratch.obs, scratch.obs_length);
  aim(plan_.info, scratch.info, scratch.info_length);
  aim(plan_.global, scratch.global, scratch.global_length);
  const ep_view view{sizeof view,
                     plan_.agents,
                     data_or_null(scratch.obs),
                     data_or_null(scratch.info),
                     data_or_null(scratch.global),
                     data_or_null(scratch.obs_length),
                     data_or_null(scratch.info_length),
                     data_or_null(scratch.global_length)};
  if (plan_.observes_in_write && !check(plan_.task.observe(handle_, &view), "observe"))
    return false;
  if (plan_.has_lengths && !pad_ragged(row)) return false;

  for (std::size_t i = 0; i < frames_.size(); ++i) {
    const Frames& frames = frames_[i];
    const ImageTransform& image = image_of(i);
    // Oldest first: the ring from behind the newest to its end, then from its start to the newest.
    const std::size_t older = (frames.newest + 1) % image.stack_num() * image.frame_bytes();
    const ImageTarget& target = plan_.images[i];
    std::byte* to = row.at(plan_, plan_.obs[target.obs].column) + target.offset;
    std::memcpy(to, frames.ring.data() + older, frames.ring.size() - older);
    std::memcpy(to + (frames.ring.size() - older), frames.ring.data(), older);
  }
  return true;
}

// Zeros behind the length of ragged values, so that rows hold no bytes of earlier batches.
bool Env::pad_ragged(const Row& row) {
  const auto pad = [&](const std::vector<Field>& fields, const std::vector<Target>& targets) {
    for (std::size_t i = 0; i < targets.size(); ++i) {
      if (!targets[i].length_column) continue;
      const Field& field = fields[i];
      const auto most = static_cast<std::uint32_t>(field.shape[0]);
      const std::size_t agent_bytes = field.count() * bytes_of(field.dtype);
      for (std::size_t agent = 0; agent < field.agents(plan_.agents); ++agent) {
        std::uint32_t length;
        std::memcpy(&length, row.at(plan_, *targets[i].length_column) + agent * sizeof length,
                    sizeof length);
        if (length > most) {
          fail(EP_E_FAILED, "observe",
               "field '" + field.name + "' has length " + std::to_string(length) +
                   ", its maximum is " + std::to_string(most));
          return false;
        }
        const std::size_t used = agent_bytes / most * length;
        std::memset(row.at(plan_, targets[i].column) + agent * agent_bytes + used, 0,
                    agent_bytes - used);
      }
    }
    return true;
  };
  return pad(plan_.source.obs, plan_.obs) && pad(plan_.source.info, plan_.info) &&
         pad(plan_.source.global, plan_.global);
}

void Env::zero_fields(const Row& row) const {
  for (std::uint32_t column = 0; column < plan_.pool.first; ++column) {
    std::memset(row.at(plan_, column), 0, plan_.columns[column].row_bytes);
  }
}

void Env::write_pool_columns(const Row& row) const {
  const PoolColumns& to = plan_.pool;
  put(plan_, row, to.env_id, 0, static_cast<std::int32_t>(id_));
  put(plan_, row, to.elapsed_step, 0, elapsed_);
  put(plan_, row, to.fault, 0, fault_);
  for (std::uint32_t agent = 0; agent < plan_.agents; ++agent) {
    put(plan_, row, to.episode_return, agent, return_[agent]);
    put(plan_, row, to.alive, agent, alive_[agent]);
    put(plan_, row, to.player_env_id, agent, static_cast<std::int32_t>(id_));
  }
  write_outcome(row);
}

void Env::write_outcome(const Row& row) const {
  const PoolColumns& to = plan_.pool;
  for (std::uint32_t agent = 0; agent < plan_.agents; ++agent) {
    const double raw = reward_[agent];
    const double reward = plan_.settings.transforms.reward_clip ? sign(raw) : raw;
    if (plan_.settings.float32_reward) {
      put(plan_, row, to.reward, agent, static_cast<float>(reward));
    } else {
      put(plan_, row, to.reward, agent, reward);
    }
    put(plan_, row, to.raw_reward, agent, static_cast<float>(raw));
    put(plan_, row, to.terminated, agent, terminated_[agent]);
    put(plan_, row, to.truncated, agent, truncated_[agent]);
    put(plan_, row, to.terminated_int32, agent, std::int32_t{terminated_[agent]});
    put(plan_, row, to.time_limit, agent, truncated_[agent]);
  }
  put(plan_, row, to.episode_over, 0, episode_over_);
}

// ---- pictures and state -------------------------------------------------------------------------

Env::Picture Env::render(std::uint32_t width, std::uint32_t height, std::uint32_t camera) {
  const std::string who = std::string(plan_.task.id) + ", env " + std::to_string(id_) + ": ";
  const auto* render = extension<ep_render>(plan_.task, EP_EXT_RENDER, sizeof(ep_render));
  if (!render || !(render->formats & (1u << EP_RGB8))) {
    throw Error(ErrorKind::kValue, who + "this task can't render RGB pictures");
  }
  if (!begun_) throw Error(ErrorKind::kRuntime, who + "reset it before rendering");
  ep_image image{};
  image.size = sizeof image;
  image.format = EP_RGB8;
  image.width = width;
  image.height = height;
  image.camera = camera;
  if (const ep_status status = render->measure(handle_, &image)) {
    throw refusal(status == EP_E_ARGUMENT ? ErrorKind::kValue : ErrorKind::kRuntime, status,
                  "render(width=" + std::to_string(width) + ", height=" + std::to_string(height) +
                      ", camera=" + std::to_string(camera) + ")");
  }
  if (image.width == 0 || image.height == 0 || image.width > kMostPixels ||
      image.height > kMostPixels) {
    throw Error(ErrorKind::kValue, who + "render: width=" + std::to_string(image.width) +
                                       ", height=" + std::to_string(image.height) +
                                       ", allowed: 1 .. " + std::to_string(kMostPixels));
  }
  Picture picture{image.width, image.height, {}};
  image.row_bytes = std::uint64_t{3} * image.width;
  picture.pixels.resize(image.row_bytes * image.height);
  image.pixels = picture.pixels.data();
  if (const ep_status status = render->draw(handle_, &image)) {
    throw refusal(ErrorKind::kRuntime, status, "render");
  }
  return picture;
}

}  // namespace envpool::runtime
