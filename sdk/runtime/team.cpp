// team.cpp - see team.hpp.
#include "team.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>
#include <utility>

namespace envpool::runtime {
namespace {

// One thread writes it: no read-modify-write needed.
void add(std::atomic<std::uint64_t>& counter, std::uint64_t more) {
  counter.store(counter.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);
}

}  // namespace

Workspace::Workspace(const Plan& plan, std::uint32_t most_in_range)
    : scratch(plan), action(plan.actions.size()), lengths(plan.actions.size()) {
  if (plan.batch) {
    stepping.resize(most_in_range);
    late.resize(most_in_range);
    handles.resize(most_in_range);
    action_columns.resize(plan.actions.size());
    obs_columns.resize(plan.obs.size());
    info_columns.resize(plan.info.size());
  }
  if (plan.settings.autoreset != Autoreset::kSameStep) return;
  for (const Column& column : plan.columns) ended.emplace_back(column.row_bytes);
  for (auto& row : ended) ended_data.push_back(row.data());
}

Team::Team(const Plan& plan, std::span<const std::shared_ptr<const Options>> options,
           std::uint32_t first, std::uint32_t size, const Actions& actions, OnFault on_fault)
    : plan_(plan),
      options_(options),
      first_(first),
      actions_(actions),
      on_fault_(std::move(on_fault)),
      episodes_(size, plan.agents),
      ids_(size),
      envs_(size),
      jobs_(size),
      statuses_(plan.batch ? size : 0),
      order_(plan.batch ? 0 : size) {
  std::iota(ids_.begin(), ids_.end(), static_cast<std::int32_t>(first));
  std::iota(order_.begin(), order_.end(), 0u);
}

bool Team::create(std::uint32_t place) {
  envs_[place] = std::make_unique<Env>(
      plan_, first_ + place, options_[options_.size() == 1 ? 0 : place], episodes_, place);
  return envs_[place]->create();
}

bool Team::any_over() const { return std::ranges::find(episodes_.over, 1) != episodes_.over.end(); }

void Team::order(std::uint32_t begin, std::uint32_t end) {
  std::uint32_t at = begin;
  for (const bool over : {true, false}) {
    for (std::uint32_t place = begin; place < end; ++place) {
      if ((episodes_.over[place] != 0) == over) order_[at++] = place;
    }
  }
}

void Team::step_each(std::uint32_t begin, std::uint32_t end, Batch& batch, Workspace& work,
                     const std::atomic<bool>& stop) {
  Job step;
  step.kind = Job::Kind::kStep;
  for (std::uint32_t at = begin; at < end; ++at) {
    // Acquire: pairs with the release of who stops us. What is in flight then is dropped.
    if (stop.load(std::memory_order_acquire)) return;
    const std::uint32_t place = order_[at];
    play(place, step, work);
    deliver(place, Job::Kind::kStep, {&batch, place}, work);
  }
}

// The same by the plugin's step_many. Nothing is done env by env but for those that begin anew, end
// in kSameStep, or fail.
void Team::step_range(std::uint32_t begin, std::uint32_t end, Batch& batch, Workspace& work) {
  std::uint32_t count = 0, late = 0;
  for (std::uint32_t place = begin; place < end; ++place) {
    if (episodes_.over[place]) {
      work.late[late++] = place;
      envs_[place]->prefetch();
    } else {
      work.handles[count] = episodes_.handle[place];
      work.stepping[count++] = place;
    }
  }
  const auto aim = [&](const std::vector<Target>& targets, std::vector<ep_column>& columns) {
    for (std::size_t i = 0; i < targets.size(); ++i) {
      const std::uint32_t column = targets[i].column;
      columns[i] = {batch.columns.data[column], plan_.columns[column].row_bytes};
    }
  };
  aim(plan_.obs, work.obs_columns);
  aim(plan_.info, work.info_columns);
  for (std::size_t i = 0; i < plan_.actions.size(); ++i) {
    work.action_columns[i] = {actions_.rows(i) + first_ * plan_.actions[i].row_bytes,
                              plan_.actions[i].row_bytes};
  }
  const ep_rows rows{sizeof rows,
                     count,
                     work.handles.data(),
                     work.stepping.data(),
                     work.stepping.data(),
                     work.action_columns.data(),
                     work.obs_columns.data(),
                     work.info_columns.data(),
                     episodes_.reward.data(),
                     episodes_.terminated.data(),
                     episodes_.truncated.data(),
                     statuses_.data()};
  const bool failed = count > 0 && plan_.batch->step_many(&rows) != EP_OK;
  write_range(begin, end, batch);

  add(work.steps, count);
  for (std::uint32_t i = 0; i < late; ++i) {
    const std::uint32_t place = work.late[i];
    work.has_ended = false;
    envs_[place]->reset(std::nullopt, nullptr, work.scratch);
    deliver(place, Job::Kind::kStep, {&batch, place}, work);
  }
  const bool same_step = plan_.settings.autoreset == Autoreset::kSameStep;
  std::uint32_t ended = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t place = work.stepping[i];
    if (failed && statuses_[place] != EP_OK) envs_[place]->step_failed(statuses_[place]);
    if (!episodes_.over[place]) continue;
    ++ended;
    if (!same_step && !envs_[place]->fault()) continue;
    work.has_ended = false;
    if (same_step) end_episode(*envs_[place], work);
    deliver(place, Job::Kind::kStep, {&batch, place}, work);
  }
  add(work.episodes, ended);
}

