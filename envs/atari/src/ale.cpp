#include "ale.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <utility>

#include "import_hook.hpp"

namespace fs = std::filesystem;

namespace atari {

static_assert(_GLIBCXX_USE_CXX11_ABI, "ale-py's strings are those of libstdc++'s present ABI");

namespace {

// ---- layouts that have no accessor; verify() compares them with what ALE's functions say ----

struct RawScreen {
  int rows, columns;
  std::vector<std::uint8_t> pixels;
};

// ALE returns this by value. The spare bytes are for a class that has grown: verify() then refuses
// it, instead of finding its own memory overwritten.
struct RawState {
  int left_paddle, right_paddle, paddle_min, paddle_max, frame_number, episode_frame_number;
  std::string emulator;
  unsigned mode, difficulty;
  std::byte spare[192];
};

}  // namespace

struct Symbols {
  void* handle;
  void (*construct)(void*);
  void (*destroy)(void*);
  void (*set_int)(void*, const std::string&, int);
  void (*set_float)(void*, const std::string&, float);
  void (*load_rom)(void*, fs::path);
  void (*set_mode)(void*, unsigned);
  void (*set_difficulty)(void*, unsigned);
  void (*reset_game)(void*);
  int (*act)(void*, int, float);
  bool (*game_over)(const void*, bool);
  int (*lives)(void*);
  RawScreen& (*screen)(const void*);
  const std::uint8_t* (*ram)(const void*);
  void (*set_ram)(void*, std::size_t, std::uint8_t);
  void (*screen_rgb)(const void*, std::vector<unsigned char>&);
  void (*screen_gray)(const void*, std::vector<unsigned char>&);
  std::vector<int> (*minimal_actions)(const void*);
  std::vector<int> (*legal_actions)(const void*);
  std::vector<unsigned> (*modes)(const void*);
  std::vector<unsigned> (*difficulties)(const void*);
  RawState (*clone_system)(void*);
  void (*restore_system)(void*, const RawState&);
  std::string (*serialize_state)(RawState*);
  void (*construct_state)(void*, const std::string&);
  std::optional<std::string> (*supported_rom)(const fs::path&);
  void (*set_log_mode)(int);
};

namespace {

// ---- little helpers ----

// ALE also throws string literals; what leaves this file is always a std::exception.
template <class F>
auto guarded(const char* doing, F&& f) -> decltype(f()) {
  try {
    return f();
  } catch (const char* text) {
    throw Error(std::string("ALE, ") + doing + ": " + text);
  }
}

void put(std::string& to, std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) to.push_back(static_cast<char>(value >> (8 * i)));
}

std::uint64_t get(std::string_view from, std::size_t at, int bytes) {
  std::uint64_t value = 0;
  for (int i = 0; i < bytes; ++i)
    value |= std::uint64_t{static_cast<std::uint8_t>(from[at + static_cast<std::size_t>(i)])}
             << (8 * i);
  return value;
}

std::uint64_t fnv1a(std::string_view bytes) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : bytes) hash = (hash ^ static_cast<std::uint8_t>(c)) * 0x100000001b3;
  return hash;
}

// ---- the table that takes most of the time of loading ----
//
// Each loading of a ROM computes the nearest palette entry of 262144 colours, about 88 ms. Only
// ALE's colour averaging reads that table, and our consoles never switch it on. ALE calls the
// function that fills it through its import table; there we stand in for it, and do nothing while
// this thread loads a console of ours. Everybody else, as whoever imported ale_py in the same
// process, gets the original.
using TableFunction = void (*)(void*);
constexpr const char* kTableSymbol = "_ZN3ale13PhosphorBlend18makeAveragePaletteEv";
TableFunction original_table = nullptr;
thread_local bool no_table = false;

void table(void* blend) {
  if (!no_table) original_table(blend);
}

bool spare_table(void* handle) {
  const auto found = reinterpret_cast<TableFunction>(dlsym(handle, kTableSymbol));
  if (found == nullptr || original_table != nullptr) return false;
  original_table = found;
  return import_hook::redirect(handle, kTableSymbol, reinterpret_cast<void*>(&table));
}

struct WithoutTable {
  explicit WithoutTable(bool yes) { no_table = yes; }
  ~WithoutTable() { no_table = false; }
};

// ---- opening ----

