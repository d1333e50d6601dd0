// thread_pool.hpp - a pool whose envs are run by threads of this process.
//
// Workers (and the thread that waits in recv, where the plugin allows it: always in a synchronous
// pool, else for a little work) take envs from lanes in chunks, run them and write their rows.
//
// The usual send, a step of all envs of a synchronous pool whose envs any thread may run, takes a
// shorter way: a sweep. Its rows are the envs' numbers, its runners claim ranges from counters, one
// a thread, and nothing is done for each env but to run it; where the plugin offers
// envpool.batch/1, a range is one call.
//
// Who touches what: mutex_ guards the queue of batches and who is in flight; it is taken by send
// and by recv, and in an asynchronous pool for the rows of a chunk. An env, its job and its action
// belong to the sender until the env is pushed to a lane, then to the thread that took it, until
// its batch is complete. Lanes and batches order these hand-overs.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "event.hpp"
#include "lane.hpp"
#include "pool.hpp"
#include "team.hpp"

namespace envpool::runtime {

class ThreadPool final : public Pool {
 public:
  // See Pool::make; the settings' numbers are checked.
  static PoolPtr make(Plugin& plugin, const ep_task& task,
                      std::vector<std::shared_ptr<const Options>> options,
                      const PoolSettings& settings, const Interrupt& interrupt);

  void send(std::span<const ActionRows> actions, EnvIds env_ids) override;
  void reset(EnvIds env_ids, std::optional<std::span<const std::uint64_t>> seeds,
             const std::vector<NamedOption>& at_reset) override;
  std::unique_ptr<Batch> recv(std::optional<std::chrono::nanoseconds> timeout,
                              const Interrupt& interrupt) override;
  // A visit is not interrupted: the env belongs to the thread that runs it.
  std::unique_ptr<Batch> observe(EnvIds env_ids, const Interrupt& interrupt) override;
  Env::Picture render(std::int64_t env, std::uint32_t width, std::uint32_t height,
                      std::uint32_t camera, const Interrupt& interrupt) override;
  std::vector<std::byte> save_state(std::int64_t env, const Interrupt& interrupt) override;
  void load_state(std::int64_t env, std::span<const std::byte> state,
                  const Interrupt& interrupt) override;
  bool close(std::chrono::nanoseconds timeout) override;
  std::uint32_t num_threads() const override { return threads_; }
  Isolation isolation() const override { return Isolation::kThread; }
  Statistics statistics() const override;

 private:
  static constexpr std::uint32_t kChunkNanoseconds = 20000;  // work that is worth a hand-over
  static constexpr std::uint32_t kMostChunk = 1024;
  static constexpr std::uint32_t kUnknown = 1000000000;  // a cost, before there was one

  // What a thread that runs envs has.
  struct Runner {
    Runner(const Plan& plan, std::uint32_t home_)
        : home(home_), chunk(kMostChunk), rows(kMostChunk), work(plan, kMostChunk) {}
    const std::uint32_t home;  // the lane and segment that it takes from first
    std::vector<std::uint32_t> chunk;
    std::vector<Destination> rows;  // that claim_rows() claimed last
    Workspace work;
  };

  // A share of the sweep: the first env that nobody claimed, `end` and more if there is none.
  struct alignas(64) Segment {
    std::atomic<std::uint32_t> next{0};
    std::uint32_t begin = 0, end = 0;
  };

  struct Range {
    std::uint32_t begin = 0, end = 0;
  };

  class Call : public Pool::Call {
   public:
    explicit Call(ThreadPool& pool) : Pool::Call(pool) {}
    ~Call();

    Runner* runner = nullptr;  // set by who runs envs while he waits; handed back at the end
  };

  using Visitor = std::function<void(std::uint32_t, Env&, Scratch&)>;

  ThreadPool(Plugin& plugin, const ep_task& task,
             std::vector<std::shared_ptr<const Options>> options, const PoolSettings& settings);

