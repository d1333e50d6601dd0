// process_pool_faults.cpp - what becomes of jobs: those that are done, and those whose worker died
// or hangs. See process_pool.hpp. All under the pool's mutex.
#include <algorithm>
#include <cstring>
#include <utility>

#include "episodes.hpp"
#include "process_pool.hpp"

namespace envpool::runtime {
namespace {

using namespace std::chrono_literals;

// A worker that has a job and doesn't begin with it may wait for a CPU; or it was stopped.
constexpr auto kPatience = 10s;

std::string seconds(std::chrono::nanoseconds time) {
  std::string text = std::to_string(std::chrono::duration<double>(time).count());
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text += '0';
  return text + " s";
}

}  // namespace

// ---- jobs done ----------------------------------------------------------------------------------

// Before a job is given: a worker that died while idle is replaced, so that the job is not lost
// with it.
void ProcessPool::notice_deaths() {
  if (deaths_->load(std::memory_order_acquire) != seen_deaths_) look_around();
}

// Takes in what has happened since the last time.
void ProcessPool::look_around() {
  // Acquire: pairs with the keeper, before the slots are read: who is dead has done all it will.
  const std::uint32_t deaths = deaths_->load(std::memory_order_acquire);
  take_done();
  for (std::uint32_t i = 0; i < workers_.size() && starting_ > 0; ++i) {
    // Acquire: the envs made.
    if (workers_[i].was_ready || !mailbox(i).ready.load(std::memory_order_acquire)) continue;
    workers_[i].was_ready = true;
    --starting_;
  }
  if (deaths == seen_deaths_) return;
  seen_deaths_ = deaths;
  for (std::uint32_t i = 0; i < workers_.size(); ++i) {
    if (workers_[i].child && workers_[i].child->dead()) worker_died(i);
  }
}

void ProcessPool::take_done() {
  seen_done_.clear();
  std::erase_if(flying_, [&](std::uint32_t env) {
    const Slot& it = slot(env);
    // Acquire: the row and the outcome.
    if (it.done.load(std::memory_order_acquire) != it.job) return false;
    seen_done_.push_back(env);
    return true;
  });
  if (!synchronous()) {
    std::ranges::sort(seen_done_, [&](std::uint32_t a, std::uint32_t b) {
      return static_cast<std::int32_t>(slot(a).stamp - slot(b).stamp) < 0;  // it may wrap around
    });
  }
  for (const std::uint32_t env : seen_done_) take_outcome(env);
}

void ProcessPool::take_outcome(std::uint32_t env) {
  Known& known = known_[env];
  const Slot& it = slot(env);
  std::byte* base = arena_->base();
  known.in_worker = false;
  known.played = it.played != 0;
  known.over = it.over != 0;
  known.elapsed = it.elapsed;
  known.seed = it.now_seed;
  known.respawns = it.now_respawns;
  std::copy_n(layout_.returned(base, env), plan_.agents, known.returned.begin());
  std::copy_n(layout_.alive(base, env), plan_.agents, known.alive.begin());
  if (known.is_visit) {
    if (known.abandoned) end_visit(env);
    return;
  }
  for (std::size_t i = 0; i < std::min<std::size_t>(it.fault_count, kTexts); ++i) {
    note_fault(env, text_of(env, i));
  }
  if (it.first_failed) {
    known.first_failed = true;
    known.first_failure = text_of(env, 0);
  }
  known.has_final = known.has_final || it.has_final;
  if (std::exchange(known.ended_by_crash, false)) show_crash(env);
  deliver(env);
}

// A fault that the env's row tells of.
void ProcessPool::note_fault(std::uint32_t env, const std::string& message) {
  known_[env].faults.push_back(message);
  if (const auto why = over_budget(env, message); why && failed_.empty()) failed_ = *why;
}

// ---- workers that died --------------------------------------------------------------------------

void ProcessPool::worker_died(std::uint32_t worker) {
  take_done();  // what it finished, it finished
  WorkerState& state = workers_[worker];
  Mailbox& box = mailbox(worker);
  const std::uint32_t first = layout_.first_env(worker);
  // Acquire: the text.
  const bool create_failed = box.failed.load(std::memory_order_acquire);
  const std::string why = create_failed ? text_of(first, 0) : state.child->obituary();
  const bool was_ready = state.was_ready;
  state.steps += box.steps.load(std::memory_order_relaxed);
  state.episodes += box.episodes.load(std::memory_order_relaxed);
  gather_lines(worker);
  state.child.reset();
  if (!std::exchange(state.was_ready, false)) --starting_;
  // For the next one. Relaxed: it is started after this.
  state.pushed = 0;
  for (Word* word : {&box.pushed, &box.ready, &box.failed}) {
    word->store(0, std::memory_order_relaxed);
  }
  box.bell.reset();
  box.at_work.store(0, std::memory_order_relaxed);
  box.steps.store(0, std::memory_order_relaxed);
  box.episodes.store(0, std::memory_order_relaxed);
  if (closed_) return;
  if (!all_started_ && failed_.empty()) {
    failed_ = create_failed ? why
                            : std::string(plan_.task.id) + ", env " + std::to_string(first) +
                                  ": create: " + why;
    return;
  }

  for (std::uint32_t env = first; env < first + layout_.envs_of(worker); ++env) {
    Slot& it = slot(env);
    Known& known = known_[env];
    it.inherits = known.played;
    // A reset that died: the next one must not begin with the same seed.
    if (known.in_worker && (it.ask == Ask::kReset || known.over)) ++known.respawns;
    it.past_seed = known.seed;
    it.past_respawns = known.respawns;
    if (known.in_worker) {
      std::erase(flying_, env);
      env_died(env, why);
    } else if (known.played && !known.over) {
      known.lost = true;
      known.lost_why = why;
    }
  }
  // Now, so that it is ready when somebody wants it; but one that can't even start only when
  // wanted.
  if (was_ready && failed_.empty()) start_again(worker);
  ring_bells();
}

// The worker of an env that it had a job for is dead.
void ProcessPool::env_died(std::uint32_t env, const std::string& why) {
  Known& known = known_[env];
  known.in_worker = false;
  const bool was_over = known.over;
  if (known.is_visit) {
    known.visit_error = why;
    known.lost = known.played && !known.over;
    known.lost_why = why;
    if (known.abandoned) end_visit(env);
    return;
  }
  const Ask ask = slot(env).ask;
  if (ask == Ask::kStep && !was_over && !known.ended_by_crash) return end_lost(env, why);
  known.ended_by_crash = false;
  tell_lost(env, why);
}

// An episode ends, since the worker died. kSameStep: the row is to show the first of the next one.
void ProcessPool::end_lost(std::uint32_t env, const std::string& why) {
  if (plan_.settings.autoreset != Autoreset::kSameStep) return tell_lost(env, why);
  Known& known = known_[env];
  write_lost_row(env, final_row_of(env));
  note_fault(env, lost_message(env, why));
  known.has_final = known.ended_by_crash = true;
  push(env, Ask::kStep);  // its new env is over, so this resets it
}

// Delivers a row that tells of an episode lost.
void ProcessPool::tell_lost(std::uint32_t env, const std::string& why) {
  Known& known = known_[env];
  const std::string message = lost_message(env, why);
  write_lost_row(env, row_of(env));
  if (!known.played) {
    known.first_failed = true;
    known.first_failure = message;
  } else {
    note_fault(env, message);
  }
  deliver(env);
  if (waiting_ > 0) header().arrivals.kick();
}

std::string ProcessPool::lost_message(std::uint32_t env, const std::string& why) const {
  return std::string(plan_.task.id) + ", env " + std::to_string(env) + ": " + why;
}

// The row of an env whose worker is gone, as a fault of its last step: no fields, truncated.
void ProcessPool::write_lost_row(std::uint32_t env, const Row& row) {
  Known& known = known_[env];
  Episodes episodes(1, plan_.agents);
  Env stand_in(plan_, env, options_[options_.size() == 1 ? 0 : env], episodes, 0);
  episodes.elapsed[0] = known.elapsed;
  std::ranges::copy(known.returned, episodes.returned.begin());
  stand_in.lost(known.alive);
  Scratch scratch(plan_);
  stand_in.write(row, scratch);
  known.over = true;
}

// kSameStep: the reset after a crash is done; its row shows the outcome of the step that crashed.
void ProcessPool::show_crash(std::uint32_t env) {
  const Row row = row_of(env), ended = final_row_of(env);
  const auto copy = [&](std::uint32_t column) {
    std::memcpy(row.at(plan_, column), ended.at(plan_, column), plan_.columns[column].row_bytes);
  };
  for (const std::uint32_t column : plan_.pool.outcome) copy(column);
  if (plan_.pool.fault) copy(*plan_.pool.fault);
}

// Starts a worker in the place of a dead one. If that can't be, its jobs hear of it.
void ProcessPool::start_again(std::uint32_t worker) {
  if (!failed_.empty() || closed_) return;
  try {
    spawn(worker);
  } catch (const Error& error) {
    workers_[worker].child.reset();
    workers_[worker].pushed = 0;
    mailbox(worker).pushed.store(0, std::memory_order_relaxed);
    const std::uint32_t first = layout_.first_env(worker);
    for (std::uint32_t env = first; env < first + layout_.envs_of(worker); ++env) {
      if (!known_[env].in_worker) continue;
      std::erase(flying_, env);
      known_[env].ended_by_crash = true;  // not another try
      env_died(env, error.what());
    }
  }
}

// ---- workers that hang --------------------------------------------------------------------------

void ProcessPool::kill_late(Clock::time_point now) {
  const auto& step = processes_.step_timeout;
  const auto& reset = processes_.reset_timeout;
  if (!step && !reset) return;
  for (std::uint32_t i = 0; i < workers_.size(); ++i) {
    const WorkerState& state = workers_[i];
    if (!state.child || state.child->dead()) continue;
    const std::uint64_t at_work = mailbox(i).at_work.load(std::memory_order_relaxed);
    const auto work = static_cast<Work>(at_work % 8);
    const Clock::time_point since{std::chrono::nanoseconds(at_work / 8)};
    const auto kill = [&](const char* what, const char* name, std::chrono::nanoseconds limit) {
      state.child->kill(std::string(what) + " took longer than " + name + "=" + seconds(limit));
    };
    if (work == Work::kNone) {
      // Not yet at what it was given: it starts, waits for a CPU, or was stopped.
      const auto limit = std::max(step.value_or(0s), reset.value_or(0s)) + kPatience;
      const bool waits =
          std::ranges::any_of(flying_, [&](std::uint32_t env) { return worker_of(env) == i; });
      if ((waits || !state.was_ready) && now - std::max(state.started, state.given) > limit) {
        kill("what it was given", "the timeouts and 10 s", limit);
      }
    } else if (work == Work::kStep && step) {
      const bool resets_too = plan_.settings.autoreset == Autoreset::kSameStep;
      const auto limit = *step + (resets_too ? reset.value_or(0s) : 0s);
      if (now - since > limit) kill("a step", "step_timeout", *step);
    } else if (work == Work::kSweep && step) {
      const auto limit = *step + reset.value_or(0s);
      if (now - since > limit * layout_.envs_of(i))
        kill("a step of all its envs", "step_timeout", *step);
    } else if (work == Work::kVisit && step) {
      if (now - since > *step) kill("render, observe or a state", "step_timeout", *step);
    } else if ((work == Work::kReset || work == Work::kCreate) && reset) {
      if (now - since > *reset) kill("a reset", "reset_timeout", *reset);
    }
  }
}

}  // namespace envpool::runtime
