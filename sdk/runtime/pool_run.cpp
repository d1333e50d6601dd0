// pool_run.cpp - the running of envs by the pool's runners: claiming, stepping, writing rows.
#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "cpus.hpp"
#include "pool.hpp"

namespace envpool::runtime {
namespace {

constexpr std::uint32_t kCacheLine = 64;

// One thread writes it: no read-modify-write needed.
void add(std::atomic<std::uint64_t>& counter, std::uint64_t more) {
  counter.store(counter.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);
}

}  // namespace

Pool::Runner::Runner(const Plan& plan, std::uint32_t home_)
    : home(home_),
      scratch(plan),
      chunk(kMostChunk),
      action(plan.actions.size()),
      lengths(plan.actions.size()) {
  if (plan.batch) {
    handles.resize(kMostChunk);
    late.resize(kMostChunk);
    action_columns.resize(plan.actions.size());
    obs_columns.resize(plan.obs.size());
    info_columns.resize(plan.info.size());
  }
  if (plan.settings.autoreset != Autoreset::kSameStep) return;
  for (const Column& column : plan.columns) ended.emplace_back(column.row_bytes);
  for (auto& row : ended) ended_data.push_back(row.data());
}

void Pool::work(std::uint32_t index, Runner& runner) {
  set_worker_index(static_cast<int>(index));
  if (affinity_offset_ >= 0) {
    const std::vector<int> cpus = allowed_cpus();
    const auto at = static_cast<std::size_t>(affinity_offset_) + index;
    if (!cpus.empty()) bind_to_cpu(cpus[at % cpus.size()]);
  }
  for (;;) {
    const std::uint64_t key = work_.key();
    // Acquire: pairs with close().
    if (stopping_.load(std::memory_order_acquire)) break;
    if (!run_some(runner)) work_.wait(key, kForever, spin_worker_);
  }
  drop_visits(runner);
  if (!free_) {
    for (std::size_t i = index; i < envs_.size(); i += lanes_.size()) envs_[i]->destroy();
  }
  const std::lock_guard lock(mutex_);
  --running_;
  gone_.notify_all();
}

// After close(): who waits for a visit must not wait for ever, and nothing else matters any more.
void Pool::drop_visits(Runner& runner) {
  while (const std::uint32_t count = take(runner)) {
    for (std::uint32_t i = 0; i < count; ++i) drop_visit(runner.chunk[i]);
  }
}

void Pool::drop_visit(std::uint32_t id) {
  const Job::Kind kind = jobs_[id].kind;
  if (kind != Job::Kind::kVisit && kind != Job::Kind::kCreate) return;
  {
    const std::lock_guard lock(error_mutex_);
    if (!error_) error_ = std::make_exception_ptr(closed_error());
  }
  finish_visit();
}

// Release what was done to the env to the one who sees zero.
void Pool::finish_visit() {
  if (outstanding_.fetch_sub(1, std::memory_order_acq_rel) == 1) done_.notify();
}

bool Pool::begins_anew(std::uint32_t id) const {
  const Job::Kind kind = jobs_[id].kind;
  return kind == Job::Kind::kReset || (kind == Job::Kind::kStep && envs_[id]->over());
}

// A hint: whether anything is there to be claimed.
bool Pool::work_waits() const {
  return std::ranges::any_of(segments_,
                             [](const Segment& segment) {
                               return segment.next.load(std::memory_order_relaxed) < segment.end;
                             }) ||
         std::ranges::any_of(lanes_, [](const auto& lane) { return lane->size() > 0; });
}

// Takes envs into runner.chunk and returns how many: from its own lane, else from another's if any
// thread may run any env.
std::uint32_t Pool::take(Runner& runner) {
  for (std::uint32_t i = 0; i < (free_ ? threads_ : 1); ++i) {
    Lane& lane = *lanes_[(runner.home + i) % threads_];
    const auto room = std::span(runner.chunk).first(chunk_size(lane.size()));
    if (const std::uint32_t count = lane.take(room)) return count;
  }
  return 0;
}

bool Pool::run_some(Runner& runner) {
  if (sweep_some(runner)) return true;
  const std::uint32_t count = take(runner);
  if (count == 0) return false;
  const auto ids = std::span(runner.chunk).first(count);
  // Resets are often slow: the rows of the others need not wait for them.
  if (!synchronous()) {
    std::partition(ids.begin(), ids.end(), [&](std::uint32_t id) { return !begins_anew(id); });
  }
  const auto start = Clock::now();
  run(ids, runner);
  measure(Clock::now() - start, count);
  return true;
}

void Pool::measure(std::chrono::nanoseconds spent, std::uint32_t count) {
  const auto now =
      static_cast<std::uint32_t>(std::clamp<std::int64_t>(spent.count() / count, 1, 1000000000));
  const std::uint32_t before = cost_.load(std::memory_order_relaxed);
  cost_.store(before - before / 8 + now / 8, std::memory_order_relaxed);
}

// As many as are worth a hand-over, but so that others find some to take over.
std::uint32_t Pool::chunk_size(std::uint64_t waiting) const {
  const std::uint64_t worth =
      kChunkNanoseconds / std::max(cost_.load(std::memory_order_relaxed), 1u) + 1;
  const bool others = free_ && threads_ > 1 && worth < waiting;
  return static_cast<std::uint32_t>(
      std::min({worth, others ? waiting / 2 + 1 : worth, std::uint64_t{kMostChunk}}));
}

void Pool::run(std::span<const std::uint32_t> ids, Runner& runner) {
  Batch* batch = nullptr;  // of the last rows written, and how many of them are not finished yet
  std::uint32_t count = 0;
  const auto finish = [&] {
    if (batch && batch->finish(count)) done_.notify();
    batch = nullptr;
    count = 0;
  };
  for (const std::uint32_t id : ids) {
    // Acquire: pairs with close(). What is in flight then is dropped.
    if (stopping_.load(std::memory_order_acquire)) {
      drop_visit(id);
      continue;
    }
    Job& job = jobs_[id];
    if (job.kind == Job::Kind::kCreate || job.kind == Job::Kind::kVisit) {
      create_or_visit(id, runner);
      continue;
    }
    bool last = false;
    try {
      play(id, runner);
      if (!synchronous()) last = claim_row(job);
      if (job.batch != batch) finish();
      batch = job.batch;
      deliver(id, runner);
    } catch (const std::exception& error) {  // our own: no memory
      fail(std::string(plan_.task.id) + ": " + error.what());
      continue;
    }
    ++count;
    // Asynchronous rows wait for nobody; after the last one a receiver may want to cut the batch.
    if (!synchronous()) finish();
    if (last) done_.notify();
  }
  finish();
}

void Pool::create_or_visit(std::uint32_t id, Runner& runner) {
  try {
    if (jobs_[id].kind == Job::Kind::kVisit) {
      (*visitor_)(id, *envs_[id], runner.scratch);
    } else if (!envs_[id]->create()) {
      throw Error(ErrorKind::kEnv, envs_[id]->message());
    }
  } catch (...) {
    const std::lock_guard lock(error_mutex_);
    if (!error_) error_ = std::current_exception();
  }
  finish_visit();
}

// Claims a range of the sweep, if there is one: of its own segment, else of another.
bool Pool::sweep_some(Runner& runner) {
  for (std::uint32_t i = 0; i < threads_; ++i) {
    if (sweep_some(segments_[(runner.home + i) % threads_], runner)) return true;
  }
  return false;
}

bool Pool::sweep_some(Segment& segment, Runner& runner) {
  // Relaxed: a guess, which the claim puts right.
  const std::uint32_t seen = segment.next.load(std::memory_order_relaxed);
  if (seen >= segment.end) return false;
  std::uint32_t most = chunk_size(segment.end - seen);
  // Whole cache lines of bytes, so that neighbours don't write to the same one.
  if (most > kCacheLine) most -= most % kCacheLine;
  // Acquire: pairs with the release in send(); the claims between go on with it. Whoever claims
  // late gets a range of the next sweep, or nothing.
  const std::uint32_t begin = segment.next.fetch_add(most, std::memory_order_acquire);
  if (begin >= segment.end) return false;
  const std::uint32_t end = std::min(begin + most, segment.end);
  Batch& batch = *sweep_batch_;
  const auto start = Clock::now();
  try {
    sweep_range(begin, end, batch, runner);
  } catch (const std::exception& error) {  // our own: no memory
    fail(std::string(plan_.task.id) + ": " + error.what());
  }
  measure(Clock::now() - start, end - begin);
  if (batch.finish(end - begin)) done_.notify();
  return true;
}

void Pool::sweep_range(std::uint32_t begin, std::uint32_t end, Batch& batch, Runner& runner) {
  if (plan_.batch) return step_range(begin, end, batch, runner);
  for (std::uint32_t id = begin; id < end; ++id) {
    // Acquire: pairs with close(). What is in flight then is dropped.
    if (stopping_.load(std::memory_order_acquire)) return;
    set_job(id, batch);
    play(id, runner);
    deliver(id, runner);
  }
}

// The job of an env in a sweep.
void Pool::set_job(std::uint32_t id, Batch& batch) {
  jobs_[id].kind = Job::Kind::kStep;
  jobs_[id].batch = &batch;
  jobs_[id].row = id;
}

// The same by the plugin's step_many. Nothing is done env by env but for those that begin anew, end
// in kSameStep, or fail.
void Pool::step_range(std::uint32_t begin, std::uint32_t end, Batch& batch, Runner& runner) {
  std::uint32_t count = 0, late = 0;
  for (std::uint32_t id = begin; id < end; ++id) {
    if (episodes_.over[id]) {
      runner.late[late++] = id;
    } else {
      runner.handles[count] = episodes_.handle[id];
      runner.chunk[count++] = id;
    }
  }
  const auto aim = [&](const std::vector<Target>& targets, std::vector<ep_column>& columns) {
    for (std::size_t i = 0; i < targets.size(); ++i) {
      const std::uint32_t column = targets[i].column;
      columns[i] = {batch.columns.data[column], plan_.columns[column].row_bytes};
    }
  };
  aim(plan_.obs, runner.obs_columns);
  aim(plan_.info, runner.info_columns);
  for (std::size_t i = 0; i < plan_.actions.size(); ++i) {
    runner.action_columns[i] = {actions_.rows(i), plan_.actions[i].row_bytes};
  }
  const ep_rows rows{sizeof rows,
                     count,
                     runner.handles.data(),
                     runner.chunk.data(),
                     runner.chunk.data(),
                     runner.action_columns.data(),
                     runner.obs_columns.data(),
                     runner.info_columns.data(),
                     episodes_.reward.data(),
                     episodes_.terminated.data(),
                     episodes_.truncated.data(),
                     statuses_.data()};
  const bool failed = count > 0 && plan_.batch->step_many(&rows) != EP_OK;
  write_range(begin, end, batch);

  add(runner.steps, count);
  for (std::uint32_t i = 0; i < late; ++i) {
    const std::uint32_t id = runner.late[i];
    set_job(id, batch);
    runner.has_ended = false;
    envs_[id]->reset(std::nullopt, nullptr, runner.scratch);
    deliver(id, runner);
  }
  const bool same_step = plan_.settings.autoreset == Autoreset::kSameStep;
  std::uint32_t ended = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t id = runner.chunk[i];
    if (failed && statuses_[id] != EP_OK) envs_[id]->step_failed(statuses_[id]);
    if (!episodes_.over[id]) continue;
    ++ended;
    if (!same_step && !envs_[id]->fault()) continue;
    set_job(id, batch);
    runner.has_ended = false;
    if (same_step) end_episode(*envs_[id], runner);
    deliver(id, runner);
  }
  add(runner.episodes, ended);
}