// What the pool adds to a step of each env: episodes, time limit, its own columns. Those that did
// not step are written over afterwards. Plain loops over arrays that don't overlap: compilers make
// vectors of them.
void Team::write_range(std::uint32_t begin, std::uint32_t end, Batch& batch) {
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

  using Index = std::optional<std::uint32_t>;  // nothing: nobody wants the column
  const auto column = [&]<class T>(const Index& index, T) {
    return reinterpret_cast<T*>(batch.columns.data[*index]) + begin;
  };
  const auto copy = [&]<class T>(const Index& index, const T* from) {
    if (index) std::memcpy(column(index, T{}), from, count * sizeof(T));
  };
  const PoolColumns& to = plan_.pool;
  copy(to.env_id, ids_.data() + begin);
  copy(to.player_env_id, ids_.data() + begin);
  copy(to.elapsed_step, elapsed);
  copy(to.terminated, terminated);
  copy(to.truncated, truncated);
  copy(to.time_limit, truncated);
  copy(to.episode_return, returned);
  if (to.fault) std::memset(column(to.fault, std::uint8_t{}), 0, count);
  if (to.terminated_int32) {
    std::int32_t* __restrict out = column(to.terminated_int32, std::int32_t{});
    for (std::size_t i = 0; i < count; ++i) out[i] = terminated[i];
  }
  const auto write_rewards = [&]<class T>(const Index& index, T, bool clip) {
    if (!index) return;
    T* __restrict out = column(index, T{});
    if (clip) {
      for (std::size_t i = 0; i < count; ++i) {
        out[i] = static_cast<T>((reward[i] > 0) - (reward[i] < 0));
      }
    } else {
      for (std::size_t i = 0; i < count; ++i) out[i] = static_cast<T>(reward[i]);
    }
  };
  write_rewards(to.raw_reward, float{}, false);
  if (settings.float32_reward) {
    write_rewards(to.reward, float{}, settings.transforms.reward_clip);
  } else {
    write_rewards(to.reward, double{}, settings.transforms.reward_clip);
  }
}

void Team::play(std::uint32_t place, const Job& job, Workspace& work) {
  Env& env = *envs_[place];
  work.has_ended = false;
  if (job.kind == Job::Kind::kReset) return env.reset(job.seed, job.at_reset.get(), work.scratch);
  if (env.over()) return env.reset(std::nullopt, nullptr, work.scratch);
  actions_.point(first_ + place, work.action, work.lengths);
  env.step(work.action, work.lengths, work.scratch);
  add(work.steps, 1);
  if (!env.over()) return;
  add(work.episodes, 1);
  end_episode(env, work);
}

void Team::end_episode(Env& env, Workspace& work) {
  if (plan_.settings.autoreset != Autoreset::kSameStep) return;
  work.has_ended = true;
  env.write({work.ended_data, 0}, work.scratch);
  work.ended_fault = env.fault() ? env.message() : "";  // of the step, or of this write
  env.reset(std::nullopt, nullptr, work.scratch);
}

// Writes the row, and notes what its receiver must hear of.
void Team::deliver(std::uint32_t place, Job::Kind kind, const Destination& to, Workspace& work) {
  Env& env = *envs_[place];
  const Row row = to.batch->row(to.row);
  const bool was_over = env.over();
  env.write(row, work.scratch);
  if (kind == Job::Kind::kStep && env.over() && !was_over && !work.has_ended) {
    add(work.episodes, 1);
    end_episode(env, work);  // it could not be observed
    if (work.has_ended) env.write(row, work.scratch);
  }
  const auto note = [&](const std::string& message) {
    to.batch->add_fault(ids_[place], message);
    on_fault_(first_ + place, message);
  };
  if (work.has_ended) {
    const auto copy = [&](const Row& into, std::uint32_t column) {
      std::memcpy(into.at(plan_, column), work.ended_data[column], plan_.columns[column].row_bytes);
    };
    for (const std::uint32_t column : plan_.pool.outcome) copy(row, column);
    const Row final_row = to.batch->final_row(to.row);
    for (std::uint32_t column = 0; column < plan_.columns.size(); ++column) copy(final_row, column);
    if (!work.ended_fault.empty()) {
      if (plan_.pool.fault) copy(row, *plan_.pool.fault);
      note(work.ended_fault);
    }
  }
  if (!env.fault()) return;
  if (kind == Job::Kind::kReset && !env.played()) {
    to.batch->add_failure(env.message());
  } else {
    note(env.message());
  }
}

}  // namespace envpool::runtime
