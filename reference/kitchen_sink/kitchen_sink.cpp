// kitchen_sink.cpp - tasks that use every corner of the ABI, and tasks that misbehave on demand.
// Their contents are simple formulas, told in each class, so that a test can predict them.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <envpool/env.hpp>
#include <limits>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

using envpool::action;
using envpool::error;
using envpool::global;
using envpool::info;
using envpool::input;
using envpool::obs;
using envpool::result;
using envpool::view;
using std::int16_t;
using std::int32_t;
using std::int64_t;
using std::int8_t;
using std::uint16_t;
using std::uint32_t;
using std::uint64_t;
using std::uint8_t;

// ---- KitchenSink-v0 ----------------------------------------------------------------------------

// Every dtype, kind, role and type of option. With t = steps since the reset and k = t + salt:
//   num/<dtype>  k as that dtype (k % 128 for the 8-bit ones; num/bool: k odd)
//   box          float32[2][3]: element i = i * scale within [0, (i + 1) * 10]
//   pick/one     k % 5 - 2            pick/multi   int32[3]: k % 2, k % 3 + 1, k % 4 + 2
//   bits         int8[4]: bit i of k  pair/0, pair/1   a tuple: float32[2] = (k, -k), int64 = k
//   words        "<mode>:<k>"         events       ragged [6][2]: k % 7 rows (j, k)
//   vec          float64[size]: element i = weights[i % n] + k (n = 0: just k)
//   echo/...     the last action, as it came; zeros, empty after a reset
// info:
//   lives = 3 - t % 3, t, note = "n" t times (at most 8), tail = ragged int32[4]: t % 5 values t,
//   mood = the option, spent: wall time
// global:
//   board uint8[3][3]: element i = k + i, tick = t
// Reward: t + move / 2. Ends at t == length, by truncation if `cut`.
class KitchenSink {
 public:
  static constexpr const char* id = "KitchenSink-v0";
  static constexpr const char* doc = "Every kind of field and option.";
  static constexpr ep_sharing sharing = EP_FREE;

  struct config {
    bool cut = false;
    int64_t size = 3;
    int32_t level = 1, length = 10;
    double scale = 1.5;
    float gain = 0.25f;
    std::string mode = "calm";
    envpool::path file;
    envpool::json extra = "{\"a\": [1, 2]}";
    std::vector<double> weights = {0.5, 1.5};
    std::vector<int32_t> ticks;
    std::vector<uint8_t> mask = {1, 0, 1};
    int64_t salt = 0;
    std::string mood = "plain";
  };
  static void options(envpool::options<config>& o) {
    o.add("cut", &config::cut).doc("the episode's end is a truncation");
    o.add("size", &config::size).range(1, 64).shapes_spec().doc("elements of vec");
    o.add("level", &config::level).choices({1, 2, 5});
    o.add("length", &config::length).min(1).unit("steps");
    o.add("scale", &config::scale).range(0.0, 10.0);
    o.add("gain", &config::gain);
    o.add("mode", &config::mode).choices({"calm", "wild"});
    o.add("file", &config::file);
    o.add("extra", &config::extra);
    o.add("weights", &config::weights).range(-100, 100);
    o.add("ticks", &config::ticks);
    o.add("mask", &config::mask);
    o.add("salt", &config::salt).range(0, 1000).at_reset().doc("added to the counter");
    o.add("mood", &config::mood).choices({"plain", "fancy"}).at_reset();
  }

