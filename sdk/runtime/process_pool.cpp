// process_pool.cpp - see process_pool.hpp: life, sending, receiving, visits. What becomes of
// workers that die is in process_pool_faults.cpp.
#include "process_pool.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <new>
#include <utility>

#include "cpus.hpp"
#include "error.hpp"
#include "event.hpp"

namespace envpool::runtime {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::nanoseconds kSpin = 50us;
constexpr auto kLinesEvery = 100ms;

void check(const ep_task& task, const PoolSettings& settings) {
  const auto refuse = [&](const std::string& what) {
    throw Error(ErrorKind::kValue, std::string(task.id) + ": " + what);
  };
  const std::int64_t each = settings.processes.envs_per_worker;
  if (each < 1 || (each > 1 && task.sharing == EP_ONE_PER_PROCESS)) {
    refuse("envs_per_worker=" + std::to_string(each) + ", allowed: " +
           (task.sharing == EP_ONE_PER_PROCESS ? "1, since this engine allows one env per process"
                                               : "1 and more"));
  }
  if (each > 1 && !settings.processes.guest_library.empty()) {
    refuse("envs_per_worker=" + std::to_string(each) + ", allowed: 1, since a guest runs one env");
  }
  if (settings.processes.command.empty()) refuse("no program for worker processes is known");
}

}  // namespace

// ---- life ---------------------------------------------------------------------------------------

ProcessPool::ProcessPool(Plugin& plugin, const ep_task& task,
                         std::vector<std::shared_ptr<const Options>> options,
                         const PoolSettings& settings)
    : Pool(plugin, task, std::move(options), settings),
      processes_(settings.processes),
      envs_per_worker_(static_cast<std::uint32_t>(
          std::min<std::int64_t>(settings.processes.envs_per_worker, num_envs_))),
      layout_(plan_, num_envs_, envs_per_worker_),
      known_(num_envs_),
      workers_(layout_.workers()) {
  give_orders(plugin, settings);
  actions_.emplace(plan_, num_envs_, layout_.actions(arena_->base()));
  layout_.set_own_rows(arena_->base());
  const std::uint64_t* own = layout_.columns_of(arena_->base(), Layout::kOwnRows);
  for (std::size_t i = 0; i < plan_.columns.size(); ++i) {
    own_rows_.push_back(arena_->base() + own[i]);
    own_finals_.push_back(arena_->base() + own[plan_.columns.size() + i]);
  }
  // Asynchronous batches are ordinary memory: their rows are copied when they are received.
  store_ = std::make_shared<BlockStore>(column_bytes(batch_size_), memory_limit(settings),
                                        synchronous() ? arena_ : nullptr);
  for (Known& known : known_) {
    known.returned.resize(plan_.agents);
    known.alive.assign(plan_.agents, 1);
  }
  for (std::uint32_t number = layout_.batches() - 1; number > Layout::kOwnRows; --number) {
    free_numbers_.push_back(number);
  }
  to_ring_.reserve(workers_.size());
  flying_.reserve(num_envs_);
  done_.reserve(num_envs_);
}

// Makes the arena, with what every worker is told.
void ProcessPool::give_orders(Plugin& plugin, const PoolSettings& settings) {
  const auto cpus = static_cast<std::uint32_t>(available_cpus());
  if (workers_.size() + 1 <= cpus) spin_ = kSpin;

  Orders orders;
  orders.plugin_path = plugin.path();
  orders.assets = plugin.host().assets();
  orders.task_id = plan_.task.id;
  for (const auto& one : options_) orders.options.push_back(one->named());
  orders.plan = plan_.settings;
  orders.num_envs = num_envs_;
  orders.envs_per_worker = envs_per_worker_;
  orders.affinity_offset = settings.thread_affinity_offset;
  orders.cpus = allowed_cpus();
  orders.spins = spin_.count() > 0;
  orders.timed = processes_.step_timeout || processes_.reset_timeout;
  orders.digest = digest(plan_);
  const auto bytes = to_bytes(orders);

  const std::size_t fixed = layout_.bytes() + bytes.size();
  const std::size_t limit = memory_limit(settings);
  arena_ = Arena::make(fixed, synchronous() ? 2 * limit : 0);
  std::byte* base = arena_->base();
  auto* made = new (base) Header;
  made->magic = Header::kMagic;
  std::strncpy(made->build, ENVPOOL_SDK_VERSION, sizeof made->build - 1);
  made->orders_at = layout_.bytes();
  made->orders_bytes = bytes.size();
  made->layout_bytes = layout_.bytes();
  std::ranges::copy(bytes, base + made->orders_at);
  for (std::uint32_t i = 0; i < workers_.size(); ++i) new (&mailbox(i)) Mailbox;
}

