// thread_pool.cpp - what users call: see pool.hpp. What runners do is in thread_pool_run.cpp.
#include "thread_pool.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <random>
#include <set>
#include <system_error>
#include <utility>

#include "cpus.hpp"
#include "error.hpp"

namespace envpool::runtime {
namespace {

using namespace std::chrono_literals;
constexpr std::chrono::nanoseconds kSpin = 50us;
// Plugins with global state that have an env in this process.
class Occupied {
 public:
  static bool enter(const Plugin& plugin) {
    const std::lock_guard lock(mutex());
    return set().insert(&plugin).second;
  }
  static void leave(const Plugin& plugin) {
    const std::lock_guard lock(mutex());
    set().erase(&plugin);
  }

 private:
  static std::mutex& mutex() {
    static std::mutex m;
    return m;
  }
  static std::set<const Plugin*>& set() {
    static std::set<const Plugin*> s;
    return s;
  }
};

// Checks what threads can't do.
void check(const ep_task& task, const PoolSettings& settings) {
  const auto refuse = [&](const std::string& what) {
    throw Error(ErrorKind::kValue, std::string(task.id) + ": " + what);
  };
  if (task.flags & EP_TASK_MAIN_THREAD) {
    refuse(
        "isolation='thread': this engine needs a process's main thread; allowed: 'auto', "
        "'process'");
  }
  if (task.sharing == EP_ONE_PER_PROCESS && settings.num_envs > 1) {
    refuse("isolation='thread' with num_envs=" + std::to_string(settings.num_envs) +
           ": this engine allows one env per process; allowed: num_envs=1, or isolation='process'");
  }
  if (settings.processes.envs_per_worker != 1) {
    refuse("envs_per_worker=" + std::to_string(settings.processes.envs_per_worker) +
           " is for worker processes: give isolation='process' with it");
  }
  if (settings.processes.step_timeout || settings.processes.reset_timeout) {
    refuse(
        "step_timeout and reset_timeout are for worker processes: a thread can't be stopped; "
        "allowed with isolation='process'");
  }
}

std::uint32_t thread_count(const PoolSettings& settings) {
  const auto wanted = settings.num_threads > 0
                          ? settings.num_threads
                          : std::min<std::int64_t>(available_cpus(), settings.batch_size);
  return static_cast<std::uint32_t>(std::min<std::int64_t>(wanted, settings.num_envs));
}

}  // namespace

// ---- life ---------------------------------------------------------------------------------------

ThreadPool::ThreadPool(Plugin& plugin, const ep_task& task,
                       std::vector<std::shared_ptr<const Options>> options,
                       const PoolSettings& settings)
    : Pool(plugin, task, std::move(options), settings),
      plugin_(plugin),
      affinity_offset_(settings.thread_affinity_offset),
      threads_(thread_count(settings)),
      free_(task.sharing == EP_FREE),
      caller_works_(free_ && synchronous()),
      team_(plan_, options_, 0, num_envs_, actions_.emplace(plan_, num_envs_),
            [this](std::uint32_t env, const std::string& message) { count_fault(env, message); }),
      segments_(threads_) {
  store_ = std::make_shared<BlockStore>(column_bytes(batch_size_), memory_limit(settings));
  // Never more spinning threads than CPUs.
  const auto cpus = static_cast<std::uint32_t>(available_cpus());
  if (threads_ <= cpus) spin_worker_ = kSpin;
  if (threads_ + (caller_works_ ? 0 : 1) <= cpus) spin_caller_ = kSpin;

  // Room is made now, so that a send can't fail when it has begun.
  split_.resize(threads_);
  for (std::uint32_t i = 0; i < threads_; ++i) {
    lanes_.push_back(std::make_unique<Lane>(num_envs_));
    split_[i].reserve(num_envs_ / threads_ + 1);
    const auto border = [&](std::uint64_t share) {
      return static_cast<std::uint32_t>(num_envs_ * share / threads_);
    };
    segments_[i].begin = border(i);
    segments_[i].end = border(i + 1);
    // Relaxed: no thread yet.
    segments_[i].next.store(segments_[i].end, std::memory_order_relaxed);
  }

  if (task.sharing == EP_ONE_PER_PROCESS && !Occupied::enter(plugin_)) {
    throw Error(ErrorKind::kValue,
                std::string(task.id) +
                    ": this engine allows one env per process, and this process has one already: "
                    "close it first");
  }
}

PoolPtr ThreadPool::make(Plugin& plugin, const ep_task& task,
                         std::vector<std::shared_ptr<const Options>> options,
                         const PoolSettings& settings, const Interrupt& interrupt) {
  check(task, settings);
  // Threads start only when the pool has an owner that can deal with one that hangs.
  auto* threads = new ThreadPool(plugin, task, std::move(options), settings);
  PoolPtr pool(threads);
  {
    const std::lock_guard lock(threads->mutex_);
    for (std::uint32_t i = 0; i < threads->threads_ - (threads->caller_works_ ? 1 : 0); ++i)
      threads->start_worker();
  }
  threads->create_envs(interrupt);
  return pool;
}

void ThreadPool::start_worker() try {
  const auto index = static_cast<std::uint32_t>(workers_.size());
  // The caller's home is 0, if he works.
  Runner* runner = add_runner((index + (caller_works_ ? 1 : 0)) % threads_);
  workers_.emplace_back([this, index, runner] { work(index, *runner); });
  ++running_;
} catch (const std::system_error& error) {
  throw Error(ErrorKind::kRuntime,
              std::string(plan_.task.id) + ": can't start a thread: " + error.what());
}

ThreadPool::Runner* ThreadPool::add_runner(std::uint32_t home) {
  runners_.push_back(std::make_unique<Runner>(plan_, home));
  return runners_.back().get();
}

// For a Call, which gives it back: there is room in spare_runners_ for all.
ThreadPool::Runner* ThreadPool::spare_runner() {
  if (spare_runners_.empty()) {
    Runner* runner = add_runner(0);
    spare_runners_.reserve(runners_.size());
    return runner;
  }
  Runner* runner = spare_runners_.back();
  spare_runners_.pop_back();
  return runner;
}

void ThreadPool::create_envs(const Interrupt& interrupt) {
  Call call(*this);
  {
    const std::lock_guard lock(mutex_);
    // Relaxed: enqueue releases it to those who make the envs.
    outstanding_.store(num_envs_, std::memory_order_relaxed);
    enqueue(all_);
    if (free_) call.runner = spare_runner();
  }
  work_.notify();
  for (auto now = Clock::now();;) {
    const std::uint64_t key = done_.key();
    // Acquire: the envs made.
    if (outstanding_.load(std::memory_order_acquire) == 0) break;
    if (!call.runner || !run_some(*call.runner, now)) {
      done_.wait(key, now + kInterruptEvery, spin_caller_);
      now = Clock::now();
    }
    if (interrupt) interrupt();
  }
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

bool ThreadPool::close(std::chrono::nanoseconds timeout) {
  if (forked()) return false;
  std::unique_lock lock(mutex_);
  if (!closed_) {
    closed_ = true;
    // Release, so that a worker that sees it also sees closed_; the Events order the rest.
    stopping_.store(true, std::memory_order_release);
    host_.cancel();
    work_.notify();
    done_.notify();
  }
  // Another close may be joining at this moment.
  const auto idle = [&] { return inside_ == 0 && running_ == 0 && !joining_; };
  hung_ = !gone_.wait_until(lock, after(timeout), idle);
  if (hung_) return false;
  if (joined_) return true;
  joining_ = true;
  // Without the lock: plugins may log, and whoever listens may wait for a thread that needs it.
  lock.unlock();
  for (std::thread& worker : workers_) worker.join();
  team_.destroy();
  if (plan_.task.sharing == EP_ONE_PER_PROCESS) Occupied::leave(plugin_);
  lock.lock();
  joining_ = false;
  joined_ = true;
  gone_.notify_all();
  for (auto& batch : queue_) batch->clear();  // nobody will receive them
  for (auto& batch : reserved_) batch->clear();
  store_->close();
  return true;
}

ThreadPool::Call::~Call() {
  if (!runner) return;
  auto& pool = static_cast<ThreadPool&>(pool_);
  const std::lock_guard lock(pool.mutex_);
  pool.spare_runners_.push_back(runner);
}

// ---- sending ------------------------------------------------------------------------------------

// Whether these are all envs, all ready to step. Notes it when the last one was played.
bool ThreadPool::sweeps(EnvIds env_ids) {
  if (env_ids || !caller_works_ || in_flight_ > 0) return false;
  if (!all_played_) {
    all_played_ = std::ranges::find(place_, Place::kNever) == place_.end();
  }
  return all_played_ && (plan_.settings.autoreset != Autoreset::kDisabled || !team_.any_over());
}

void ThreadPool::send(std::span<const ActionRows> actions, EnvIds env_ids) {
  const Call call(*this);
  std::size_t count = 0;
  bool alone = true, left = false;
  {
    const std::lock_guard lock(mutex_);
    if (sweeps(env_ids)) {
      actions_->check(actions, all_);
      queue_.push_back(spare_batch(num_envs_));
      actions_->store_all(actions);
      all_fly_ = true;
      in_flight_ = num_envs_;
      sweep_batch_ = queue_.back().get();
      for (Segment& segment : segments_) {
        if (!plan_.batch) team_.order(segment.begin, segment.end);
        // Release: who claims sees the batch, the actions and what earlier runners did to the envs.
        segment.next.store(segment.begin, std::memory_order_release);
      }
      count = num_envs_;
    } else {
      auto& ids = take_off(env_ids, Job::Kind::kStep);
      try {
        actions_->check(actions, ids);
        prepare(ids, Job::Kind::kStep);
      } catch (...) {
        land(ids);
        throw;
      }
      actions_->store(actions, ids);
      enqueue(ids);
      count = ids.size();
    }
    alone = inside_ == 1;
    left = left_to_receiver_ = free_ && alone && little(synchronous() ? count : unclaimed_);
  }
  if (!left) work_.notify();
  // A receiver who waits for the work of others may help.
  if (caller_works_ && !alone) done_.notify();
}

void ThreadPool::reset(EnvIds env_ids, std::optional<std::span<const std::uint64_t>> seeds,
                       const std::vector<NamedOption>& at_reset) {
  const Call call(*this);
  {
    const std::lock_guard lock(mutex_);
    auto& ids = take_off(env_ids, Job::Kind::kReset);
    try {
      check_seeds(seeds, ids.size());
      for (std::size_t i = 0; i < ids.size(); ++i) {
        std::shared_ptr<const Options>& job_options = team_.job(ids[i]).at_reset;
        if (at_reset.empty()) {
          job_options.reset();
        } else if (options_.size() == 1 && i > 0) {
          job_options = team_.job(ids[0]).at_reset;
        } else {
          job_options = std::make_shared<const Options>(options_of(ids[i]).at_reset(at_reset));
        }
      }
      for (std::size_t i = 0; i < ids.size(); ++i) {
        Job& job = team_.job(ids[i]);
        job.seed.reset();
        if (seeds) {
          job.seed = (*seeds)[i];
        } else if (before_[ids[i]] == Place::kNever) {
          job.seed = entropy();
        }
      }
      prepare(ids, Job::Kind::kReset);
    } catch (...) {
      land(ids);
      throw;
    }
    enqueue(ids);
  }
  work_.notify();
}

// Sets up the jobs, with rows if they are known. Throws, having changed nothing, if there is no
// memory for their rows.
void ThreadPool::prepare(std::span<const std::uint32_t> ids, Job::Kind kind) {
  const auto count = static_cast<std::uint32_t>(ids.size());
  Batch* batch = nullptr;
  if (synchronous() && count > 0) {
    auto opened = spare_batch(count);
    batch = opened.get();
    batch->envs.assign(ids.begin(), ids.end());
    queue_.push_back(std::move(opened));
  } else if (!synchronous()) {
    reserve_rows(unclaimed_ + count);
    unclaimed_ += count;
  }
  for (std::uint32_t i = 0; i < ids.size(); ++i) {
    Job& job = team_.job(ids[i]);
    // Looked at before it is written: a step after a step leaves the line where it is.
    if (job.kind != kind) job.kind = kind;
    if (batch) job.to = {batch, i};
  }
  in_flight_ += count;
}

// Asynchronous: opens batches until so many rows can be claimed, so that claim_rows can't fail.
void ThreadPool::reserve_rows(std::uint32_t rows) {
  std::uint64_t have = std::uint64_t{batch_size_} * reserved_.size();
  if (open_) have += batch_size_ - open_->claimed;
  for (; have < rows; have += batch_size_) {
    reserved_.push_back(spare_batch(batch_size_));
    reserved_.back()->envs.reserve(batch_size_);
  }
}

void ThreadPool::enqueue(std::span<const std::uint32_t> ids) {
  if (lanes_.size() == 1) return lanes_[0]->push(ids);
  for (auto& lane : split_) lane.clear();
  for (const std::uint32_t id : ids) split_[id % lanes_.size()].push_back(id);
  for (std::size_t i = 0; i < lanes_.size(); ++i) lanes_[i]->push(split_[i]);
}

// Asynchronous: the next rows, of the open batch and of those after it; they are noted in
// runner.rows. True if no other env in flight is without a row.
bool ThreadPool::claim_rows(std::span<const std::uint32_t> ids, Runner& runner) {
  const std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (!open_) {
      queue_.push_back(std::move(reserved_.back()));
      reserved_.pop_back();
      open_ = queue_.back().get();
    }
    runner.rows[i] = {open_, open_->claimed++};
    open_->envs.push_back(ids[i]);  // there is room: see reserve_rows
    if (open_->claimed == batch_size_) open_ = nullptr;
  }
  unclaimed_ -= static_cast<std::uint32_t>(ids.size());
  return unclaimed_ == 0;
}

// ---- receiving ----------------------------------------------------------------------------------

std::unique_ptr<Batch> ThreadPool::recv(std::optional<std::chrono::nanoseconds> timeout,
                                        const Interrupt& interrupt) {
  Call call(*this);
  const auto deadline = timeout ? after(*timeout) : kForever;
  // Who has a deadline must not get stuck in an env.
  bool may_help = free_ && !timeout;
  if (caller_works_ && !may_help) start_all_workers();
  bool first = !synchronous();
  auto now = Clock::now();
  auto next_interrupt = now + kInterruptEvery;
  for (;;) {
    const std::uint64_t key = done_.key();
    bool helps = false, wakes = false, runs_first = false;
    {
      const std::lock_guard lock(mutex_);
      check_usable();
      // In an asynchronous pool only with what is too little for anybody else: the batch may be
      // complete before a costly step is. But what was left to us comes before a batch that is
      // complete already, lest it pile up until it is worth waking somebody.
      helps = may_help && (synchronous() || (unclaimed_ > 0 && little(unclaimed_)));
      runs_first = std::exchange(first, false) && helps && left_to_receiver_;
      if (!runs_first) {
        if (std::unique_ptr<Batch> batch = pop_complete()) {
          arrive(*batch);
          return checked(std::move(batch));
        }
      }
      if (in_flight_ == 0) throw nothing_in_flight();
      if (helps && !call.runner) call.runner = spare_runner();
      const bool waits = synchronous() || unclaimed_ > 0;
      wakes = !helps && waits && std::exchange(left_to_receiver_, false);
    }
    if (wakes) work_.notify();
    const auto start = now;
    const bool ran = helps && (synchronous() ? run_some(*call.runner, now)
                                             : run_little(*call.runner, now, may_help));
    // Costlier than send took it for, so perhaps no worker is awake.
    const bool costly = now - start > std::chrono::nanoseconds(kChunkNanoseconds);
    if (ran && costly && work_waits()) work_.notify();
    if (now >= next_interrupt) {
      next_interrupt = now + kInterruptEvery;
      if (interrupt) interrupt();
    }
    if (ran || runs_first) continue;
    if (now >= deadline) {
      const std::lock_guard lock(mutex_);
      throw timeout_error();
    }
    done_.wait(key, std::min(deadline, next_interrupt), spin_caller_);
    now = Clock::now();
  }
}

// One of the threads is the caller, until somebody must not work himself: then it is a worker too.
void ThreadPool::start_all_workers() {
  const std::lock_guard lock(mutex_);
  while (running_ < threads_ && !closed_) start_worker();
}

std::unique_ptr<Batch> ThreadPool::pop_complete() {
  if (queue_.empty()) return nullptr;
  Batch* front = queue_.front().get();
  if (front == open_ && unclaimed_ == 0) {  // nobody is left to fill it
    front->cut(front->claimed);
    open_ = nullptr;
  }
  if (!front->complete()) return nullptr;
  std::unique_ptr<Batch> batch = std::move(queue_.front());
  queue_.pop_front();
  return batch;
}

// The envs of a received batch may be sent again.
void ThreadPool::arrive(Batch& batch) {
  if (std::exchange(all_fly_, false)) {
    in_flight_ = 0;
    return;
  }
  for (const std::uint32_t env : batch.envs) {
    // What was reset once stays so: the env itself, far away in memory, need not be asked.
    place_[env] = before_[env] == Place::kNever ? place_of(env) : Place::kIdle;
  }
  in_flight_ -= batch.rows();
}

Statistics ThreadPool::statistics() const {
  check_born_here();
  const std::lock_guard lock(mutex_);
  Statistics sum;
  sum.faults = faults_.load(std::memory_order_relaxed);
  for (const auto& runner : runners_) {
    sum.steps += runner->work.steps.load(std::memory_order_relaxed);
    sum.episodes += runner->work.episodes.load(std::memory_order_relaxed);
  }
  return sum;
}

// ---- looking at single envs ---------------------------------------------------------------------

// Lets `act` loose on envs that are not in flight, on threads where they may be touched. Throws
// what it throws.
void ThreadPool::visit(EnvIds env_ids, const Visitor& act) {
  Call call(*this);
  const std::lock_guard one_at_a_time(visit_mutex_);
  std::vector<std::uint32_t> ids;
  {
    const std::lock_guard lock(mutex_);
    check_usable();  // anew: from here on a worker will see the visits, if only to drop them
    ids = take_off(env_ids, Job::Kind::kVisit);
    in_flight_ += static_cast<std::uint32_t>(ids.size());
    for (const std::uint32_t id : ids) team_.job(id).kind = Job::Kind::kVisit;
    visitor_ = &act;
    error_ = nullptr;
    // Relaxed: enqueue releases it to the visitors.
    outstanding_.store(static_cast<std::uint32_t>(ids.size()), std::memory_order_relaxed);
    if (free_) {
      call.runner = spare_runner();
    } else {
      enqueue(ids);
    }
  }
  if (free_) {  // any thread may touch the envs, so this one does
    for (const std::uint32_t id : ids) create_or_visit(id, *call.runner);
  } else {
    work_.notify();
  }
  for (;;) {
    const std::uint64_t key = done_.key();
    // Acquire: what the visitors did.
    if (outstanding_.load(std::memory_order_acquire) == 0) break;
    done_.wait(key, kForever, spin_caller_);
  }
  const std::lock_guard lock(mutex_);
  for (const std::uint32_t id : ids) place_[id] = place_of(id);  // a loaded state may be its first
  in_flight_ -= static_cast<std::uint32_t>(ids.size());
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

std::unique_ptr<Batch> ThreadPool::observe(EnvIds env_ids, const Interrupt&) {
  const Call call(*this);
  const std::size_t count = env_ids ? env_ids->size() : num_envs_;
  if (count > batch_size_) {
    throw Error(ErrorKind::kValue,
                std::string(plan_.task.id) +
                    ": observe takes at most batch_size=" + std::to_string(batch_size_) + " envs");
  }
  std::unique_ptr<Batch> batch;
  std::vector<std::uint32_t> row_of(num_envs_);
  for (std::uint32_t row = 0; row < count; ++row) {
    const std::int64_t id = env_ids ? (*env_ids)[row] : static_cast<std::int64_t>(row);
    if (0 <= id && id < num_envs_)
      row_of[static_cast<std::size_t>(id)] = row;  // else refused below
  }
  {
    const std::lock_guard lock(mutex_);
    batch = spare_batch(static_cast<std::uint32_t>(count));
  }
  const auto write = [&](std::uint32_t id, Env& env, Scratch& scratch) {
    const bool had_fault = env.fault();
    env.write(batch->row(row_of[id]), scratch);
    if (!env.fault() || had_fault) return;
    batch->add_fault(static_cast<std::int32_t>(id), env.message());
    count_fault(id, env.message());
  };
  try {
    visit(env_ids, write);
  } catch (...) {
    recycle(std::move(batch));
    throw;
  }
  return batch;
}

void ThreadPool::visit_one(std::int64_t env, const std::function<void(Env&)>& act) {
  // Out of range of int32 is out of range of ids too.
  const auto id = static_cast<std::int32_t>(std::clamp<std::int64_t>(env, -1, INT32_MAX));
  visit(std::span(&id, 1), [&](std::uint32_t, Env& visited, Scratch&) { act(visited); });
}

Env::Picture ThreadPool::render(std::int64_t env, std::uint32_t width, std::uint32_t height,
                                std::uint32_t camera, const Interrupt&) {
  Env::Picture picture;
  visit_one(env, [&](Env& visited) { picture = visited.render(width, height, camera); });
  return picture;
}

std::vector<std::byte> ThreadPool::save_state(std::int64_t env, const Interrupt&) {
  std::vector<std::byte> state;
  visit_one(env, [&](Env& visited) { state = visited.save(); });
  return state;
}

void ThreadPool::load_state(std::int64_t env, std::span<const std::byte> state, const Interrupt&) {
  visit_one(env, [&](Env& visited) { visited.load(state); });
}

}  // namespace envpool::runtime
