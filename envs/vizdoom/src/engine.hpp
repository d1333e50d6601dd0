// engine.hpp - one engine: a child process, its queues and its shared memory.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <envpool/env.hpp>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "leftovers.hpp"
#include "protocol.hpp"
#include "queue.hpp"
#include "scenario.hpp"
#include "spawner.hpp"

namespace doom {

// Where the engine's files are.
struct Installation {
  std::string executable;
  std::string
      home;  // its working directory: has the folder _vizdoom, which it would make otherwise
  std::string libraries;  // a folder with OpenAL; empty: the system's, if there is one
};

// Used by one thread at a time. Every function may throw envpool::error: EP_E_BROKEN if the engine
// died, failed or did not answer in time (it is killed then), saying which and what it wrote last;
// EP_E_CANCELLED. The engine is gone after that, and so is what is in its memory for the sake of
// the next order only: state and pixels stay readable as long as this object lives.
class Engine {
 public:
  using Seconds = std::chrono::duration<double>;
  using Time = Queue::Clock::time_point;

  // Starts it with a seed; `more` are arguments beside the scenario's. The first that must follow
  // is connect().
  Engine(const Installation& files, const Scenario& scenario, std::uint32_t seed,
         const std::vector<std::string>& more, const envpool::host& host, Seconds patience);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  pid_t pid() const { return child_->pid(); }

  // After finished(), which tells that it has loaded the first map: opens its shared memory.
  void connect();

  // As of the last order.
  const GameState& state() const { return *state_; }
  std::span<const std::byte> region(Region region) const;
  Input& input() { return *input_; }

  // kTic, kUpdate, kTicAndUpdate. The next order may follow when this one is finished.
  void order(Code code) { send(code); }
  // Waits a little (10 ms) for the end of the order, or of the start.
  bool finished();
  // Throws if there is no use in waiting for it any longer, `since` when one does.
  void check(Time since);
  // A console command; done in the next tic.
  void command(const std::string& text);
  // Kills it and throws EP_E_BROKEN: "the Doom engine (process 12) <what>".
  [[noreturn]] void fail(const std::string& what);
  // Reads what the engine wrote to its output.
  void listen() { child_->listen(); }
  // Whether it has loaded a library whose path contains this.
  bool has_library(std::string_view name) const;

 private:
  struct Unmap {
    std::size_t size;
    void operator()(std::byte* memory) const noexcept;
  };

  // Names in shared memory that are there while it starts.
  struct Starting {
    explicit Starting(const std::string& id) : memory("/ViZDoomSM" + id), leftovers(id) {}
    ~Starting();
    Starting(const Starting&) = delete;
    Starting& operator=(const Starting&) = delete;

    std::string memory;
    Leftovers leftovers;
  };

  void send(Code code, const std::string& text = {});
  void map();

  envpool::host host_;
  Seconds patience_;
  std::string id_;
  std::optional<Starting> starting_;
  Queue to_engine_, from_engine_;
  std::unique_ptr<Child> child_;
  std::unique_ptr<std::byte, Unmap> memory_{nullptr, Unmap{0}};
  GameState* state_ = nullptr;
  Input* input_ = nullptr;
};

}  // namespace doom