PoolPtr ProcessPool::make(Plugin& plugin, const ep_task& task,
                          std::vector<std::shared_ptr<const Options>> options,
                          const PoolSettings& settings, const Interrupt& interrupt) {
  check(task, settings);
  auto* processes = new ProcessPool(plugin, task, std::move(options), settings);
  PoolPtr pool(processes);
  processes->start_all(interrupt);
  return pool;
}

void ProcessPool::start_all(const Interrupt& interrupt) {
  const Call call(*this);
  std::unique_lock lock(mutex_);
  const Waiting waiting(*this);
  for (std::uint32_t i = 0; i < workers_.size(); ++i) spawn(i);
  wait(lock, kForever, interrupt, [this] {
    return static_cast<std::uint32_t>(
        std::ranges::count_if(workers_, [](const WorkerState& w) { return !w.was_ready; }));
  });
  all_started_ = true;
}

void ProcessPool::spawn(std::uint32_t worker) {
  Keeper::Program program;
  program.command = processes_.command;
  program.environment = processes_.environment;
  const std::string number = std::to_string(worker), parent = std::to_string(getpid());
  if (processes_.guest_library.empty()) {
    program.command.insert(program.command.end(), {number, parent});
  } else {
    program.environment.push_back("ENVPOOL_GUEST=" + number + " " + parent);
    program.environment.push_back("ENVPOOL_GUEST_LIBRARY=" + processes_.guest_library);
  }
  program.arena = arena_->file();
  WorkerState& state = workers_[worker];
  state.started = Clock::now();
  state.child = Keeper::get().spawn(program, [arena = arena_, deaths = deaths_] {
    deaths->fetch_add(1, std::memory_order_release);  // the child's dead() with it
    Layout::header(arena->base()).arrivals.kick();
  });
  ++starting_;
}

bool ProcessPool::close(std::chrono::nanoseconds timeout) {
  if (forked()) return false;
  const auto now = Clock::now();
  const auto deadline = after(timeout), patience = now + (deadline - now) / 2;
  std::unique_lock lock(mutex_);
  closed_ = true;
  if (ended_) return true;
  header().stopping.store(1, std::memory_order_release);
  for (std::uint32_t i = 0; i < workers_.size(); ++i) mailbox(i).bell.ring();
  header().arrivals.kick();

  bool killed = false;
  const auto living = [&] {
    return std::ranges::any_of(workers_,
                               [](const WorkerState& w) { return w.child && !w.child->dead(); });
  };
  while (living() || inside_ > 0) {
    if (!killed && (Clock::now() >= patience || !failed_.empty())) {
      for (const WorkerState& worker : workers_) {
        if (worker.child) worker.child->kill("the pool was closed");
      }
      killed = true;
    }
    if (Clock::now() >= deadline) {
      hung_ = true;
      return false;
    }
    gone_.wait_for(lock, 2ms);
  }
  lock.unlock();
  pass_on_lines();
  lock.lock();
  hung_ = false;
  if (std::exchange(ended_, true)) return true;
  for (WorkerState& worker : workers_) worker.child.reset();
  for (auto& batch : queue_) batch->clear();  // nobody will receive them
  store_->close();
  return true;
}

// Hands what workers printed and logged to the log, on the caller's thread: whoever listens may
// need Python.
void ProcessPool::pass_on_lines() {
  std::vector<Child::Line> lines;
  {
    const std::lock_guard lock(mutex_);
    lines_passed_ = Clock::now();
    for (std::uint32_t i = 0; i < workers_.size(); ++i) gather_lines(i);
    lines.swap(lines_);
  }
  for (const Child::Line& line : lines) log_line(line.level, line.text);
}

void ProcessPool::gather_lines(std::uint32_t worker) {
  const auto& child = workers_[worker].child;
  if (!child || !child->has_lines()) return;
  const std::uint32_t first = layout_.first_env(worker), count = layout_.envs_of(worker);
  const std::string who = std::string(plan_.task.id) +
                          (count == 1 ? ", env " + std::to_string(first)
                                      : ", envs " + std::to_string(first) + " to " +
                                            std::to_string(first + count - 1)) +
                          ": ";
  for (const Child::Line& line : child->take_lines()) {
    lines_.push_back({line.level, who + line.text});
  }
}