std::unique_ptr<const Symbols> look_up(const fs::path& file) {
  // Lazily: the module names functions of the interpreter's that we never call.
  void* handle = dlopen(file.c_str(), RTLD_LAZY | RTLD_LOCAL | RTLD_NODELETE);
  if (handle == nullptr)
    throw Error(std::string("can't load ALE from ale-py: ") + dlerror() +
                " (it is a Python extension: the process has to be a Python interpreter, or to "
                "have loaded libpython)");

  auto ale = std::make_unique<Symbols>();
  ale->handle = handle;
  std::string missing;
  const auto find = [&]<class F>(F& function, const char* name) {
    function = reinterpret_cast<F>(dlsym(handle, name));
    if (function == nullptr) missing += (missing.empty() ? "" : ", ") + std::string(name);
  };
  find(ale->construct, "_ZN3ale12ALEInterfaceC1Ev");
  find(ale->destroy, "_ZN3ale12ALEInterfaceD1Ev");
  find(ale->set_int,
       "_ZN3ale12ALEInterface6setIntERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEEi");
  find(ale->set_float,
       "_ZN3ale12ALEInterface8setFloatERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEEf");
  find(ale->load_rom, "_ZN3ale12ALEInterface7loadROMENSt10filesystem7__cxx114pathE");
  find(ale->set_mode, "_ZN3ale12ALEInterface7setModeEj");
  find(ale->set_difficulty, "_ZN3ale12ALEInterface13setDifficultyEj");
  find(ale->reset_game, "_ZN3ale12ALEInterface10reset_gameEv");
  find(ale->act, "_ZN3ale12ALEInterface3actENS_6ActionEf");
  find(ale->game_over, "_ZNK3ale12ALEInterface9game_overEb");
  find(ale->lives, "_ZN3ale12ALEInterface5livesEv");
  find(ale->screen, "_ZNK3ale12ALEInterface9getScreenEv");
  find(ale->ram, "_ZNK3ale12ALEInterface6getRAMEv");
  find(ale->set_ram, "_ZN3ale12ALEInterface6setRAMEmh");
  find(ale->screen_rgb, "_ZNK3ale12ALEInterface12getScreenRGBERSt6vectorIhSaIhEE");
  find(ale->screen_gray, "_ZNK3ale12ALEInterface18getScreenGrayscaleERSt6vectorIhSaIhEE");
  find(ale->minimal_actions, "_ZNK3ale12ALEInterface19getMinimalActionSetEv");
  find(ale->legal_actions, "_ZNK3ale12ALEInterface17getLegalActionSetEv");
  find(ale->modes, "_ZNK3ale12ALEInterface17getAvailableModesEv");
  find(ale->difficulties, "_ZNK3ale12ALEInterface24getAvailableDifficultiesEv");
  find(ale->clone_system, "_ZN3ale12ALEInterface16cloneSystemStateEv");
  find(ale->restore_system, "_ZN3ale12ALEInterface18restoreSystemStateERKNS_8ALEStateE");
  find(ale->serialize_state, "_ZN3ale8ALEState9serializeB5cxx11Ev");
  find(ale->construct_state,
       "_ZN3ale8ALEStateC1ERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE");
  find(ale->supported_rom, "_ZN3ale12ALEInterface14isSupportedROMERKNSt10filesystem7__cxx114pathE");
  find(ale->set_log_mode, "_ZN3ale6Logger7setModeENS0_4modeE");
  if (!missing.empty())
    throw Error(file.string() + " lacks " + missing +
                ": it is not the module of ale-py>=0.12,<0.13");
  return ale;
}

// The generator of a state: ALE puts it last, as text with its length before it.
std::mt19937 generator_of(const RawState& state) {
  const std::string_view all = state.emulator;
  const std::size_t before = all.find_last_not_of(" 0123456789");
  const std::string_view text = before == all.npos ? "" : all.substr(before + 1);
  std::istringstream stream{std::string(text)};
  std::mt19937 generator;
  if (all.size() < text.size() + 4 || get(all, before - 3, 4) != text.size() ||
      !(stream >> generator))
    throw Error("the generator in ALE's saved state has another form than in ale-py 0.12");
  return generator;
}

