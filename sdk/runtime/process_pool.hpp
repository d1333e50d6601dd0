// process_pool.hpp - a pool whose envs are run by processes: for engines with global state, and for
// those that crash or hang. docs/dev/processes.md is the map.
//
// No thread of its own: send puts jobs into the mailboxes of the workers, recv waits for them and
// looks after those that died. mutex_ guards all but what lies in the arena, which mailbox.hpp
// explains.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "arena.hpp"
#include "keeper.hpp"
#include "mailbox.hpp"
#include "orders.hpp"
#include "pool.hpp"

namespace envpool::runtime {

class ProcessPool final : public Pool {
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
  std::unique_ptr<Batch> observe(EnvIds env_ids, const Interrupt& interrupt) override;
  Env::Picture render(std::int64_t env, std::uint32_t width, std::uint32_t height,
                      std::uint32_t camera, const Interrupt& interrupt) override;
  std::vector<std::byte> save_state(std::int64_t env, const Interrupt& interrupt) override;
  void load_state(std::int64_t env, std::span<const std::byte> state,
                  const Interrupt& interrupt) override;
  bool close(std::chrono::nanoseconds timeout) override;
  std::uint32_t num_threads() const override { return layout_.workers(); }
  Isolation isolation() const override { return Isolation::kProcess; }
  Statistics statistics() const override;

 private:
  // What we know of an env; the engine's part of it is in its worker.
  struct Known {
    bool played = false, over = true;
    bool in_worker = false;  // has a job there that we have not seen done
    bool lost = false;       // an episode died with its worker, and nobody was told yet
    std::string lost_why;
    bool ended_by_crash = false;  // kSameStep: its final row is written, its reset is under way
    std::int32_t elapsed = 0;
    std::uint64_t seed = 0, respawns = 0;
    std::vector<double> returned;     // per agent
    std::vector<std::uint8_t> alive;  // per agent
    Batch* batch = nullptr;           // synchronous: where its row goes
    std::uint32_t row = 0;
    // What its receiver must hear of, once it is done.
    std::vector<std::string> faults;
    bool has_final = false, first_failed = false;
    std::string first_failure;
    // Being visited; the visitor left before the end; its worker died; nobody had what was asked
    // for.
    bool is_visit = false, abandoned = false, lost_at_visit = false;
    std::string visit_error;
  };

  struct WorkerState {
    std::shared_ptr<Child> child;  // nullptr: there is none at present
    std::uint32_t pushed = 0;      // into its ring, in its life
    bool was_ready = false;
    Clock::time_point started, given;       // the latest job
    std::uint64_t steps = 0, episodes = 0;  // of its predecessors
  };

  // A user's thread that waits for workers.
  class Waiting {
   public:
    explicit Waiting(ProcessPool& pool) : pool_(pool) { ++pool_.waiting_; }
    ~Waiting() { --pool_.waiting_; }
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;

   private:
    ProcessPool& pool_;
  };

  ProcessPool(Plugin& plugin, const ep_task& task,
              std::vector<std::shared_ptr<const Options>> options, const PoolSettings& settings);

  bool played(std::uint32_t env) const override { return known_[env].played; }
  bool over(std::uint32_t env) const override { return known_[env].over; }
  void wake() override { header().arrivals.kick(); }

  Header& header() const { return Layout::header(arena_->base()); }
  Mailbox& mailbox(std::uint32_t worker) const { return layout_.mailbox(arena_->base(), worker); }
  Slot& slot(std::uint32_t env) const { return layout_.slot(arena_->base(), env); }
  std::uint32_t worker_of(std::uint32_t env) const { return env / envs_per_worker_; }
  Error env_error(ErrorKind kind, std::uint32_t env, const std::string& what) const;

  void give_orders(Plugin& plugin, const PoolSettings& settings);
  void start_all(const Interrupt& interrupt);
  void pass_on_lines();
  template <class Fill, class Read>
  void visit(EnvIds env_ids, Ask ask, const Interrupt& interrupt, Fill fill, Read read);

  // All that follows: under mutex_.
  void spawn(std::uint32_t worker);
  void prepare(std::span<const std::uint32_t> ids);
  std::uint32_t table_number(Batch& batch);
  void push(std::uint32_t env, Ask ask);
  void ring_bells();
  template <class Lacking>
  void wait(std::unique_lock<std::mutex>& lock, Clock::time_point deadline,
            const Interrupt& interrupt, Lacking lacking);
  std::uint32_t rows_missing() const;
  std::unique_ptr<Batch> take_complete();
  void move_row(std::uint32_t env, Batch& batch, std::uint32_t row);
  void tell(std::uint32_t env, Batch& batch, std::uint32_t row);
  void deliver(std::uint32_t env);
  void end_visit(std::uint32_t env);
  void gather_lines(std::uint32_t worker);
  std::string text_of(std::uint32_t env, std::size_t i) const;
  std::span<const std::byte> result(std::uint32_t env, const Slot& slot) const;

  // In process_pool_faults.cpp.
  void notice_deaths();
  void look_around();
  void take_done();
  void take_outcome(std::uint32_t env);
  void note_fault(std::uint32_t env, const std::string& message);
  void worker_died(std::uint32_t worker);
  void env_died(std::uint32_t env, const std::string& why);
  void end_lost(std::uint32_t env, const std::string& why);
  void tell_lost(std::uint32_t env, const std::string& why);
  std::string lost_message(std::uint32_t env, const std::string& why) const;
  void write_lost_row(std::uint32_t env, const Row& row);
  void show_crash(std::uint32_t env);
  void start_again(std::uint32_t worker);
  void kill_late(Clock::time_point now);

  // Where the row of an env that is in flight is written, and the last one of an episode.
  Row row_of(std::uint32_t env) {
    const Known& known = known_[env];
    return known.batch ? known.batch->row(known.row) : Row{own_rows_, env};
  }
  Row final_row_of(std::uint32_t env) {
    const Known& known = known_[env];
    return known.batch ? known.batch->final_row(known.row) : Row{own_finals_, env};
  }

  const ProcessSettings processes_;
  const std::uint32_t envs_per_worker_;
  const Layout layout_;
  std::shared_ptr<Arena> arena_;
  std::chrono::nanoseconds spin_{0};
  // Deaths so far, counted by the keeper: shared, since it may outlive us by a moment.
  const std::shared_ptr<std::atomic<std::uint32_t>> deaths_ =
      std::make_shared<std::atomic<std::uint32_t>>(0);

  // Rows that each env has for itself in the arena; finals: kSameStep only.
  std::vector<std::byte*> own_rows_, own_finals_;
  std::atomic<std::uint32_t> waiting_{0};  // raised under mutex_

  // Guarded by mutex_.
  std::vector<Known> known_;
  std::vector<WorkerState> workers_;
  std::vector<std::uint32_t> to_ring_;       // workers with new jobs, of the send at work
  std::vector<std::uint32_t> flying_;        // envs in a worker, in no order
  std::vector<std::uint32_t> seen_done_;     // of take_done() at work
  std::vector<std::uint32_t> done_;          // asynchronous: not received yet, in order
  std::vector<std::uint32_t> free_numbers_;  // of the table of batches
  std::vector<Child::Line> lines_;           // that workers printed, to be passed on
  std::uint32_t starting_ = 0;               // workers that are not ready
  bool all_started_ = false;
  std::uint32_t seen_deaths_ = 0;
  std::uint32_t visits_ = 0;  // envs being visited
  Clock::time_point lines_passed_;
  bool ended_ = false;  // all workers are gone
};

}  // namespace envpool::runtime