Statistics ProcessPool::statistics() const {
  check_born_here();
  const std::lock_guard lock(mutex_);
  Statistics sum;
  sum.faults = faults_.load(std::memory_order_relaxed);
  for (std::uint32_t i = 0; i < workers_.size(); ++i) {
    // Relaxed: figures for people.
    sum.steps += workers_[i].steps + mailbox(i).steps.load(std::memory_order_relaxed);
    sum.episodes += workers_[i].episodes + mailbox(i).episodes.load(std::memory_order_relaxed);
  }
  return sum;
}

Error ProcessPool::env_error(ErrorKind kind, std::uint32_t env, const std::string& what) const {
  return Error(kind, std::string(plan_.task.id) + ", env " + std::to_string(env) + ": " + what);
}

// ---- sending ------------------------------------------------------------------------------------

void ProcessPool::send(std::span<const ActionRows> actions, EnvIds env_ids) {
  const Call call(*this);
  const std::lock_guard lock(mutex_);
  notice_deaths();
  auto& ids = take_off(env_ids, Job::Kind::kStep);
  try {
    actions_->check(actions, ids);
    prepare(ids);
  } catch (...) {
    land(ids);
    throw;
  }
  actions_->store(actions, ids);
  for (const std::uint32_t env : ids) {
    if (std::exchange(known_[env].lost, false)) {
      end_lost(env, known_[env].lost_why);
    } else {
      push(env, Ask::kStep);
    }
  }
  ring_bells();
}

void ProcessPool::reset(EnvIds env_ids, std::optional<std::span<const std::uint64_t>> seeds,
                        const std::vector<NamedOption>& at_reset) {
  const Call call(*this);
  const std::lock_guard lock(mutex_);
  notice_deaths();
  auto& ids = take_off(env_ids, Job::Kind::kReset);
  std::vector<std::byte> options;
  try {
    check_seeds(seeds, ids.size());
    if (!at_reset.empty()) {
      options = to_bytes(at_reset);
      for (const std::uint32_t env : ids) options_of(env).at_reset(at_reset);  // throws if wrong
      if (options.size() > kPayloadBytes) {
        throw Error(ErrorKind::kValue, std::string(plan_.task.id) +
                                           ": the options of reset() have " +
                                           std::to_string(options.size()) +
                                           " bytes, allowed: " + std::to_string(kPayloadBytes));
      }
    }
    prepare(ids);
  } catch (...) {
    land(ids);
    throw;
  }
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const std::uint32_t env = ids[i];
    Slot& it = slot(env);
    it.has_seed = seeds || !known_[env].played;
    it.seed = seeds ? (*seeds)[i] : it.has_seed ? entropy() : 0;
    it.payload_bytes = options.size();
    std::ranges::copy(options, layout_.payload(arena_->base(), env));
    known_[env].lost = false;
    push(env, Ask::kReset);
  }
  ring_bells();
}

// Sets up where the rows go. Throws, having changed nothing, if there is no memory for them.
void ProcessPool::prepare(std::span<const std::uint32_t> ids) {
  const auto count = static_cast<std::uint32_t>(ids.size());
  if (synchronous() && count > 0) {
    queue_.push_back(spare_batch(count));
    Batch& batch = *queue_.back();
    batch.number = table_number(batch);
    batch.envs.assign(ids.begin(), ids.end());
    for (std::uint32_t row = 0; row < count; ++row) {
      known_[ids[row]].batch = &batch;
      known_[ids[row]].row = row;
    }
  }
  in_flight_ += count;
}

// Enters where the columns of a batch are.
std::uint32_t ProcessPool::table_number(Batch& batch) {
  const std::uint32_t number = free_numbers_.back();
  free_numbers_.pop_back();
  std::uint64_t* offsets = layout_.columns_of(arena_->base(), number);
  const std::size_t columns = plan_.columns.size();
  for (std::size_t i = 0; i < columns; ++i) {
    const std::byte* final = batch.finals().data[i];
    offsets[i] = arena_->offset_of(batch.columns.data[i]);
    offsets[columns + i] = batch.finals().blocks[i] ? arena_->offset_of(final) : 0;
  }
  return number;
}