// A RawState from its bytes.
class State {
 public:
  State(const Symbols& ale, const std::string& bytes) { ale.construct_state(storage_, bytes); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() { get().~RawState(); }
  RawState& get() { return *std::launder(reinterpret_cast<RawState*>(storage_)); }

 private:
  alignas(RawState) std::byte storage_[sizeof(RawState)];
};

// Compares our idea of ALE's classes with what its functions say of them. The console is used up
// afterwards.
void verify(const Symbols& ale, void* console) {
  const auto require = [](bool fits, const char* what) {
    if (!fits) throw Error(std::string(what) + " is laid out otherwise than in ale-py 0.12");
  };
  const RawScreen& screen = ale.screen(console);
  std::vector<unsigned char> gray;
  ale.screen_gray(console, gray);
  require(screen.rows > 0 && screen.columns > 0 &&
              static_cast<std::size_t>(screen.rows) * static_cast<std::size_t>(screen.columns) ==
                  gray.size() &&
              screen.pixels.size() == gray.size(),
          "ALE's screen");

  const std::uint8_t* ram = ale.ram(console);
  for (const std::size_t at : {std::size_t{0}, kRamSize - 1}) {
    const std::uint8_t old = ram[at];
    ale.set_ram(console, at, static_cast<std::uint8_t>(~old));
    require(ram[at] == static_cast<std::uint8_t>(~old), "ALE's RAM");
    ale.set_ram(console, at, old);
  }

  RawState state = ale.clone_system(console);
  std::string expected;
  for (const int i : {state.left_paddle, state.right_paddle, state.frame_number,
                      state.episode_frame_number, static_cast<int>(state.mode),
                      static_cast<int>(state.difficulty), static_cast<int>(state.emulator.size())})
    put(expected, static_cast<std::uint32_t>(i), 4);
  expected += state.emulator;
  for (const int i : {state.paddle_min, state.paddle_max})
    put(expected, static_cast<std::uint32_t>(i), 4);
  require(ale.serialize_state(&state) == expected, "ALE's state");
  generator_of(state);
}

// The colours, by asking for a picture that holds every pixel value. (ALE looks gray up one place
// further on, so that 255, which some games show, has the gray of whatever stands behind the table.
// We have to show the same.)
Palette palette_of(const Symbols& ale, void* console) {
  RawScreen& screen = ale.screen(console);
  for (std::size_t i = 0; i < 256; ++i) screen.pixels[i] = static_cast<std::uint8_t>(i);
  std::vector<unsigned char> rgb, gray;
  ale.screen_rgb(console, rgb);
  ale.screen_gray(console, gray);
  Palette palette;
  std::copy_n(rgb.begin(), palette.rgb.size(), palette.rgb.begin());
  std::copy_n(gray.begin(), palette.gray.size(), palette.gray.begin());
  return palette;
}

std::string listed(const std::vector<unsigned>& values) {
  std::string out;
  for (const unsigned v : values) out += (out.empty() ? "" : ", ") + std::to_string(v);
  return out;
}

void require_readable(const fs::path& rom) {
  // Not a FIFO, which would be waited for.
  std::error_code error;
  if (!fs::is_regular_file(rom, error) || !std::ifstream(rom, std::ios::binary))
    throw Error("can't read the ROM " + rom.string() + ": it is no readable file");
}

}  // namespace

// ---- Library ------------------------------------------------------------------------------------

Library& Library::open(const fs::path& file) {
  static std::mutex mutex;
  // Never destroyed: consoles may outlive the destructors of a process that exits.
  static auto& opened = *new std::map<fs::path, Library*>;
  const std::lock_guard lock(mutex);
  const fs::path path = fs::weakly_canonical(file);
  Library*& library = opened[path];
  if (library == nullptr) library = new Library(path);
  return *library;
}

Library::Library(const fs::path& file) : symbols_(look_up(file)) {
  symbols_->set_log_mode(2);  // errors only; the setting is the process's
  loads_fast_ = spare_table(symbols_->handle);
}

const Game& Library::game(const std::string& name, const fs::path& rom) {
  const std::lock_guard lock(mutex_);
  for (const auto& game : games_)
    if (game->name == name && game->rom == rom) return *game;

  require_readable(rom);
  const auto found = symbols_->supported_rom(rom);
  if (found != name)
    throw Error(rom.string() +
                (found ? " is the game \"" + *found + "\"" : " is no ROM that ALE knows") +
                ", not \"" + name + "\"");

  auto game = std::make_unique<Game>();
  game->name = name;
  game->rom = rom;
  Console console(*this, *game, {});
  console.load(0);
  void* object = console.object_.data();
  verify(*symbols_, object);
  game->rows = console.screen().rows;
  game->columns = console.screen().columns;
  game->palette = palette_of(*symbols_, object);
  game->minimal_actions = symbols_->minimal_actions(object);
  game->legal_actions = symbols_->legal_actions(object);
  game->modes = symbols_->modes(object);
  game->difficulties = symbols_->difficulties(object);
  return *games_.emplace_back(std::move(game));
}

// ---- Console ------------------------------------------------------------------------------------

void Console::Settings::check(const Game& game) const {
  const auto one_of = [&](const char* what, int value, const std::vector<unsigned>& all) {
    if (value < 0 || std::ranges::find(all, static_cast<unsigned>(value)) != all.end()) return;
    throw Error(game.name + " has no " + what + " " + std::to_string(value) + "; it has " +
                listed(all));
  };
  one_of("mode", mode, game.modes);
  one_of("difficulty", difficulty, game.difficulties);
}

