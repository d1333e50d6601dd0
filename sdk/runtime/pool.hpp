// pool.hpp - many envs of one task, stepped at once, received in batches: what users call, and what
// is the same whether threads (thread_pool.hpp) or processes (process_pool.hpp) run the envs.
//
// A send or reset is validated as a whole, its actions are copied, and whoever runs the envs is
// told. In a synchronous pool (batch_size == num_envs) each send makes one batch whose rows are
// given beforehand; in an asynchronous one an env gets the next row of the open batch when it is
// done.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "actions.hpp"
#include "batch.hpp"
#include "error.hpp"
#include "plan.hpp"
#include "team.hpp"

namespace envpool::runtime {

enum class Isolation {
  kAuto,    // processes where the task needs them, else threads
  kThread,  // of this process
  kProcess,
};

// How worker processes are made and watched.
struct ProcessSettings {
  // The program and its first arguments: it ends up in envpool_worker_main().
  std::vector<std::string> command;
  std::vector<std::string> environment;  // "NAME=value"
  // Not empty: the program is a guest (guest.h), and this the library that it is to load.
  std::string guest_library;
  std::int64_t envs_per_worker = 1;  // more than 1: the task must be EP_FREE or EP_THREAD_BOUND
  // A worker that is in one step or one reset for longer is killed; none: waits for ever.
  std::optional<std::chrono::nanoseconds> step_timeout, reset_timeout;
};

struct PoolSettings {
  PlanSettings plan;
  std::int64_t num_envs = 1;
  std::int64_t batch_size = 1;
  std::int64_t num_threads = 0;  // 0: as many as CPUs may be used; never more than envs
  std::int64_t thread_affinity_offset =
      -1;  // worker i on the (offset + i)th allowed CPU, -1: on any
  std::uint64_t max_faults = 1000;
  std::size_t memory_limit = 0;  // bytes of batches; 0: half of the machine's memory
  // Synchronous only: every batch has the same memory, which the receiver may keep and the next one
  // overwrites. So there is one at a time: recv before send.
  bool in_place = false;
  Isolation isolation = Isolation::kAuto;
  ProcessSettings processes;
};

struct Statistics {
  std::uint64_t steps = 0, episodes = 0, faults = 0;
};

class Pool;

// Closes before it deletes; leaks on purpose what a hung thread or a forked child must not touch.
struct CloseAndDelete {
  void operator()(Pool* pool) const noexcept;
};
using PoolPtr = std::unique_ptr<Pool, CloseAndDelete>;

class Pool {
 public:
  // Called at least every 50 ms by threads that wait or work for the user; what it throws ends the
  // wait, losing nothing.
  using Interrupt = std::function<void()>;
  using EnvIds = std::optional<std::span<const std::int32_t>>;  // none: all, in order

  // Makes all envs, in parallel. options: one for all, or one for each env; their described specs
  // must agree. Throws Error: kValue, kPlugin, kEnv (naming env and reason).
  static PoolPtr make(Plugin& plugin, const ep_task& task,
                      std::vector<std::shared_ptr<const Options>> options,
                      const PoolSettings& settings, const Interrupt& interrupt);
  virtual ~Pool() = default;  // by CloseAndDelete
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  // The rest may be called from any thread. All throw Error(kClosed) after close(), Error(kRuntime)
  // in a forked child, Error(kEnv) once max_faults is spent.

  // One ActionRows a field, for the envs named. Throws Error(kValue, kRuntime, kMemory); then
  // nothing was sent.
  virtual void send(std::span<const ActionRows> actions, EnvIds env_ids) = 0;
  // What send() says of the values of these actions; nothing is sent. The ids must be in range.
  void check_actions(std::span<const ActionRows> actions, EnvIds env_ids) const;
  // One seed an env; none: the envs go on with their generators (a first reset takes entropy).
  // Throws as send.
  virtual void reset(EnvIds env_ids, std::optional<std::span<const std::uint64_t>> seeds,
                     const std::vector<NamedOption>& at_reset) = 0;
  // The next complete batch; give it back by recycle(). No timeout: waits for ever. Throws
  // Error(kRuntime) if nothing is in flight, Error(kTimeout) naming envs (nothing is lost),
  // Error(kEnv) if a first reset failed.
  virtual std::unique_ptr<Batch> recv(std::optional<std::chrono::nanoseconds> timeout,
                                      const Interrupt& interrupt) = 0;
  // The present rows of envs that are not in flight.
  virtual std::unique_ptr<Batch> observe(EnvIds env_ids, const Interrupt& interrupt = nullptr) = 0;
  void recycle(std::unique_ptr<Batch> batch) noexcept;

  // Of envs that are not in flight.
  virtual Env::Picture render(std::int64_t env, std::uint32_t width, std::uint32_t height,
                              std::uint32_t camera, const Interrupt& interrupt = nullptr) = 0;
  virtual std::vector<std::byte> save_state(std::int64_t env,
                                            const Interrupt& interrupt = nullptr) = 0;
  virtual void load_state(std::int64_t env, std::span<const std::byte> state,
                          const Interrupt& interrupt = nullptr) = 0;

