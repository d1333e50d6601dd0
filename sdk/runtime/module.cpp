// module.cpp - the runtime in Python: envpool_sdk._native. _native.pyi beside the Python sources is
// its documentation.
#include <envpool/ext/agents.h>
#include <envpool/ext/batch.h>
#include <envpool/ext/render.h>
#include <envpool/ext/state.h>
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "bare_loop.hpp"
#include "cpus.hpp"
#include "floats.hpp"
#include "module_numpy.hpp"
#include "pool.hpp"
#include "xla.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace envpool::runtime;

namespace {

// ---- the GIL ------------------------------------------------------------------------------------

// As nanobind's guards, but for a daemon thread that comes back after the interpreter's end:
// CPython then ends the thread by unwinding it, which no destructor survives. Such a thread waits
// here for the end of the process.
template <class Take>
auto take_gil(Take take) {
  try {
    return take();
  } catch (...) {
    for (;;) pause();
  }
}

class NoGil {
 public:
  NoGil() : state_(PyEval_SaveThread()) {}
  ~NoGil() {
    take_gil([this] { PyEval_RestoreThread(state_); });
  }
  NoGil(const NoGil&) = delete;
  NoGil& operator=(const NoGil&) = delete;

 private:
  PyThreadState* state_;
};

class Gil {
 public:
  Gil() : state_(take_gil(PyGILState_Ensure)) {}
  ~Gil() { PyGILState_Release(state_); }
  Gil(const Gil&) = delete;
  Gil& operator=(const Gil&) = delete;

 private:
  PyGILState_STATE state_;
};

// ---- errors -------------------------------------------------------------------------------------

struct Exceptions {
  PyObject *plugin, *closed, *env;
} exceptions;

PyObject* exception_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kValue:
      return PyExc_ValueError;
    case ErrorKind::kType:
      return PyExc_TypeError;
    case ErrorKind::kRuntime:
      return PyExc_RuntimeError;
    case ErrorKind::kTimeout:
      return PyExc_TimeoutError;
    case ErrorKind::kMemory:
      return PyExc_MemoryError;
    case ErrorKind::kPlugin:
      return exceptions.plugin;
    case ErrorKind::kClosed:
      return exceptions.closed;
    case ErrorKind::kEnv:
      return exceptions.env;
  }
  return PyExc_RuntimeError;
}

PyObject* add_exception(nb::module_& m, const char* name, PyObject* base, const char* doc) {
  PyObject* type =
      PyErr_NewExceptionWithDoc((std::string("envpool_sdk.") + name).c_str(), doc, base, nullptr);
  if (!type) nb::raise_python_error();
  m.attr(name) = nb::steal(type);
  return type;  // the module's reference keeps it alive
}

