// thread_pool_run.cpp - the running of envs by the pool's runners: claiming, stepping, writing
// rows.
#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "cpus.hpp"
#include "thread_pool.hpp"

namespace envpool::runtime {
namespace {

constexpr std::uint32_t kCacheLine = 64;

}  // namespace

void ThreadPool::work(std::uint32_t index, Runner& runner) {
  set_worker_index(static_cast<int>(index));
  if (affinity_offset_ >= 0) {
    const std::vector<int> cpus = allowed_cpus();
    const auto at = static_cast<std::size_t>(affinity_offset_) + index;
    if (!cpus.empty()) bind_to_cpu(cpus[at % cpus.size()]);
  }
  // The last one stands in for a caller who must not work (start_all_workers): one that may work
  // again spins himself.
  const bool stand_in = caller_works_ && index + 1 == threads_;
  const auto spin = stand_in ? std::chrono::nanoseconds(0) : spin_worker_;
  for (auto now = Clock::now();;) {
    const std::uint64_t key = work_.key();
    // Acquire: pairs with close().
    if (stopping_.load(std::memory_order_acquire)) break;
    if (run_some(runner, now)) continue;
    work_.wait(key, kForever, spin);
    now = Clock::now();
  }
  drop_visits(runner);
  if (!free_) {
    for (std::uint32_t i = index; i < team_.size(); i += threads_) team_.destroy(i);
  }
  const std::lock_guard lock(mutex_);
  --running_;
  gone_.notify_all();
}

// After close(): who waits for a visit must not wait for ever, and nothing else matters any more.
void ThreadPool::drop_visits(Runner& runner) {
  while (const std::uint32_t count = take(runner)) {
    for (std::uint32_t i = 0; i < count; ++i) drop_visit(runner.chunk[i]);
  }
}

void ThreadPool::drop_visit(std::uint32_t id) {
  const Job::Kind kind = team_.job(id).kind;
  if (kind != Job::Kind::kVisit && kind != Job::Kind::kCreate) return;
  {
    const std::lock_guard lock(error_mutex_);
    if (!error_) error_ = std::make_exception_ptr(closed_error());
  }
  finish_visit();
}

// Release what was done to the env to the one who sees zero.
void ThreadPool::finish_visit() {
  if (outstanding_.fetch_sub(1, std::memory_order_acq_rel) == 1) done_.notify();
}

bool ThreadPool::begins_anew(std::uint32_t id) const {
  const Job::Kind kind = team_.job(id).kind;
  return kind == Job::Kind::kReset || (kind == Job::Kind::kStep && team_.env(id).over());
}

// A hint: whether anything is there to be claimed.
bool ThreadPool::work_waits() const {
  return std::ranges::any_of(segments_,
                             [](const Segment& segment) {
                               return segment.next.load(std::memory_order_relaxed) < segment.end;
                             }) ||
         std::ranges::any_of(lanes_, [](const auto& lane) { return lane->size() > 0; });
}

// Takes envs into runner.chunk and returns how many: from its own lane, else from another's if any
// thread may run any env.
std::uint32_t ThreadPool::take(Runner& runner) {
  for (std::uint32_t i = 0; i < (free_ ? threads_ : 1); ++i) {
    Lane& lane = *lanes_[(runner.home + i) % threads_];
    const auto room = std::span(runner.chunk).first(chunk_size(lane.size()));
    if (const std::uint32_t count = lane.take(room)) return count;
  }
  return 0;
}

// Runs a chunk, if there is one. `now` is the present time, before and after: a look at the clock
// costs as much as a small env.
bool ThreadPool::run_some(Runner& runner, Clock::time_point& now) {
  std::uint32_t count = sweep_some(runner);
  if (count == 0) {
    count = take(runner);
    if (count == 0) return false;
    if (!synchronous()) steps_first(count, runner);  // nobody else waits for the resets
    run(count, runner);
  }
  spent(count, now);
  return true;
}

// The same for the receiver of an asynchronous pool, who must not be held up when his batch is
// complete: resets are handed over to workers if they are costly, and `helps` is false then.
bool ThreadPool::run_little(Runner& runner, Clock::time_point& now, bool& helps) {
  std::uint32_t count = take(runner);
  const std::uint32_t steps = steps_first(count, runner);
  if (steps < count && !cheap_resets()) {
    helps = false;
    {
      const std::lock_guard lock(mutex_);
      enqueue(std::span(runner.chunk).subspan(steps, count - steps));
    }
    work_.notify();
    count = steps;
  }
  if (count == 0) return false;
  run(count, runner);
  spent(count, now);
  return true;
}

// Sorts the first `count` envs of the chunk; returns how many only step.
std::uint32_t ThreadPool::steps_first(std::uint32_t count, Runner& runner) {
  const auto ids = std::span(runner.chunk).first(count);
  const auto resets =
      std::partition(ids.begin(), ids.end(), [&](std::uint32_t id) { return !begins_anew(id); });
  return static_cast<std::uint32_t>(resets - ids.begin());
}

// Notes what `count` envs cost since `now`, which becomes the present time.
void ThreadPool::spent(std::uint32_t count, Clock::time_point& now) {
  const auto start = std::exchange(now, Clock::now());
  measure(cost_, (now - start) / count);
}

// The first one counts for all before it.
void ThreadPool::measure(std::atomic<std::uint32_t>& mean, std::chrono::nanoseconds one) {
  const auto now =
      static_cast<std::uint32_t>(std::clamp<std::int64_t>(one.count(), 1, kUnknown - 1));
  const std::uint32_t seen = mean.load(std::memory_order_relaxed);
  const std::uint32_t before = seen == kUnknown ? now : seen;
  mean.store(before - before / 8 + now / 8, std::memory_order_relaxed);
}

// Whether running so many costs less than waking a worker for them. A guess.
bool ThreadPool::little(std::uint64_t envs) const {
  return envs * cost_.load(std::memory_order_relaxed) < kChunkNanoseconds;
}

bool ThreadPool::cheap_resets() const {
  return reset_cost_.load(std::memory_order_relaxed) < kChunkNanoseconds;
}

std::uint32_t ThreadPool::worth_a_claim() const {
  const std::uint32_t cost = std::max(cost_.load(std::memory_order_relaxed), 1u);
  return std::min(kChunkNanoseconds / cost + 1, kMostChunk);
}

// As many as are worth a hand-over, but so that others find some to take over.
std::uint32_t ThreadPool::chunk_size(std::uint64_t waiting) const {
  const std::uint64_t worth = worth_a_claim();
  const bool others = free_ && threads_ > 1 && worth < waiting;
  return static_cast<std::uint32_t>(others ? std::min(worth, waiting / 2 + 1) : worth);
}

// Runs the first `count` envs of the chunk. Their rows are written when all have stepped, so that
// those of an asynchronous pool are claimed at once; but a reset is often slow, and no row waits
// for it.
void ThreadPool::run(std::uint32_t count, Runner& runner) {
  const bool one_by_one = plan_.settings.autoreset == Autoreset::kSameStep;  // see Workspace::ended
  std::uint32_t played = 0;  // at the chunk's front: those whose rows are not written yet
  const auto deliver_played = [&] {
    deliver(std::span(runner.chunk).first(std::exchange(played, 0)), runner);
  };
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t id = runner.chunk[i];
    // Acquire: pairs with close(). What is in flight then is dropped.
    if (stopping_.load(std::memory_order_acquire)) {
      drop_visit(id);
      continue;
    }
    const Job& job = team_.job(id);
    if (job.kind == Job::Kind::kCreate || job.kind == Job::Kind::kVisit) {
      create_or_visit(id, runner);
      continue;
    }
    const bool anew = begins_anew(id);
    if (one_by_one || anew) deliver_played();
    const auto start = anew ? Clock::now() : Clock::time_point();
    try {
      team_.play(id, job, runner.work);
      if (anew) measure(reset_cost_, Clock::now() - start);
    } catch (const std::exception& error) {  // our own: no memory
      fail(std::string(plan_.task.id) + ": " + error.what());
      continue;
    }
    runner.chunk[played++] = id;
  }
  deliver_played();
}

