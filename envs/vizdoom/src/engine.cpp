// engine.cpp - see engine.hpp.
#include "engine.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <random>
#include <utility>

namespace doom {
namespace {

using std::chrono::milliseconds;

// How often a waiting thread looks whether the engine lives and the host still wants the result.
constexpr milliseconds kLook{10};

// Ten letters and digits, as vizdoom's own controller makes them.
std::string new_id() {
  static constexpr char kLetters[] =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
  std::random_device entropy;
  std::uniform_int_distribution<std::size_t> pick(0, sizeof kLetters - 2);
  std::string id;
  for (int i = 0; i < 10; ++i) id += kLetters[pick(entropy)];
  return id;
}

int render_mode(const Scenario& s) {
  const std::pair<bool, int> bits[] = {{s.hud, 1},
                                       {s.minimal_hud, 2},
                                       {s.weapon, 4},
                                       {s.crosshair, 8},
                                       {s.decals, 16},
                                       {s.particles, 32},
                                       {s.effects_sprites, 64},
                                       {s.messages, 128},
                                       {s.automap_rotate, 256},
                                       {s.automap_textures, 512},
                                       {s.automap_sprites, 1024},
                                       {s.corpses, 2048},
                                       {s.screen_flashes, 4096}};
  int mode = 0;
  for (const auto& [on, bit] : bits) mode |= on ? bit : 0;
  return mode;
}

// The engine's number of the picture's shape, 0: as its pixels.
int aspect(const Scenario& s) {
  const auto is = [&](int w, int h) { return s.width * h == s.height * w; };
  return is(16, 9) ? 1 : is(16, 10) ? 2 : is(4, 3) ? 3 : is(5, 4) ? 4 : 0;
}

std::vector<std::string> arguments(const Scenario& s, std::uint32_t seed, const std::string& id,
                                   const std::vector<std::string>& more) {
  std::vector<std::string> out;
  const auto add = [&](const char* name, const auto& value) {
    out.emplace_back(name);
    if constexpr (std::is_arithmetic_v<std::remove_cvref_t<decltype(value)>>)
      out.push_back(std::to_string(value));
    else
      out.emplace_back(value);
  };
  add("-iwad", s.game_path);
  if (!s.wad_path.empty()) add("-file", s.wad_path);
  add("-config", "/dev/null");  // it reads and writes its settings there
  add("+map", s.map);
  add("-skill", s.skill);
  add("-width", s.width);
  add("-height", s.height);
  add("+vid_aspect", aspect(s));
  add("+fullscreen", 0);
  add("+viz_controlled", 1);
  add("+viz_instance_id", id);
  add("+use_mouse", 0);
  add("-rngseed", seed);
  if (s.depth) add("+viz_depth", 1);
  if (s.labels) add("+viz_labels", 1);
  if (s.automap) {
    add("+viz_automap", 1);
    add("+viz_automap_mode", s.automap_mode);
  }
  add("+viz_render_mode", render_mode(s));
  if (s.all_frames) add("+viz_render_all", 1);
  add("+viz_noconsole", 1);
  add("+viz_screen_format", static_cast<int>(s.format));
  add("+viz_window_hidden", 1);
  add("+viz_noxserver", 1);
  for (const char* flag : {"-noidle", "-nojoy"}) out.emplace_back(flag);
  if (s.audio) {
    add("+viz_soft_audio", 1);
    add("+snd_backend", "openal");
    add("+viz_samp_freq", s.audio_rate);
    add("+viz_audio_tics", s.audio_tics);
  } else {
    out.emplace_back("-nosound");
    add("+viz_nosound", 1);
  }
  if (s.notifications) {
    add("+viz_notifications", 1);
    add("+viz_notifications_tics", s.notification_tics);
  }
  out.insert(out.end(), more.begin(), more.end());
  out.insert(out.end(), s.game_args.begin(), s.game_args.end());
  return out;
}

// A start takes 0.15 s of CPU, which on a busy machine may be long, however soon a step must
// answer.
constexpr Engine::Seconds kStartPatience{60};

std::vector<std::string> variables(const Installation& files) {
  if (files.libraries.empty()) return {};
  const char* own = std::getenv("LD_LIBRARY_PATH");
  return {"LD_LIBRARY_PATH=" + files.libraries + (own != nullptr ? std::string(":") + own : "")};
}

}  // namespace

Engine::Engine(const Installation& files, const Scenario& scenario, std::uint32_t seed,
               const std::vector<std::string>& more, const envpool::host& host, Seconds patience)
    : host_(host),
      patience_(patience),
      id_(new_id()),
      starting_(std::in_place, id_),
      to_engine_("ViZDoomMQDoom" + id_),
      from_engine_("ViZDoomMQCtr" + id_),
      child_(std::make_unique<Child>(Program{files.executable, arguments(scenario, seed, id_, more),
                                             files.home, variables(files)},
                                     [this] {
                                       to_engine_.abandon();
                                       from_engine_.abandon();
                                     })) {}

Engine::Starting::~Starting() { shm_unlink(memory.c_str()); }

void Engine::connect() {
  map();
  to_engine_.unlink();
  from_engine_.unlink();
  starting_.reset();
}

Engine::~Engine() = default;

void Engine::Unmap::operator()(std::byte* memory) const noexcept { munmap(memory, size); }

void Engine::map() {
  const std::string& name = starting_->memory;
  const int fd = shm_open(name.c_str(), O_RDWR | O_CLOEXEC, 0);
  if (fd < 0) fail("has no shared memory " + name + ": " + std::strerror(errno));
  const struct Close {
    int fd;
    ~Close() { close(fd); }
  } closer{fd};
  struct stat file{};
  fstat(fd, &file);
  const auto size = static_cast<std::size_t>(file.st_size);
  if (size < sizeof(GameState))
    fail("has shared memory of an unknown layout: only vizdoom 1.3.2 is understood");
  void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED)
    fail(std::string("has shared memory that can't be mapped: ") + std::strerror(errno));
  memory_ = std::unique_ptr<std::byte, Unmap>(static_cast<std::byte*>(memory), Unmap{size});
  state_ = reinterpret_cast<GameState*>(memory_.get());
  const GameState& s = *state_;
  const auto at = [](Region r) { return static_cast<std::size_t>(r); };
  if (s.version != kEngineVersion || s.memory_size != size ||
      s.size[at(Region::kState)] != sizeof(GameState) ||
      s.size[at(Region::kInput)] != sizeof(Input))
    fail("is of version " + std::to_string(s.version) + ", but only that of vizdoom 1.3.2 (" +
         std::to_string(kEngineVersion) + ") is understood: pip install vizdoom==1.3.2");
  // A page that is missing when it is read is a SIGBUS: what will be read is allocated now, as far
  // as the engine has not written it yet. That is all but the lists of objects, sectors and lines.
  const auto allocate = [&](std::size_t begin, std::size_t bytes) {
    const int error =
        bytes != 0 ? posix_fallocate(fd, static_cast<off_t>(begin), static_cast<off_t>(bytes)) : 0;
    if (error != 0)
      fail(std::string("has no room in /dev/shm: ") + std::strerror(error) +
           " (in a container: --shm-size)");
  };
  const bool labelled = s.labels;
  allocate(0, labelled ? offsetof(GameState, object_count) : offsetof(GameState, label));
  allocate(offsetof(GameState, hits), sizeof(GameState) - offsetof(GameState, hits));
  for (std::size_t r = at(Region::kInput); r < at(Region::kCount); ++r)
    allocate(s.offset[r], s.size[r]);
  input_ = reinterpret_cast<Input*>(memory_.get() + s.offset[at(Region::kInput)]);
}

