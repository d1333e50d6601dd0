// ale.hpp - the Arcade Learning Environment that an installed ale-py wheel contains, reached at run
// time.
//
// The wheel's extension module exports ALE's C++ functions. We load it, look the few we need up by
// name and call them through declarations of our own; nothing of ALE is compiled or shipped here.
// Every symbol, and every layout that has no accessor, is checked when the library is opened or a
// game is first loaded; what does not fit is named in an error.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace atari {

// ALE's action numbers are the indices of these names.
inline constexpr std::array<const char*, 18> kActionNames{
    "NOOP",     "FIRE",     "UP",          "RIGHT",      "LEFT",          "DOWN",
    "UPRIGHT",  "UPLEFT",   "DOWNRIGHT",   "DOWNLEFT",   "UPFIRE",        "RIGHTFIRE",
    "LEFTFIRE", "DOWNFIRE", "UPRIGHTFIRE", "UPLEFTFIRE", "DOWNRIGHTFIRE", "DOWNLEFTFIRE"};
inline constexpr std::size_t kRamSize = 128;

// Something is wrong with the installed library or with a ROM; says what, and what would be right.
struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Symbols;  // the functions looked up; see ale.cpp

// The colours of a game's television standard, for all 256 pixel values.
struct Palette {
  std::array<std::uint8_t, 3 * 256> rgb;
  std::array<std::uint8_t, 256> gray;
};

// The picture: rows x columns pixel values.
struct Screen {
  std::size_t rows, columns;
  const std::uint8_t* pixels;
  std::size_t size() const { return rows * columns; }
};

class Console;

// What there is to know of a game before it is played.
struct Game {
  std::string name;  // as ALE has it: "space_invaders"
  std::filesystem::path rom;
  std::size_t rows, columns;
  Palette palette;
  std::vector<int> minimal_actions, legal_actions;
  std::vector<unsigned> modes, difficulties;  // the first is the default
};

// An opened library. There is one a path, and it stays for the life of the process.
class Library {
 public:
  // Opens the wheel's extension module, or finds it opened. [any thread]
  static Library& open(const std::filesystem::path& file);

  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  // Loads a ROM once and remembers what it is like. ALE ends the process over a file that it can't
  // use, so this is the door to a Console: it has made sure that the file holds the game of that
  // name. [any thread]
  const Game& game(const std::string& name, const std::filesystem::path& rom);

  // Whether loading a ROM is spared a table that nobody reads; see load() in ale.cpp.
  bool loads_fast() const { return loads_fast_; }

 private:
  friend class Console;
  explicit Library(const std::filesystem::path& file);

  std::unique_ptr<const Symbols> symbols_;
  bool loads_fast_ = false;
  std::mutex mutex_;
  std::vector<std::unique_ptr<const Game>> games_;
};

// One emulated console with its cartridge. Consoles are independent of each other: each may be used
// on any thread, by one thread at a time.
class Console {
 public:
  struct Settings {
    float repeat_action_probability = 0;
    int mode = -1;  // -1: the game's own
    int difficulty = -1;
    // Throws Error, listing what there is, if the game has no such mode or difficulty.
    void check(const Game& game) const;
  };

  // Takes checked settings. Does not load the game yet; load() comes before everything else.
  Console(const Library& library, const Game& game, const Settings& settings);
  Console(Console&&) = delete;
  ~Console();

  // Switches a new console on. The game's randomness (which actions repeat) is a function of the
  // seed: its lower 32 bits, but for 0xffffffff, which ALE takes for "by the clock". reset() has to
  // follow.
  void load(std::uint64_t seed);
  bool loaded() const { return loaded_; }

  void reset();         // starts an episode
  int act(int action);  // one frame; returns its reward
  bool over() const;    // the game, not an episode, is over
  int lives() const;
  Screen screen() const;
  std::span<const std::uint8_t, kRamSize> ram() const;

  // Everything as bytes, for another console with the same game and settings. restore() throws
  // Error, having changed nothing, if they are no such bytes.
  std::string save() const;
  void restore(std::string_view bytes);

 private:
  friend class Library;
  void follow_generator();

  const Symbols& ale_;
  const Game& game_;
  Settings settings_;
  bool fast_;
  bool loaded_ = false;
  // ALE does not save which action its console repeats at present. With sticky actions we therefore
  // keep a copy of its generator, and so know for each frame whether it took the action it was
  // given.
  std::mt19937 generator_;
  int held_action_ = 0;
  alignas(std::max_align_t) std::array<std::byte, 256> object_;
};

}  // namespace atari
