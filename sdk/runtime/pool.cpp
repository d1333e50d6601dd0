// pool.cpp - see pool.hpp.
#include "pool.hpp"

#include <unistd.h>

#include <algorithm>
#include <random>
#include <utility>

#include "process_pool.hpp"
#include "thread_pool.hpp"

namespace envpool::runtime {
namespace {

using namespace std::chrono_literals;

constexpr std::int64_t kMostEnvs = 1 << 20;
constexpr std::size_t kKeptFaults = 1000;

// Checks what can be known before any env is made.
void check(const ep_task& task, const PoolSettings& settings) {
  const std::string id = task.id;
  const auto refuse = [&](const std::string& what) {
    throw Error(ErrorKind::kValue, id + ": " + what);
  };
  if (settings.num_envs < 1 || settings.num_envs > kMostEnvs) {
    refuse("num_envs=" + std::to_string(settings.num_envs) + ", allowed: 1 .. " +
           std::to_string(kMostEnvs));
  }
  if (settings.batch_size < 1 || settings.batch_size > settings.num_envs) {
    refuse("batch_size=" + std::to_string(settings.batch_size) +
           ", allowed: 1 .. num_envs=" + std::to_string(settings.num_envs));
  }
  if (settings.in_place && settings.batch_size < settings.num_envs) {
    refuse("copy=False needs batch_size=num_envs, not batch_size=" +
           std::to_string(settings.batch_size) +
           " for num_envs=" + std::to_string(settings.num_envs));
  }
  if (settings.num_threads < 0) {
    refuse("num_threads=" + std::to_string(settings.num_threads) +
           ", allowed: 0 (automatic) and more");
  }
}

Spec described(const ep_task& task, const Host& host,
               const std::vector<std::shared_ptr<const Options>>& options) {
  Spec spec = describe(task, host, *options.front());
  for (std::size_t i = 1; i < options.size(); ++i) {
    if (!describe(task, host, *options[i]).compatible(spec)) {
      throw Error(ErrorKind::kValue,
                  std::string(task.id) + ": the options of env " + std::to_string(i) +
                      " give other spaces than those of env 0: they can't share a pool");
    }
  }
  return spec;
}

}  // namespace

PoolPtr Pool::make(Plugin& plugin, const ep_task& task,
                   std::vector<std::shared_ptr<const Options>> options,
                   const PoolSettings& settings, const Interrupt& interrupt) {
  check(task, settings);
  const bool guest = !settings.processes.guest_library.empty();
  if (guest && settings.isolation == Isolation::kThread) {
    throw Error(ErrorKind::kValue, std::string(task.id) +
                                       ": isolation='thread': this engine is a program of its own; "
                                       "allowed: 'auto', 'process'");
  }
  const bool needs_process =
      guest || task.sharing == EP_ONE_PER_PROCESS || (task.flags & EP_TASK_MAIN_THREAD) != 0;
  const bool process = settings.isolation == Isolation::kProcess ||
                       (settings.isolation == Isolation::kAuto && needs_process);
  const auto make = process ? ProcessPool::make : ThreadPool::make;
  return make(plugin, task, std::move(options), settings, interrupt);
}

Pool::Pool(Plugin& plugin, const ep_task& task, std::vector<std::shared_ptr<const Options>> options,
           const PoolSettings& settings)
    : num_envs_(static_cast<std::uint32_t>(settings.num_envs)),
      batch_size_(static_cast<std::uint32_t>(settings.batch_size)),
      max_faults_(settings.max_faults),
      in_place_(settings.in_place),
      host_(Host::make(plugin.host().assets())),
      plan_(task, host_, described(task, host_, options), settings.plan),
      born_(count_forks()),
      options_(std::move(options)),
      all_(num_envs_),
      place_(num_envs_, Place::kNever),
      before_(num_envs_, Place::kNever) {
  for (std::uint32_t i = 0; i < num_envs_; ++i) all_[i] = i;
  ids_.reserve(num_envs_);  // so that a send can't fail when it has begun
}

void CloseAndDelete::operator()(Pool* pool) const noexcept {
  if (!pool->forked() && pool->close(pool->hung() ? 0s : 2s)) delete pool;
}

Pool::Clock::time_point Pool::after(std::chrono::nanoseconds timeout) {
  const auto now = Clock::now();
  return timeout < kForever - now ? now + timeout : kForever;
}

std::uint64_t Pool::entropy() {
  std::random_device device;
  return (std::uint64_t{device()} << 32) | device();
}

std::size_t Pool::memory_limit(const PoolSettings& settings) {
  if (settings.memory_limit) return settings.memory_limit;
  return static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) *
         static_cast<std::size_t>(sysconf(_SC_PAGESIZE)) / 2;
}