// What the pool adds to a step of each env: episodes, time limit, its own columns. Those that did
// not step are written over afterwards. Plain loops over arrays that don't overlap: compilers make
// vectors of them.
void Pool::write_range(std::uint32_t begin, std::uint32_t end, Batch& batch) {
  const PlanSettings& settings = plan_.settings;
  const std::size_t count = end - begin;
  std::int32_t* __restrict elapsed = episodes_.elapsed.data() + begin;
  const double* __restrict reward = episodes_.reward.data() + begin;
  double* __restrict returned = episodes_.returned.data() + begin;
  const std::uint8_t* __restrict terminated = episodes_.terminated.data() + begin;
  std::uint8_t* __restrict truncated = episodes_.truncated.data() + begin;
  std::uint8_t* __restrict over = episodes_.over.data() + begin;
  constexpr std::int32_t kMost = std::numeric_limits<std::int32_t>::max();
  for (std::size_t i = 0; i < count; ++i) elapsed[i] += elapsed[i] != kMost;
  for (std::size_t i = 0; i < count; ++i) returned[i] += reward[i];
  if (plan_.limit > 0) {
    const auto limit = static_cast<std::int32_t>(std::min<std::int64_t>(plan_.limit, kMost));
    const std::uint8_t both = settings.both_flags;
    for (std::size_t i = 0; i < count; ++i) {
      truncated[i] |= static_cast<std::uint8_t>(elapsed[i] >= limit) & (both | (terminated[i] ^ 1));
    }
  }
  for (std::size_t i = 0; i < count; ++i) over[i] = terminated[i] | truncated[i];

  const auto column = [&]<class T>(std::uint32_t index, T) {
    return reinterpret_cast<T*>(batch.columns.data[index]) + begin;
  };
  const PoolColumns& to = plan_.pool;
  std::memcpy(column(to.env_id, std::uint32_t{}), all_.data() + begin,
              count * sizeof(std::int32_t));
  std::memcpy(column(to.elapsed_step, std::int32_t{}), elapsed, count * sizeof *elapsed);
  std::memcpy(column(to.terminated, std::uint8_t{}), terminated, count);
  std::memcpy(column(to.truncated, std::uint8_t{}), truncated, count);
  std::memcpy(column(to.episode_return, double{}), returned, count * sizeof *returned);
  std::memset(column(to.fault, std::uint8_t{}), 0, count);
  const auto write_rewards = [&]<class T>(T* __restrict out, bool clip) {
    if (clip) {
      for (std::size_t i = 0; i < count; ++i) {
        out[i] = static_cast<T>((reward[i] > 0) - (reward[i] < 0));
      }
    } else {
      for (std::size_t i = 0; i < count; ++i) out[i] = static_cast<T>(reward[i]);
    }
  };
  write_rewards(column(to.raw_reward, float{}), false);
  if (settings.float32_reward) {
    write_rewards(column(to.reward, float{}), settings.transforms.reward_clip);
  } else {
    write_rewards(column(to.reward, double{}), settings.transforms.reward_clip);
  }
}

