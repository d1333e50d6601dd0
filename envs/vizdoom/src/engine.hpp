// engine.hpp - one engine: a child process, its queues and its shared memory.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <envpool/env.hpp>
#include <memory>
#include <span>
#include <string>

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
};

// Used by one thread at a time. Every function may throw envpool::error: EP_E_BROKEN if the engine
// died, failed or did not answer in time (it is killed then), saying which and what it wrote last;
// EP_E_CANCELLED. The engine is gone after that, and so is what is in its memory for the sake of
// the next order only: state and pixels stay readable as long as this object lives.
class Engine {
 public:
  using Seconds = std::chrono::duration<double>;

  // Starts it with a seed and waits until it has loaded the first map.
  Engine(const Installation& files, const Scenario& scenario, std::uint32_t seed,
         const envpool::host& host, Seconds patience);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  pid_t pid() const { return child_->pid(); }

  // As of the last order.
  const GameState& state() const { return *state_; }
  std::span<const std::byte> region(Region region) const;
  Input& input() { return *input_; }

  void tic(bool update) { order(update ? Code::kTicAndUpdate : Code::kTic); }
  void update() { order(Code::kUpdate); }
  // A console command; done in the next tic.
  void command(const std::string& text);
  // Kills it and throws EP_E_BROKEN: "the Doom engine (process 12) <what>".
  [[noreturn]] void fail(const std::string& what);
  // Reads what the engine wrote to its output.
  void listen() { child_->listen(); }

 private:
  struct Unmap {
    std::size_t size;
    void operator()(std::byte* memory) const noexcept;
  };

  void order(Code code);
  void send(Code code, const std::string& text = {});
  void wait_until_done();
  void map();
  // Throws if there is no use in waiting on.
  void check(Queue::Clock::time_point since);

  envpool::host host_;
  Seconds patience_;
  std::string id_;
  Queue to_engine_, from_engine_;
  std::unique_ptr<Child> child_;
  std::unique_ptr<std::byte, Unmap> memory_{nullptr, Unmap{0}};
  GameState* state_ = nullptr;
  Input* input_ = nullptr;
};

}  // namespace doom