  struct fields {
    obs<bool> b;
    obs<uint8_t> u8;
    obs<uint16_t> u16;
    obs<uint32_t> u32;
    obs<uint64_t> u64;
    obs<int8_t> i8;
    obs<int16_t> i16;
    obs<int32_t> i32;
    obs<int64_t> i64;
    obs<envpool::half> f16;
    obs<float> f32;
    obs<double> f64;
    obs<float[2][3]> box;
    obs<int64_t> one;
    obs<int32_t[3]> multi;
    obs<int8_t[4]> bits;
    obs<float[2]> left;
    obs<int64_t> right;
    obs<envpool::text> words;
    obs<float[]> events;
    obs<double[]> vec;
    obs<int64_t> echo_move;
    obs<float[2]> echo_push;
    obs<int8_t[3]> echo_keys;
    obs<int32_t[2]> echo_choice;
    obs<envpool::text> echo_say;
    obs<float[]> echo_path;
    obs<int64_t> echo_hand0;
    obs<double> echo_hand1;
    action<int64_t> move;
    action<float[2]> push;
    action<int8_t[3]> keys;
    action<int32_t[2]> choice;
    action<envpool::text> say;
    action<float[]> path;
    action<int64_t> hand0;
    action<double> hand1;
    info<int32_t> lives;
    info<int64_t> t;
    info<envpool::text> note;
    info<int32_t[]> tail;
    info<double> spent;
    info<envpool::text> mood;
    global<uint8_t[3][3]> board;
    global<int64_t> tick;
  };
  static fields describe(envpool::spec& s, const config& c) {
    const std::vector<std::string> moves = {"STAY", "GO", "JUMP", "DUCK"};
    s.max_episode_steps = 100;
    s.reward_threshold = 40;
    s.fps = 25;
    return {
        .b = s.obs<bool>("num/bool"),
        .u8 = s.obs<uint8_t>("num/uint8"),
        .u16 = s.obs<uint16_t>("num/uint16"),
        .u32 = s.obs<uint32_t>("num/uint32"),
        .u64 = s.obs<uint64_t>("num/uint64"),
        .i8 = s.obs<int8_t>("num/int8"),
        .i16 = s.obs<int16_t>("num/int16"),
        .i32 = s.obs<int32_t>("num/int32").within(0, 1 << 20),
        .i64 = s.obs<int64_t>("num/int64"),
        .f16 = s.obs<envpool::half>("num/float16"),
        .f32 = s.obs<float>("num/float32"),
        .f64 = s.obs<double>("num/float64").unit("m").doc("a double"),
        .box = s.obs<float[2][3]>("box").within({0, 0, 0, 0, 0, 0}, {10, 20, 30, 40, 50, 60}),
        .one = s.obs<int64_t>("pick/one").discrete(5, -2).labels({"a", "b", "c", "d", "e"}),
        .multi = s.obs<int32_t[3]>("pick/multi").discrete({2, 3, 4}, {0, 1, 2}),
        .bits = s.obs<int8_t[4]>("bits").multi_binary(),
        .left = s.obs<float[2]>("pair/0"),
        .right = s.obs<int64_t>("pair/1"),
        .words = s.obs<envpool::text>("words", {32}),
        .events = s.obs<float[]>("events", {6, 2}).ragged(),
        .vec = s.obs<double[]>("vec", {c.size}),
        .echo_move = s.obs<int64_t>("echo/move").discrete(4),
        .echo_push = s.obs<float[2]>("echo/push"),
        .echo_keys = s.obs<int8_t[3]>("echo/keys").multi_binary(),
        .echo_choice = s.obs<int32_t[2]>("echo/choice"),
        .echo_say = s.obs<envpool::text>("echo/say", {16}),
        .echo_path = s.obs<float[]>("echo/path", {4, 2}).ragged(),
        .echo_hand0 = s.obs<int64_t>("echo/hand/0"),
        .echo_hand1 = s.obs<double>("echo/hand/1"),
        .move = s.action<int64_t>("move").discrete(4).labels(moves),
        .push = s.action<float[2]>("push").within(-1, 1),
        .keys = s.action<int8_t[3]>("keys").multi_binary(),
        .choice = s.action<int32_t[2]>("choice").discrete({3, 5}, {0, -1}),
        .say = s.action<envpool::text>("say", {16}),
        .path = s.action<float[]>("path", {4, 2}).ragged().within(-10, 10),
        .hand0 = s.action<int64_t>("hand/0").discrete(3),
        .hand1 = s.action<double>("hand/1").within(0, 1),
        .lives = s.info<int32_t>("lives").meaning("lives").within(0, 3),
        .t = s.info<int64_t>("t"),
        .note = s.info<envpool::text>("note", {8}),
        .tail = s.info<int32_t[]>("tail", {4}).ragged(),
        .spent = s.info<double>("spent").unit("s").not_deterministic(),
        .mood = s.info<envpool::text>("mood", {16}),
        .board = s.global<uint8_t[3][3]>("board"),
        .tick = s.global<int64_t>("tick"),
    };
  }

  KitchenSink(const config& c, const fields& f) : c_(c), f_(f) {}

  void seed(uint64_t s) { rng_.word = s; }

  void reset(const config& c) {
    salt_ = c.salt;
    mood_ = c.mood;
    t_ = move_ = hand0_ = 0;
    hand1_ = 0;
    push_ = {};
    keys_ = {};
    choice_ = {};
    say_.clear();
    path_.clear();
  }