std::span<const std::byte> Engine::region(Region region) const {
  const auto r = static_cast<std::size_t>(region);
  return {memory_.get() + state_->offset[r], state_->size[r]};
}

void Engine::command(const std::string& text) {
  if (text.size() >= kMessageText)
    throw envpool::error(EP_E_ARGUMENT, "a command too long for the engine (at most " +
                                            std::to_string(kMessageText - 1) + " bytes): " + text);
  send(Code::kCommand, text);
}

void Engine::send(Code code, const std::string& text) {
  const auto since = Queue::Clock::now();
  while (!to_engine_.send(code, text, kLook)) check(since);
}

bool Engine::finished() {
  const std::optional<Message> message = from_engine_.receive(kLook);
  if (!message) return false;
  switch (message->code) {
    case Code::kDone:
      return true;
    case Code::kError:
      fail("failed: " + message->text);
    case Code::kLeft:
      fail("closed itself");
    default:
      fail("sent a message of an unknown kind, " + std::to_string(static_cast<int>(message->code)));
  }
}

void Engine::check(Time since) {
  if (!child_->alive()) fail(child_->fate());
  if (host_.cancelled()) {
    child_->kill();
    throw envpool::error(EP_E_CANCELLED, "the pool is closing");
  }
  const Seconds patience = starting_ ? std::max(patience_, kStartPatience) : patience_;
  if (Queue::Clock::now() - since > patience)
    fail("did not answer within " + std::to_string(static_cast<int>(patience.count())) +
         " s (engine_timeout) and was killed");
}

bool Engine::has_library(std::string_view name) const {
  std::ifstream maps("/proc/" + std::to_string(pid()) + "/maps");
  for (std::string line; std::getline(maps, line);)
    if (line.find(name) != std::string::npos) return true;
  return false;
}

void Engine::fail(const std::string& what) {
  const std::string pid = std::to_string(child_->pid());
  child_->kill();
  const std::string words = child_->last_words();
  // SIGBUS, which the engine's own handler tells of: a page of its shared memory could not be had.
  const bool no_page = words.find("(signal 7)") != std::string::npos;
  throw envpool::error(EP_E_BROKEN,
                       "the Doom engine (process " + pid + ") " + what +
                           (no_page ? " (is /dev/shm full? In a container: --shm-size)" : "") +
                           (words.empty() ? "" : ". It wrote: " + words));
}

}  // namespace doom
