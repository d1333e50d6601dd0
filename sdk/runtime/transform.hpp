// transform.hpp - what the pool does between an env and its user: settings, and the work on image
// fields.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "image.hpp"
#include "spec.hpp"

namespace envpool::runtime {

// How an automatic reset goes on after a life was lost (episodic_life) in a game that isn't over.
enum class LifeLossReset {
  kContinue,  // the game goes on: frame stack, elapsed steps and return are kept (EnvPool)
  kReal,      // the game starts anew (Gymnasium's AtariPreprocessing, ale_py's vector env)
};

// With what a frame stack is filled at reset, before its newest frame.
enum class StackPad { kFirst, kZero };

// Which frame a step shows whose skip was cut short.
enum class LastFrame {
  kTrue,   // the last one, and the maximum with the one before it if that is the last but one of a
           // whole skip
  kStale,  // the frame that stopped the skip is never looked at (Gymnasium's AtariPreprocessing,
           // ale_py's vector env)
};

// Where the FIRE step of a reset stands, relative to its no-ops.
enum class FireOrder { kFirst, kLast };

// Settings of one pool; the defaults change nothing. docs/dev/atari-semantics.md tells which ones
// make which peer.
struct Transforms {
  std::int64_t frame_skip = 1;  // env steps that an action is repeated for; rewards are summed
  bool max_last_two = false;    // maximum over the last two frames of a skip
  LastFrame last_frame = LastFrame::kTrue;
  bool gray_scale = false;
  std::int64_t img_height = 0, img_width = 0;  // 0: unchanged
  Interpolation interpolation = Interpolation::kArea;
  std::int64_t stack_num = 1;
  StackPad stack_pad = StackPad::kFirst;
  bool channels_last = false;
  bool reward_clip = false;        // the sign of the summed reward
  bool episodic_life = false;      // a lost life terminates the episode
  bool stop_on_life_loss = false;  // ... and cuts the skip short
  bool life_loss_at_zero = false;  // falling to no lives counts as well (games may go on there)
  LifeLossReset life_loss_reset = LifeLossReset::kContinue;
  // A reset is followed by noop_min .. noop_min + noop_max - 1 NOOP steps of one frame, none if
  // noop_max is 0.
  std::int64_t noop_min = 1, noop_max = 0;
  // ... one of which is FIRE, where there is such an action.
  bool use_fire_reset = false;
  FireOrder fire_order = FireOrder::kLast;

  // Throws Error(kValue) naming the setting, its value and its range.
  void check() const;
  // The first setting that asks for work on images, nullptr: there is none.
  const char* image_setting() const;
};

// The image work for one observation field: colour, maximum, size, memory layout. All sizes are
// those of one agent's image. Immutable, used by many threads.
class ImageTransform {
 public:
  // Nothing if the field is no image, or no setting touches it. Throws Error(kValue) if a setting
  // can't be met.
  static std::optional<ImageTransform> make(const Field& field, const Transforms& transforms);

  // The field that users see, and how many bytes one raw and one finished frame have.
  const Field& result() const { return result_; }
  std::size_t raw_bytes() const { return raw_bytes_; }
  std::size_t frame_bytes() const { return frame_bytes_; }
  std::size_t stack_num() const { return stack_num_; }
  std::size_t scratch_bytes() const { return 3 * buffer_bytes_; }

  // Makes one finished frame of the newest raw frame and, if not null, the maximum with the one
  // before it. `scratch` is the calling thread's own, here and below.
  void run(const std::uint8_t* newest, const std::uint8_t* before, std::uint8_t* finished,
           std::uint8_t* scratch) const;

  // The same in two halves, for those who keep frames between steps: colour, then size and layout.
  // A converted frame has converted_bytes().
  std::size_t converted_bytes() const { return pixels_in_ * static_cast<std::size_t>(channels_); }
  void convert(const std::uint8_t* raw, std::uint8_t* converted, std::uint8_t* scratch) const;
  void finish(const std::uint8_t* converted, std::uint8_t* finished, std::uint8_t* scratch) const;

 private:
  enum class Colour { kKeep, kIndexToGray, kIndexToRgb, kRgbToGray };

  ImageTransform(const Field& field, const Transforms& transforms);

  void resize(const std::uint8_t* converted, std::uint8_t* out) const;

  Field result_;
  std::vector<std::uint8_t> table_;  // of colours: gray or RGB
  Colour colour_ = Colour::kKeep;
  bool planar_in_ = false, planar_out_ = false;
  int channels_in_ = 1, channels_ = 1;
  std::size_t pixels_in_, pixels_out_;
  std::size_t raw_bytes_, frame_bytes_, buffer_bytes_;
  std::size_t stack_num_;
  std::optional<Resizer> resizer_;
};

}  // namespace envpool::runtime
