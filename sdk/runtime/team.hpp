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

// Where a row goes.
struct Destination {
  Batch* batch = nullptr;
  std::uint32_t row = 0;
};

// What is to be done with an env.
struct Job {
  enum class Kind { kCreate, kReset, kStep, kVisit } kind = Kind::kCreate;
  std::optional<std::uint64_t> seed;
  std::shared_ptr<const Options> at_reset;
  Destination to;  // if it is known already
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

  // options: one for all, or one for each env; they outlive us. actions: of all envs of the pool,
  // read at first + place. on_fault: called by whoever runs the env, for each fault that a row
  // tells of.
  Team(const Plan& plan, std::span<const std::shared_ptr<const Options>> options,
       std::uint32_t first, std::uint32_t size, const Actions& actions, OnFault on_fault);

  std::uint32_t size() const { return static_cast<std::uint32_t>(envs_.size()); }
  Env& env(std::uint32_t place) { return *envs_[place]; }
  const Env& env(std::uint32_t place) const { return *envs_[place]; }
  Job& job(std::uint32_t place) { return jobs_[place]; }
  const Job& job(std::uint32_t place) const { return jobs_[place]; }
  bool any_over() const;

  // Makes an env, before anything else is done with it. False: it failed, and its message says why.
  // Its memory, of the runtime and of the plugin, is first touched here: so a system with several
  // memories takes it from that of the CPU we are on.
  bool create(std::uint32_t place);
  // Ends the plugin's part of it, if it was made; what is known of it stays.
  void destroy(std::uint32_t place) noexcept {
    if (envs_[place]) envs_[place]->destroy();
  }
  void destroy() noexcept { envs_.clear(); }

  // Does a step or reset.
  void play(std::uint32_t place, const Job& job, Workspace& work);
  // Then writes its row, and notes what the row's receiver must hear of.
  void deliver(std::uint32_t place, Job::Kind kind, const Destination& to, Workspace& work);
  // For the next step_each of all envs begin .. end-1, in one call or several: those that begin
  // anew come first. A reset may cost as much as many steps, and what costs most must not be what
  // everybody waits for in the end.
  void order(std::uint32_t begin, std::uint32_t end);
  // A step of envs, whose rows are their places, one after the other: those that order() put at
  // begin .. end-1.
  void step_each(std::uint32_t begin, std::uint32_t end, Batch& batch, Workspace& work,
                 const std::atomic<bool>& stop);
  // The same by the plugin's step_many (Plan::batch). At most Workspace's most_in_range.
  void step_range(std::uint32_t begin, std::uint32_t end, Batch& batch, Workspace& work);

 private:
  void end_episode(Env& env, Workspace& work);
  void write_range(std::uint32_t begin, std::uint32_t end, Batch& batch);

  const Plan& plan_;
  const std::span<const std::shared_ptr<const Options>> options_;
  const std::uint32_t first_;
  const Actions& actions_;
  const OnFault on_fault_;
  Episodes episodes_;
  std::vector<std::int32_t> ids_;  // to users
  std::vector<std::unique_ptr<Env>> envs_;
  std::vector<Job> jobs_;
  std::vector<ep_status> statuses_;   // of a step by Plan::batch
  std::vector<std::uint32_t> order_;  // of places, for step_each
};

}  // namespace envpool::runtime
