// pool.hpp - many envs of one task, stepped by threads, received in batches.
//
// A send or reset is validated as a whole, its actions are copied, and its envs are put on lanes.
// Workers (and the thread that waits in recv, where the plugin allows it) take envs from lanes in
// chunks, run them and write their rows. In a synchronous pool (batch_size == num_envs) each send
// makes one batch whose rows are given beforehand; in an asynchronous one an env claims the next
// row of the open batch when it is done.
//
// The usual send, a step of all envs of a synchronous pool whose envs any thread may run, takes a
// shorter way: a sweep. Its rows are the envs' numbers, its runners claim ranges from counters, one
// a thread, and nothing is done for each env but to run it; where the plugin offers
// envpool.batch/1, a range is one call.
//
// Who touches what: mutex_ guards the queue of batches and who is in flight; it is taken by send
// and by recv, and for each row of an asynchronous pool. An env, its job and its action belong to
// the sender until the env is pushed to a lane, then to the thread that took it, until its batch is
// complete. Lanes and batches order these hand-overs.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "actions.hpp"
#include "batch.hpp"
#include "error.hpp"
#include "event.hpp"
#include "lane.hpp"
#include "plan.hpp"

namespace envpool::runtime {

struct PoolSettings {
  PlanSettings plan;
  std::int64_t num_envs = 1;
  std::int64_t batch_size = 1;
  std::int64_t num_threads = 0;  // 0: as many as CPUs may be used; never more than envs
  std::int64_t thread_affinity_offset =
      -1;  // worker i on the (offset + i)th allowed CPU, -1: on any
  std::uint64_t max_faults = 1000;
  std::size_t memory_limit = 0;  // bytes of batches; 0: half of the machine's memory
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
  ~Pool();  // by CloseAndDelete
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  // The rest may be called from any thread. All throw Error(kClosed) after close(), Error(kRuntime)
  // in a forked child, Error(kEnv) once max_faults is spent.

  // One ActionRows a field, for the envs named. Throws Error(kValue, kRuntime, kMemory); then
  // nothing was sent.
  void send(std::span<const ActionRows> actions, EnvIds env_ids);
  // One seed an env; none: the envs go on with their generators (a first reset takes entropy).
  // Throws as send.
  void reset(EnvIds env_ids, std::optional<std::span<const std::uint64_t>> seeds,
             const std::vector<NamedOption>& at_reset);
  // The next complete batch; give it back by recycle(). No timeout: waits for ever. Throws
  // Error(kRuntime) if nothing is in flight, Error(kTimeout) naming envs (nothing is lost),
  // Error(kEnv) if a first reset failed.
  std::unique_ptr<Batch> recv(std::optional<std::chrono::nanoseconds> timeout,
                              const Interrupt& interrupt);
  // The present rows of envs that are not in flight.
  std::unique_ptr<Batch> observe(EnvIds env_ids);
  void recycle(std::unique_ptr<Batch> batch) noexcept;

  Env::Picture render(std::int64_t env, std::uint32_t width, std::uint32_t height,
                      std::uint32_t camera);
  std::vector<std::byte> save_state(std::int64_t env);
  void load_state(std::int64_t env, std::span<const std::byte> state);

  // Stops everything, dropping what is in flight. False if a thread still hangs in an env after the
  // timeout; it is left behind with all it may touch. Twice is safe.
  bool close(std::chrono::nanoseconds timeout);

  const Plan& plan() const { return plan_; }
  std::uint32_t num_envs() const { return num_envs_; }
  std::uint32_t batch_size() const { return batch_size_; }
  std::uint32_t num_threads() const { return threads_; }
  bool closed() const;
  bool hung() const;  // the last close() ran out of time
  bool forked() const;
  std::uint32_t pending() const;
  std::size_t retained_bytes() const { return store_->retained_bytes(); }
  Statistics statistics() const;

 private:
  using Clock = Event::Clock;
  static constexpr auto kForever = Clock::time_point::max();
  static constexpr std::uint32_t kChunkNanoseconds = 20000;  // work that is worth a hand-over
  static constexpr std::uint32_t kMostChunk = 1024;