  bool played(std::uint32_t env) const override { return team_.env(env).played(); }
  bool over(std::uint32_t env) const override { return team_.env(env).over(); }
  void wake() override { done_.notify(); }

  // By runners.
  void work(std::uint32_t index, Runner& runner);
  bool begins_anew(std::uint32_t id) const;
  bool work_waits() const;
  std::uint32_t take(Runner& runner);
  bool run_some(Runner& runner, Clock::time_point& now);
  bool run_little(Runner& runner, Clock::time_point& now, bool& helps);
  std::uint32_t steps_first(std::uint32_t count, Runner& runner);
  void spent(std::uint32_t count, Clock::time_point& now);
  std::uint32_t chunk_size(std::uint64_t waiting) const;
  void run(std::uint32_t count, Runner& runner);
  void deliver(std::span<const std::uint32_t> ids, Runner& runner);
  void create_or_visit(std::uint32_t id, Runner& runner);
  void drop_visits(Runner& runner);
  void drop_visit(std::uint32_t id);
  void finish_visit();
  bool little(std::uint64_t envs) const;
  bool cheap_resets() const;
  std::uint32_t worth_a_claim() const;
  std::uint32_t sweep_some(Runner& runner);
  Range claim(Segment& segment);
  bool claim_whole(Segment& segment, Range& range);
  void sweep_range(std::uint32_t begin, std::uint32_t end, Batch& batch, Runner& runner);
  static void measure(std::atomic<std::uint32_t>& mean, std::chrono::nanoseconds one);
  bool claim_rows(std::span<const std::uint32_t> ids, Runner& runner);

  // By users' threads, under mutex_.
  void start_worker();
  Runner* add_runner(std::uint32_t home);
  Runner* spare_runner();
  bool sweeps(EnvIds env_ids);
  void prepare(std::span<const std::uint32_t> ids, Job::Kind kind);
  void reserve_rows(std::uint32_t rows);
  void enqueue(std::span<const std::uint32_t> ids);
  std::unique_ptr<Batch> pop_complete();
  void arrive(Batch& batch);

  // By users' threads.
  void create_envs(const Interrupt& interrupt);
  void start_all_workers();
  void visit(EnvIds env_ids, const Visitor& act);
  void visit_one(std::int64_t env, const std::function<void(Env&)>& act);

  Plugin& plugin_;
  const std::int64_t affinity_offset_;
  const std::uint32_t threads_;
  const bool free_;          // EP_FREE: any thread may run any env
  const bool caller_works_;  // the thread in recv is one of the threads: FREE and synchronous
  std::chrono::nanoseconds spin_worker_{0}, spin_caller_{0};
  Team team_;

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
  // Mean cost of running one env, costly until it is known better, and of a reset alone;
  // nanoseconds. Hints for the size of chunks and for who runs them. Relaxed.
  std::atomic<std::uint32_t> cost_{1000000}, reset_cost_{kUnknown};

  // Guarded by mutex_.
  std::vector<std::vector<std::uint32_t>> split_;  // of the send at work, by lane
  bool all_played_ = false;                        // no env is kNever, and none will be again
  Batch* open_ = nullptr;  // asynchronous: the one that rows are claimed from, in queue_
  std::vector<std::unique_ptr<Batch>> reserved_;  // asynchronous: those that will be open next
  std::vector<Runner*> spare_runners_;            // of users' threads that are elsewhere
  std::uint32_t unclaimed_ = 0;    // asynchronous: envs sent without a row yet, rows are reserved
  bool left_to_receiver_ = false;  // the last send woke nobody
  bool joining_ = false, joined_ = false;
  std::uint32_t running_ = 0;  // workers

  // Creation and visits: how many envs are still to be done, with what, and the first error.
  std::mutex visit_mutex_;  // one visit at a time
  std::atomic<std::uint32_t> outstanding_{0};
  const Visitor* visitor_ = nullptr;
  std::mutex error_mutex_;
  std::exception_ptr error_;
};

}  // namespace envpool::runtime