  result step(const input& in) {
    ++t_;
    move_ = in[f_.move];
    std::ranges::copy(in[f_.push], push_.begin());
    std::ranges::copy(in[f_.keys], keys_.begin());
    std::ranges::copy(in[f_.choice], choice_.begin());
    say_ = in[f_.say];
    const auto path = in[f_.path];
    path_.assign(path.begin(), path.end());
    hand0_ = in[f_.hand0];
    hand1_ = in[f_.hand1];
    const bool end = t_ >= c_.length;
    return {.reward = double(t_) + double(move_) / 2,
            .terminated = end && !c_.cut,
            .truncated = end && c_.cut};
  }

  void observe(const view& v) const {
    const int64_t k = t_ + salt_;
    v.put(f_.b, k % 2 != 0);
    v.put(f_.u8, k % 128);
    v.put(f_.u16, k);
    v.put(f_.u32, k);
    v.put(f_.u64, k);
    v.put(f_.i8, k % 128);
    v.put(f_.i16, k);
    v.put(f_.i32, k);
    v.put(f_.i64, k);
    v.put(f_.f16, half_of(static_cast<uint32_t>(k)));
    v.put(f_.f32, k);
    v.put(f_.f64, k);
    if (const auto box = v[f_.box])
      for (std::size_t i = 0; i < box.size(); ++i)
        box[i] = static_cast<float>(double(i) * std::min(c_.scale, 10.0));
    v.put(f_.one, k % 5 - 2);
    v.put(f_.multi, k % 2, k % 3 + 1, k % 4 + 2);
    v.put(f_.bits, k & 1, k >> 1 & 1, k >> 2 & 1, k >> 3 & 1);
    v.put(f_.left, k, -k);
    v.put(f_.right, k);
    v.put(f_.words, c_.mode + ":" + std::to_string(k));
    if (const auto rows = v.resize(f_.events, static_cast<std::size_t>(k % 7)))
      for (std::size_t j = 0; j < rows.size(); ++j)
        rows[j] = j % 2 == 0 ? static_cast<float>(j / 2) : static_cast<float>(k);
    if (const auto vec = v[f_.vec])
      for (std::size_t i = 0; i < vec.size(); ++i)
        vec[i] = (c_.weights.empty() ? 0 : c_.weights[i % c_.weights.size()]) + double(k);
    v.put(f_.echo_move, move_);
    v.put(f_.echo_push, push_);
    v.put(f_.echo_keys, keys_);
    v.put(f_.echo_choice, choice_);
    v.put(f_.echo_say, say_);
    v.put(f_.echo_path, path_);
    v.put(f_.echo_hand0, hand0_);
    v.put(f_.echo_hand1, hand1_);
    v.put(f_.lives, 3 - t_ % 3);
    v.put(f_.t, t_);
    v.put(f_.note, std::string(static_cast<std::size_t>(t_), 'n'));
    v.put(f_.tail, std::vector<int64_t>(static_cast<std::size_t>(t_ % 5), t_));
    v.put(
        f_.spent,
        std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count());
    v.put(f_.mood, mood_);
    if (const auto board = v[f_.board])
      for (std::size_t i = 0; i < board.size(); ++i)
        board[i] = static_cast<uint8_t>(k + static_cast<int64_t>(i));
    v.put(f_.tick, t_);
  }

  // Any size up to 256 x 256, two cameras, all formats. Pixel bytes and depths: t + camera; ANSI:
  // "t=<t>".
  static constexpr uint32_t formats =
      1u << EP_RGB8 | 1u << EP_RGBA8 | 1u << EP_DEPTH_F32 | 1u << EP_ANSI;
  void measure(ep_image& image) const {
    if (image.width == 0) image.width = 32;
    if (image.height == 0) image.height = image.format == EP_ANSI ? 1 : 24;
    if (image.width > 256 || image.height > 256 || image.camera > 1)
      throw error(EP_E_ARGUMENT, "a picture has at most 256 x 256 pixels, of cameras 0 and 1");
  }
  void draw(const ep_image& image) const {
    const std::size_t pixel = image.format == EP_RGB8 ? 3 : image.format == EP_ANSI ? 1 : 4;
    const std::string line = "t=" + std::to_string(t_);
    for (uint32_t y = 0; y < image.height; ++y) {
      auto* row = static_cast<uint8_t*>(image.pixels) + y * image.row_bytes;
      if (image.format == EP_ANSI) {
        std::memset(row, 0, image.width);
        std::memcpy(row, line.data(), std::min<std::size_t>(line.size(), image.width));
      } else if (image.format == EP_DEPTH_F32) {
        std::fill_n(reinterpret_cast<float*>(row), image.width,
                    static_cast<float>(t_) + static_cast<float>(image.camera));
      } else {
        std::memset(row, static_cast<int>(t_ + image.camera) & 255, image.width * pixel);
      }
    }
  }