// Gives an env a job; its worker hears of it by ring_bells().
void ProcessPool::push(std::uint32_t env, Ask ask) {
  const std::uint32_t worker = worker_of(env);
  WorkerState& state = workers_[worker];
  Known& known = known_[env];
  known.in_worker = true;
  flying_.push_back(env);
  Slot& it = slot(env);
  it.ask = ask;
  ++it.job;
  const bool own = !known.batch || known.is_visit;
  it.batch = own ? Layout::kOwnRows : known.batch->number;
  it.row = own ? env : known.row;
  layout_.ring(arena_->base(), worker)[state.pushed++ % layout_.envs_of(worker)] = env;
  if (to_ring_.empty() || to_ring_.back() != worker) to_ring_.push_back(worker);
}

void ProcessPool::ring_bells() {
  for (const std::uint32_t worker : to_ring_) {
    WorkerState& state = workers_[worker];
    // Release: the ring and the slots.
    mailbox(worker).pushed.store(state.pushed, std::memory_order_release);
    if (state.child) {
      if (processes_.step_timeout || processes_.reset_timeout) state.given = Clock::now();
      mailbox(worker).bell.ring();
    } else {
      start_again(worker);
    }
  }
  to_ring_.clear();
}

// ---- receiving ----------------------------------------------------------------------------------

// Waits until nothing is lacking: `lacking` says how many jobs. The lock is held whenever it is
// called, and at the end.
template <class Lacking>
void ProcessPool::wait(std::unique_lock<std::mutex>& lock, Clock::time_point deadline,
                       const Interrupt& interrupt, Lacking lacking) {
  auto now = Clock::now();
  auto next_interrupt = now + kInterruptEvery;
  for (;;) {
    const std::uint32_t seen = header().arrivals.count();
    kill_late(now);
    look_around();
    check_usable();
    const std::uint32_t missing = lacking();
    if (missing == 0) return;
    if (now >= deadline) throw timeout_error();
    // With several receivers each wants to look at every arrival.
    std::uint32_t sleep_at = 0;
    const bool sleep = header().arrivals.arm(seen, waiting_ > 1 ? 1 : missing, &sleep_at);
    lock.unlock();
    if (sleep) {
      const auto spin_end = now + spin_;
      while (now < spin_end && header().arrivals.count() - seen < missing) {
        cpu_relax();
        now = Clock::now();
      }
      if (now >= spin_end) {
        header().arrivals.sleep(sleep_at, std::min(deadline, next_interrupt));
      }
    }
    now = Clock::now();
    if (now >= next_interrupt) {
      next_interrupt = now + kInterruptEvery;
      pass_on_lines();
      if (interrupt) interrupt();
    }
    lock.lock();
  }
}

std::unique_ptr<Batch> ProcessPool::recv(std::optional<std::chrono::nanoseconds> timeout,
                                         const Interrupt& interrupt) {
  const Call call(*this);
  std::unique_ptr<Batch> batch;
  bool talk = false;
  {
    std::unique_lock lock(mutex_);
    const Waiting waiting(*this);
    wait(lock, timeout ? after(*timeout) : kForever, interrupt, [&]() -> std::uint32_t {
      const std::uint32_t missing = rows_missing();
      if (missing == 0) batch = take_complete();
      return missing;
    });
    if (waiting_ > 1) header().arrivals.kick();  // what others wait for may have changed
    talk = Clock::now() - lines_passed_ > kLinesEvery;
  }
  if (talk) pass_on_lines();
  const std::lock_guard lock(mutex_);
  return checked(std::move(batch));
}

// How many rows the next batch lacks. Throws if there will be none.
std::uint32_t ProcessPool::rows_missing() const {
  if (in_flight_ == 0) throw nothing_in_flight();
  if (synchronous()) {
    if (queue_.empty()) throw nothing_in_flight();
    return queue_.front()->missing();
  }
  const std::uint32_t coming = in_flight_ - visits_;  // done or in a worker
  if (coming == 0) throw nothing_in_flight();
  const auto have = static_cast<std::uint32_t>(done_.size());
  const std::uint32_t want = std::min(batch_size_, coming);
  return want > have ? want - have : 0;
}

std::unique_ptr<Batch> ProcessPool::take_complete() {
  std::unique_ptr<Batch> batch;
  if (synchronous()) {
    batch = std::move(queue_.front());
    queue_.pop_front();
    free_numbers_.push_back(batch->number);
  } else {
    const auto rows = static_cast<std::uint32_t>(std::min<std::size_t>(batch_size_, done_.size()));
    batch = spare_batch(rows);  // may throw: nothing is lost
    batch->envs.assign(done_.begin(), done_.begin() + rows);
    done_.erase(done_.begin(), done_.begin() + rows);
    for (std::uint32_t row = 0; row < rows; ++row) move_row(batch->envs[row], *batch, row);
    batch->finish(rows);
  }
  for (const std::uint32_t env : batch->envs) place_[env] = place_of(env);
  in_flight_ -= batch->rows();
  return batch;
}