Console::Console(const Library& library, const Game& game, const Settings& settings)
    : ale_(*library.symbols_), game_(game), settings_(settings), fast_(library.loads_fast()) {
  ale_.construct(object_.data());
  ale_.set_float(object_.data(), "repeat_action_probability", settings.repeat_action_probability);
}

Console::~Console() { ale_.destroy(object_.data()); }

void Console::load(std::uint64_t seed) {
  require_readable(game_.rom);  // it was there once, but ALE would end the process
  auto word = static_cast<std::uint32_t>(seed);
  if (word == 0xffffffff) word = 0x7fffffff;
  ale_.set_int(object_.data(), "random_seed", static_cast<int>(word));
  {
    const WithoutTable spared(fast_);
    guarded("loading", [&] { ale_.load_rom(object_.data(), game_.rom); });
  }
  if (settings_.mode >= 0) ale_.set_mode(object_.data(), static_cast<unsigned>(settings_.mode));
  if (settings_.difficulty >= 0)
    ale_.set_difficulty(object_.data(), static_cast<unsigned>(settings_.difficulty));
  loaded_ = true;
}

void Console::reset() {
  ale_.reset_game(object_.data());
  held_action_ = 0;
  if (settings_.repeat_action_probability > 0) follow_generator();
}

// Some games draw from the generator while they reset, so it is read anew.
void Console::follow_generator() { generator_ = generator_of(ale_.clone_system(object_.data())); }

int Console::act(int action) {
  if (settings_.repeat_action_probability > 0) {
    // One draw for each player's controller.
    if (generator_() / 4294967296.0 >= settings_.repeat_action_probability) held_action_ = action;
    generator_();
  }
  return ale_.act(object_.data(), action, 1.0f);
}

bool Console::over() const { return ale_.game_over(object_.data(), false); }

int Console::lives() const { return ale_.lives(const_cast<std::byte*>(object_.data())); }

Screen Console::screen() const {
  const RawScreen& raw = ale_.screen(object_.data());
  return {static_cast<std::size_t>(raw.rows), static_cast<std::size_t>(raw.columns),
          raw.pixels.data()};
}

std::span<const std::uint8_t, kRamSize> Console::ram() const {
  return std::span<const std::uint8_t, kRamSize>(ale_.ram(object_.data()), kRamSize);
}

// ---- saving: magic, checksum of the rest; game, held action, picture, ALE's own bytes -----------

namespace {
constexpr std::string_view kMagic = "EPATARI1";
constexpr std::size_t kBody = 16, kGame = kBody, kHeld = kBody + 8, kPicture = kBody + 12;
}  // namespace

std::string Console::save() const {
  // ALE's state leaves out the picture, which only the next frame would draw anew, and the held
  // action.
  RawState state =
      guarded("saving", [&] { return ale_.clone_system(const_cast<std::byte*>(object_.data())); });
  const Screen picture = screen();
  std::string body;
  put(body, fnv1a(game_.name), 8);
  put(body, static_cast<std::uint64_t>(held_action_), 4);
  body.append(reinterpret_cast<const char*>(picture.pixels), picture.size());
  body += ale_.serialize_state(&state);
  std::string out(kMagic);
  put(out, fnv1a(body), 8);
  return out + body;
}

void Console::restore(std::string_view bytes) {
  RawScreen& picture = ale_.screen(object_.data());
  const std::size_t start = kPicture + picture.pixels.size();
  if (bytes.size() <= start || !bytes.starts_with(kMagic) ||
      get(bytes, kMagic.size(), 8) != fnv1a(bytes.substr(kBody)) ||
      get(bytes, kGame, 8) != fnv1a(game_.name))
    throw Error("these bytes are no saved state of " + game_.name + ", or damaged");
  const auto held = static_cast<int>(get(bytes, kHeld, 4));

  guarded("restoring", [&] {
    State state(ale_, std::string(bytes.substr(start)));
    ale_.restore_system(object_.data(), state.get());
    if (const float p = settings_.repeat_action_probability; p > 0) {
      // Make the console hold the saved action: act until it takes it, then go back.
      const std::mt19937 generator = generator_of(state.get());
      generator_ = generator;
      for (held_action_ = -1; held_action_ != held && p < 1;) act(held);
      generator_ = generator;
      held_action_ = held;
      ale_.restore_system(object_.data(), state.get());
    }
    std::memcpy(picture.pixels.data(), bytes.data() + kPicture, picture.pixels.size());
  });
}

}  // namespace atari