  template <class A>
  void state(A& a) {
    a(t_, salt_, mood_, move_, push_, keys_, choice_, say_, path_, hand0_, hand1_, rng_);
  }

 private:
  // The bits of an integer 0 .. 2047 as binary16.
  static envpool::half half_of(uint32_t k) {
    if (k == 0) return {0};
    const auto e = static_cast<uint32_t>(std::bit_width(k) - 1);
    return {static_cast<uint16_t>((e + 15) << 10 | ((k << 10 >> e) & 0x3ff))};
  }

  const config c_;
  const fields f_;
  int64_t t_ = 0, salt_ = 0, move_ = 0, hand0_ = 0;
  double hand1_ = 0;
  std::array<float, 2> push_{};
  std::array<int8_t, 3> keys_{};
  std::array<int32_t, 2> choice_{};
  std::string say_, mood_;
  std::vector<float> path_;
  envpool::rng rng_;
};

// ---- Image-v0 ----------------------------------------------------------------------------------

// An image whose pixel (y, x, channel c) of frame f is 3 y + 5 x + 7 c + 11 f mod 256 (HW and
// INDEXED: c = 0). With `flicker`, rows whose parity is not f's are 0. The palette is i -> (i, 255
// - i, i ^ 85), its gray 255 - i. The game advances one frame a step once FIRE was pressed since
// the reset or the last lost life (`need_fire`; otherwise at once). A step loses a life with
// probability `life_loss`; with none left the episode ends. Reward: (f % 5 - 2) * reward_scale in a
// step that advanced, else 0. info: lives, frame, and drawn: how often the image was written so
// far.
class Image {
 public:
  static constexpr const char* id = "Image-v0";
  static constexpr const char* doc = "A small image, with lives.";
  static constexpr ep_sharing sharing = EP_FREE;
  static constexpr bool batch = true;

  struct config {
    std::string layout = "hwc";
    int64_t height = 24, width = 32, lives = 3;
    double life_loss = 0.05, reward_scale = 1;
    bool need_fire = false, flicker = false;
  };
  static void options(auto& o) {
    o.add("layout", &config::layout).choices({"hw", "hwc", "chw", "indexed"}).shapes_spec();
    o.add("height", &config::height).range(1, 1024).shapes_spec();
    o.add("width", &config::width).range(1, 1024).shapes_spec();
    o.add("lives", &config::lives).range(1, 100);
    o.add("life_loss", &config::life_loss).range(0, 1);
    o.add("reward_scale", &config::reward_scale);
    o.add("need_fire", &config::need_fire);
    o.add("flicker", &config::flicker);
  }

  struct fields {
    obs<uint8_t[]> image;
    action<int64_t> key;
    info<int32_t> lives;
    info<int64_t> frame, drawn;
  };
  static fields describe(envpool::spec& s, const config& c) {
    std::vector<int64_t> shape = {c.height, c.width};
    if (c.layout == "hwc") shape = {c.height, c.width, 3};
    if (c.layout == "chw") shape = {3, c.height, c.width};
    auto image = s.obs<uint8_t[]>("", shape);
    if (c.layout == "indexed") {
      std::array<uint8_t, 768> palette;
      std::array<uint8_t, 256> gray;
      for (std::size_t i = 0; i < 256; ++i) {
        palette[3 * i] = static_cast<uint8_t>(i);
        palette[3 * i + 1] = gray[i] = static_cast<uint8_t>(255 - i);
        palette[3 * i + 2] = static_cast<uint8_t>(i ^ 85);
      }
      image.indexed(palette, gray);
    } else {
      image.image(c.layout == "hw" ? EP_HW : c.layout == "hwc" ? EP_HWC : EP_CHW);
    }
    s.fps = 60;
    return {image, s.action<int64_t>("").discrete(4).labels({"NOOP", "FIRE", "LEFT", "RIGHT"}),
            s.info<int32_t>("lives").meaning("lives"), s.info<int64_t>("frame"),
            s.info<int64_t>("drawn").not_deterministic()};
  }

  Image(const config& c, const fields& f) : c_(c), f_(f) {}

  void seed(uint64_t s) { rng_.word = s; }

  void reset() {
    lives_ = static_cast<int32_t>(c_.lives);
    frame_ = 0;
    fired_ = !c_.need_fire;
  }