// Asynchronous: from the env's own row to its row in a batch.
void ProcessPool::move_row(std::uint32_t env, Batch& batch, std::uint32_t row) {
  const auto copy = [&](const Row& to, const Row& from) {
    for (std::uint32_t i = 0; i < plan_.columns.size(); ++i) {
      std::memcpy(to.at(plan_, i), from.at(plan_, i), plan_.columns[i].row_bytes);
    }
  };
  copy(batch.row(row), {own_rows_, env});
  if (known_[env].has_final) copy(batch.final_row(row), {own_finals_, env});
  tell(env, batch, row);
}

// Notes in the batch what its receiver must hear of the env.
void ProcessPool::tell(std::uint32_t env, Batch& batch, std::uint32_t row) {
  Known& known = known_[env];
  for (std::string& fault : known.faults) {
    batch.add_fault(static_cast<std::int32_t>(env), std::move(fault));
  }
  known.faults.clear();
  if (std::exchange(known.first_failed, false)) batch.add_failure(known.first_failure);
  if (std::exchange(known.has_final, false)) batch.final_row(row);  // it is written
}

// An env's job is done, its row is written.
void ProcessPool::deliver(std::uint32_t env) {
  Known& known = known_[env];
  if (!synchronous()) return done_.push_back(env);
  Batch& batch = *std::exchange(known.batch, nullptr);
  tell(env, batch, known.row);
  batch.finish(1);
}

// ---- looking at single envs ---------------------------------------------------------------------

// Asks the workers of envs that are not in flight; at the end their slots hold the answers, and the
// lock is held. `fill` may put more into the slot.
template <class Fill, class Read>
void ProcessPool::visit(EnvIds env_ids, Ask ask, const Interrupt& interrupt, Fill fill, Read read) {
  const Call call(*this);
  std::unique_lock lock(mutex_);
  const Waiting waiting(*this);
  notice_deaths();
  const std::vector<std::uint32_t> ids = take_off(env_ids, Job::Kind::kVisit);
  in_flight_ += static_cast<std::uint32_t>(ids.size());
  visits_ += static_cast<std::uint32_t>(ids.size());
  for (const std::uint32_t env : ids) {
    Known& known = known_[env];
    known.is_visit = true;
    known.visit_error.clear();
    known.lost_at_visit = known.lost && ask != Ask::kLoad;
    if (known.lost_at_visit) continue;  // nobody has what is asked for
    fill(env, slot(env));
    push(env, ask);
  }
  ring_bells();
  // If the user leaves before the end, look_around() lands the envs when they are done.
  const auto leave = [&] {
    for (const std::uint32_t env : ids) {
      known_[env].abandoned = true;
      if (!known_[env].in_worker) end_visit(env);
    }
  };
  try {
    wait(lock, kForever, interrupt, [&] {
      return static_cast<std::uint32_t>(
          std::ranges::count_if(ids, [&](std::uint32_t env) { return known_[env].in_worker; }));
    });
  } catch (...) {
    if (!lock.owns_lock()) lock.lock();
    leave();
    throw;
  }
  try {
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const std::uint32_t env = ids[i];
      const Slot& it = slot(env);
      Known& known = known_[env];
      if (!known.visit_error.empty() && ask != Ask::kObserve) {
        throw env_error(ErrorKind::kRuntime, env, known.visit_error);
      }
      if (known.lost_at_visit && ask != Ask::kObserve) {
        throw env_error(ErrorKind::kRuntime, env,
                        "its episode was lost (" + known.lost_why + "): reset it first");
      }
      if (!known.lost_at_visit && known.visit_error.empty() && it.visit_failed) {
        throw Error(static_cast<ErrorKind>(it.error_kind), text_of(env, 0));
      }
      if (ask == Ask::kLoad) known.lost = false;
      read(i, env, it);
    }
  } catch (...) {
    leave();
    throw;
  }
  leave();
}

// An env that was visited is ready again.
void ProcessPool::end_visit(std::uint32_t env) {
  Known& known = known_[env];
  known.is_visit = known.abandoned = false;
  place_[env] = place_of(env);
  --in_flight_;
  --visits_;
}

