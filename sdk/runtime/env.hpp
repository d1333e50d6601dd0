// env.hpp - one env of a pool: its handle in the plugin, its episode, its frames. No thread of its
// own, no lock: the pool lets one thread at a time in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "episodes.hpp"
#include "error.hpp"
#include "plan.hpp"

namespace envpool::runtime {

// Where a row goes: the data of each of Plan::columns, and which row of them.
struct Row {
  std::span<std::byte* const> columns;
  std::uint32_t index;

  std::byte* at(const Plan& plan, std::uint32_t column) const {
    return columns[column] + index * plan.columns[column].row_bytes;
  }
};

// Working memory of a thread that runs envs, so that an env need not have its own and caches stay
// warm.
class Scratch {
 public:
  explicit Scratch(const Plan& plan);

  std::vector<std::uint8_t> newest, before;  // raw frames of all image fields
  std::vector<std::uint8_t> image;           // for ImageTransform
  std::vector<void*> obs, info, global;      // for ep_view
  std::vector<std::uint32_t*> obs_length, info_length, global_length;
  std::vector<double> reward;  // for ep_result, one an agent
  std::vector<std::uint8_t> terminated, truncated, alive;
};

class Env {
 public:
  // Keeps its part of `episodes`: that of `place`, which is its id but for an env made aside.
  Env(const Plan& plan, std::uint32_t id, std::shared_ptr<const Options> options,
      Episodes& episodes, std::uint32_t place);
  ~Env() { destroy(); }
  Env(const Env&) = delete;
  Env& operator=(const Env&) = delete;

  // Makes the plugin's env. False: failed(), and why.
  bool create();
  // On the thread that may do so; also done by the destructor. Twice is safe.
  void destroy() noexcept;

  // Begins an episode. No seed: the env goes on with its generator. at_reset: null for the options
  // that the env was made with. With neither, a game that only lost a life may go on, see
  // LifeLossReset.
  void reset(std::optional<std::uint64_t> seed, const Options* at_reset, Scratch& scratch);
  // Advances by one step of the user's: action and lengths hold one pointer a field (lengths:
  // nullptr unless the field has them). Call reset() instead when over().
  void step(std::span<const void* const> action, std::span<const std::uint32_t* const> lengths,
            Scratch& scratch);

  // The outcome when the process that ran the env is gone: a fault. alive: per agent, before it.
  void lost(std::span<const std::uint8_t> alive);
  // Stands for an env that was played, and lost with its process: its next reset is a respawn.
  void inherit(std::uint64_t seed, std::uint64_t respawns);

  // Says that reset() will come soon: in a pool of many small envs their memory is far away.
  void prefetch() const {
    constexpr std::size_t kLine = 64;
    const auto* end = reinterpret_cast<const std::byte*>(&seed_);
    for (auto* at = reinterpret_cast<const std::byte*>(this); at < end; at += kLine) {
      __builtin_prefetch(at);
    }
    __builtin_prefetch(handle_);
  }

  // The outcome of a step by ext/batch.h that failed.
  void step_failed(ep_status status);

  // Writes what is true now to every column of the row. Any number of times.
  void write(const Row& row, Scratch& scratch);

  bool over() const { return over_; }      // the episode ended, or there was none yet
  bool played() const { return played_; }  // some reset has succeeded
  bool fault() const { return fault_; }    // the last step or reset failed
  const std::string& message() const { return message_; }       // why
  std::int32_t elapsed() const { return elapsed_; }             // steps since the reset
  std::span<const double> returned() const { return return_; }  // per agent
  std::uint64_t seed() const { return seed_; }                  // of the last seeded reset
  std::uint64_t respawns() const { return respawns_; }
  std::span<const std::uint8_t> alive() const { return alive_; }  // per agent

  // uint8[height][width][3]; throws Error(kValue, kRuntime).
  struct Picture {
    std::uint32_t width, height;
    std::vector<std::uint8_t> pixels;
  };
  Picture render(std::uint32_t width, std::uint32_t height, std::uint32_t camera);

  // The state of the env and of all that is kept for it here. Throw Error(kValue, kRuntime).
  std::vector<std::byte> save();
  void load(std::span<const std::byte> state);

 private:
  // Frames of one image.
  struct Frames {
    std::vector<std::uint8_t> ring;  // stack_num finished frames
    std::size_t newest = 0;
    std::vector<std::uint8_t> pooled,
        before;  // LastFrame::kStale: converted frames that outlive a step
  };
  enum class Fill { kAll, kPush };

  void begin(std::optional<std::uint64_t> seed, bool go_on, const Options& at_reset,
             Scratch& scratch);
  bool reset_handle(std::optional<std::uint64_t> seed, const Options& at_reset);
  bool play_in(const Options& at_reset, Scratch& scratch);
  bool advance(std::span<const void* const> action, std::span<const std::uint32_t* const> lengths,
               Scratch& scratch);
  bool repeat_action(std::span<const void* const> action,
                     std::span<const std::uint32_t* const> lengths, Scratch& scratch);
  const ImageTransform& image_of(std::size_t i) const {
    return *plan_.obs[plan_.images[i].obs].image;
  }
  bool observe_frames(std::vector<std::uint8_t>& raw, Scratch& scratch);
  bool keep_stale_frame(std::int64_t frame, std::int64_t skip, Scratch& scratch);
  void push_frames(const std::uint8_t* newest, const std::uint8_t* before, Fill fill,
                   Scratch& scratch);
  void push_stale_frames(Scratch& scratch);
  bool look_at_lives(Scratch& scratch);
  void clear_outcome();
  void adopt(Env&& other);
  void apply_limit();
  void fail(ep_status status, const char* call, const std::string& why);
  Error refusal(ErrorKind kind, ep_status status, const std::string& call);
  bool check(ep_status status, const char* call);
  bool write_fields(const Row& row, Scratch& scratch);
  bool pad_ragged(const Row& row);
  void zero_fields(const Row& row) const;
  void write_pool_columns(const Row& row) const;
  void write_outcome(const Row& row) const;
  std::uint32_t draw(std::uint32_t n);

  const Plan& plan_;
  const std::uint32_t id_;
  const std::shared_ptr<const Options> options_;
  const Options at_reset_;  // of resets that say nothing else
  void*& handle_;
  bool begun_ = false;  // this handle was reset or loaded: it may be stepped and observed

  // The episode. Per agent where the comment says so.
  std::int32_t& elapsed_;
  // over_: for the user. game_over_: for the plugin or by the time limit, so that only a real reset
  // goes on. life_over_: a life was lost. episode_over_: the last step ended the episode for all
  // agents.
  std::uint8_t& over_;
  bool game_over_ = true, life_over_ = false, fault_ = false, episode_over_ = false;
  const std::span<double> reward_, return_;               // per agent, raw
  const std::span<std::uint8_t> terminated_, truncated_;  // per agent
  std::vector<std::uint8_t> alive_;                       // per agent
  bool played_ = false;
  std::int32_t lives_ = 0;
  std::vector<Frames> frames_;  // of Plan::images

  // Seldom looked at, and large: behind the rest.
  std::uint64_t seed_ = 0;
  std::uint64_t respawns_ = 0;
  std::string message_;
  std::mt19937 noop_generator_;
};

}  // namespace envpool::runtime