void Pool::play(std::uint32_t id, Runner& runner) {
  Env& env = *envs_[id];
  const Job& job = jobs_[id];
  runner.has_ended = false;
  if (job.kind == Job::Kind::kReset) return env.reset(job.seed, job.at_reset.get(), runner.scratch);
  if (env.over()) return env.reset(std::nullopt, nullptr, runner.scratch);
  actions_.point(id, runner.action, runner.lengths);
  env.step(runner.action, runner.lengths, runner.scratch);
  add(runner.steps, 1);
  if (!env.over()) return;
  add(runner.episodes, 1);
  end_episode(env, runner);
}

void Pool::end_episode(Env& env, Runner& runner) {
  if (plan_.settings.autoreset != Autoreset::kSameStep) return;
  runner.has_ended = true;
  env.write({runner.ended_data, 0}, runner.scratch);
  runner.ended_fault = env.fault() ? env.message() : "";  // of the step, or of this write
  env.reset(std::nullopt, nullptr, runner.scratch);
}

// Writes the row, and notes what its receiver must hear of.
void Pool::deliver(std::uint32_t id, Runner& runner) {
  Env& env = *envs_[id];
  const Job& job = jobs_[id];
  const Row row = job.batch->row(job.row);
  const bool was_over = env.over();
  env.write(row, runner.scratch);
  if (job.kind == Job::Kind::kStep && env.over() && !was_over && !runner.has_ended) {
    add(runner.episodes, 1);
    end_episode(env, runner);  // it could not be observed
    if (runner.has_ended) env.write(row, runner.scratch);
  }
  const auto note = [&](const std::string& message) {
    job.batch->add_fault(static_cast<std::int32_t>(id), message);
    count_fault(message);
  };
  if (runner.has_ended) {
    const auto copy = [&](const Row& to, std::uint32_t column) {
      std::memcpy(to.at(plan_, column), runner.ended_data[column], plan_.columns[column].row_bytes);
    };
    for (const std::uint32_t column : plan_.pool.outcome) copy(row, column);
    const Row final_row = job.batch->final_row(job.row);
    for (std::uint32_t column = 0; column < plan_.columns.size(); ++column) copy(final_row, column);
    if (!runner.ended_fault.empty()) {
      copy(row, plan_.pool.fault);
      note(runner.ended_fault);
    }
  }
  if (!env.fault()) return;
  if (job.kind == Job::Kind::kReset && !env.played()) {
    job.batch->add_failure(env.message());
  } else {
    note(env.message());
  }
}

void Pool::count_fault(const std::string& message) {
  // Relaxed: only the count matters.
  if (faults_.fetch_add(1, std::memory_order_relaxed) + 1 > max_faults_) {
    fail("more than max_faults=" + std::to_string(max_faults_) +
         " faults; the last one: " + message);
  }
}

}  // namespace envpool::runtime
