// team.hpp - the envs that one process runs, and what running them means: steps and resets, one by
// one or a range at once, their rows and their faults. Who runs which env, and when, is for others
// to say.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "actions.hpp"
#include "batch.hpp"
#include "env.hpp"
#include "episodes.hpp"
#include "plan.hpp"

namespace envpool::runtime {

// What is to be done with an env.
struct Job {
  enum class Kind { kCreate, kReset, kStep, kVisit } kind = Kind::kCreate;
  std::optional<std::uint64_t> seed;
  std::shared_ptr<const Options> at_reset;
  Batch* batch = nullptr;  // where its row goes
  std::uint32_t row = 0;
};

// What a thread that runs envs has: working memory and figures.
struct Workspace {
  Workspace(const Plan& plan, std::uint32_t most_in_range);

  Scratch scratch;
  std::vector<const void*> action;
  std::vector<const std::uint32_t*> lengths;
  // For ep_rows: the envs of a range that step, and the columns. late: those that begin anew.
  std::vector<std::uint32_t> stepping, late;
  std::vector<void*> handles;
  std::vector<ep_column> action_columns, obs_columns, info_columns;
  // Autoreset::kSameStep: the last row of an episode, until it is known where it goes.
  std::vector<std::vector<std::byte>> ended;
  std::vector<std::byte*> ended_data;
  bool has_ended = false;
  std::string ended_fault;
  // Written by this thread only, read for statistics; relaxed.
  alignas(64) std::atomic<std::uint64_t> steps{0}, episodes{0};
};

// Envs are named by their place, 0 .. size() - 1; to users env `place` is `first + place`. An env
// and its job belong to one thread at a time.
class Team {
 public:
  using OnFault = std::function<void(std::uint32_t env, const std::string& message)>;

  // options: one for all, or one for each env. actions: of all envs of the pool, read at
  // first + place. on_fault: called by whoever runs the env, for each fault that a row tells of.
  Team(const Plan& plan, std::span<const std::shared_ptr<const Options>> options,
       std::uint32_t first, std::uint32_t size, const Actions& actions, OnFault on_fault);

  std::uint32_t size() const { return static_cast<std::uint32_t>(envs_.size()); }
  Env& env(std::uint32_t place) { return *envs_[place]; }
  const Env& env(std::uint32_t place) const { return *envs_[place]; }
  Job& job(std::uint32_t place) { return jobs_[place]; }
  const Job& job(std::uint32_t place) const { return jobs_[place]; }
  bool any_over() const;
  void destroy() noexcept { envs_.clear(); }

  // Does the job's step or reset.
  void play(std::uint32_t place, Workspace& work);
  // Then writes its row, and notes what the row's receiver must hear of.
  void deliver(std::uint32_t place, Workspace& work);
  // A step of envs begin .. end-1, whose rows are their places: one after the other.
  void step_each(std::uint32_t begin, std::uint32_t end, Batch& batch, Workspace& work,
                 const std::atomic<bool>& stop);
  // The same by the plugin's step_many (Plan::batch). At most Workspace's most_in_range.
  void step_range(std::uint32_t begin, std::uint32_t end, Batch& batch, Workspace& work);

 private:
  void set_step(std::uint32_t place, Batch& batch);
  void end_episode(Env& env, Workspace& work);
  void write_range(std::uint32_t begin, std::uint32_t end, Batch& batch);

  const Plan& plan_;
  const std::uint32_t first_;
  const Actions& actions_;
  const OnFault on_fault_;
  Episodes episodes_;
  std::vector<std::int32_t> ids_;  // to users
  std::vector<std::unique_ptr<Env>> envs_;
  std::vector<Job> jobs_;
  std::vector<ep_status> statuses_;  // of a step by Plan::batch
};

}  // namespace envpool::runtime
