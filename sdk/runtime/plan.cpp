// plan.cpp - see plan.hpp.
#include "plan.hpp"

#include <algorithm>
#include <cstring>

#include "error.hpp"

namespace envpool::runtime {
namespace {

std::vector<std::int64_t> row_shape(const Field& field, std::uint32_t max_agents) {
  std::vector<std::int64_t> shape = field.shape;
  if (field.per_agent()) shape.insert(shape.begin(), max_agents);
  return shape;
}

template <class T>
void fill(std::vector<std::byte>& row, const std::vector<std::int64_t>& values) {
  for (std::size_t i = 0; i < row.size() / sizeof(T); ++i) {
    const T value =
        static_cast<T>(values.empty() ? 0 : values[values.size() == 1 ? 0 : i % values.size()]);
    std::memcpy(row.data() + i * sizeof(T), &value, sizeof(T));
  }
}

void fill_integers(std::vector<std::byte>& row, ep_dtype dtype,
                   const std::vector<std::int64_t>& values) {
  switch (bytes_of(dtype)) {
    case 1:
      return fill<std::uint8_t>(row, values);
    case 2:
      return fill<std::uint16_t>(row, values);
    case 4:
      return fill<std::uint32_t>(row, values);
    default:
      return fill<std::uint64_t>(row, values);
  }
}

// The value that a label stands for, if it is there.
std::optional<std::int64_t> labelled(const Field& field, const char* label) {
  const auto found = std::find(field.labels.begin(), field.labels.end(), label);
  if (found == field.labels.end()) return std::nullopt;
  return (found - field.labels.begin()) + (field.start.empty() ? 0 : field.start[0]);
}

void apply(const Transforms& transforms, Spec& spec) {
  transforms.check();
  const bool has_image = std::any_of(spec.obs.begin(), spec.obs.end(),
                                     [](const Field& field) { return field.layout != EP_PLAIN; });
  if (const char* setting = transforms.image_setting(); setting && !has_image) {
    throw Error(ErrorKind::kValue,
                std::string(setting) + " needs an image field, and this task has none");
  }
  for (Field& field : spec.obs) {
    if (const auto image = ImageTransform::make(field, transforms)) field = image->result();
  }
}

// 0: there is no such column.
std::uint32_t bit_of(const std::string& name) {
  const auto* found = std::find(kPoolColumns.begin(), kPoolColumns.end(), name);
  return found == kPoolColumns.end() ? 0 : 1u << (found - kPoolColumns.begin());
}

}  // namespace

std::uint32_t pool_columns_of(std::span<const std::string> names) {
  std::uint32_t bits = 0;
  for (const std::string& name : names) {
    const std::uint32_t bit = bit_of(name);
    if (bit == 0) {
      std::string all;
      for (const char* one : kPoolColumns) all += (all.empty() ? "" : ", ") + std::string(one);
      throw Error(ErrorKind::kValue, "pool_columns: '" + name + "', allowed: " + all);
    }
    bits |= bit;
  }
  return bits;
}

Spec transformed(const ep_task& task, const Spec& spec, const Transforms& transforms) {
  Spec result = spec;
  within(task.id, [&] { apply(transforms, result); });
  return result;
}

Plan::Plan(const ep_task& task_, const Host& host_, Spec spec, PlanSettings settings_)
    : task(task_),
      host(host_),
      source(std::move(spec)),
      result(transformed(task_, source, settings_.transforms)),
      settings(settings_),
      agents(source.max_agents),
      limit(settings.max_episode_steps < 0 ? source.max_episode_steps
                                           : settings.max_episode_steps) {
  add_columns(source.obs, "obs", obs);
  add_columns(source.info, "info", info);
  add_columns(source.global, "global", global);
  add_pool_columns();
  add_actions();
  find_lives();
  find_batch();
}

void Plan::add_columns(const std::vector<Field>& fields, const char* section,
                       std::vector<Target>& targets) {
  for (const Field& field : fields) {
    Target target{static_cast<std::uint32_t>(columns.size()), std::nullopt, std::nullopt, 0};
    if (field.role == EP_OBS) target.image = ImageTransform::make(field, settings.transforms);
    const Field& shown = target.image ? target.image->result() : field;
    columns.push_back(
        {section, field.name, shown.dtype, row_shape(shown, agents), shown.row_bytes(agents)});
    if (target.image) {
      target.raw_bytes = field.row_bytes(agents);
      const std::size_t one = target.image->stack_num() * target.image->frame_bytes();
      for (std::size_t i = 0; i < field.agents(agents); ++i)
        images.push_back({targets.size(), i * one});
      raw_frame_bytes += target.raw_bytes;
      scratch_bytes = std::max(scratch_bytes, target.image->scratch_bytes());
    }
    observes_in_write = observes_in_write || !target.image;
    has_lengths = has_lengths || field.has_length();
    if (field.has_length()) {
      target.length_column = static_cast<std::uint32_t>(columns.size());
      std::vector<std::int64_t> shape;
      if (field.per_agent()) shape.push_back(agents);
      columns.push_back({std::string(section) + "_length", field.name, EP_UINT32, shape,
                         field.agents(agents) * sizeof(std::uint32_t)});
    }
    targets.push_back(std::move(target));
  }
}

void Plan::add_pool_columns() {
  const auto add = [&](const char* name, ep_dtype dtype, bool per_agent) {
    if (!(settings.pool_columns & bit_of(name))) return std::optional<std::uint32_t>{};
    const bool axis = per_agent && agents > 1;
    columns.push_back({"pool", name, dtype,
                       axis ? std::vector<std::int64_t>{agents} : std::vector<std::int64_t>{},
                       bytes_of(dtype) * (axis ? agents : 1)});
    return std::optional(static_cast<std::uint32_t>(columns.size() - 1));
  };
  pool.first = static_cast<std::uint32_t>(columns.size());
  pool.env_id = add("env_id", EP_INT32, false);
  pool.elapsed_step = add("elapsed_step", EP_INT32, false);
  pool.reward = add("reward", settings.float32_reward ? EP_FLOAT32 : EP_FLOAT64, true);
  pool.raw_reward = add("raw_reward", EP_FLOAT32, true);
  pool.terminated = add("terminated", EP_BOOL, true);
  pool.truncated = add("truncated", EP_BOOL, true);
  pool.episode_return = add("episode_return", EP_FLOAT64, true);
  pool.fault = add("fault", EP_BOOL, false);
  pool.player_env_id = add("player_env_id", EP_INT32, true);
  pool.terminated_int32 = add("terminated_int32", EP_INT32, true);
  pool.time_limit = add("time_limit", EP_BOOL, true);
  if (agents > 1) {
    pool.alive = add("alive", EP_BOOL, true);
    pool.episode_over = add("episode_over", EP_BOOL, false);
  }
  for (const auto& column : {pool.reward, pool.raw_reward, pool.terminated, pool.truncated,
                             pool.terminated_int32, pool.time_limit, pool.episode_over}) {
    if (column) pool.outcome.push_back(*column);
  }
}

void Plan::add_actions() {
  const Transforms& t = settings.transforms;
  bool has_fire = false;
  for (const Field& field : source.action) {
    ActionColumn column{field.row_bytes(agents), field.has_length(), {}, {}};
    // No operation: the value labelled so, else the first of a discrete field, else zeros.
    column.noop.resize(column.row_bytes);
    if (field.kind == EP_DISCRETE) {
      const auto noop = labelled(field, "NOOP");
      fill_integers(column.noop, field.dtype, noop ? std::vector{*noop} : field.start);
      if (const auto fire = labelled(field, "FIRE")) {
        column.fire.resize(column.row_bytes);
        fill_integers(column.fire, field.dtype, {*fire});
        has_fire = true;
      }
    }
    actions.push_back(std::move(column));
  }
  if (!has_fire || !t.use_fire_reset) return;
  for (ActionColumn& column : actions) {
    if (column.fire.empty()) column.fire = column.noop;
  }
}

void Plan::find_lives() {
  if (!settings.transforms.episodic_life) return;
  for (std::uint32_t i = 0; i < source.info.size(); ++i) {
    const Field& field = source.info[i];
    if (field.meaning == "lives" && field.dtype == EP_INT32 &&
        field.row_bytes(agents) == sizeof(std::int32_t)) {
      lives = i;
      return;
    }
  }
  throw Error(
      ErrorKind::kValue,
      std::string(task.id) +
          ": episodic_life=True needs an info field that counts lives, and this task has none");
}

void Plan::find_batch() {
  const Transforms& t = settings.transforms;
  const bool plain = t.frame_skip == 1 && !t.episodic_life && raw_frame_bytes == 0;
  if (!plain || task.sharing != EP_FREE || agents > 1 || has_lengths || !global.empty()) return;
  const bool action_lengths = std::any_of(actions.begin(), actions.end(),
                                          [](const ActionColumn& a) { return a.has_length; });
  if (!action_lengths) batch = extension<ep_batch>(task, EP_EXT_BATCH, sizeof(ep_batch));
}

}  // namespace envpool::runtime