std::vector<std::size_t> Pool::column_bytes(std::uint32_t rows) const {
  std::vector<std::size_t> bytes;
  for (const Column& column : plan_.columns) {
    if (__builtin_mul_overflow(column.row_bytes, rows, &bytes.emplace_back())) {
      throw Error(ErrorKind::kValue, std::string(plan_.task.id) + ": batch_size=" +
                                         std::to_string(rows) + " is too large for its spaces");
    }
  }
  return bytes;
}

// ---- whether there is still a pool --------------------------------------------------------------

bool Pool::hung() const {
  const std::lock_guard lock(mutex_);
  return hung_;
}

bool Pool::closed() const {
  check_born_here();
  const std::lock_guard lock(mutex_);
  return closed_;
}

bool Pool::forked() const { return count_forks() != born_; }

std::uint32_t Pool::pending() const {
  check_born_here();
  const std::lock_guard lock(mutex_);
  return in_flight_;
}

void Pool::check_born_here() const {
  if (!forked()) return;
  throw Error(ErrorKind::kRuntime,
              std::string(plan_.task.id) +
                  ": this pool was made before fork() and works only in the parent process; make a "
                  "new one in the child");
}

Error Pool::closed_error() const {
  return Error(ErrorKind::kClosed, std::string(plan_.task.id) + ": the pool is closed");
}

void Pool::check_usable() const {
  if (closed_) throw closed_error();
  if (!failed_.empty()) throw Error(ErrorKind::kEnv, failed_);
}

Pool::Call::Call(Pool& pool) : pool_(pool) {
  pool.check_born_here();
  const std::lock_guard lock(pool.mutex_);
  pool.check_usable();
  ++pool.inside_;
}

Pool::Call::~Call() {
  const std::lock_guard lock(pool_.mutex_);
  --pool_.inside_;
  if (pool_.closed_) pool_.gone_.notify_all();
}

void Pool::fail(const std::string& why) {
  {
    const std::lock_guard lock(mutex_);
    if (failed_.empty()) failed_ = why;
  }
  wake();
}

std::vector<Fault> Pool::faults() const {
  check_born_here();
  const std::lock_guard lock(faults_mutex_);
  return {latest_faults_.begin(), latest_faults_.end()};
}

std::optional<std::string> Pool::over_budget(std::uint32_t env, const std::string& message) {
  {
    const std::lock_guard lock(faults_mutex_);
    latest_faults_.push_back({static_cast<std::int32_t>(env), message});
    if (latest_faults_.size() > kKeptFaults) latest_faults_.pop_front();
  }
  // Relaxed: only the count matters.
  if (faults_.fetch_add(1, std::memory_order_relaxed) + 1 <= max_faults_) return std::nullopt;
  return "more than max_faults=" + std::to_string(max_faults_) +
         " faults; the last one: " + message;
}

void Pool::count_fault(std::uint32_t env, const std::string& message) {
  if (const auto why = over_budget(env, message)) fail(*why);
}

void Pool::check_actions(std::span<const ActionRows> actions, EnvIds env_ids) const {
  if (!env_ids) return actions_->check(actions, all_);
  const std::vector<std::uint32_t> ids(env_ids->begin(), env_ids->end());
  actions_->check(actions, ids);
}

// ---- who is in flight ---------------------------------------------------------------------------

