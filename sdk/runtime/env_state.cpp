// env_state.cpp - an env as bytes: what the plugin saves, then what this runtime keeps for it.
#include <envpool/ext/state.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <sstream>
#include <type_traits>

#include "env.hpp"
#include "error.hpp"

namespace envpool::runtime {
namespace {

// Changes with the order or meaning of what Env::save writes.
constexpr std::uint64_t kFormat = 0x31305453'4C4F4F50;  // "POOLST01"

class Writer {
 public:
  void bytes(const void* data, std::size_t count) {
    const auto* from = static_cast<const std::byte*>(data);
    out_.insert(out_.end(), from, from + count);
  }
  template <class T>
  void value(const T& v) {
    static_assert(std::is_trivially_copyable_v<T>);
    bytes(&v, sizeof v);
  }
  template <class Container>
  void sized(const Container& c) {
    value(static_cast<std::uint64_t>(c.size()));
    bytes(c.data(), c.size() * sizeof(*c.data()));
  }
  // Ends with the checksum of all that stands before it.
  std::vector<std::byte> take();

 private:
  std::vector<std::byte> out_;
};

// Every change of a single word changes it, since each step can be undone.
std::uint64_t checksum(std::span<const std::byte> bytes) {
  std::uint64_t sum = bytes.size();
  while (!bytes.empty()) {
    std::uint64_t word = 0;
    const std::size_t count = std::min(bytes.size(), sizeof word);
    std::memcpy(&word, bytes.data(), count);
    sum = (sum ^ word) * 0x9E3779B97F4A7C15;  // odd
    sum ^= sum >> 32;
    bytes = bytes.subspan(count);
  }
  return sum;
}

std::vector<std::byte> Writer::take() {
  value(checksum(out_));
  return std::move(out_);
}

class Reader {
 public:
  explicit Reader(std::span<const std::byte> in) : whole_(in), in_(in) {}

  template <class T>
  T value() {
    T v;
    std::memcpy(&v, next(sizeof v).data(), sizeof v);
    return v;
  }
  std::span<const std::byte> sized() {
    const auto count = value<std::uint64_t>();
    return next(count);
  }
  // Fills `c`, which has its size already.
  template <class Container>
  void fill(Container& c) {
    const auto count = value<std::uint64_t>();
    if (count != c.size())
      throw Error(ErrorKind::kValue, "the state is of an env with other settings");
    const auto from = next(count * sizeof(*c.data()));
    std::memcpy(c.data(), from.data(), from.size());
  }
  // Takes the checksum off the end; what was read before counts too.
  void check_end() {
    std::uint64_t sum;
    if (in_.size() < sizeof sum) throw Error(ErrorKind::kValue, "the state is cut short");
    const auto body = whole_.first(whole_.size() - sizeof sum);
    std::memcpy(&sum, body.data() + body.size(), sizeof sum);
    if (checksum(body) != sum) throw Error(ErrorKind::kValue, "the state is damaged or cut short");
    in_ = in_.first(in_.size() - sizeof sum);
  }
  bool done() const { return in_.empty(); }

 private:
  std::span<const std::byte> next(std::size_t count) {
    if (count > in_.size()) throw Error(ErrorKind::kValue, "the state is cut short");
    const auto head = in_.first(count);
    in_ = in_.subspan(count);
    return head;
  }