  result step(const input& in) {
    if (in[f_.key] == 1) fired_ = true;
    if (!fired_) return {};
    ++frame_;
    if (rng_.uniform(0, 1) < c_.life_loss) {
      --lives_;
      fired_ = !c_.need_fire;
    }
    return {.reward = double(frame_ % 5 - 2) * c_.reward_scale, .terminated = lives_ == 0};
  }

  void observe(const view& v) const {
    if (const auto image = v[f_.image]) {
      ++drawn_;
      const auto h = static_cast<std::size_t>(c_.height), w = static_cast<std::size_t>(c_.width);
      const std::size_t channels = image.size() / (h * w);
      const bool chw = c_.layout == "chw";
      for (std::size_t y = 0; y < h; ++y)
        for (std::size_t x = 0; x < w; ++x)
          for (std::size_t c = 0; c < channels; ++c) {
            const std::size_t pixel = 3 * y + 5 * x + 7 * c + 11 * static_cast<std::size_t>(frame_);
            const bool dark = c_.flicker && (y + static_cast<std::size_t>(frame_)) % 2 != 0;
            image[chw ? (c * h + y) * w + x : (y * w + x) * channels + c] =
                dark ? 0 : static_cast<uint8_t>(pixel);
          }
    }
    v.put(f_.lives, lives_);
    v.put(f_.frame, frame_);
    v.put(f_.drawn, drawn_);
  }

  template <class A>
  void state(A& a) {
    a(lives_, frame_, fired_, rng_);
  }

 protected:
  const config c_;
  const fields f_;
  int32_t lives_ = 0;
  int64_t frame_ = 0;
  mutable int64_t drawn_ = 0;
  bool fired_ = false;
  envpool::rng rng_;
};

// Image-v0 that skips frames by itself: a host hands its own frame_skip to an engine that declares
// the option.
class ImageSkip : public Image {
 public:
  static constexpr const char* id = "ImageSkip-v0";
  static constexpr bool batch = false;
  struct config : Image::config {
    int64_t frame_skip = 4;
  };
  static void options(envpool::options<config>& o) {
    Image::options(o);
    o.add("frame_skip", &config::frame_skip).range(1, 100);
  }
  ImageSkip(const config& c, const fields& f) : Image(c, f), skip_(c.frame_skip) {}
  result step(const input& in) {
    result all;
    for (int64_t i = 0; i < skip_ && !all.terminated; ++i) {
      const result one = Image::step(in);
      all.reward += one.reward;
      all.terminated = one.terminated;
    }
    return all;
  }

 private:
  const int64_t skip_;
};

// ---- Counter-v0 --------------------------------------------------------------------------------

// The cheapest env: obs int64[4] = (seed, episode, t, last action), no end. Reward: the action.
// Offers batch.
struct Counter {
  static constexpr const char* id = "Counter-v0";
  static constexpr ep_sharing sharing = EP_FREE;
  static constexpr bool batch = true;

  struct fields {
    obs<int64_t[4]> count;
    action<int64_t> push;
  };
  static fields describe(envpool::spec& s) {
    return {s.obs<int64_t[4]>(""),
            s.action<int64_t>("").discrete(std::numeric_limits<int32_t>::max())};
  }

  const fields f;
  int64_t seed_ = 0, episode = 0, t = 0, last = 0;

  void seed(uint64_t s) { seed_ = static_cast<int64_t>(s), episode = 0; }
  void reset() { ++episode, t = last = 0; }
  result step(const input& in) {
    ++t;
    last = in[f.push];
    return {.reward = double(last)};
  }
  void observe(const view& v) const { v.put(f.count, seed_, episode, t, last); }
  template <class A>
  void state(A& a) {
    a(seed_, episode, t, last);
  }
};

// ---- Slow-v0 -----------------------------------------------------------------------------------

// A step takes step_us microseconds, a reset reset_us, each times a factor uniform in [1 - vary, 1
// + vary] by seed. obs: int64 t. Ends after `length` steps (0: never). info: planned_us of the last
// call; thread: a number of the thread.
class Slow {
 public:
  static constexpr const char* id = "Slow-v0";
  static constexpr ep_sharing sharing = EP_FREE;