// Writes the rows of envs that were run.
void ThreadPool::deliver(std::span<const std::uint32_t> ids, Runner& runner) {
  if (ids.empty()) return;
  const bool last = !synchronous() && claim_rows(ids, runner);
  Batch* batch = nullptr;  // of the last rows written, and how many of them are not finished yet
  std::uint32_t count = 0;
  const auto finish = [&] {
    if (batch && batch->finish(count)) done_.notify();
    count = 0;
  };
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const Job& job = team_.job(ids[i]);
    const Destination& to = synchronous() ? job.to : runner.rows[i];
    if (to.batch != batch) finish();
    batch = to.batch;
    try {
      team_.deliver(ids[i], job.kind, to, runner.work);
      ++count;
    } catch (const std::exception& error) {  // our own: no memory
      fail(std::string(plan_.task.id) + ": " + error.what());
    }
  }
  finish();
  if (last) done_.notify();  // a receiver may want to cut the batch
}

void ThreadPool::create_or_visit(std::uint32_t id, Runner& runner) {
  try {
    if (team_.job(id).kind == Job::Kind::kVisit) {
      (*visitor_)(id, team_.env(id), runner.work.scratch);
    } else if (!team_.create(id)) {
      throw Error(ErrorKind::kEnv, team_.env(id).message());
    }
  } catch (...) {
    const std::lock_guard lock(error_mutex_);
    if (!error_) error_ = std::current_exception();
  }
  finish_visit();
}