  const std::span<const std::byte> whole_;
  std::span<const std::byte> in_;  // what is still to be read
};

const ep_state& state_extension(const ep_task& task) {
  const auto* state = extension<ep_state>(task, EP_EXT_STATE, sizeof(ep_state));
  if (!state)
    throw Error(ErrorKind::kValue, std::string(task.id) + ": this task can't save its state");
  return *state;
}

// std::mt19937 has no other portable form than text; its own reader takes numbers that are none of
// its states.
std::mt19937 generator_from(std::span<const std::byte> text) {
  const std::string copy(reinterpret_cast<const char*>(text.data()), text.size());
  std::istringstream in(copy);
  std::mt19937 generator;
  std::uint64_t word = 0;
  bool good = true;
  for (std::size_t i = 0; i < std::mt19937::state_size; ++i)
    good = in >> word && word <= UINT32_MAX && good;
  in.clear();
  in.seekg(0);
  if (!good || !(in >> generator)) throw Error(ErrorKind::kValue, "the state is damaged");
  return generator;
}

// Bytes that outlive the process where the task has them.
std::int32_t purpose_of(const ep_state& state) {
  return state.purposes & (1u << EP_STATE_PERSIST) ? EP_STATE_PERSIST : EP_STATE_CLONE;
}

}  // namespace

std::vector<std::byte> Env::save() {
  const ep_state& state = state_extension(plan_.task);
  const std::string who = std::string(plan_.task.id) + ", env " + std::to_string(id_) + ": ";
  if (!begun_ || !played_)
    throw Error(ErrorKind::kRuntime, who + "reset it before saving its state");

  std::vector<std::byte> plugin_state;
  const ep_writer writer{
      &plugin_state, [](const ep_writer* w, const void* data, std::uint64_t count) -> ep_status {
        try {
          const auto* from = static_cast<const std::byte*>(data);
          auto& to = *static_cast<std::vector<std::byte>*>(w->ctx);
          to.insert(to.end(), from, from + count);
          return EP_OK;
        } catch (...) {
          return EP_E_NOMEM;
        }
      }};
  if (const ep_status status = state.save(handle_, purpose_of(state), &writer)) {
    throw refusal(ErrorKind::kRuntime, status, "save_state");
  }

  std::ostringstream generator;  // the only portable form of std::mt19937
  generator << noop_generator_;
  Writer out;
  out.value(kFormat);
  out.sized(std::string(plan_.task.id));
  out.sized(plugin_state);
  for (const bool flag : {over_ != 0, game_over_, life_over_, fault_, episode_over_}) {
    out.value(flag);
  }
  out.value(elapsed_);
  out.value(lives_);
  out.value(seed_);
  out.value(respawns_);
  out.sized(reward_);
  out.sized(return_);
  out.sized(terminated_);
  out.sized(truncated_);
  out.sized(alive_);
  out.sized(generator.str());
  for (const Frames& frames : frames_) {
    out.value(static_cast<std::uint64_t>(frames.newest));
    out.sized(frames.ring);
    out.sized(frames.pooled);
    out.sized(frames.before);
  }
  return out.take();
}

void Env::load(std::span<const std::byte> bytes) {
  const ep_state& state = state_extension(plan_.task);
  // Read all into a second env first, so that bad bytes change nothing.
  Episodes aside(1, plan_.agents);
  Env loaded(plan_, id_, options_, aside, 0);
  std::span<const std::byte> plugin_state;
  try {
    Reader in(bytes);
    if (bytes.size() < sizeof kFormat || in.value<std::uint64_t>() != kFormat) {
      throw Error(ErrorKind::kValue, "these bytes are no saved state");
    }
    in.check_end();
    const auto id = in.sized();
    if (std::string_view(reinterpret_cast<const char*>(id.data()), id.size()) != plan_.task.id) {
      throw Error(ErrorKind::kValue, "the state is of another task");
    }
    plugin_state = in.sized();
    loaded.over_ = in.value<std::uint8_t>() != 0;
    for (bool* flag :
         {&loaded.game_over_, &loaded.life_over_, &loaded.fault_, &loaded.episode_over_}) {
      *flag = in.value<std::uint8_t>() != 0;
    }
    loaded.elapsed_ = in.value<std::int32_t>();
    loaded.lives_ = in.value<std::int32_t>();
    loaded.seed_ = in.value<std::uint64_t>();
    loaded.respawns_ = in.value<std::uint64_t>();
    in.fill(loaded.reward_);
    in.fill(loaded.return_);
    in.fill(loaded.terminated_);
    in.fill(loaded.truncated_);
    in.fill(loaded.alive_);
    loaded.noop_generator_ = generator_from(in.sized());
    for (Frames& frames : loaded.frames_) {
      frames.newest = in.value<std::uint64_t>();
      in.fill(frames.ring);
      in.fill(frames.pooled);
      in.fill(frames.before);
    }
    for (std::size_t i = 0; i < loaded.frames_.size(); ++i) {
      if (loaded.frames_[i].newest >= image_of(i).stack_num()) {
        throw Error(ErrorKind::kValue, "the state is damaged");
      }
    }
    if (!in.done()) throw Error(ErrorKind::kValue, "the state is too long");
  } catch (const Error& error) {
    throw Error(error.kind(), std::string(plan_.task.id) + ", env " + std::to_string(id_) +
                                  ": load_state: " + error.what());
  }

  if (!handle_ && !create()) throw Error(ErrorKind::kRuntime, message_);
  if (const ep_status status =
          state.load(handle_, purpose_of(state), plugin_state.data(), plugin_state.size())) {
    throw refusal(status == EP_E_BROKEN ? ErrorKind::kRuntime : ErrorKind::kValue, status,
                  "load_state");
  }
  adopt(std::move(loaded));
}

// Takes over everything but the handle, the options and who we are.
void Env::adopt(Env&& other) {
  over_ = other.over_;
  game_over_ = other.game_over_;
  life_over_ = other.life_over_;
  fault_ = other.fault_;
  episode_over_ = other.episode_over_;
  played_ = begun_ = true;
  elapsed_ = other.elapsed_;
  lives_ = other.lives_;
  seed_ = other.seed_;
  respawns_ = other.respawns_;
  std::ranges::copy(other.reward_, reward_.begin());
  std::ranges::copy(other.return_, return_.begin());
  std::ranges::copy(other.terminated_, terminated_.begin());
  std::ranges::copy(other.truncated_, truncated_.begin());
  alive_ = std::move(other.alive_);
  noop_generator_ = other.noop_generator_;
  frames_ = std::move(other.frames_);
}

}  // namespace envpool::runtime
