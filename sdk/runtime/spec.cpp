// spec.cpp - takes the fields that describe() adds, and refuses what breaks the contract in env.h.
#include "spec.hpp"

#include <envpool/ext/agents.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <new>
#include <set>
#include <string_view>
#include <utility>

#include "error.hpp"
#include "plugin.hpp"

namespace envpool::runtime {
namespace {

// ---- dtypes

// IEEE binary16, which C++20 has no type for.
struct Half {
  std::uint16_t bits;

  Half() = default;
  explicit Half(long double number) {
    const int sign = std::signbit(number) ? 0x8000 : 0;
    const long double size = std::fabs(number);
    int rest = 0;
    if (std::isnan(number)) {
      rest = 0x7E00;
    } else if (size >= 65520) {  // halfway from the greatest one to the next power of two
      rest = 0x7C00;
    } else if (size < std::ldexp(1.0L, -14)) {
      rest = static_cast<int>(std::nearbyint(std::ldexp(size, 24)));
    } else {
      // A significand that rounds up to 2048 carries into the exponent, as it should.
      const int exponent = std::ilogb(size);
      const int significand = static_cast<int>(std::nearbyint(std::ldexp(size, 10 - exponent)));
      rest = ((exponent + 15) << 10) + (significand - 1024);
    }
    bits = static_cast<std::uint16_t>(sign | rest);
  }