// Claims and runs a range of the sweep, if there is one: of its own segment, else of another.
// Returns how many envs it had.
std::uint32_t ThreadPool::sweep_some(Runner& runner) {
  for (std::uint32_t i = 0; i < threads_; ++i) {
    std::uint32_t at = (runner.home + i) % threads_;
    Range range = claim(segments_[at]);
    if (range.begin == range.end) continue;
    // Few small envs are one range, however many threads there are.
    while (++at < threads_ && claim_whole(segments_[at], range)) {
    }
    Batch& batch = *sweep_batch_;
    try {
      sweep_range(range.begin, range.end, batch, runner);
    } catch (const std::exception& error) {  // our own: no memory
      fail(std::string(plan_.task.id) + ": " + error.what());
    }
    const std::uint32_t count = range.end - range.begin;
    if (batch.finish(count)) done_.notify();
    return count;
  }
  return 0;
}

// Takes what is worth a claim off a segment; an empty range if nothing is left.
ThreadPool::Range ThreadPool::claim(Segment& segment) {
  // Relaxed: a guess, which the claim puts right.
  const std::uint32_t seen = segment.next.load(std::memory_order_relaxed);
  if (seen >= segment.end) return {};
  std::uint32_t most = chunk_size(segment.end - seen);
  // Whole cache lines of bytes, so that neighbours don't write to the same one.
  if (most > kCacheLine) most -= most % kCacheLine;
  // Acquire: pairs with the release in send(); the claims between go on with it. Whoever claims
  // late gets a range of the next sweep, or nothing.
  const std::uint32_t begin = segment.next.fetch_add(most, std::memory_order_acquire);
  if (begin >= segment.end) return {};
  return {begin, std::min(begin + most, segment.end)};
}

// Appends a segment that nobody began, if it follows and all is still no more than is worth a
// claim.
bool ThreadPool::claim_whole(Segment& segment, Range& range) {
  if (segment.begin != range.end || segment.end - range.begin > worth_a_claim()) return false;
  std::uint32_t first = segment.begin;
  // Acquire: as in claim(). It is of the same sweep, which can't end before the range is run.
  if (!segment.next.compare_exchange_strong(first, segment.end, std::memory_order_acquire,
                                            std::memory_order_relaxed)) {
    return false;
  }
  range.end = segment.end;
  return true;
}

void ThreadPool::sweep_range(std::uint32_t begin, std::uint32_t end, Batch& batch, Runner& runner) {
  if (plan_.batch) {
    team_.step_range(begin, end, batch, runner.work);
  } else {
    team_.step_each(begin, end, batch, runner.work, stopping_);
  }
}

}  // namespace envpool::runtime