  struct config {
    double step_us = 1000, reset_us = 0, vary = 0;
    std::string how = "sleep";
    int64_t length = 0;
  };
  static void options(envpool::options<config>& o) {
    o.add("step_us", &config::step_us).min(0).unit("us");
    o.add("reset_us", &config::reset_us).min(0).unit("us");
    o.add("vary", &config::vary).range(0, 1);
    o.add("how", &config::how).choices({"sleep", "burn"});
    o.add("length", &config::length).min(0).unit("steps");
  }
  struct fields {
    obs<int64_t> t;
    action<int64_t> push;
    info<double> planned_us;
    info<uint64_t> thread;
  };
  static fields describe(envpool::spec& s, const config&) {
    return {s.obs<int64_t>(""), s.action<int64_t>("").discrete(2),
            s.info<double>("planned_us").unit("us"),
            s.info<uint64_t>("thread").not_deterministic()};
  }
  Slow(const config& c, const fields& f) : c_(c), f_(f) {}
  void seed(uint64_t s) { rng_.word = s; }
  void reset() {
    t_ = 0;
    spend(c_.reset_us);
  }
  result step(const input&) {
    ++t_;
    spend(c_.step_us);
    return {.reward = 1, .terminated = t_ == c_.length};
  }
  void observe(const view& v) const {
    v.put(f_.t, t_);
    v.put(f_.planned_us, planned_);
    v.put(f_.thread, thread_);
  }

 private:
  void spend(double us) {
    planned_ = us * rng_.uniform(1 - c_.vary, 1 + c_.vary);
    thread_ = std::hash<std::thread::id>{}(std::this_thread::get_id());
    const auto until = std::chrono::steady_clock::now() +
                       std::chrono::nanoseconds(static_cast<int64_t>(1000 * planned_));
    if (planned_ > 0 && c_.how == "sleep")
      std::this_thread::sleep_until(until);
    else
      while (std::chrono::steady_clock::now() < until) {
      }
  }

  const config c_;
  const fields f_;
  int64_t t_ = 0;
  double planned_ = 0;
  uint64_t thread_ = 0;
  envpool::rng rng_;
};

// ---- Faulty-v0 ---------------------------------------------------------------------------------

// Fails as `fault` says in call `where`, of env `env_id` (-1: any), at step `at_step` of an episode
// (`where` = step and observe), at most `times` times (0: always) in this process for each pair of
// `key` and env id. obs: float32[2] = (t, 1). Error texts begin with "faulty:". Ends after `length`
// steps.
class Faulty {
 public:
  static constexpr const char* id = "Faulty-v0";
  static constexpr ep_sharing sharing = EP_FREE;

  struct config {
    std::string fault = "none", where = "step", key;
    int64_t at_step = 3, env_id = -1, times = 0, length = 10;
  };
  static void options(envpool::options<config>& o) {
    o.add("fault", &config::fault)
        .choices({"none", "failed", "argument", "broken", "cancelled", "throw", "throw_int",
                  "bad_alloc", "odd_status", "nan", "crash", "exit", "hang"});
    o.add("where", &config::where).choices({"describe", "create", "reset", "step", "observe"});
    o.add("key", &config::key);
    o.add("at_step", &config::at_step);
    o.add("env_id", &config::env_id);
    o.add("times", &config::times).min(0);
    o.add("length", &config::length).min(1);
  }
  struct fields {
    obs<float[2]> t;
    action<int64_t> push;
  };
  static fields describe(envpool::spec& s, const config& c) {
    if (c.where == "describe") fail(c, 0);
    return {s.obs<float[2]>(""), s.action<int64_t>("").discrete(2)};
  }
  Faulty(const config& c, const fields& f, const envpool::context& x)
      : c_(c), f_(f), id_(x.env_id) {
    if (c_.where == "create") fail(c_, id_);
  }
  void reset() {
    t_ = 0;
    nan_ = false;
    if (c_.where == "reset") nan_ = fail(c_, id_);
  }
  result step(const input&) {
    ++t_;
    nan_ = c_.where == "step" && t_ == c_.at_step && fail(c_, id_);
    return {.reward = 1, .terminated = t_ >= c_.length};
  }
  void observe(const view& v) const {
    const bool nan = (c_.where == "observe" && t_ == c_.at_step && fail(c_, id_)) || nan_;
    v.put(f_.t, t_, nan ? std::numeric_limits<float>::quiet_NaN() : 1);
  }

