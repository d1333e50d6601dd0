// worker.cpp - see worker.hpp, and docs/dev/processes.md.
#include "worker.hpp"

#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "arena.hpp"
#include "cpus.hpp"
#include "event.hpp"
#include "keeper.hpp"
#include "mailbox.hpp"
#include "orders.hpp"
#include "plan.hpp"
#include "plugin.hpp"
#include "team.hpp"
#include "worker_guest.hpp"

namespace envpool::runtime {
namespace {

constexpr int kArenaFile = 3;
constexpr std::chrono::nanoseconds kSpin{50000};

// Ends with the user's process, whatever ends that, and has nothing of it but the arena.
void settle(int parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(0);  // it ended before the line above
  // A guest has opened files of its own by now.
  if (!Guest::get()) syscall(SYS_close_range, kArenaFile + 1, ~0u, 0);
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // a pipe: its last lines shall not be lost
}

void place(const Orders& orders, std::uint32_t worker) {
  set_worker_index(static_cast<int>(worker));
  if (orders.cpus.empty()) return;
  if (orders.affinity_offset >= 0) {
    const auto at = static_cast<std::size_t>(orders.affinity_offset) + worker;
    return bind_to_cpu(orders.cpus[at % orders.cpus.size()]);
  }
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int cpu : orders.cpus) {
    if (cpu < CPU_SETSIZE) CPU_SET(static_cast<std::size_t>(cpu), &set);
  }
  sched_setaffinity(0, sizeof set, &set);
}

class Worker {
 public:
  Worker(std::shared_ptr<Arena> arena, const Orders& orders, std::uint32_t index);

  bool create();  // false: told in the mailbox
  void serve();   // until told to stop

 private:
  std::byte* base() const { return arena_->base(); }
  Header& header() const { return Layout::header(base()); }
  Slot& slot(std::uint32_t place) const { return layout_.slot(base(), first_ + place); }
  std::byte* payload(std::uint32_t place) const { return layout_.payload(base(), first_ + place); }

  std::uint32_t take();
  bool work_waits() const;
  void spin() const;
  void run();
  bool run_all_at_once();
  void run_one(std::uint32_t place);
  void play(std::uint32_t place);
  void visit(std::uint32_t place);
  void hand_back(std::uint32_t place);
  void put_result(std::uint32_t place, std::span<const std::byte> bytes);
  Batch& batch_of(const Slot& slot, std::int64_t row_of_first);
  void finish(std::uint32_t place, const Batch& batch, std::uint32_t row);
  void begin(Work work);
  void publish_figures();