// Lets Ctrl-C through while a call waits without the GIL.
void check_signals() {
  const Gil gil;
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

// ---- arrays -------------------------------------------------------------------------------------

// A NumPy array of its own with these bytes.
nb::object array_copy(const void* data, std::size_t bytes, const std::vector<std::size_t>& shape,
                      ep_dtype dtype) {
  auto copy = std::make_unique<std::byte[]>(std::max<std::size_t>(bytes, 1));
  if (bytes != 0) std::memcpy(copy.get(), data, bytes);  // an empty default may be at nullptr
  std::byte* mine = copy.get();
  nb::capsule owner(copy.release(), [](void* p) noexcept { delete[] static_cast<std::byte*>(p); });
  return numpy_array(mine, shape, dtype, std::move(owner));
}

// A NumPy array over a block, which goes back to its store when the array and all views of it are
// gone.
nb::object array_of(Block*& block, const Column& column, std::size_t rows) {
  std::array<std::size_t, kMostDims> shape{rows};
  std::ranges::copy(column.shape, shape.begin() + 1);
  nb::capsule owner(block, [](void* p) noexcept {
    auto* returned = static_cast<Block*>(p);
    returned->store->release(returned);
  });
  const Block* taken = std::exchange(block, nullptr);
  return numpy_array(taken->data, std::span(shape).first(1 + column.shape.size()), column.dtype,
                     std::move(owner));
}

// ---- descriptions -------------------------------------------------------------------------------

const char* text(const char* s) { return s ? s : ""; }

const char* name_of_kind(ep_kind kind) {
  switch (kind) {
    case EP_BOX:
      return "box";
    case EP_DISCRETE:
      return "discrete";
    case EP_MULTI_BINARY:
      return "multi_binary";
    default:
      return "text";
  }
}

const char* name_of_layout(ep_layout layout) {
  switch (layout) {
    case EP_HW:
      return "hw";
    case EP_HWC:
      return "hwc";
    case EP_CHW:
      return "chw";
    case EP_INDEXED:
      return "indexed";
    default:
      return "plain";
  }
}

const char* name_of_type(ep_type type) {
  switch (type) {
    case EP_T_BOOL:
      return "bool";
    case EP_T_INT:
      return "int";
    case EP_T_FLOAT:
      return "float";
    case EP_T_STRING:
      return "string";
    case EP_T_PATH:
      return "path";
    case EP_T_ARRAY:
      return "array";
    default:
      return "json";
  }
}

nb::dict field_dict(const Field& field, std::uint32_t max_agents) {
  std::vector<std::size_t> bound_shape(field.shape.begin(), field.shape.end());
  const auto bound = [&](const void* data, std::size_t bytes, ep_dtype dtype) -> nb::object {
    if (bytes == 0) return nb::none();
    const bool one = bytes == bytes_of(dtype);
    return array_copy(data, bytes, one ? std::vector<std::size_t>{} : bound_shape, dtype);
  };
  nb::list shape;
  if (field.per_agent()) shape.append(max_agents);
  for (const std::int64_t dim : field.shape) shape.append(dim);
  nb::list labels;
  for (const std::string& label : field.labels) labels.append(label);

  nb::dict dict;
  dict["name"] = field.name;
  dict["doc"] = field.doc;
  dict["unit"] = field.unit;
  dict["meaning"] = field.meaning;
  dict["kind"] = name_of_kind(field.kind);
  dict["dtype"] = name_of(field.dtype);
  dict["shape"] = nb::tuple(shape);
  dict["low"] = bound(field.low.data(), field.low.size(), field.dtype);
  dict["high"] = bound(field.high.data(), field.high.size(), field.dtype);
  dict["n"] = bound(field.n.data(), field.n.size() * sizeof(std::int64_t), EP_INT64);
  dict["start"] = bound(field.start.data(), field.start.size() * sizeof(std::int64_t), EP_INT64);
  dict["per_agent"] = field.per_agent();
  dict["ragged"] = (field.flags & EP_FIELD_RAGGED) != 0;
  dict["volatile"] = (field.flags & EP_FIELD_VOLATILE) != 0;
  dict["group"] = field.group;
  dict["layout"] = name_of_layout(field.layout);
  dict["labels"] = nb::tuple(labels);
  return dict;
}

nb::dict spec_dict(const ep_task& task, const Spec& spec) {
  const auto fields = [&](const std::vector<Field>& all) {
    nb::list list;
    for (const Field& field : all) list.append(field_dict(field, spec.max_agents));
    return list;
  };
  nb::list agent_names, group_names;
  if (const auto* agents = extension<ep_agents>(task, EP_EXT_AGENTS, sizeof(ep_agents))) {
    for (std::uint32_t i = 0; i < spec.max_agents; ++i) agent_names.append(text(agents->name(i)));
    for (std::uint32_t i = 0; i < agents->group_count; ++i)
      group_names.append(text(agents->group(i)));
  }
  nb::dict dict;
  dict["obs"] = fields(spec.obs);
  dict["action"] = fields(spec.action);
  dict["info"] = fields(spec.info);
  dict["globals"] = fields(spec.global);
  dict["max_agents"] = spec.max_agents;
  dict["max_episode_steps"] = spec.max_episode_steps;
  dict["reward_threshold"] = spec.reward_threshold;
  dict["fps"] = spec.fps;
  dict["agent_names"] = agent_names;
  dict["group_names"] = group_names;
  return dict;
}

nb::object value_object(const ep_value& value) {
  switch (value.type) {
    case EP_T_BOOL:
      return nb::bool_(value.i != 0);
    case EP_T_INT:
      return nb::int_(value.i);
    case EP_T_FLOAT:
      return nb::float_(value.f);
    case EP_T_ARRAY:
      return array_copy(value.data, value.count * bytes_of(value.dtype),
                        {static_cast<std::size_t>(value.count)}, value.dtype);
    default:
      return nb::str(text(value.s));
  }
}

nb::dict option_dict(const ep_option& option) {
  const auto bound = [](const ep_value* value) {
    return value ? value_object(*value) : nb::none();
  };
  nb::list choices;
  for (std::uint32_t i = 0; i < option.choice_count; ++i)
    choices.append(value_object(option.choices[i]));
  nb::dict dict;
  dict["name"] = option.name;
  dict["doc"] = text(option.doc);
  dict["unit"] = text(option.unit);
  dict["type"] = name_of_type(option.def.type);
  dict["dtype"] = option.def.type == EP_T_ARRAY ? name_of(option.def.dtype) : "";
  dict["default"] = value_object(option.def);
  dict["min"] = bound(option.min);
  dict["max"] = bound(option.max);
  dict["choices"] = choices;
  dict["required"] = (option.flags & EP_OPTION_REQUIRED) != 0;
  dict["at_reset"] = (option.flags & EP_OPTION_AT_RESET) != 0;
  dict["shapes_spec"] = (option.flags & EP_OPTION_SHAPES_SPEC) != 0;
  return dict;
}

nb::dict task_dict(const ep_task& task) {
  static constexpr const char* kSharing[] = {"one_per_process", "thread_bound", "free"};
  static constexpr std::pair<std::uint64_t, const char*> kFlags[] = {
      {EP_TASK_MAIN_THREAD, "main_thread"},
      {EP_TASK_OWN_THREADS, "own_threads"},
      {EP_TASK_NONDETERMINISTIC, "nondeterministic"},
      {EP_TASK_MAY_BLOCK, "may_block"},
      {EP_TASK_STICKY, "sticky"}};
  nb::list options, flags, extensions;
  for (std::uint32_t i = 0; i < task.option_count; ++i)
    options.append(option_dict(*task.options[i]));
  for (const auto& [bit, name] : kFlags) {
    if (task.flags & bit) flags.append(name);
  }
  for (const char* id : {EP_EXT_RENDER, EP_EXT_STATE, EP_EXT_BATCH, EP_EXT_AGENTS}) {
    if (task.extension && task.extension(id)) extensions.append(id);
  }
  nb::dict dict;
  dict["id"] = task.id;
  dict["doc"] = text(task.doc);
  dict["sharing"] = kSharing[task.sharing];
  dict["flags"] = flags;
  dict["options"] = options;
  dict["extensions"] = extensions;
  return dict;
}

// ---- options and settings -----------------------------------------------------------------------

const ep_option* find_option(const ep_task& task, const std::string& name) {
  for (std::uint32_t i = 0; i < task.option_count; ++i) {
    if (name == task.options[i]->name) return task.options[i];
  }
  return nullptr;
}

OptionValue option_value(const ep_option* option, const std::string& name, nb::handle value) {
  if (option && option->def.type == EP_T_ARRAY) {
    // NumPy does the conversion; it raises for what is no array of numbers.
    const nb::object array = nb::module_::import_("numpy").attr("ascontiguousarray")(
        value, "dtype"_a = name_of(option->def.dtype));
    const auto bytes = nb::cast<nb::bytes>(array.attr("tobytes")());
    const auto* data = reinterpret_cast<const std::byte*>(bytes.data());
    return OptionArray{option->def.dtype, std::vector<std::byte>(data, data + bytes.size())};
  }
  if (nb::isinstance<nb::bool_>(value)) return nb::cast<bool>(value);
  if (nb::isinstance<nb::str>(value)) return nb::cast<std::string>(value);
  if (nb::isinstance<nb::float_>(value)) return nb::cast<double>(value);
  if (nb::hasattr(value, "__fspath__"))
    return nb::cast<std::string>(nb::str(value.attr("__fspath__")()));
  if (nb::hasattr(value, "item") && !nb::isinstance<nb::int_>(value)) {
    return option_value(option, name, value.attr("item")());  // a NumPy scalar
  }
  if (nb::isinstance<nb::int_>(value)) {
    int overflow = 0;
    const long long number = PyLong_AsLongLongAndOverflow(value.ptr(), &overflow);
    if (overflow) {
      throw Error(ErrorKind::kValue, "option " + name + "=" +
                                         nb::cast<std::string>(nb::repr(value)) +
                                         " is out of range, allowed: integers of 64 bits");
    }
    return static_cast<std::int64_t>(number);
  }
  throw Error(ErrorKind::kType, "option " + name + ": a value of type " +
                                    nb::cast<std::string>(nb::str(value.type().attr("__name__"))) +
                                    " is not a bool, int, float, str or path");
}

std::vector<NamedOption> named_options(const ep_task& task, const nb::object& mapping) {
  std::vector<NamedOption> options;
  for (nb::handle key : mapping) {
    const std::string name = nb::cast<std::string>(key);
    within(task.id, [&] {
      options.push_back({name, option_value(find_option(task, name), name, mapping[key])});
    });
  }
  return options;
}

template <class T>
T choice(const std::string& name, const std::string& value,
         std::initializer_list<std::pair<const char*, T>> choices) {
  std::string all;
  for (const auto& [text_, result] : choices) {
    if (value == text_) return result;
    all += (all.empty() ? "'" : ", '") + std::string(text_) + "'";
  }
  throw Error(ErrorKind::kValue, name + "='" + value + "', allowed: " + all);
}

void read_transforms(const nb::object& mapping, Transforms& t) {
  for (nb::handle key : mapping) {
    const std::string name = nb::cast<std::string>(key);
    const nb::object value = mapping[key];
    const auto typed = [&]<class T>(T& to, const char* type) {
      // A bool is an int to Python, but no number of frames.
      const bool is_bool = nb::isinstance<nb::bool_>(value);
      if (is_bool != std::is_same_v<T, bool> || !nb::try_cast(value, to)) {
        throw Error(ErrorKind::kType,
                    name + "=" + nb::cast<std::string>(nb::repr(value)) + " is not " + type);
      }
    };
    const auto integer = [&](std::int64_t& to) { typed(to, "an int"); };
    const auto boolean = [&](bool& to) { typed(to, "a bool"); };
    const auto string = [&] {
      std::string s;
      typed(s, "a str");
      return s;
    };
    if (name == "frame_skip") {
      integer(t.frame_skip);
    } else if (name == "max_last_two") {
      boolean(t.max_last_two);
    } else if (name == "last_frame") {
      t.last_frame = choice<LastFrame>(name, string(),
                                       {{"true", LastFrame::kTrue}, {"stale", LastFrame::kStale}});
    } else if (name == "gray_scale") {
      boolean(t.gray_scale);
    } else if (name == "img_height") {
      integer(t.img_height);
    } else if (name == "img_width") {
      integer(t.img_width);
    } else if (name == "interpolation") {
      t.interpolation = choice<Interpolation>(
          name, string(), {{"area", Interpolation::kArea}, {"linear", Interpolation::kLinear}});
    } else if (name == "stack_num") {
      integer(t.stack_num);
    } else if (name == "stack_pad") {
      t.stack_pad = choice<StackPad>(name, string(),
                                     {{"first", StackPad::kFirst}, {"zero", StackPad::kZero}});
    } else if (name == "channels_last") {
      boolean(t.channels_last);
    } else if (name == "reward_clip") {
      boolean(t.reward_clip);
    } else if (name == "episodic_life") {
      boolean(t.episodic_life);
    } else if (name == "stop_on_life_loss") {
      boolean(t.stop_on_life_loss);
    } else if (name == "life_loss_at_zero") {
      boolean(t.life_loss_at_zero);
    } else if (name == "life_loss_reset") {
      t.life_loss_reset = choice<LifeLossReset>(
          name, string(), {{"continue", LifeLossReset::kContinue}, {"real", LifeLossReset::kReal}});
    } else if (name == "noop_min") {
      integer(t.noop_min);
    } else if (name == "noop_max") {
      integer(t.noop_max);
    } else if (name == "use_fire_reset") {
      boolean(t.use_fire_reset);
    } else if (name == "fire_order") {
      t.fire_order = choice<FireOrder>(name, string(),
                                       {{"first", FireOrder::kFirst}, {"last", FireOrder::kLast}});
    } else {
      throw Error(ErrorKind::kValue, "unknown transform " + name);
    }
  }
  t.check();
}

Transforms transforms_of(const ep_task& task, const nb::object& mapping) {
  Transforms t;
  within(task.id, [&] { read_transforms(mapping, t); });
  return t;
}

// ---- image kernels, for tests against OpenCV
// ------------------------------------------------------

using Pixels = nb::ndarray<const std::uint8_t, nb::ndim<3>, nb::c_contig, nb::device::cpu>;

Isa isa_of(const std::string& isa) {
  return choice<Isa>("isa", isa,
                     {{"best", best_isa()},
                      {"generic", Isa::kGeneric},
                      {"avx2", Isa::kAvx2},
                      {"avx512", Isa::kAvx512}});
}

nb::object resize(const Pixels& image, int height, int width, const std::string& interpolation,
                  const std::string& isa) {
  const Resizer resizer(static_cast<int>(image.shape(0)), static_cast<int>(image.shape(1)),
                        static_cast<int>(image.shape(2)), height, width,
                        choice<Interpolation>("interpolation", interpolation,
                                              {{"nearest", Interpolation::kNearest},
                                               {"linear", Interpolation::kLinear},
                                               {"area", Interpolation::kArea}}),
                        isa_of(isa));
  std::vector<std::uint8_t> out(resizer.dst_bytes());
  resizer.run(image.data(), out.data());
  return array_copy(
      out.data(), out.size(),
      {static_cast<std::size_t>(height), static_cast<std::size_t>(width), image.shape(2)},
      EP_UINT8);
}

nb::object gray(const Pixels& image, const std::string& isa) {
  if (image.shape(2) != 3) throw Error(ErrorKind::kValue, "gray: the image needs 3 channels");
  std::vector<std::uint8_t> out(image.size() / 3);
  gray_from_rgb(image.data(), out.data(), out.size(), isa_of(isa));
  return array_copy(out.data(), out.size(), {image.shape(0), image.shape(1)}, EP_UINT8);
}

// ---- plugins and pools --------------------------------------------------------------------------

class PyPlugin {
 public:
  PyPlugin(const std::string& path, const nb::object& assets) {
    Assets resolved;
    for (nb::handle key : assets) {
      resolved[nb::cast<std::string>(key)] = nb::cast<std::string>(nb::str(assets[key]));
    }
    const NoGil no_gil;
    plugin_ = &Plugin::load(path, std::move(resolved));
  }

  Plugin& get() const { return *plugin_; }
  const std::string& path() const { return plugin_->path(); }
  const ep_plugin& abi() const { return plugin_->abi(); }

  nb::dict tasks() const {
    nb::dict dict;
    for (const ep_task* task : plugin_->tasks()) dict[task->id] = task_dict(*task);
    return dict;
  }

  nb::dict describe_task(const std::string& id, const nb::object& options,
                         const nb::object& transforms) const {
    const ep_task& task = plugin_->task(id);
    const Options complete(task, named_options(task, options));
    return spec_dict(task, transformed(task, describe(task, plugin_->host(), complete),
                                       transforms_of(task, transforms)));
  }

 private:
  Plugin* plugin_;
};

using Ids =
    std::optional<nb::ndarray<const std::int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>>;
using Seeds =
    std::optional<nb::ndarray<const std::uint64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>>;

Pool::EnvIds span_of(const Ids& ids) {
  if (!ids) return std::nullopt;
  return std::span(ids->data(), ids->size());
}

// At least 0; a year is as good as for ever, and fits the clock.
std::chrono::nanoseconds nanoseconds_of(double seconds) {
  return std::chrono::nanoseconds(static_cast<std::int64_t>(std::clamp(seconds, 0.0, 3e7) * 1e9));
}

// The data of the next array, which must be [rows, shape of the field] in its dtype, or its
// lengths. A keeper is added for as long as the data is used.
const void* take(const Plan& plan, const nb::tuple& arrays, std::size_t& at, const Field& field,
                 std::size_t rows, bool lengths, std::vector<nb::object>& keepers) {
  const auto refuse = [&](const std::string& what) {
    throw Error(ErrorKind::kValue, std::string(plan.task.id) + ": action" +
                                       (field.name.empty() ? "" : " '" + field.name + "'") +
                                       (lengths ? " lengths" : "") + what);
  };
  if (at == arrays.size()) refuse(" is missing");
  const ep_dtype dtype = lengths ? EP_UINT32 : field.dtype;
  auto elements = elements_of(arrays[at++], dtype);
  if (!elements) refuse(std::string(" has the wrong dtype, allowed: ") + name_of(dtype));

  std::array<std::int64_t, kMostDims> wanted{static_cast<std::int64_t>(rows)};
  std::size_t dims = 1;
  if (field.per_agent()) wanted[dims++] = plan.agents;
  if (!lengths) {
    for (const std::int64_t dim : field.shape) wanted[dims++] = dim;
  }
  const auto shape = std::span(wanted).first(dims);
  if (!std::ranges::equal(elements->shape, shape)) {
    const auto join = [](const auto& all) {
      std::string s = "(";
      for (std::size_t i = 0; i < all.size(); ++i) {
        s += (i ? ", " : "") + std::to_string(all[i]);
      }
      return s + (all.size() == 1 ? ",)" : ")");
    };
    refuse(" has shape " + join(elements->shape) + ", allowed: " + join(shape));
  }
  keepers.push_back(std::move(elements->keeper));
  return elements->data;
}

// One array for each action field of the plan, followed by one of lengths where it has them. Valid
// as long as the keepers are.
std::vector<ActionRows> action_rows(const Plan& plan, const nb::tuple& arrays, std::size_t rows,
                                    std::vector<nb::object>& keepers) {
  const auto& fields = plan.source.action;
  std::vector<ActionRows> checked;
  checked.reserve(fields.size());
  keepers.reserve(arrays.size());
  std::size_t at = 0;
  for (const Field& field : fields) {
    ActionRows action{nullptr, nullptr};
    action.data = take(plan, arrays, at, field, rows, false, keepers);
    if (field.has_length()) {
      action.lengths =
          static_cast<const std::uint32_t*>(take(plan, arrays, at, field, rows, true, keepers));
    }
    checked.push_back(action);
  }
  if (at != arrays.size()) {
    throw Error(ErrorKind::kValue, std::string(plan.task.id) + ": " +
                                       std::to_string(arrays.size()) + " action arrays, expected " +
                                       std::to_string(at));
  }
  return checked;
}

class PyPool {
 public:
  PyPool(const PyPlugin& plugin, const std::string& task_id, const nb::object& options,
         std::int64_t num_envs, std::int64_t batch_size, std::int64_t num_threads,
         std::int64_t thread_affinity_offset, const std::string& autoreset,
         std::int64_t max_episode_steps, bool both_flags, const std::string& reward_dtype,
         std::int64_t max_faults, const nb::object& transforms, const std::string& isolation,
         const std::vector<std::string>& worker_command, const std::string& guest_library,
         std::int64_t envs_per_worker, std::optional<double> step_timeout,
         std::optional<double> reset_timeout,
         const std::optional<std::vector<std::string>>& pool_columns, bool copy)
      : task_(plugin.get().task(task_id)), in_place_(!copy) {
    PoolSettings settings;
    settings.num_envs = num_envs;
    settings.batch_size = batch_size;
    settings.num_threads = num_threads;
    settings.thread_affinity_offset = thread_affinity_offset;
    settings.plan.autoreset = choice<Autoreset>("autoreset", autoreset,
                                                {{"next_step", Autoreset::kNextStep},
                                                 {"same_step", Autoreset::kSameStep},
                                                 {"disabled", Autoreset::kDisabled}});
    settings.plan.max_episode_steps = max_episode_steps;
    settings.plan.both_flags = both_flags;
    settings.plan.float32_reward =
        choice<bool>("reward_dtype", reward_dtype, {{"float32", true}, {"float64", false}});
    if (max_faults < 0) {
      throw Error(ErrorKind::kValue,
                  "max_faults=" + std::to_string(max_faults) + ", allowed: 0 and more");
    }
    settings.max_faults = static_cast<std::uint64_t>(max_faults);
    settings.plan.transforms = transforms_of(task_, transforms);
    settings.isolation = choice<Isolation>("isolation", isolation,
                                           {{"auto", Isolation::kAuto},
                                            {"thread", Isolation::kThread},
                                            {"process", Isolation::kProcess}});
    settings.processes.command = worker_command;
    settings.processes.guest_library = guest_library;
    // With the GIL held, so that nobody changes it meanwhile.
    for (char** one = environ; *one; ++one) settings.processes.environment.emplace_back(*one);
    settings.processes.envs_per_worker = envs_per_worker;
    if (step_timeout) settings.processes.step_timeout = nanoseconds_of(*step_timeout);
    if (reset_timeout) settings.processes.reset_timeout = nanoseconds_of(*reset_timeout);
    if (pool_columns) settings.plan.pool_columns = pool_columns_of(*pool_columns);
    settings.in_place = in_place_;

    std::vector<std::shared_ptr<const Options>> complete;
    for (nb::handle one : options) {
      complete.push_back(std::make_shared<Options>(task_, named_options(task_, nb::borrow(one))));
    }
    if (complete.size() != 1 && static_cast<std::int64_t>(complete.size()) != num_envs) {
      throw Error(ErrorKind::kValue,
                  std::string(task_.id) + ": " + std::to_string(complete.size()) +
                      " sets of options for num_envs=" + std::to_string(num_envs));
    }
    const OrdinaryFloats ordinary;
    const NoGil no_gil;
    pool_ = Pool::make(plugin.get(), task_, std::move(complete), settings, check_signals);
  }

  ~PyPool() {
    bool closed = false;
    {
      const NoGil no_gil;
      closed = pool_ && pool_->close(nanoseconds_of(pool_->hung() ? 0 : 2));
      pool_.reset();
    }
    if (!closed) kept_.release();  // who hangs may still write there
  }

  nb::dict spec() const { return spec_dict(task_, pool_->plan().result); }

  nb::list columns() const {
    nb::list list;
    for (const Column& column : pool_->plan().columns)
      list.append(nb::make_tuple(column.section, column.name));
    return list;
  }

  void send(const nb::sequence& actions, const Ids& ids) {
    const OrdinaryFloats ordinary;
    const nb::tuple arrays(actions);
    const std::size_t rows = ids ? ids->size() : pool_->num_envs();
    std::vector<nb::object> keepers;  // of what is sent
    pool_->send(action_rows(pool_->plan(), arrays, rows, keepers), span_of(ids));
  }

  void check_actions(const nb::sequence& actions, const Ids& ids) const {
    const nb::tuple arrays(actions);
    const std::size_t rows = ids ? ids->size() : pool_->num_envs();
    std::vector<nb::object> keepers;
    pool_->check_actions(action_rows(pool_->plan(), arrays, rows, keepers), span_of(ids));
  }

  void reset(const Ids& ids, const Seeds& seeds, const nb::object& options) {
    const OrdinaryFloats ordinary;
    std::optional<std::span<const std::uint64_t>> seed_span;
    if (seeds) seed_span = std::span(seeds->data(), seeds->size());
    pool_->reset(span_of(ids), seed_span, named_options(task_, options));
  }

  nb::tuple recv(double timeout) {
    std::optional<std::chrono::nanoseconds> limit;
    if (timeout >= 0) limit = nanoseconds_of(timeout);
    std::unique_ptr<Batch> batch;
    {
      const OrdinaryFloats ordinary;
      const NoGil no_gil;
      batch = pool_->recv(limit, check_signals);
    }
    return received(std::move(batch));
  }

  nb::tuple step(const nb::sequence& actions, const Ids& ids) {
    send(actions, ids);
    return recv(-1);
  }

  nb::tuple observe(const Ids& ids) {
    std::unique_ptr<Batch> batch;
    {
      const NoGil no_gil;
      batch = pool_->observe(span_of(ids), check_signals);
    }
    return nb::borrow<nb::tuple>(received(std::move(batch))[0]);
  }

  nb::object render(std::int64_t env, std::uint32_t width, std::uint32_t height,
                    std::uint32_t camera) {
    Env::Picture picture;
    {
      const NoGil no_gil;
      picture = pool_->render(env, width, height, camera, check_signals);
    }
    return array_copy(picture.pixels.data(), picture.pixels.size(),
                      {picture.height, picture.width, 3}, EP_UINT8);
  }

  nb::bytes save_state(std::int64_t env) {
    std::vector<std::byte> state;
    {
      const NoGil no_gil;
      state = pool_->save_state(env, check_signals);
    }
    return nb::bytes(state.data(), state.size());
  }

  void load_state(std::int64_t env, const nb::bytes& state) {
    const std::span bytes(static_cast<const std::byte*>(state.data()), state.size());
    const NoGil no_gil;
    pool_->load_state(env, bytes, check_signals);
  }

  bool close(double timeout) {
    const NoGil no_gil;
    return pool_->close(nanoseconds_of(timeout));
  }

  nb::dict statistics() const {
    const Statistics all = pool_->statistics();
    nb::dict dict;
    dict["steps"] = all.steps;
    dict["episodes"] = all.episodes;
    dict["faults"] = all.faults;
    return dict;
  }

  nb::list faults() const {
    nb::list list;
    for (const Fault& fault : pool_->faults()) {
      list.append(nb::make_tuple(fault.env_id, fault.message));
    }
    return list;
  }

  std::uint64_t lend() const { return lend_to_xla(pool_); }

  const Pool& pool() const { return *pool_; }

 private:
  // (columns, final, faults)
  nb::tuple received(std::unique_ptr<Batch> batch) {
    nb::object finals = nb::none();
    if (!batch->final_mask.empty()) {
      const std::size_t rows = batch->rows();
      const nb::object mask =
          array_copy(batch->final_mask.data(), rows, std::vector{rows}, EP_BOOL);
      finals = arrays_of(batch->finals(), rows) + nb::make_tuple(mask);
    }
    nb::object faults = nb::make_tuple();
    if (!batch->faults.empty()) {
      nb::list list;
      for (const Fault& fault : batch->faults)
        list.append(nb::make_tuple(fault.env_id, fault.message));
      faults = nb::tuple(list);
    }
    const nb::object columns =
        in_place_ ? kept_arrays(*batch) : arrays_of(batch->columns, batch->rows());
    pool_->recycle(std::move(batch));
    return nb::make_tuple(columns, finals, faults);
  }

  // Takes the blocks.
  nb::tuple arrays_of(Columns& from, std::size_t rows) const {
    const std::vector<Column>& columns = pool_->plan().columns;
    nb::object arrays = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(columns.size())));
    if (!arrays) nb::raise_python_error();
    for (std::size_t i = 0; i < columns.size(); ++i) {
      nb::object array = array_of(from.blocks[i], columns[i], rows);
      PyTuple_SetItem(arrays.ptr(), static_cast<Py_ssize_t>(i), array.release().ptr());
    }
    return nb::borrow<nb::tuple>(arrays);
  }

  // In place: always the same arrays, or views of their first rows. Nobody else can be here: there
  // is one batch.
  nb::tuple kept_arrays(Batch& batch) {
    if (!kept_) kept_ = arrays_of(batch.columns, pool_->num_envs());
    const auto all = nb::borrow<nb::tuple>(kept_);
    if (batch.rows() == pool_->num_envs()) return all;
    nb::list first;
    for (nb::handle array : all) first.append(array[nb::slice(batch.rows())]);
    return nb::tuple(first);
  }

  const ep_task& task_;
  const bool in_place_;
  std::shared_ptr<Pool> pool_;  // shared with calls of XLA's
  nb::object kept_;  // in place: a tuple of arrays over the columns of the pool's one batch
};