 private:
  // Fails, or not. True: the observation shall be NaN.
  static bool fail(const config& c, uint64_t env_id) {
    if (c.fault == "none" || (c.env_id >= 0 && static_cast<uint64_t>(c.env_id) != env_id))
      return false;
    if (c.times > 0) {
      static std::mutex mutex;
      static std::map<std::pair<std::string, uint64_t>, int64_t> count;
      const std::scoped_lock lock(mutex);
      if (count[{c.key, env_id}]++ >= c.times) return false;
    }
    const std::string text =
        "faulty: " + c.fault + " in " + c.where + " of env " + std::to_string(env_id);
    if (c.fault == "failed") throw error(EP_E_FAILED, text);
    if (c.fault == "argument") throw error(EP_E_ARGUMENT, text);
    if (c.fault == "broken") throw error(EP_E_BROKEN, text);
    if (c.fault == "cancelled") throw error(EP_E_CANCELLED, text);
    if (c.fault == "odd_status") throw error(77, text);
    if (c.fault == "throw") throw std::runtime_error(text);
    if (c.fault == "throw_int") throw 1;
    if (c.fault == "bad_alloc") throw std::bad_alloc();
    if (c.fault == "crash") std::abort();
    if (c.fault == "exit") std::_Exit(3);
    while (c.fault == "hang") std::this_thread::sleep_for(std::chrono::seconds(1));
    return c.fault == "nan";
  }

  const config c_;
  const fields f_;
  const uint64_t id_;
  int64_t t_ = 0;
  bool nan_ = false;
};

// ---- threads and processes ---------------------------------------------------------------------

// Checks in every call that it runs on the thread that made it, else EP_E_BROKEN. A wrong
// destruction is logged. obs: t.
class Bound {
 public:
  static constexpr const char* id = "Bound-v0";
  static constexpr ep_sharing sharing = EP_THREAD_BOUND;

  struct fields {
    obs<int64_t> t;
    action<int64_t> push;
    info<uint64_t> thread;
  };
  static fields describe(envpool::spec& s) {
    return {s.obs<int64_t>(""), s.action<int64_t>("").discrete(2),
            s.info<uint64_t>("thread").not_deterministic()};
  }
  Bound(const fields& f, const envpool::context& x) : f_(f), host_(x) {}
  Bound(const Bound&) = delete;
  ~Bound() {
    if (std::this_thread::get_id() != own_)
      host_.log(EP_LOG_ERROR, "bound: destroyed on another thread");
  }
  void reset() {
    check("reset");
    t_ = 0;
  }
  result step(const input&) {
    check("step");
    return {.reward = 1, .terminated = ++t_ == 20};
  }
  void observe(const view& v) const {
    check("observe");
    v.put(f_.t, t_);
    v.put(f_.thread, std::hash<std::thread::id>{}(own_));
  }
  template <class A>
  void state(A& a) {
    check("state");
    a(t_);
  }
  static constexpr envpool::size picture{8, 8};
  void draw(const ep_image& image) const {
    check("draw");
    for (uint32_t y = 0; y < 8; ++y)
      std::memset(static_cast<uint8_t*>(image.pixels) + y * image.row_bytes, 7, 24);
  }

 private:
  void check(const char* what) const {
    if (std::this_thread::get_id() != own_)
      throw error(EP_E_BROKEN, std::string("bound: ") + what + " on another thread");
  }
  const fields f_;
  const envpool::host host_;
  const std::thread::id own_ = std::this_thread::get_id();
  int64_t t_ = 0;
};

// Lives on globals: a second env in the process, at once or later, would see the first one's. obs:
// int64[2] = (steps of this process's one env since its reset, envs alive). Making one beside
// another fails. info: pid.
class Globals {
 public:
  static constexpr const char* id = "Globals-v0";  // no `sharing`: one per process

  struct fields {
    obs<int64_t[2]> t;
    action<int64_t> push;
    info<int64_t> pid;
  };
  static fields describe(envpool::spec& s) {
    return {s.obs<int64_t[2]>(""), s.action<int64_t>("").discrete(2),
            s.info<int64_t>("pid").not_deterministic()};
  }
  explicit Globals(const fields& f) : f_(f) {
    if (alive > 0) throw error(EP_E_FAILED, "globals: a second env in one process");
    ++alive;
  }
  Globals(const Globals&) = delete;
  ~Globals() { --alive; }
  void reset() { steps = 0; }
  result step(const input& in) {
    ++steps;
    return {.reward = double(in[f_.push]), .terminated = steps == 20};
  }
  void observe(const view& v) const {
    v.put(f_.t, steps, alive);
    v.put(f_.pid, getpid());
  }

 private:
  static inline int64_t steps = 0, alive = 0;
  const fields f_;
};

// Must live on the main thread of its process, else EP_E_BROKEN. obs: t.
class MainThread {
 public:
  static constexpr const char* id = "MainThread-v0";
  static constexpr uint64_t flags = EP_TASK_MAIN_THREAD;