  const std::shared_ptr<Arena> arena_;
  Plugin& plugin_;
  const ep_task& task_;
  Host& host_;
  const Plan plan_;
  const Layout layout_;
  const std::uint32_t index_, first_;
  Mailbox& mailbox_;
  const std::chrono::nanoseconds spin_;
  const bool timed_;
  Actions actions_;
  std::vector<std::shared_ptr<const Options>> options_;
  std::unique_ptr<Team> team_;
  Workspace work_;
  Batch batch_;
  std::uint32_t taken_ = 0;            // from the ring so far
  std::vector<std::uint32_t> places_;  // taken and not finished
};

std::vector<std::shared_ptr<const Options>> options_of(const ep_task& task, const Orders& orders,
                                                       std::uint32_t first, std::uint32_t count) {
  std::vector<std::shared_ptr<const Options>> options;
  if (orders.options.size() == 1) {
    options.push_back(std::make_shared<const Options>(task, orders.options[0]));
    return options;
  }
  for (std::uint32_t i = 0; i < count; ++i) {
    options.push_back(std::make_shared<const Options>(task, orders.options[first + i]));
  }
  return options;
}

Worker::Worker(std::shared_ptr<Arena> arena, const Orders& orders, std::uint32_t index)
    : arena_(std::move(arena)),
      plugin_(Plugin::load(orders.plugin_path, orders.assets)),
      task_(Guest::get() ? Guest::get()->stand_in(plugin_.task(orders.task_id))
                         : plugin_.task(orders.task_id)),
      host_(Host::make(orders.assets)),
      plan_(task_, host_, describe(task_, host_, Options(task_, orders.options[0])), orders.plan),
      layout_(plan_, orders.num_envs, orders.envs_per_worker),
      index_(index),
      first_(layout_.first_env(index)),
      mailbox_(layout_.mailbox(base(), index)),
      spin_(orders.spins ? kSpin : std::chrono::nanoseconds(0)),
      timed_(orders.timed),
      actions_(plan_, orders.num_envs, layout_.actions(base())),
      options_(options_of(task_, orders, first_, layout_.envs_of(index))),
      work_(plan_, layout_.envs_of(index)),
      batch_(plan_) {
  if (digest(plan_) != orders.digest || layout_.bytes() != header().layout_bytes) {
    throw Error(ErrorKind::kEnv, std::string(task_.id) +
                                     ": describe() gives another spec in a worker process than in "
                                     "the user's");
  }
  host_.watch(header().stopping);
  team_ = std::make_unique<Team>(plan_, options_, first_, layout_.envs_of(index), actions_,
                                 [](std::uint32_t, const std::string&) {});  // told in the slot
}

bool Worker::create() {
  begin(Work::kCreate);
  for (std::uint32_t place = 0; place < team_->size(); ++place) {
    const bool made = team_->create(place);
    Env& env = team_->env(place);
    if (!made) {
      put_text(layout_.text(base(), first_, 0), env.message());
      mailbox_.failed.store(1, std::memory_order_release);  // the text with it
      return false;
    }
    const Slot& past = slot(place);
    if (past.inherits) env.inherit(past.past_seed, past.past_respawns);
  }
  begin(Work::kNone);
  mailbox_.ready.store(1, std::memory_order_release);  // the envs are made
  header().arrivals.kick();
  return true;
}

bool Worker::work_waits() const {
  // Acquire: pairs with the sender's release, for the ring and the slots.
  return mailbox_.pushed.load(std::memory_order_acquire) != taken_ ||
         header().stopping.load(std::memory_order_acquire);
}

void Worker::serve() {
  while (!header().stopping.load(std::memory_order_acquire)) {
    if (take() > 0) {
      run();
      continue;
    }
    if (spin_.count() > 0) spin();
    if (!work_waits()) {
      mailbox_.bell.wait([this] { return work_waits(); });
    }
  }
  begin(Work::kNone);
  team_->destroy();
}

void Worker::spin() const {
  for (const auto end = Event::Clock::now() + spin_; !work_waits() && Event::Clock::now() < end;) {
    for (int i = 0; i < 16 && !work_waits(); ++i) cpu_relax();
  }
}

std::uint32_t Worker::take() {
  const std::uint32_t pushed = mailbox_.pushed.load(std::memory_order_acquire);  // see work_waits
  const std::uint32_t* ring = layout_.ring(base(), index_);
  places_.clear();
  for (; taken_ != pushed; ++taken_) places_.push_back(ring[taken_ % team_->size()] - first_);
  return static_cast<std::uint32_t>(places_.size());
}

void Worker::begin(Work work) {
  if (!timed_) return;
  const auto now = Event::Clock::now().time_since_epoch().count();
  const auto value = work == Work::kNone
                         ? 0
                         : static_cast<std::uint64_t>(now) * 8 + static_cast<std::uint64_t>(work);
  mailbox_.at_work.store(value, std::memory_order_relaxed);
}

// The batch that the slot names. Its row `r` is that of place r if row_of_first is the row of place
// 0; else rows are the batch's own.
Batch& Worker::batch_of(const Slot& slot, std::int64_t row_of_first) {
  const std::uint64_t* offsets = layout_.columns_of(base(), slot.batch);
  for (std::size_t i = 0; i < plan_.columns.size(); ++i) {
    const std::int64_t shift = row_of_first * static_cast<std::int64_t>(plan_.columns[i].row_bytes);
    batch_.columns.data[i] = base() + offsets[i] + shift;
    batch_.finals().data[i] = base() + offsets[plan_.columns.size() + i] + shift;
  }
  return batch_;
}

void Worker::run() {
  if (run_all_at_once()) return;
  // Resets are often slow: the rows of the others need not wait for them.
  std::stable_partition(places_.begin(), places_.end(), [&](std::uint32_t place) {
    return slot(place).ask == Ask::kStep && !team_->env(place).over();
  });
  for (const std::uint32_t place : places_) run_one(place);
  begin(Work::kNone);
}

// A step of all envs, in order, whose rows follow each other, by the plugin's step_many.
bool Worker::run_all_at_once() {
  if (!plan_.batch || places_.size() != team_->size()) return false;
  for (std::uint32_t place = 0; place < team_->size(); ++place) {
    const Slot& it = slot(place);
    if (places_[place] != place || it.ask != Ask::kStep || !team_->env(place).played() ||
        it.batch != slot(0).batch || it.row != slot(0).row + place) {
      return false;
    }
  }
  begin(Work::kSweep);
  Batch& batch = batch_of(slot(0), slot(0).row);
  batch.begin(team_->size());
  team_->step_range(0, team_->size(), batch, work_);
  publish_figures();
  for (std::uint32_t place = 0; place < team_->size(); ++place) finish(place, batch, place);
  header().arrivals.add(team_->size());
  begin(Work::kNone);
  return true;
}

void Worker::run_one(std::uint32_t place) {
  const Ask ask = slot(place).ask;
  if (ask == Ask::kStep || ask == Ask::kReset) {
    play(place);
  } else {
    begin(Work::kVisit);
    visit(place);
  }
  header().arrivals.add(1);
}

void Worker::play(std::uint32_t place) {
  const Slot& asked = slot(place);
  const bool steps = asked.ask == Ask::kStep && !team_->env(place).over();
  begin(steps ? Work::kStep : Work::kReset);
  Job& job = team_->job(place);
  job.kind = asked.ask == Ask::kReset ? Job::Kind::kReset : Job::Kind::kStep;
  job.seed = asked.has_seed ? std::optional(asked.seed) : std::nullopt;
  job.at_reset.reset();
  if (asked.ask == Ask::kReset && asked.payload_bytes > 0) {
    const Options& own = *options_[options_.size() == 1 ? 0 : place];
    job.at_reset = std::make_shared<const Options>(
        own.at_reset(options_from({payload(place), asked.payload_bytes})));
  }
  Batch& batch = batch_of(asked, 0);
  batch.begin(asked.row + 1);
  team_->play(place, job, work_);
  team_->deliver(place, job.kind, {&batch, asked.row}, work_);
  publish_figures();
  finish(place, batch, asked.row);
}

// Relaxed: figures for people.
void Worker::publish_figures() {
  mailbox_.steps.store(work_.steps.load(std::memory_order_relaxed), std::memory_order_relaxed);
  mailbox_.episodes.store(work_.episodes.load(std::memory_order_relaxed),
                          std::memory_order_relaxed);
}

// Tells the outcome of an env's job, whose row is `row` of this batch; then the slot is the user's
// side's again.
void Worker::finish(std::uint32_t place, const Batch& batch, std::uint32_t row) {
  const std::uint32_t id = first_ + place;
  Slot& it = slot(place);
  it.fault_count = 0;
  for (const Fault& fault : batch.faults) {
    if (fault.env_id != static_cast<std::int32_t>(id) || it.fault_count == kTexts) continue;
    put_text(layout_.text(base(), id, it.fault_count++), fault.message);
  }
  it.first_failed = !batch.failure.empty();
  if (it.first_failed) put_text(layout_.text(base(), id, 0), batch.failure);
  it.has_final = !batch.final_mask.empty() && batch.final_mask[row];
  it.visit_failed = 0;
  hand_back(place);
}

// With what the user's side keeps of an env, should this process die.
void Worker::hand_back(std::uint32_t place) {
  const Env& env = team_->env(place);
  const std::uint32_t id = first_ + place;
  Slot& it = slot(place);
  it.over = env.over();
  it.played = env.played();
  it.elapsed = env.elapsed();
  it.now_seed = env.seed();
  it.now_respawns = env.respawns();
  std::ranges::copy(env.returned(), layout_.returned(base(), id));
  std::ranges::copy(env.alive(), layout_.alive(base(), id));
  // Relaxed: only its order among stamps matters, and `done` releases it.
  it.stamp = header().stamp.fetch_add(1, std::memory_order_relaxed);
  // Release: the row and the outcome.
  it.done.store(it.job, std::memory_order_release);
}

void Worker::put_result(std::uint32_t place, std::span<const std::byte> bytes) {
  if (bytes.size() > kPayloadBytes) {
    throw Error(ErrorKind::kRuntime,
                std::string(task_.id) + ", env " + std::to_string(first_ + place) + ": " +
                    std::to_string(bytes.size()) + " bytes are too much for a worker process to " +
                    "hand over; allowed: " + std::to_string(kPayloadBytes));
  }
  std::ranges::copy(bytes, payload(place));
  slot(place).result_bytes = bytes.size();
}

void Worker::visit(std::uint32_t place) {
  Slot& it = slot(place);
  Env& env = team_->env(place);
  batch_.begin(it.row + 1);
  it.visit_failed = 0;
  it.fault_count = 0;
  try {
    switch (it.ask) {
      case Ask::kObserve: {
        const bool had_fault = env.fault();
        env.write(batch_of(it, 0).row(it.row), work_.scratch);
        if (env.fault() && !had_fault) {
          put_text(layout_.text(base(), first_ + place, it.fault_count++), env.message());
        }
        break;
      }
      case Ask::kRender: {
        const Env::Picture picture =
            env.render(it.render_width, it.render_height, it.render_camera);
        it.picture_width = picture.width;
        it.picture_height = picture.height;
        put_result(place, std::as_bytes(std::span(picture.pixels)));
        break;
      }
      case Ask::kSave:
        put_result(place, env.save());
        break;
      default:
        env.load({payload(place), it.payload_bytes});
    }
  } catch (const Error& error) {
    it.visit_failed = 1;
    it.error_kind = static_cast<std::int32_t>(error.kind());
    put_text(layout_.text(base(), first_ + place, 0), error.what());
  }
  hand_back(place);
}

// What a worker does between settling and its end.
int work(std::shared_ptr<Arena> arena, std::uint32_t index) {
  Header& header = Layout::header(arena->base());
  const auto tell = [&](const std::string& why) {
    std::fputs(framed(EP_LOG_ERROR, why).c_str(), stderr);
    return 1;
  };
  if (header.magic != Header::kMagic ||
      std::strncmp(header.build, ENVPOOL_SDK_VERSION, sizeof header.build) != 0) {
    return tell("this worker is of another build (" ENVPOOL_SDK_VERSION ") than its pool");
  }
  const Orders orders = orders_from({arena->base() + header.orders_at, header.orders_bytes});
  place(orders, index);
  try {
    Worker worker(arena, orders, index);
    if (!worker.create()) return 1;
    worker.serve();
  } catch (const std::exception& error) {
    return tell(error.what());
  }
  return 0;
}

}  // namespace

int run_worker(std::uint32_t number, int parent) {
  settle(parent);
  set_log_sink(
      [](int level, const std::string& text) { std::fputs(framed(level, text).c_str(), stderr); });
  try {
    return work(Arena::open(Descriptor(kArenaFile)), number);
  } catch (const std::exception& error) {
    std::fputs(framed(EP_LOG_ERROR, error.what()).c_str(), stderr);
    return 1;
  }
}

}  // namespace envpool::runtime

int envpool_worker_main(int argc, char** argv) {
  if (argc != 3) {
    std::fputs("envpool-worker is started by the pools of envpool-sdk, not by hand\n", stderr);
    return 2;
  }
  return envpool::runtime::run_worker(
      static_cast<std::uint32_t>(std::strtoul(argv[1], nullptr, 10)), std::atoi(argv[2]));
}