  struct Job {
    enum class Kind { kCreate, kReset, kStep, kVisit } kind = Kind::kCreate;
    std::optional<std::uint64_t> seed;
    std::shared_ptr<const Options> at_reset;
    Batch* batch = nullptr;  // synchronous: given by prepare(); asynchronous: by claim_row()
    std::uint32_t row = 0;
  };

  // What a thread that runs envs has: its lanes, its working memory, its figures.
  struct Runner {
    Runner(const Plan& plan, std::uint32_t home_);
    const std::uint32_t home;  // the lane and segment that it takes from first
    Scratch scratch;
    std::vector<std::uint32_t> chunk;
    std::vector<const void*> action;
    std::vector<const std::uint32_t*> lengths;
    // For ep_rows: the envs of a range that step, and the columns. late: those that begin anew.
    std::vector<void*> handles;
    std::vector<std::uint32_t> late;
    std::vector<ep_column> action_columns, obs_columns, info_columns;
    // Autoreset::kSameStep: the last row of an episode, until it is known where it goes.
    std::vector<std::vector<std::byte>> ended;
    std::vector<std::byte*> ended_data;
    bool has_ended = false;
    std::string ended_fault;
    // Written by this thread only, read for statistics(); relaxed.
    alignas(64) std::atomic<std::uint64_t> steps{0}, episodes{0};
  };

  // A share of the sweep: the first env that nobody claimed, `end` and more if there is none.
  struct alignas(64) Segment {
    std::atomic<std::uint32_t> next{0};
    std::uint32_t begin = 0, end = 0;
  };

  // Of an env: never reset; ready; sent and not received.
  enum class Place : std::uint8_t { kNever, kIdle, kFlying };

  // A user's thread inside a call: close() waits for it.
  class Call {
   public:
    explicit Call(Pool& pool);
    ~Call();
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

    Runner* runner = nullptr;  // set by who runs envs while he waits; handed back at the end

   private:
    Pool& pool_;
  };

  using Visitor = std::function<void(std::uint32_t, Env&, Scratch&)>;

  Pool(Plugin& plugin, const ep_task& task, std::vector<std::shared_ptr<const Options>> options,
       const PoolSettings& settings);

  bool synchronous() const { return batch_size_ == num_envs_; }
  void check_born_here() const;
  Error closed_error() const;
  void fail(const std::string& why);

  // By runners.
  void work(std::uint32_t index, Runner& runner);
  bool begins_anew(std::uint32_t id) const;
  bool work_waits() const;
  std::uint32_t take(Runner& runner);
  bool run_some(Runner& runner);
  std::uint32_t chunk_size(std::uint64_t waiting) const;
  void run(std::span<const std::uint32_t> ids, Runner& runner);
  void create_or_visit(std::uint32_t id, Runner& runner);
  void drop_visits(Runner& runner);
  void drop_visit(std::uint32_t id);
  void finish_visit();
  bool sweep_some(Runner& runner);
  bool sweep_some(Segment& segment, Runner& runner);
  void sweep_range(std::uint32_t begin, std::uint32_t end, Batch& batch, Runner& runner);
  void step_range(std::uint32_t begin, std::uint32_t end, Batch& batch, Runner& runner);
  void write_range(std::uint32_t begin, std::uint32_t end, Batch& batch);
  void set_job(std::uint32_t id, Batch& batch);
  void measure(std::chrono::nanoseconds spent, std::uint32_t count);
  void play(std::uint32_t id, Runner& runner);
  void end_episode(Env& env, Runner& runner);
  bool claim_row(Job& job);
  void deliver(std::uint32_t id, Runner& runner);
  void count_fault(const std::string& message);

  // By users' threads, under mutex_.
  void start_worker();
  Runner* add_runner(std::uint32_t home);
  Runner* spare_runner();
  void check_usable() const;
  bool sweeps(EnvIds env_ids);
  std::vector<std::uint32_t>& take_off(EnvIds env_ids, Job::Kind kind);
  void land(std::span<const std::uint32_t> ids);
  void prepare(std::span<const std::uint32_t> ids, Job::Kind kind);
  void reserve_rows(std::uint32_t rows);
  void enqueue(std::span<const std::uint32_t> ids);
  std::unique_ptr<Batch> spare_batch(std::uint32_t rows);
  std::unique_ptr<Batch> pop_complete();
  Place place_of(std::uint32_t env) const;
  void arrive(Batch& batch);
  std::string flying() const;