// (steps, episodes, seconds)
nb::tuple measure_bare_loop(const PyPlugin& plugin, const std::string& task_id,
                            const nb::object& options, const nb::sequence& actions, double seconds,
                            std::uint64_t seed, std::int64_t frame_skip) {
  const ep_task& task = plugin.get().task(task_id);
  const Host& host = plugin.get().host();
  const Options complete(task, named_options(task, options));
  PlanSettings settings;
  settings.transforms.frame_skip = frame_skip;
  within(task.id, [&] { settings.transforms.check(); });
  const Plan plan(task, host, describe(task, host, complete), settings);
  const nb::tuple arrays(actions);
  const std::size_t rows = arrays.size() == 0 ? 0 : nb::len(nb::object(arrays[0]));
  std::vector<nb::object> keepers;
  const std::vector<ActionRows> checked = action_rows(plan, arrays, rows, keepers);
  BareLoop done;
  {
    const NoGil no_gil;
    done = bare_loop(plan, complete, checked, static_cast<std::uint32_t>(rows), seed,
                     nanoseconds_of(seconds), check_signals);
  }
  return nb::make_tuple(done.steps, done.episodes,
                        std::chrono::duration<double>(done.took).count());
}

void set_python_log_sink(nb::object sink) {
  if (sink.is_none()) return set_log_sink(nullptr);
  // Plugins may log from any thread, at exit too; the last reference must be dropped with the GIL
  // held.
  std::shared_ptr<nb::object> shared(new nb::object(std::move(sink)), [](nb::object* object) {
    if (!nb::is_alive()) return;
    const Gil gil;
    delete object;
  });
  set_log_sink([shared](int level, const std::string& line) {
    if (!nb::is_alive()) return;
    const Gil gil;
    try {
      (*shared)(level, line);
    } catch (nb::python_error& error) {
      error.discard_as_unraisable("envpool_sdk log sink");
    }
  });
}

}  // namespace