  explicit operator long double() const {
    const int exponent = bits >> 10 & 31, significand = bits & 1023;
    long double size = 0;
    if (exponent == 31)
      size = significand ? std::numeric_limits<long double>::quiet_NaN()
                         : std::numeric_limits<long double>::infinity();
    else if (exponent == 0)
      size = std::ldexp(static_cast<long double>(significand), -24);
    else
      size = std::ldexp(static_cast<long double>(significand + 1024), exponent - 25);
    return bits & 0x8000 ? -size : size;
  }
};

static_assert(std::numeric_limits<long double>::digits >= 64, "must hold every (u)int64 exactly");

// Elements are copied, since a plugin's array may be unaligned.
template <class T>
long double load(const void* array, std::size_t i) {
  T element;
  std::memcpy(&element, static_cast<const std::byte*>(array) + i * sizeof(T), sizeof(T));
  return static_cast<long double>(element);
}

template <class T>
bool convert(long double number, T& element) {
  using Limits = std::numeric_limits<T>;
  if constexpr (Limits::is_integer) {
    // False for NaN, too.
    if (!(number >= Limits::lowest() && number <= Limits::max())) return false;
    element = static_cast<T>(number);
    return static_cast<long double>(element) == number;
  } else {
    // A finite number beyond the float's range becomes infinite.
    element = T(number);
    return std::isinf(static_cast<long double>(element)) == std::isinf(number);
  }
}

template <class T>
bool store(void* array, std::size_t i, long double number) {
  T element;
  if (!convert(number, element)) return false;
  std::memcpy(static_cast<std::byte*>(array) + i * sizeof(T), &element, sizeof(T));
  return true;
}

bool store_bool(void* array, std::size_t i, long double number) {
  return number <= 1 && store<std::uint8_t>(array, i, number);
}

struct Type {
  ep_dtype dtype;
  const char* name;
  long double (*load)(const void*, std::size_t);
  bool (*store)(void*, std::size_t, long double);
};

constexpr Type kTypes[] = {
    {EP_BOOL, "bool", load<std::uint8_t>, store_bool},
    {EP_UINT8, "uint8", load<std::uint8_t>, store<std::uint8_t>},
    {EP_UINT16, "uint16", load<std::uint16_t>, store<std::uint16_t>},
    {EP_UINT32, "uint32", load<std::uint32_t>, store<std::uint32_t>},
    {EP_UINT64, "uint64", load<std::uint64_t>, store<std::uint64_t>},
    {EP_INT8, "int8", load<std::int8_t>, store<std::int8_t>},
    {EP_INT16, "int16", load<std::int16_t>, store<std::int16_t>},
    {EP_INT32, "int32", load<std::int32_t>, store<std::int32_t>},
    {EP_INT64, "int64", load<std::int64_t>, store<std::int64_t>},
    {EP_FLOAT16, "float16", load<Half>, store<Half>},
    {EP_FLOAT32, "float32", load<float>, store<float>},
    {EP_FLOAT64, "float64", load<double>, store<double>},
};

const Type* find_type(ep_dtype dtype) {
  for (const Type& type : kTypes)
    if (type.dtype == dtype) return &type;
  return nullptr;
}

bool is_integer(ep_dtype dtype) { return dtype > EP_BOOL && dtype < EP_FLOAT16; }

bool holds(ep_dtype dtype, long double number) {
  std::uint64_t scratch = 0;
  return store_number(dtype, &scratch, 0, number);
}

// ---- one field

[[noreturn]] void refuse(const std::string& flaw) { throw Error(ErrorKind::kPlugin, flaw); }

std::string str(std::int64_t number) { return std::to_string(number); }

// An ep_field of ABI 1.0 ends here.
constexpr std::size_t kLeastSize = offsetof(ep_field, gray) + sizeof(ep_field::gray);
constexpr std::uint32_t kMostRank = 8;

std::string checked(const char* what, const char* text) {
  if (text && !is_utf8(text)) refuse(std::string("its ") + what + " is not UTF-8");
  return text ? text : "";
}

const char* role_name(ep_role role) {
  switch (role) {
    case EP_OBS:
      return "observation";
    case EP_ACTION:
      return "action";
    case EP_INFO:
      return "info";
    case EP_GLOBAL:
      return "global";
    default:
      return nullptr;
  }
}

// "observation field \"a/b\"": how messages call a field.
std::string called(ep_role role, const std::string& name) {
  return std::string(role_name(role)) + " field \"" + name + "\"";
}

void check_constants(const ep_field& field, std::uint32_t group_count) {
  if (field.kind < EP_BOX || field.kind > EP_TEXT) refuse("unknown kind " + str(field.kind));
  if (!find_type(field.dtype)) refuse("unknown dtype " + str(field.dtype));
  if (field.layout < EP_PLAIN || field.layout > EP_INDEXED)
    refuse("unknown layout " + str(field.layout));
  if (const auto unknown = field.flags & 0xFFFF & ~(EP_FIELD_PER_AGENT | EP_FIELD_RAGGED))
    refuse("flags that this host does not know (" + str(unknown) + ")");
  if (field.role == EP_GLOBAL && (field.flags & EP_FIELD_PER_AGENT))
    refuse("a global field can't be per agent");
  if (field.group >= group_count)
    refuse("group " + str(field.group) + ", but the number of groups is " + str(group_count));
}

// How many elements one agent's value has.
std::size_t check_shape(const ep_field& field) {
  if (field.rank > kMostRank) refuse("rank " + str(field.rank) + " is more than 8");
  if (field.rank && !field.shape) refuse("its rank is " + str(field.rank) + ", its shape NULL");
  if ((field.flags & EP_FIELD_RAGGED) && field.rank == 0)
    refuse("it is ragged, but has no dimension whose length could vary");
  std::int64_t bytes = static_cast<std::int64_t>(bytes_of(field.dtype));
  for (std::uint32_t d = 0; d < field.rank; ++d) {
    if (field.shape[d] <= 0)
      refuse("shape[" + str(d) + "] is " + str(field.shape[d]) + ", but must be positive");
    if (__builtin_mul_overflow(bytes, field.shape[d], &bytes)) refuse("its shape is too large");
  }
  return static_cast<std::size_t>(bytes) / bytes_of(field.dtype);
}

// bound_count must suit the arrays that it counts.
void check_bound_count(const ep_field& field, std::size_t count) {
  const bool any = field.low || field.high || field.n || field.start;
  const std::uint32_t given = field.bound_count;
  if (!any && given) refuse("bound_count is " + str(given) + ", but no bound is set");
  if (any && given != 1 && given != count)
    refuse("bound_count is " + str(given) + ", but must be 1 or the number of elements, " +
           std::to_string(count));
}

void check_box(const ep_field& field) {
  for (const void* bounds : {field.low, field.high}) {
    for (std::uint32_t i = 0; bounds && i < field.bound_count; ++i) {
      const long double bound = number_at(field.dtype, bounds, i);
      if (std::isnan(bound)) refuse("low or high [" + str(i) + "] is NaN");
      if (!holds(field.dtype, bound)) refuse("low or high [" + str(i) + "] is neither 0 nor 1");
    }
  }
  for (std::uint32_t i = 0; field.low && field.high && i < field.bound_count; ++i)
    if (number_at(field.dtype, field.low, i) > number_at(field.dtype, field.high, i))
      refuse("low[" + str(i) + "] is greater than high[" + str(i) + "]");
}

void check_discrete(const ep_field& field) {
  if (!is_integer(field.dtype))
    refuse(std::string("discrete values need an integer dtype, not ") + name_of(field.dtype));
  if (!field.n) refuse("it is discrete, but n is NULL");
  for (std::uint32_t i = 0; i < field.bound_count; ++i) {
    if (field.n[i] <= 0) refuse("n[" + str(i) + "] is " + str(field.n[i]) + ", not positive");
    const long double first = field.start ? field.start[i] : 0;
    if (!holds(field.dtype, first) || !holds(field.dtype, first + field.n[i] - 1))
      refuse("the values from start[" + str(i) + "] on do not fit " + name_of(field.dtype));
  }
  for (std::int64_t i = 0; field.labels && i < field.n[0]; ++i)
    if (!field.labels[i] || !is_utf8(field.labels[i]))
      refuse("labels[" + str(i) + "] is not a UTF-8 string");
}

void check_binary(const ep_field& field) {
  if (field.dtype != EP_BOOL && field.dtype != EP_UINT8 && field.dtype != EP_INT8)
    refuse(std::string("binary values need the dtype bool, uint8 or int8, not ") +
           name_of(field.dtype));
}

void check_text(const ep_field& field) {
  if (field.dtype != EP_UINT8 || field.rank != 1) refuse("a text needs the dtype uint8 and rank 1");
}

void check_kind(const ep_field& field) {
  if (field.kind != EP_BOX && (field.low || field.high))
    refuse("low and high are for boxes, but it is none");
  if (field.kind != EP_DISCRETE && (field.n || field.start || field.labels))
    refuse("n, start and labels are for discrete values, but it has none");
  if (field.kind == EP_BOX) check_box(field);
  if (field.kind == EP_DISCRETE) check_discrete(field);
  if (field.kind == EP_MULTI_BINARY) check_binary(field);
  if (field.kind == EP_TEXT) check_text(field);
}

void check_layout(const ep_field& field) {
  const bool indexed = field.layout == EP_INDEXED;
  if (indexed && (!field.palette || !field.gray))
    refuse("an indexed image needs a palette and a gray table");
  if (!indexed && (field.palette || field.gray))
    refuse("palette and gray are for indexed images, but it is none");
  if (field.layout == EP_PLAIN) return;
  if (field.dtype != EP_UINT8 || field.kind != EP_BOX)
    refuse("an image must be a box of dtype uint8");
  if (field.flags & EP_FIELD_RAGGED) refuse("an image can't be ragged");
  const bool has_channels = field.layout == EP_HWC || field.layout == EP_CHW;
  const std::uint32_t rank = has_channels ? 3 : 2;
  if (field.rank != rank) refuse("its layout needs rank " + str(rank) + ", not " + str(field.rank));
  if (!has_channels) return;
  const std::int64_t channels = field.shape[field.layout == EP_HWC ? 2 : 0];
  if (channels != 1 && channels != 3 && channels != 4)
    refuse("an image has 1, 3 or 4 channels, not " + str(channels));
}

template <class T>
std::vector<T> copied(const void* from, std::size_t count) {
  if (!from) return {};
  std::vector<T> result(count);
  std::memcpy(result.data(), from, count * sizeof(T));
  return result;
}

Field copied(const ep_field& from) {
  Field field;
  field.name = from.name;
  field.doc = checked("doc", from.doc);
  field.unit = checked("unit", from.unit);
  field.meaning = checked("meaning", from.meaning);
  field.role = from.role;
  field.kind = from.kind;
  field.dtype = from.dtype;
  field.layout = from.layout;
  field.flags = from.flags;
  field.group = from.group;
  field.shape = copied<std::int64_t>(from.shape, from.rank);
  field.low = copied<std::byte>(from.low, from.bound_count * bytes_of(from.dtype));
  field.high = copied<std::byte>(from.high, from.bound_count * bytes_of(from.dtype));
  field.n = copied<std::int64_t>(from.n, from.bound_count);
  field.start = copied<std::int64_t>(from.start, from.bound_count);
  if (from.labels) field.labels.assign(from.labels, from.labels + from.n[0]);
  field.palette = copied<std::uint8_t>(from.palette, 768);
  field.gray = copied<std::uint8_t>(from.gray, 256);
  return field;
}

// ---- names within a role

bool has_empty_segment(const std::string& name) {
  return ('/' + name + '/').find("//") != std::string::npos;
}

// True if one is a leaf at the place where the other is a branch.
bool collide(const std::string& a, const std::string& b) {
  return a.starts_with(b + '/') || b.starts_with(a + '/');
}

void check_name(const std::string& name, const std::vector<Field>& others) {
  if (!name.empty() && has_empty_segment(name)) refuse("its name has an empty segment");
  for (const Field& other : others) {
    if (other.name == name) refuse("duplicate name");
    if (other.name.empty() || name.empty())
      refuse("a field named \"\" is the whole space and must stand alone in its role");
    if (collide(other.name, name))
      refuse("it can't nest with \"" + other.name + "\": a name is either a field or a branch");
  }
}

bool is_digits(const std::string& key) {
  return !key.empty() && key.find_first_not_of("0123456789") == std::string::npos;
}

// The keys of each branch: "a/b" and "a/c" give "" -> a, "a/" -> b, c.
std::map<std::string, std::set<std::string>> branches(const std::vector<Field>& fields) {
  std::map<std::string, std::set<std::string>> result;
  for (const Field& field : fields) {
    std::size_t begin = 0;
    for (std::size_t end = 0; end != std::string::npos; begin = end + 1) {
      end = field.name.find('/', begin);
      result[field.name.substr(0, begin)].insert(field.name.substr(begin, end - begin));
    }
  }
  return result;
}

// All-digit keys make a tuple, so they must be 0 .. k-1 without gaps or names between them.
void check_tuples(ep_role role, const std::vector<Field>& fields) {
  for (const auto& [branch, keys] : branches(fields)) {
    bool any_digits = false, complete = true;
    for (const std::string& key : keys) any_digits |= is_digits(key);
    for (std::size_t i = 0; i < keys.size(); ++i) complete &= keys.contains(std::to_string(i));
    if (any_digits && !complete)
      refuse(called(role, branch) + ": all-digit keys make a tuple; they must be 0 to " +
             std::to_string(keys.size() - 1) + " with no other key beside them");
  }
}

// ---- the whole spec

// What ep_spec.ctx points to while describe() runs.
struct Sink {
  Spec spec;
  std::string flaw;  // of the first field that was refused
  std::uint32_t group_count = 1;
  const ep_host* host = nullptr;
};

std::vector<Field>& fields_of(Spec& spec, ep_role role) {
  return role == EP_OBS      ? spec.obs
         : role == EP_ACTION ? spec.action
         : role == EP_INFO   ? spec.info
                             : spec.global;
}

void take_field(Sink& sink, const ep_field* field) {
  if (!field) refuse("add() was given NULL for a field");
  if (field->size < kLeastSize)
    refuse("the struct size of a field is " + str(field->size) + ", but ABI 1.0 needs " +
           std::to_string(kLeastSize));
  if (!role_name(field->role)) refuse("a field has the unknown role " + str(field->role));
  if (!field->name || !is_utf8(field->name))
    refuse(called(field->role, shown(field->name)) + ": its name is not a UTF-8 string");
  std::vector<Field>& others = fields_of(sink.spec, field->role);
  within(called(field->role, field->name), [&] {
    check_name(field->name, others);
    check_constants(*field, sink.group_count);
    check_bound_count(*field, check_shape(*field));
    check_kind(*field);
    check_layout(*field);
    others.push_back(copied(*field));
  });
}

// ep_spec.add: a plugin calls it, so no exception may leave it.
ep_status EP_CALL add(ep_spec* spec, const ep_field* field) noexcept {
  Sink& sink = *static_cast<Sink*>(spec->ctx);
  try {
    take_field(sink, field);
    return EP_OK;
  } catch (const std::bad_alloc&) {
    if (sink.flaw.empty()) sink.flaw = "no memory";  // short enough to need none itself
    return EP_E_NOMEM;
  } catch (const std::exception& error) {
    if (sink.flaw.empty()) sink.flaw = error.what();
    sink.host->explain(sink.host, error.what());
    return EP_E_ARGUMENT;
  }
}

void take_scalars(Spec& spec, const ep_spec& from) {
  spec.max_agents = from.max_agents;
  spec.max_episode_steps = from.max_episode_steps;
  spec.reward_threshold = from.reward_threshold;
  spec.fps = from.fps;
  if (spec.max_agents < 1) refuse("max_agents is 0, but must be at least 1");
  if (spec.max_episode_steps < 0) refuse("max_episode_steps is " + str(spec.max_episode_steps));
  if (!(spec.fps >= 0 && std::isfinite(spec.fps))) refuse("fps must be a number from 0 on");
}

void check_row(const Field& field, std::uint32_t max_agents) {
  std::int64_t bytes = static_cast<std::int64_t>(field.row_bytes(1));
  if (__builtin_mul_overflow(bytes, static_cast<std::int64_t>(field.agents(max_agents)), &bytes))
    refuse(called(field.role, field.name) + ": its shape is too large for all agents");
}

void check_whole(Spec& spec) {
  if (spec.obs.empty()) refuse("there is no observation field");
  if (spec.action.empty()) refuse("there is no action field");
  for (const ep_role role : {EP_OBS, EP_ACTION, EP_INFO, EP_GLOBAL}) {
    const std::vector<Field>& fields = fields_of(spec, role);
    check_tuples(role, fields);
    for (const Field& field : fields) check_row(field, spec.max_agents);
  }
}

std::uint32_t group_count(const ep_task& task) {
  constexpr std::size_t kNeeded = offsetof(ep_agents, group) + sizeof(ep_agents::group);
  const auto* agents = extension<ep_agents>(task, EP_EXT_AGENTS, kNeeded);
  if (agents && agents->group_count < 1) refuse("envpool.agents/1 says that there are 0 groups");
  return agents ? agents->group_count : 1;
}

ep_status call_describe(const ep_task& task, const ep_host* host, const ep_create& info,
                        ep_spec& spec) {
  try {
    return task.describe(host, &info, &spec);
  } catch (...) {
    refuse("describe() let an exception out");
  }
}

Spec describe_unnamed(const ep_task& task, const ep_host* host, const Options& options) {
  Sink sink;
  sink.host = host;
  sink.group_count = group_count(task);
  const std::vector<ep_value>& values = options.values();
  const ep_create info{sizeof(ep_create), static_cast<std::uint32_t>(values.size()), values.data(),
                       0};
  ep_spec spec{sizeof(ep_spec), 1, 0, std::numeric_limits<double>::quiet_NaN(), 0, &sink, add};
  take_explanation(EP_OK);  // what an earlier call left behind explains nothing of this one
  const ep_status status = call_describe(task, host, info, spec);
  const std::string explanation = take_explanation(status);
  // First of all: a plugin may ignore that a field was refused.
  if (!sink.flaw.empty()) refuse(sink.flaw);
  if (status == EP_E_ARGUMENT || status == EP_E_NOT_FOUND)
    throw Error(ErrorKind::kValue, explanation);
  if (status != EP_OK) throw Error(ErrorKind::kEnv, "describe() failed: " + explanation);
  take_scalars(sink.spec, spec);
  check_whole(sink.spec);
  return std::move(sink.spec);
}

}  // namespace

const char* name_of(ep_dtype dtype) {
  const Type* type = find_type(dtype);
  return type ? type->name : nullptr;
}

long double number_at(ep_dtype dtype, const void* array, std::size_t i) {
  return find_type(dtype)->load(array, i);
}

bool store_number(ep_dtype dtype, void* array, std::size_t i, long double number) {
  return find_type(dtype)->store(array, i, number);
}

std::size_t Field::count() const {
  std::size_t result = 1;
  for (const std::int64_t extent : shape) result *= static_cast<std::size_t>(extent);
  return result;
}

std::size_t Field::row_bytes(std::uint32_t max_agents) const {
  return count() * bytes_of(dtype) * agents(max_agents);
}

bool Spec::compatible(const Spec& other) const {
  const auto alike = [](const std::vector<Field>& a, const std::vector<Field>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](Field x, const Field& y) {
      x.doc = y.doc;
      return x == y;
    });
  };
  return max_agents == other.max_agents && alike(obs, other.obs) && alike(action, other.action) &&
         alike(info, other.info) && alike(global, other.global);
}

Spec describe(const ep_task& task, const Host& host, const Options& options) {
  Spec spec;
  within(task.id, [&] { spec = describe_unnamed(task, host.abi(), options); });
  return spec;
}

}  // namespace envpool::runtime