  // By users' threads.
  void create_envs(const Interrupt& interrupt);
  void start_all_workers();
  void visit(EnvIds env_ids, const Visitor& act);
  void visit_one(std::int64_t env, const std::function<void(Env&)>& act);

  Plugin& plugin_;
  const std::uint32_t num_envs_, batch_size_;
  const std::uint64_t max_faults_;
  const std::int64_t affinity_offset_;
  Host& host_;
  const Plan plan_;
  const std::uint64_t born_;  // number of forks before us
  const std::uint32_t threads_;
  const bool free_;          // EP_FREE: any thread may run any env
  const bool caller_works_;  // the thread in recv is one of the threads
  std::chrono::nanoseconds spin_worker_{0}, spin_caller_{0};

  std::shared_ptr<BlockStore> store_;
  Actions actions_;
  const std::vector<std::shared_ptr<const Options>> options_;  // one for all, or one an env
  Episodes episodes_;
  std::vector<std::unique_ptr<Env>> envs_;
  std::vector<Job> jobs_;
  std::vector<std::uint32_t> all_;   // 0, 1, 2, ...: the ids of all envs
  std::vector<ep_status> statuses_;  // [env], of a step by plan_.batch

  // An env has the same lane and segment for ever, and these a thread that takes from them first:
  // so its memory stays in the caches of one CPU. Where any thread may run any env, others take
  // what a busy one leaves.
  std::vector<std::unique_ptr<Lane>> lanes_;      // one a thread; of env i: i modulo their number
  std::vector<std::unique_ptr<Runner>> runners_;  // of workers, and of users' threads; mutex_
  std::vector<std::thread> workers_;
  std::vector<Segment> segments_;  // one a thread
  // Of the sweep under way; the segments' release hands it to who claims.
  Batch* sweep_batch_ = nullptr;
  Event work_;  // something was pushed, or we stop
  Event done_;  // a batch, the creation or a visit is complete, or nothing more will be
  std::atomic<bool> stopping_{false};
  std::atomic<std::uint64_t> faults_{0};
  // Mean cost of running one env, nanoseconds; a hint for the size of chunks. Relaxed.
  std::atomic<std::uint32_t> cost_{1000000};

  mutable std::mutex mutex_;
  std::vector<Place> place_, before_;  // before_: where envs in flight were when they took off
  std::vector<std::uint32_t> ids_;     // of the send at work
  std::vector<std::vector<std::uint32_t>> split_;  // the same by lane
  std::deque<std::unique_ptr<Batch>> queue_;       // in the order in which recv gives them
  bool sweeping_ = false;    // a sweep is sent and not received: all envs are in flight
  bool all_played_ = false;  // no env is kNever, and none will be again
  Batch* open_ = nullptr;    // asynchronous: the one that rows are claimed from, in queue_
  std::vector<std::unique_ptr<Batch>> reserved_;  // asynchronous: those that will be open next
  std::vector<std::unique_ptr<Batch>> spare_;     // closed
  std::size_t batches_ = 0;                       // made so far
  std::vector<Runner*> spare_runners_;            // of users' threads that are elsewhere
  std::uint32_t in_flight_ = 0;                   // envs sent and not received, or being visited
  std::uint32_t unclaimed_ = 0;  // asynchronous: envs sent without a row yet, rows are reserved
  std::string failed_;           // why the pool gave up, empty: it did not
  bool hung_ = false;
  bool closed_ = false, joining_ = false, joined_ = false;
  std::uint32_t inside_ = 0;      // users' threads in calls
  std::uint32_t running_ = 0;     // workers
  std::condition_variable gone_;  // inside_ or running_ fell, or joined_ is set

  // Creation and visits: how many envs are still to be done, with what, and the first error.
  std::mutex visit_mutex_;  // one visit at a time
  std::atomic<std::uint32_t> outstanding_{0};
  const Visitor* visitor_ = nullptr;
  std::mutex error_mutex_;
  std::exception_ptr error_;
};

}  // namespace envpool::runtime
