// game.hpp - one game of Procgen's library: made from a seed, played an action at a time.
#ifndef LIBENV_PROCGEN_GAME_HPP
#define LIBENV_PROCGEN_GAME_HPP

#include <array>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "libenv.hpp"

// What every game of Procgen observes and offers.
constexpr int frame_size = 64;
constexpr int action_count = 15;
using frame = std::array<std::uint8_t, frame_size * frame_size * 3>;

// The values of libenv_make(), by the names that Procgen has for them.
class settings {
 public:
  void add(const char* name, const std::string& value) {
    put(name, libenv::UINT8, std::vector<char>(value.begin(), value.end()), value.size());
  }
  void add(const char* name, bool value) {
    put(name, libenv::UINT8, {static_cast<char>(value)}, 1);
  }
  void add(const char* name, std::int32_t value) {
    std::vector<char> bytes(sizeof value);
    std::memcpy(bytes.data(), &value, sizeof value);
    put(name, libenv::INT32, std::move(bytes), 1);
  }
  libenv::options get() { return {items_.data(), static_cast<int>(items_.size())}; }

 private:
  void put(const char* name, int dtype, std::vector<char> bytes, std::size_t count) {
    libenv::option& o = items_.emplace_back();
    std::strncpy(o.name, name, sizeof o.name - 1);
    o.dtype = dtype;
    o.count = static_cast<int>(count);
    o.data = values_.emplace_back(std::move(bytes)).data();
  }
  std::vector<libenv::option> items_;
  std::deque<std::vector<char>> values_;  // a deque: what items_ points to stays in place
};

class game {
 public:
  game(const libenv::library& lib, settings with) : lib_(lib) {
    {
      // The first game of a process loads all pictures, into globals.
      static std::mutex one_at_a_time;
      const std::lock_guard lock(one_at_a_time);
      handle_.reset(lib.make(1, with.get()));
    }
    if (!handle_) throw envpool::error(EP_E_FAILED, "Procgen's library made no game");
    const libenv::tensor obs = only(libenv::OBSERVATION), act = only(libenv::ACTION);
    if (obs.dtype != libenv::UINT8 || obs.rank != 3 || obs.shape[0] != frame_size ||
        obs.shape[1] != frame_size || obs.shape[2] != 3 || act.dtype != libenv::INT32 ||
        act.rank != 0 || act.high.int32 != action_count - 1)
      throw envpool::error(EP_E_UNSUPPORTED, "a Procgen with other observations or actions");
    for (const libenv::tensor& t : tensors(libenv::INFO)) info_.push_back(place(t.name));
    buffers_ = {obs_, &reward_, &first_, info_.data(), act_};
    lib.set_buffers(handle_.get(), &buffers_);
    lib.observe(handle_.get());
  }
  game(const game&) = delete;
  game& operator=(const game&) = delete;

  // Plays one action; `restart` ends the episode instead.
  static constexpr std::int32_t restart = -1;
  void play(std::int32_t action) {
    action_ = action;
    lib_.act(handle_.get());
    lib_.observe(handle_.get());
  }

  const frame& picture() const { return frame_; }
  float reward() const { return reward_; }
  // The last action ended an episode: the picture is the next one's first.
  bool first() const { return first_ != 0; }
  // The level that the last action was played in.
  std::int32_t level_seed() const { return first() ? prev_level_seed_ : level_seed_; }
  // The level that the picture shows.
  std::int32_t next_level_seed() const { return level_seed_; }
  bool level_complete() const { return prev_level_complete_ != 0; }

  std::vector<char> state() const {
    constexpr int most = 1 << 20;
    std::vector<char> out(most);
    out.resize(static_cast<std::size_t>(lib_.get_state(handle_.get(), 0, out.data(), most)));
    return out;
  }
  // Only what state() gave, of a game made with the same settings: anything else ends the process.
  void set_state(std::span<const char> from) {
    lib_.set_state(handle_.get(), 0, from.data(), static_cast<int>(from.size()));
    lib_.observe(handle_.get());
  }

 private:
  std::vector<libenv::tensor> tensors(libenv::space of) const {
    std::vector<libenv::tensor> out(
        static_cast<std::size_t>(lib_.tensors(handle_.get(), of, nullptr)));
    if (!out.empty()) lib_.tensors(handle_.get(), of, out.data());
    return out;
  }
  libenv::tensor only(libenv::space of) const {
    const auto all = tensors(of);
    if (all.size() != 1)
      throw envpool::error(EP_E_UNSUPPORTED, "a Procgen with other observations or actions");
    return all[0];
  }
  void* place(const std::string& info) {
    if (info == "level_seed") return &level_seed_;
    if (info == "prev_level_seed") return &prev_level_seed_;
    if (info == "prev_level_complete") return &prev_level_complete_;
    throw envpool::error(EP_E_UNSUPPORTED, "a Procgen with an unknown info: " + info);
  }

  struct closer {
    const libenv::library* lib;
    void operator()(libenv::handle* h) const { lib->close(h); }
  };

  const libenv::library& lib_;
  frame frame_{};
  std::int32_t action_ = 0, level_seed_ = 0, prev_level_seed_ = 0;
  float reward_ = 0;
  std::uint8_t first_ = 0, prev_level_complete_ = 0;
  void* obs_[1] = {frame_.data()};
  void* act_[1] = {&action_};
  std::vector<void*> info_ = {};
  libenv::buffers buffers_ = {};
  std::unique_ptr<libenv::handle, closer> handle_{nullptr, closer{&lib_}};
};

#endif  // LIBENV_PROCGEN_GAME_HPP