NB_MODULE(_native, m) {
  import_numpy();
  // Whoever is in a call at the interpreter's end, on a daemon thread, holds objects for ever.
  nb::set_leak_warnings(false);
  exceptions.plugin = add_exception(m, "PluginError", PyExc_ValueError,
                                    "A file is no usable plugin, or its spec breaks the contract.");
  exceptions.closed = add_exception(m, "ClosedError", PyExc_RuntimeError, "The pool is closed.");
  exceptions.env =
      add_exception(m, "EnvError", PyExc_RuntimeError,
                    "An env failed in create or in its first reset, or envs failed too often.");
  nb::register_exception_translator([](const std::exception_ptr& p, void*) {
    try {
      std::rethrow_exception(p);
    } catch (const Error& error) {
      PyErr_SetString(exception_of(error.kind()), error.what());
    }
  });

  m.attr("__version__") = ENVPOOL_SDK_VERSION;
  m.attr("ABI_VERSION") = nb::make_tuple(EP_ABI_MAJOR, EP_ABI_MINOR);
  m.def("resize", &resize, "image"_a, "height"_a, "width"_a, "interpolation"_a, "isa"_a = "best");
  m.def("gray", &gray, "image"_a, "isa"_a = "best");
  m.def("available_cpus", &available_cpus);
  m.def("set_log_sink", &set_python_log_sink, "sink"_a.none());

  nb::class_<PyPlugin>(m, "Plugin")
      .def(nb::init<const std::string&, const nb::object&>(), "path"_a, "assets"_a = nb::dict())
      .def_prop_ro("path", &PyPlugin::path)
      .def_prop_ro("name", [](const PyPlugin& p) { return text(p.abi().name); })
      .def_prop_ro("version", [](const PyPlugin& p) { return text(p.abi().version); })
      .def_prop_ro("license", [](const PyPlugin& p) { return text(p.abi().license); })
      .def_prop_ro("url", [](const PyPlugin& p) { return text(p.abi().url); })
      .def_prop_ro(
          "abi", [](const PyPlugin& p) { return std::pair(p.abi().abi_major, p.abi().abi_minor); })
      .def_prop_ro("tasks", &PyPlugin::tasks)
      .def("describe", &PyPlugin::describe_task, "task"_a, "options"_a, "transforms"_a);

  m.def("bare_loop", &measure_bare_loop, "plugin"_a, "task"_a, "options"_a, "actions"_a,
        nb::kw_only(), "seconds"_a, "seed"_a = 0, "frame_skip"_a = 1);

  nb::class_<PyPool>(m, "Pool")
      .def(nb::init<const PyPlugin&, const std::string&, const nb::object&, std::int64_t,
                    std::int64_t, std::int64_t, std::int64_t, const std::string&, std::int64_t,
                    bool, const std::string&, std::int64_t, const nb::object&, const std::string&,
                    const std::vector<std::string>&, const std::string&, std::int64_t,
                    std::optional<double>, std::optional<double>,
                    const std::optional<std::vector<std::string>>&, bool>(),
           "plugin"_a, "task"_a, "options"_a, nb::kw_only(), "num_envs"_a, "batch_size"_a,
           "num_threads"_a = 0, "thread_affinity_offset"_a = -1, "autoreset"_a = "next_step",
           "max_episode_steps"_a = -1, "both_flags"_a = false, "reward_dtype"_a = "float64",
           "max_faults"_a = 1000, "transforms"_a = nb::dict(), "isolation"_a = "auto",
           "worker_command"_a = std::vector<std::string>(), "guest_library"_a = "",
           "envs_per_worker"_a = 1, "step_timeout"_a.none() = nb::none(),
           "reset_timeout"_a.none() = nb::none(), "pool_columns"_a = nb::none(), "copy"_a = true)
      .def_prop_ro("spec", &PyPool::spec)
      .def_prop_ro("num_envs", [](const PyPool& p) { return p.pool().num_envs(); })
      .def_prop_ro("batch_size", [](const PyPool& p) { return p.pool().batch_size(); })
      .def_prop_ro("num_threads", [](const PyPool& p) { return p.pool().num_threads(); })
      .def_prop_ro("isolation",
                   [](const PyPool& p) {
                     return p.pool().isolation() == Isolation::kProcess ? "process" : "thread";
                   })
      .def_prop_ro("closed", [](const PyPool& p) { return p.pool().closed(); })
      .def_prop_ro("columns", &PyPool::columns)
      .def_prop_ro("retained_bytes", [](const PyPool& p) { return p.pool().retained_bytes(); })
      .def_prop_ro("pending", [](const PyPool& p) { return p.pool().pending(); })
      .def_prop_ro("statistics", &PyPool::statistics)
      .def_prop_ro("faults", &PyPool::faults)
      .def("send", &PyPool::send, "actions"_a, "env_ids"_a.none() = nb::none())
      .def("check_actions", &PyPool::check_actions, "actions"_a, "env_ids"_a.none() = nb::none())
      .def("reset", &PyPool::reset, "env_ids"_a.none() = nb::none(), "seeds"_a.none() = nb::none(),
           "options"_a = nb::dict())
      .def("recv", &PyPool::recv, "timeout"_a = -1.0)
      .def("step", &PyPool::step, "actions"_a, "env_ids"_a.none() = nb::none())
      .def("observe", &PyPool::observe, "env_ids"_a.none() = nb::none())
      .def("render", &PyPool::render, "env_id"_a, "width"_a = 0, "height"_a = 0, "camera"_a = 0)
      .def("save_state", &PyPool::save_state, "env_id"_a)
      .def("load_state", &PyPool::load_state, "env_id"_a, "state"_a)
      .def("lend_to_xla", &PyPool::lend)
      .def("close", &PyPool::close, "timeout"_a = 2.0);

  const auto handler = [](auto* function) {
    return nb::capsule(reinterpret_cast<void*>(function));
  };
  nb::dict handlers;
  handlers["envpool_sdk.send"] = handler(&xla_send);
  handlers["envpool_sdk.recv"] = handler(&xla_recv);
  handlers["envpool_sdk.step"] = handler(&xla_step);
  m.attr("xla_handlers") = handlers;
}