std::unique_ptr<Batch> ProcessPool::observe(EnvIds env_ids, const Interrupt& interrupt) {
  const std::size_t count = env_ids ? env_ids->size() : num_envs_;
  if (count > batch_size_) {
    throw Error(ErrorKind::kValue,
                std::string(plan_.task.id) +
                    ": observe takes at most batch_size=" + std::to_string(batch_size_) + " envs");
  }
  std::unique_ptr<Batch> batch;
  {
    const std::lock_guard lock(mutex_);
    check_usable();
    batch = spare_batch(static_cast<std::uint32_t>(count));
  }
  const auto read = [&](std::size_t i, std::uint32_t env, const Slot& it) {
    const auto row = static_cast<std::uint32_t>(i);
    Known& known = known_[env];
    if (known.lost_at_visit || !known.visit_error.empty()) {
      write_lost_row(env, batch->row(row));
      return;
    }
    if (it.fault_count > 0) note_fault(env, text_of(env, 0));
    move_row(env, *batch, row);
  };
  try {
    visit(env_ids, Ask::kObserve, interrupt, [](std::uint32_t, Slot&) {}, read);
  } catch (...) {
    recycle(std::move(batch));
    throw;
  }
  return batch;
}

namespace {

// Out of range of int32 is out of range of ids too.
std::int32_t as_id(std::int64_t env) {
  return static_cast<std::int32_t>(std::clamp<std::int64_t>(env, -1, INT32_MAX));
}

}  // namespace

Env::Picture ProcessPool::render(std::int64_t env, std::uint32_t width, std::uint32_t height,
                                 std::uint32_t camera, const Interrupt& interrupt) {
  const std::int32_t id = as_id(env);
  Env::Picture picture{};
  visit(
      std::span(&id, 1), Ask::kRender, interrupt,
      [&](std::uint32_t, Slot& it) {
        it.render_width = width;
        it.render_height = height;
        it.render_camera = camera;
      },
      [&](std::size_t, std::uint32_t which, const Slot& it) {
        const auto bytes = result(which, it);
        const auto* pixels = reinterpret_cast<const std::uint8_t*>(bytes.data());
        picture = {it.picture_width, it.picture_height, {pixels, pixels + bytes.size()}};
        // A mad engine may have written over it.
        if (bytes.size() != std::size_t{3} * picture.width * picture.height ||
            picture.width > bytes.size() || picture.height > bytes.size()) {
          throw env_error(ErrorKind::kRuntime, which, "render: the size of the picture is spoilt");
        }
      });
  return picture;
}

std::vector<std::byte> ProcessPool::save_state(std::int64_t env, const Interrupt& interrupt) {
  const std::int32_t id = as_id(env);
  std::vector<std::byte> state;
  visit(
      std::span(&id, 1), Ask::kSave, interrupt, [](std::uint32_t, Slot&) {},
      [&](std::size_t, std::uint32_t which, const Slot& it) {
        const auto bytes = result(which, it);
        state.assign(bytes.begin(), bytes.end());
      });
  return state;
}

void ProcessPool::load_state(std::int64_t env, std::span<const std::byte> state,
                             const Interrupt& interrupt) {
  const std::int32_t id = as_id(env);
  if (state.size() > kPayloadBytes) {
    throw Error(ErrorKind::kValue, std::string(plan_.task.id) +
                                       ": load_state: " + std::to_string(state.size()) +
                                       " bytes, allowed: " + std::to_string(kPayloadBytes));
  }
  visit(
      std::span(&id, 1), Ask::kLoad, interrupt,
      [&](std::uint32_t which, Slot& it) {
        it.payload_bytes = state.size();
        std::ranges::copy(state, layout_.payload(arena_->base(), which));
      },
      [](std::size_t, std::uint32_t, const Slot&) {});
}

// What a worker wrote there: a mad engine may have spoilt it.
std::string ProcessPool::text_of(std::uint32_t env, std::size_t i) const {
  const char* text = layout_.text(arena_->base(), env, i);
  return shown(std::string(text, strnlen(text, kTextBytes)).c_str());
}

// What a worker left in the env's payload.
std::span<const std::byte> ProcessPool::result(std::uint32_t env, const Slot& slot) const {
  return {layout_.payload(arena_->base(), env),
          std::min<std::size_t>(slot.result_bytes, kPayloadBytes)};
}

}  // namespace envpool::runtime
