// plan.hpp - all that the envs of a pool share and never change: task, spec, transforms, and the
// columns of a batch.
#pragma once

#include <envpool/ext/batch.h>

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "plugin.hpp"
#include "spec.hpp"
#include "transform.hpp"

namespace envpool::runtime {

enum class Autoreset { kNextStep, kSameStep, kDisabled };

// One array of a batch: [rows, shape...].
struct Column {
  std::string section;  // "obs", "info", "global", these with "_length", or "pool"
  std::string name;
  ep_dtype dtype;
  std::vector<std::int64_t> shape;  // of a row
  std::size_t row_bytes;
};

// Indices of the columns that the pool itself fills, behind all fields, as far as they are wanted.
struct PoolColumns {
  std::uint32_t first;  // of them
  std::optional<std::uint32_t> env_id, elapsed_step, reward, raw_reward, terminated, truncated,
      episode_return, fault;
  std::optional<std::uint32_t> alive, episode_over;  // multi-agent only
  // The same once more, as EnvPool's info has it: an array is its holder's to change, so nobody
  // gets one twice.
  std::optional<std::uint32_t> player_env_id, terminated_int32, time_limit;
  // Those that belong to the step, also where the rest of the row shows the next episode already.
  std::vector<std::uint32_t> outcome;
};

// Their names. kUsualColumns: all but those that are there once more.
inline constexpr std::array kPoolColumns{
    "env_id",        "elapsed_step",     "reward",    "raw_reward", "terminated",
    "truncated",     "episode_return",   "fault",     "alive",      "episode_over",
    "player_env_id", "terminated_int32", "time_limit"};
inline constexpr std::uint32_t kUsualColumns = (1u << 10) - 1;

// The bits of these names. Throws Error(kValue) naming one that is none of them.
std::uint32_t pool_columns_of(std::span<const std::string> names);

// Where the values of one plugin field go.
struct Target {
  std::uint32_t column;
  std::optional<std::uint32_t> length_column;
  std::optional<ImageTransform> image;  // set: the plugin writes raw frames elsewhere
  std::size_t raw_bytes = 0;            // of those, all agents'
};

// An image that is transformed and stacked for itself: a field's, or one agent's.
struct ImageTarget {
  std::size_t obs;     // the field
  std::size_t offset;  // in its column's row
};

// How the actions of one field lie in the pool's private memory: [num_envs] rows of row_bytes.
struct ActionColumn {
  std::size_t row_bytes;
  bool has_length;
  std::vector<std::byte> noop, fire;  // a row; fire empty: there is no such action
};

struct PlanSettings {
  Autoreset autoreset = Autoreset::kNextStep;
  std::int64_t max_episode_steps = -1;  // -1: the spec's, 0: none
  bool both_flags =
      false;  // a natural end on the limit step is truncated too, as Gymnasium's TimeLimit has it
  bool float32_reward = false;
  // Those of kPoolColumns that batches have, a bit each: what nobody looks at is not written.
  std::uint32_t pool_columns = kUsualColumns;
  Transforms transforms;
};

class Plan {
 public:
  // Throws Error(kValue) if a setting can't be met by the spec.
  Plan(const ep_task& task, const Host& host, Spec spec, PlanSettings settings);

  const ep_task& task;
  const Host& host;
  const Spec source;  // as described
  const Spec result;  // as users see it
  const PlanSettings settings;
  const std::uint32_t agents;
  const std::int64_t limit;  // 0: none

  std::vector<Column> columns;
  PoolColumns pool;
  std::vector<Target> obs, info, global;
  std::vector<ActionColumn> actions;
  std::optional<std::uint32_t> lives;  // index of the info field, if a transform needs it
  std::vector<ImageTarget> images;     // of the fields with a transform, in order
  std::size_t raw_frame_bytes = 0;     // of all image fields with a transform together
  std::size_t scratch_bytes = 0;       // the most that any of them needs
  bool observes_in_write = false;      // some field is written by the plugin straight into the row
  // Steps many envs at once; nullptr: the plugin offers it not, or the settings ask for more than
  // one plain step of each.
  const ep_batch* batch = nullptr;
  bool has_lengths = false;  // some field has lengths

 private:
  void add_columns(const std::vector<Field>& fields, const char* section,
                   std::vector<Target>& targets);
  void add_pool_columns();
  void add_actions();
  void find_lives();
  void find_batch();
};

// What a user sees of a task: the spec with its image fields transformed. Throws Error(kValue) if a
// setting is out of range or can't be met.
Spec transformed(const ep_task& task, const Spec& spec, const Transforms& transforms);

}  // namespace envpool::runtime