  struct fields {
    obs<int64_t> t;
    action<int64_t> push;
  };
  static fields describe(envpool::spec& s) {
    return {s.obs<int64_t>(""), s.action<int64_t>("").discrete(2)};
  }
  explicit MainThread(const fields& f) : f_(f) { check(); }
  void reset() {
    check();
    t_ = 0;
  }
  result step(const input&) {
    check();
    return {.reward = 1, .terminated = ++t_ == 20};
  }
  void observe(const view& v) const {
    check();
    v.put(f_.t, t_);
  }

 private:
  static void check() {
#ifdef __linux__
    if (gettid() != getpid()) throw error(EP_E_BROKEN, "main thread: called on another thread");
#endif
  }
  const fields f_;
  int64_t t_ = 0;
};

// ---- Required-v0 -------------------------------------------------------------------------------

// An option without a default. obs: its value.
struct Required {
  static constexpr const char* id = "Required-v0";
  static constexpr ep_sharing sharing = EP_FREE;
  struct config {
    int64_t answer = 0;
  };
  static void options(envpool::options<config>& o) { o.add("answer", &config::answer).required(); }
  struct fields {
    obs<int64_t> answer;
    action<int64_t> push;
  };
  static fields describe(envpool::spec& s, const config&) {
    return {s.obs<int64_t>(""), s.action<int64_t>("").discrete(2)};
  }
  const config c;
  const fields f;
  void reset() {}
  result step(const input&) { return {}; }
  void observe(const view& v) const { v.put(f.answer, c.answer); }
};

// ---- liars -------------------------------------------------------------------------------------

// Tasks that break a promise which no loader can see; a checker should find each. obs: float32[2]
// within [-1, 1], info: t.
struct lie {
  const char *id, *doc;
};
constexpr lie lies[] = {
    {"LiarSeed-v0", "does not follow its seed"},
    {"LiarObserve-v0", "observe() changes the dynamics"},
    {"LiarBounds-v0", "an observation beyond its bounds"},
    {"LiarUnwritten-v0", "leaves an element of the observation unwritten"},
    {"LiarState-v0", "its state lacks the generator"},
    {"LiarEnvId-v0", "the env id influences the dynamics"},
};
class Liar {
 public:
  static constexpr ep_sharing sharing = EP_FREE;
  struct fields {
    obs<float[2]> noise;
    action<int64_t> push;
    info<int64_t> t;
  };
  static fields describe(envpool::spec& s, const lie&) {
    return {s.obs<float[2]>("").within(-1, 1), s.action<int64_t>("").discrete(2),
            s.info<int64_t>("t")};
  }
  Liar(const fields& f, const lie& l, const envpool::context& x)
      : f_(f), lie_(l.id), env_id_(x.env_id) {}
  void seed(uint64_t s) {
    rng_.word = is("LiarSeed-v0")    ? reinterpret_cast<std::uintptr_t>(this) + ++lives
                : is("LiarEnvId-v0") ? s + env_id_
                                     : s;
  }
  void reset() {
    t_ = 0;
    draw();
  }
  result step(const input&) {
    draw();
    return {.reward = noise_[0], .terminated = ++t_ == 20};
  }
  void observe(const view& v) const {
    if (is("LiarObserve-v0")) rng_();
    if (const auto o = v[f_.noise]) {
      o[0] = noise_[0] + (is("LiarBounds-v0") && t_ == 7 ? 5.f : 0.f);
      if (!is("LiarUnwritten-v0")) o[1] = noise_[1];
    }
    v.put(f_.t, t_);
  }
  template <class A>
  void state(A& a) {
    a(t_, noise_);
    if (!is("LiarState-v0")) a(rng_);
  }

 private:
  bool is(std::string_view name) const { return lie_ == name; }
  void draw() {
    for (float& n : noise_) n = static_cast<float>(rng_.uniform(-1, 1));
  }
  static inline std::atomic<uint64_t> lives = 0;
  const fields f_;
  const std::string_view lie_;
  const uint64_t env_id_;
  int64_t t_ = 0;
  std::array<float, 2> noise_{};
  mutable envpool::rng rng_;
};

constexpr envpool::about about{"kitchen-sink", "0.1.0", "Apache-2.0",
                               "https://example.org/kitchen-sink"};

}  // namespace

ENVPOOL_PLUGIN_ABOUT(about, KitchenSink, Image, ImageSkip, Counter, Slow, Faulty, Bound, Globals,
                     MainThread, Required, envpool::family<Liar, lies>)