// Marks envs as in flight and returns them; throws, with nothing marked, if one of them can't be
// sent.
std::vector<std::uint32_t>& Pool::take_off(EnvIds env_ids, Job::Kind kind) {
  const std::string task = plan_.task.id;
  const std::size_t count = env_ids ? env_ids->size() : num_envs_;
  ids_.clear();
  const auto refuse = [&](ErrorKind error, const std::string& what) {
    for (const std::uint32_t id : ids_) place_[id] = before_[id];
    throw Error(error, task + ": " + what);
  };
  for (std::size_t i = 0; i < count; ++i) {
    const std::int64_t id = env_ids ? (*env_ids)[i] : static_cast<std::int64_t>(i);
    if (id < 0 || id >= num_envs_) {
      refuse(ErrorKind::kValue,
             "env_id " + std::to_string(id) + ", allowed: 0 .. " + std::to_string(num_envs_ - 1));
    }
    const auto env = static_cast<std::uint32_t>(id);
    if (place_[env] == Place::kFlying || all_fly_) {
      const bool twice = std::find(ids_.begin(), ids_.end(), env) != ids_.end();
      refuse(ErrorKind::kValue,
             "env_id " + std::to_string(id) +
                 (twice ? " is given twice" : " is still in flight: receive its row first"));
    }
    if (kind == Job::Kind::kStep) {
      if (place_[env] == Place::kNever) {
        refuse(ErrorKind::kRuntime,
               "env " + std::to_string(id) + " was never reset: call reset first");
      }
      if (plan_.settings.autoreset == Autoreset::kDisabled && over(env)) {
        refuse(ErrorKind::kRuntime, "the episode of env " + std::to_string(id) +
                                        " is over and autoreset is disabled: reset it first");
      }
    }
    ids_.push_back(env);
    before_[env] = place_[env];
    place_[env] = Place::kFlying;
  }
  return ids_;
}

// Undoes take_off: the envs are where they were.
void Pool::land(std::span<const std::uint32_t> ids) {
  for (const std::uint32_t id : ids) place_[id] = before_[id];
}

void Pool::check_seeds(std::optional<std::span<const std::uint64_t>> seeds,
                       std::size_t envs) const {
  if (!seeds || seeds->size() == envs) return;
  throw Error(ErrorKind::kValue, std::string(plan_.task.id) + ": " + std::to_string(seeds->size()) +
                                     " seeds for " + std::to_string(envs) + " envs");
}

std::string Pool::flying() const {
  constexpr int kMost = 10;
  std::string text;
  int count = 0;
  for (std::uint32_t env = 0; env < place_.size(); ++env) {
    if ((place_[env] != Place::kFlying && !all_fly_) || ++count > kMost) continue;
    text += (count > 1 ? ", " : "") + std::to_string(env);
  }
  if (count > kMost) text += " and " + std::to_string(count - kMost) + " more";
  return "env_id " + text;
}

Error Pool::nothing_in_flight() const {
  return Error(ErrorKind::kRuntime,
               std::string(plan_.task.id) + ": recv has nothing to wait for: no env is in flight");
}

Error Pool::timeout_error() const {
  return Error(ErrorKind::kTimeout,
               std::string(plan_.task.id) + ": nothing complete yet; in flight: " + flying());
}

// ---- batches ------------------------------------------------------------------------------------

std::unique_ptr<Batch> Pool::spare_batch(std::uint32_t rows) {
  if (spare_.empty()) {
    if (in_place_ && batches_ > 0) {
      throw Error(ErrorKind::kRuntime, std::string(plan_.task.id) +
                                           ": copy=False has one batch of arrays, and it is still "
                                           "in flight: receive it first");
    }
    spare_.reserve(++batches_);  // room for the return of all
    spare_.push_back(std::make_unique<Batch>(plan_, in_place_));
  }
  spare_.back()->open(*store_, rows, plan_.settings.autoreset == Autoreset::kSameStep);
  std::unique_ptr<Batch> batch = std::move(spare_.back());
  spare_.pop_back();
  return batch;
}

// The batch that recv is to give, or, if a first reset failed, that error.
std::unique_ptr<Batch> Pool::checked(std::unique_ptr<Batch> batch) {
  if (batch->failure.empty()) return batch;
  const Error failure(ErrorKind::kEnv, batch->failure);
  batch->clear();
  spare_.push_back(std::move(batch));
  throw failure;
}

void Pool::recycle(std::unique_ptr<Batch> batch) noexcept {
  if (forked()) return static_cast<void>(batch.release());
  batch->clear();
  const std::lock_guard lock(mutex_);
  spare_.push_back(std::move(batch));
}

}  // namespace envpool::runtime