  // Stops everything, dropping what is in flight. False if a thread still hangs in an env after the
  // timeout; it is left behind with all it may touch. Twice is safe.
  virtual bool close(std::chrono::nanoseconds timeout) = 0;

  const Plan& plan() const { return plan_; }
  std::uint32_t num_envs() const { return num_envs_; }
  std::uint32_t batch_size() const { return batch_size_; }
  // Threads, or worker processes, that run envs at once.
  virtual std::uint32_t num_threads() const = 0;
  virtual Isolation isolation() const = 0;
  bool closed() const;
  bool hung() const;  // the last close() ran out of time
  bool forked() const;
  std::uint32_t pending() const;
  std::size_t retained_bytes() const { return store_->retained_bytes(); }
  virtual Statistics statistics() const = 0;
  // The latest 1000 faults, oldest first, those of rows not received yet too; after close() as
  // well.
  std::vector<Fault> faults() const;

 protected:
  using Clock = std::chrono::steady_clock;
  static constexpr auto kForever = Clock::time_point::max();
  static constexpr auto kInterruptEvery = std::chrono::milliseconds(50);

  // Of an env: never reset; ready; sent and not received.
  enum class Place : std::uint8_t { kNever, kIdle, kFlying };

  // A user's thread inside a call: close() waits for it.
  class Call {
   public:
    explicit Call(Pool& pool);
    ~Call();
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

   protected:
    Pool& pool_;
  };

  // The derived constructor sets store_ and actions_.
  Pool(Plugin& plugin, const ep_task& task, std::vector<std::shared_ptr<const Options>> options,
       const PoolSettings& settings);

  // Never past the end of time, however long the timeout.
  static Clock::time_point after(std::chrono::nanoseconds timeout);
  static std::uint64_t entropy();

  bool synchronous() const { return batch_size_ == num_envs_; }
  std::vector<std::size_t> column_bytes(std::uint32_t rows) const;
  static std::size_t memory_limit(const PoolSettings& settings);
  const Options& options_of(std::uint32_t env) const {
    return *options_[options_.size() == 1 ? 0 : env];
  }
  void check_born_here() const;
  Error closed_error() const;
  // Gives the pool up; the reason is what everybody hears from now on.
  void fail(const std::string& why);
  void count_fault(std::uint32_t env, const std::string& message);
  // Counts and keeps it; why the pool must be given up, if it must. [any-thread]
  std::optional<std::string> over_budget(std::uint32_t env, const std::string& message);

  // Of an env that is not in flight; mutex_.
  virtual bool played(std::uint32_t env) const = 0;
  virtual bool over(std::uint32_t env) const = 0;
  // Lets those who wait look again. [any-thread]
  virtual void wake() = 0;

  // Under mutex_.
  void check_usable() const;
  std::vector<std::uint32_t>& take_off(EnvIds env_ids, Job::Kind kind);
  void land(std::span<const std::uint32_t> ids);
  Place place_of(std::uint32_t env) const { return played(env) ? Place::kIdle : Place::kNever; }
  void check_seeds(std::optional<std::span<const std::uint64_t>> seeds, std::size_t envs) const;
  std::unique_ptr<Batch> spare_batch(std::uint32_t rows);
  std::unique_ptr<Batch> checked(std::unique_ptr<Batch> batch);
  std::string flying() const;
  Error nothing_in_flight() const;
  Error timeout_error() const;

  const std::uint32_t num_envs_, batch_size_;
  const std::uint64_t max_faults_;
  const bool in_place_;
  Host& host_;
  const Plan plan_;
  const std::uint64_t born_;                                   // number of forks before us
  const std::vector<std::shared_ptr<const Options>> options_;  // one for all, or one an env
  std::shared_ptr<BlockStore> store_;
  std::optional<Actions> actions_;
  std::vector<std::uint32_t> all_;  // 0, 1, 2, ...: the ids of all envs
  std::atomic<std::uint64_t> faults_{0};
  mutable std::mutex faults_mutex_;  // may be locked under mutex_, not the other way round
  std::deque<Fault> latest_faults_;

  mutable std::mutex mutex_;
  std::vector<Place> place_, before_;  // before_: where envs in flight were when they took off
  std::vector<std::uint32_t> ids_;     // of the send at work
  bool all_fly_ = false;               // all envs are in flight, whatever place_ says
  std::deque<std::unique_ptr<Batch>> queue_;   // in the order in which recv gives them
  std::vector<std::unique_ptr<Batch>> spare_;  // closed
  std::size_t batches_ = 0;                    // made so far
  std::uint32_t in_flight_ = 0;                // envs sent and not received, or being visited
  std::string failed_;                         // why the pool gave up, empty: it did not
  bool closed_ = false, hung_ = false;
  std::uint32_t inside_ = 0;      // users' threads in calls
  std::condition_variable gone_;  // inside_ fell, or what else close() waits for came
};

}  // namespace envpool::runtime
