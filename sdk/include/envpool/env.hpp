// env.hpp - a C++20 layer over env.h: write a task as a class, get a plugin. Header-only, standard
// library only; what crosses the library's boundary stays the C ABI of env.h.
//
//   struct Walk {
//     static constexpr const char* id = "Walk-v0";
//     static constexpr ep_sharing sharing = EP_FREE;  // unsaid: one env a process
//
//     // Options: a struct, whose initializers are the defaults.
//     struct config {
//       int64_t length = 10;
//     };
//     static void options(envpool::options<config>& o) {
//       o.add("length", &config::length).range(2, 100).doc("cells of the corridor");
//     }
//
//     // What is observed and acted on: typed handles.
//     struct fields {
//       envpool::obs<float> place;
//       envpool::action<int64_t> move;
//     };
//     static fields describe(envpool::spec& s, const config& c) {
//       s.max_episode_steps = 10 * c.length;
//       return {s.obs<float>("").within(0, 1),
//               s.action<int64_t>("").discrete(2).labels({"LEFT", "RIGHT"})};
//     }
//
//     // An aggregate begins with these two; else write Walk(const config&, const fields&).
//     config c;
//     fields f;
//     int64_t at = 0;
//
//     void reset() { at = 0; }
//     envpool::result step(const envpool::input& in) {
//       at += in[f.move] == 1 ? 1 : at > 0 ? -1 : 0;
//       return {.reward = at == c.length ? 1. : 0., .terminated = at == c.length};
//     }
//     void observe(const envpool::view& v) const { v.put(f.place, double(at) / double(c.length)); }
//   };
//   ENVPOOL_PLUGIN("walk", "0.1.0", Walk)
//
// Members of a task class E; id, describe, reset, step and observe must be there:
//
//   static constexpr const char *id, *doc; ep_sharing sharing; uint64_t flags
//   struct config; static void options(options<config>&)
//   static fields describe(spec&[, const config&][, const entry&])
//       entry: of a family. It is called for every new env too: keep what is costly (compiled
//       models) in a cache of your own.
//   E([const config&,] const fields&[, const entry&][, const context&])
//       or an aggregate that begins so.
//   void seed(uint64_t)
//       comes before reset() when there is a seed; the first reset always has one.
//   void reset() or void reset(const config&)
//       the latter sees the at_reset() options.
//   result step(const input&) or, for many agents, void step(const input&, results&)
//   void observe(const view&) const
//
// Extensions, offered if the members are there:
//
//   static constexpr bool batch = true
//       ext/batch.h: E is called in a tight loop. EP_FREE, single-agent, no lengths, no globals.
//   void draw(const ep_image&)
//       ext/render.h, with static constexpr size picture, or void measure(ep_image&) if there is a
//       choice of sizes or cameras; static constexpr uint32_t formats (unsaid: RGB).
//   template <class A> void state(A& a) { a(x, y, rng); }
//       ext/state.h for both purposes. Which members it visits must not depend on their values; a
//       bad state is then refused before anything changes. static constexpr uint32_t state_version
//       (unsaid: 1) goes up when the members change.
//   void save(writer&, int32_t purpose); void load(reader&, int32_t purpose)
//       the same by hand, with static constexpr uint32_t state_purposes (unsaid: CLONE only).
//   static const char* agent_name(uint32_t); maybe group_name(uint32_t) and uint32_t group_count
//       ext/agents.h
//
// All of these may throw: an exception becomes a status (see error) and never leaves the plugin.
// Give classes and helpers hidden visibility (an anonymous namespace does): two plugins of a
// process must not share them.
#ifndef ENVPOOL_ENV_HPP
#define ENVPOOL_ENV_HPP

#include <envpool/env.h>
#include <envpool/ext/agents.h>
#include <envpool/ext/batch.h>
#include <envpool/ext/render.h>
#include <envpool/ext/state.h>

#include <algorithm>
#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <initializer_list>
#include <limits>
#include <memory>
#include <new>
#include <ranges>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace envpool {

// ---- types -------------------------------------------------------------------------------------

// An EP_FLOAT16 element, as its bits.
struct half {
  std::uint16_t bits;
};
// obs<text>: a UTF-8 string of bounded length.
struct text {};
// Options that are a path, or text that is checked to be JSON.
struct path : std::string {
  using std::string::string;
};
struct json : std::string {
  using std::string::string;
};

template <class T>
constexpr ep_dtype dtype_of_() {
  if (std::is_same_v<T, bool>) return EP_BOOL;
  if (std::is_same_v<T, half>) return EP_FLOAT16;
  const int kind = std::is_floating_point_v<T> ? 400 : std::is_signed_v<T> ? 300 : 200;
  return kind + static_cast<int>(8 * sizeof(T));
}
template <class T>
inline constexpr ep_dtype dtype_of = dtype_of_<T>();

template <class T>
concept element = (std::is_arithmetic_v<T> && sizeof(T) <= 8) || std::same_as<T, half>;

// Ends a call with a status and a text for the user. Other exceptions become EP_E_FAILED, bad_alloc
// EP_E_NOMEM.
struct error : std::runtime_error {
  ep_status status;
  error(ep_status code, const std::string& what)
      : std::runtime_error(what), status(code == EP_OK ? EP_E_FAILED : code) {}
};

// splitmix64: one word of state, the same numbers everywhere.
struct rng {
  std::uint64_t word = 0;
  std::uint64_t operator()() { return ep_rand(&word); }
  double uniform(double low, double high) { return ep_uniform(&word, low, high); }
  // Uniform in 0 .. n-1 (multiply and shift; the bias is below n / 2^32).
  std::uint32_t below(std::uint32_t n) {
    return static_cast<std::uint32_t>(((ep_rand(&word) >> 32) * n) >> 32);
  }
  template <class A>
  void state(A& a) {
    a(word);
  }
};

// What the host offers. May be kept: hosts live as long as the process.
class host {
 public:
  explicit host(const ep_host* raw) : raw_(raw) {}
  const ep_host* get() const { return raw_; }
  void log(std::int32_t level, const std::string& line) const {
    raw_->log(raw_, level, line.c_str());
  }
  // True: long work should throw error(EP_E_CANCELLED, ...).
  bool cancelled() const { return raw_->cancelled(raw_) != 0; }
  // A host extension, e.g. extension<ep_placement>(EP_EXT_PLACEMENT), or nullptr.
  template <class X>
  const X* extension(const char* id) const {
    return static_cast<const X*>(raw_->extension(raw_, id));
  }
  // The absolute path of a packaged asset.
  std::string asset(const std::string& name) const {
    std::string out(512, '\0');
    std::uint64_t len = 0;
    ep_status s = raw_->asset(raw_, name.c_str(), out.data(), out.size(), &len);
    if (s == EP_E_ARGUMENT && len >= out.size()) {
      out.resize(len + 1);
      s = raw_->asset(raw_, name.c_str(), out.data(), out.size(), &len);
    }
    if (s != EP_OK) throw error(s, "asset not available: " + name);
    out.resize(len);
    return out;
  }

 private:
  const ep_host* raw_;
};

// What an env may know of itself at its making; converts to host.
struct context : host {
  std::uint64_t env_id;  // for logs and error texts: must not influence the dynamics
};

// ---- fields ------------------------------------------------------------------------------------

// A pointer and a size; false if the host does not want these values.
template <class T>
class slice {
 public:
  constexpr slice(T* data, std::size_t size) : data_(data), size_(size) {}
  constexpr explicit operator bool() const { return data_ != nullptr; }
  constexpr T* data() const { return data_; }
  constexpr std::size_t size() const { return size_; }
  constexpr T& operator[](std::size_t i) const { return data_[i]; }
  constexpr T* begin() const { return data_; }
  constexpr T* end() const { return data_ + size_; }
  constexpr operator std::span<T>() const { return {data_, size_}; }

 private:
  T* data_;
  std::size_t size_;
};

// Handle of a field: made by spec, used to look into an input or a view.
//   obs<float>         a scalar          obs<float[4]>, obs<uint8_t[84][84]>    a tensor
//   obs<float[]>       a tensor whose shape is told at run time; may be ragged
//   obs<text>          a string
template <class T, ep_role Role>
struct field {
  using element =
      std::conditional_t<std::is_same_v<T, text>, std::uint8_t, std::remove_all_extents_t<T>>;
  static constexpr bool is_text = std::is_same_v<T, text>;
  static constexpr bool dynamic = is_text || std::is_unbounded_array_v<T>;
  static constexpr bool scalar = !dynamic && !std::is_array_v<T>;
  static constexpr std::size_t fixed =
      dynamic ? 0 : sizeof(std::conditional_t<dynamic, char, T>) / sizeof(element);
  static_assert(envpool::element<element>,
                "a field's elements are bool, integers, float, double or envpool::half");

  std::uint32_t index = 0;   // place among the fields of its role
  std::uint32_t stride = 0;  // elements from one agent to the next; 0: not per agent
  std::uint32_t count = 1;   // elements (of one agent)
  std::uint32_t inner = 0;   // elements in one unit of length; 0: the field has no length

  constexpr std::size_t size() const {
    if constexpr (dynamic) return count;
    return fixed;
  }
};
template <class T>
using obs = field<T, EP_OBS>;
template <class T>
using action = field<T, EP_ACTION>;
template <class T>
using info = field<T, EP_INFO>;
template <class T>
using global = field<T, EP_GLOBAL>;

namespace detail {
inline const char* or_null(const std::string& s) { return s.empty() ? nullptr : s.c_str(); }

struct field_record {
  ep_field raw{};
  std::string name, doc, unit, meaning;
  std::vector<std::int64_t> shape, n, start;
  std::vector<std::byte> low, high;
  std::vector<std::string> labels;
  std::vector<std::uint8_t> palette, gray;
  std::uint32_t index = 0, count = 1;
};
}  // namespace detail

// What can be said of a field, chained; becomes the field's handle.
template <class T, ep_role Role>
class field_builder {
 public:
  using handle = field<T, Role>;
  using element = typename handle::element;
  explicit field_builder(detail::field_record* r) : r_(r) {}

  field_builder doc(std::string line) const { return set(r_->doc, std::move(line)); }
  field_builder unit(std::string name) const { return set(r_->unit, std::move(name)); }
  field_builder meaning(std::string use) const { return set(r_->meaning, std::move(use)); }
  // Inclusive bounds, one for all elements or one each.
  field_builder within(element low, element high) const { return bounds({&low, 1}, {&high, 1}); }
  field_builder within(const std::vector<element>& low, const std::vector<element>& high) const
    requires(!std::same_as<element, bool>)
  {
    return bounds(low, high);
  }
  // Integers start .. start+n-1, alike for all elements or one count each (multi-discrete).
  field_builder discrete(std::int64_t n, std::int64_t start = 0) const {
    return discrete(std::vector{n}, std::vector{start});
  }
  field_builder discrete(std::vector<std::int64_t> n, std::vector<std::int64_t> start = {}) const {
    r_->raw.kind = EP_DISCRETE;
    r_->n = std::move(n);
    return set(r_->start, std::move(start));
  }
  field_builder labels(std::vector<std::string> names) const {
    return set(r_->labels, std::move(names));
  }
  field_builder multi_binary() const { return set(r_->raw.kind, EP_MULTI_BINARY); }
  // EP_HW, EP_HWC or EP_CHW.
  field_builder image(ep_layout layout) const { return set(r_->raw.layout, layout); }
  // Palette indices: 256 x RGB and 256 gray levels.
  field_builder indexed(std::span<const std::uint8_t, 768> palette,
                        std::span<const std::uint8_t, 256> gray) const {
    r_->palette.assign(palette.begin(), palette.end());
    r_->gray.assign(gray.begin(), gray.end());
    return image(EP_INDEXED);
  }
  field_builder per_agent(std::uint32_t group = 0) const {
    return flag(EP_FIELD_PER_AGENT).set(r_->raw.group, group);
  }
  // shape[0] is a maximum.
  field_builder ragged() const
    requires(handle::dynamic && !handle::is_text)
  {
    return flag(EP_FIELD_RAGGED);
  }
  field_builder not_deterministic() const { return flag(EP_FIELD_VOLATILE); }

  operator handle() const {
    handle h;
    const bool length = handle::is_text || (r_->raw.flags & EP_FIELD_RAGGED) != 0;
    h.index = r_->index;
    h.count = r_->count;
    h.stride = (r_->raw.flags & EP_FIELD_PER_AGENT) != 0 ? r_->count : 0;
    h.inner = length ? r_->count / static_cast<std::uint32_t>(r_->shape.at(0)) : 0;
    return h;
  }

 private:
  template <class V>
  field_builder set(V& member, std::type_identity_t<V> value) const {
    return member = std::move(value), *this;
  }
  field_builder flag(std::uint32_t bit) const { return r_->raw.flags |= bit, *this; }
  field_builder bounds(std::span<const element> low, std::span<const element> high) const {
    if (low.size() != high.size())
      throw error(EP_E_FAILED, "field \"" + r_->name + "\": as many low as high bounds");
    r_->raw.bound_count = static_cast<std::uint32_t>(low.size());
    const auto bytes = [](std::span<const element> v) { return std::as_bytes(v); };
    r_->low.assign(bytes(low).begin(), bytes(low).end());
    r_->high.assign(bytes(high).begin(), bytes(high).end());
    return *this;
  }

  detail::field_record* r_;
};

// What describe() fills: fields in order, and what the whole task is like.
class spec {
 public:
  explicit spec(const ep_host* h) : host_(h) {}
  spec(const spec&) = delete;
  spec& operator=(const spec&) = delete;

  std::uint32_t max_agents = 1;
  std::int64_t max_episode_steps = 0;  // 0: no limit
  double reward_threshold = std::numeric_limits<double>::quiet_NaN();
  double fps = 0;

  envpool::host host() const { return host_; }

  // "a/b" nests, digits make tuples, "" stands alone in its role. A shape: of T[], {max} of text.
  template <class T>
  auto obs(std::string name, std::vector<std::int64_t> shape = {}) {
    return add<T, EP_OBS>(name, shape);
  }
  template <class T>
  auto action(std::string name, std::vector<std::int64_t> shape = {}) {
    return add<T, EP_ACTION>(name, shape);
  }
  template <class T>
  auto info(std::string name, std::vector<std::int64_t> shape = {}) {
    return add<T, EP_INFO>(name, shape);
  }
  template <class T>
  auto global(std::string name, std::vector<std::int64_t> shape = {}) {
    return add<T, EP_GLOBAL>(name, shape);
  }

  std::uint32_t count(ep_role role) const { return count_[static_cast<std::size_t>(role)]; }

  // Hands everything to the host.
  ep_status emit(ep_spec* to) {
    to->max_agents = max_agents;
    to->max_episode_steps = max_episode_steps;
    to->reward_threshold = reward_threshold;
    to->fps = fps;
    for (detail::field_record& r : fields_) {
      ep_field& f = r.raw;
      f.name = r.name.c_str();
      f.doc = detail::or_null(r.doc);
      f.unit = detail::or_null(r.unit);
      f.meaning = detail::or_null(r.meaning);
      f.shape = r.shape.empty() ? nullptr : r.shape.data();
      f.rank = static_cast<std::uint32_t>(r.shape.size());
      if (f.kind == EP_DISCRETE) {
        if (!r.start.empty() && r.start.size() != r.n.size())
          throw error(EP_E_FAILED, "field \"" + r.name + "\": as many starts as counts");
        f.n = r.n.data();
        f.start = r.start.empty() ? nullptr : r.start.data();
        f.bound_count = static_cast<std::uint32_t>(r.n.size());
      } else if (!r.low.empty()) {
        f.low = r.low.data();
        f.high = r.high.data();
      }
      std::vector<const char*> labels;
      for (const std::string& label : r.labels) labels.push_back(label.c_str());
      if (!labels.empty()) {
        if (f.kind != EP_DISCRETE || r.n.at(0) != static_cast<std::int64_t>(labels.size()))
          throw error(EP_E_FAILED, "field \"" + r.name + "\": one label for each discrete value");
        f.labels = labels.data();
      }
      if (!r.palette.empty()) {
        f.palette = r.palette.data();
        f.gray = r.gray.data();
      }
      if (const ep_status s = to->add(to, &f); s != EP_OK) return s;
    }
    return EP_OK;
  }

 private:
  template <class T, ep_role Role>
  field_builder<T, Role> add(std::string& name, std::vector<std::int64_t>& shape) {
    using F = field<T, Role>;
    if constexpr (std::is_bounded_array_v<T>) {
      if (!shape.empty())
        throw error(EP_E_FAILED, "field \"" + name + "\": its type has the shape already");
      extents<T>(shape);
    }
    if ((F::dynamic && shape.empty()) || (F::is_text && shape.size() != 1) ||
        (F::scalar && !shape.empty()))
      throw error(EP_E_FAILED,
                  "field \"" + name + "\": a T[] has a shape, a text {max}, a scalar none");
    detail::field_record& r = fields_.emplace_back();
    r.raw.size = sizeof(ep_field);
    r.raw.role = Role;
    r.raw.kind = F::is_text ? EP_TEXT : EP_BOX;
    r.raw.dtype = dtype_of<typename F::element>;
    r.index = count_[static_cast<std::size_t>(Role)]++;
    for (const std::int64_t d : shape) {
      if (d <= 0 || d > std::numeric_limits<std::uint32_t>::max() / r.count)
        throw error(EP_E_FAILED,
                    "field \"" + name + "\": a shape is positive and below 2^32 elements");
      r.count *= static_cast<std::uint32_t>(d);
    }
    r.name = std::move(name);
    r.shape = std::move(shape);
    return field_builder<T, Role>(&r);
  }
  template <class T>
  static void extents(std::vector<std::int64_t>& to) {
    if constexpr (std::is_array_v<T>) {
      to.push_back(static_cast<std::int64_t>(std::extent_v<T>));
      extents<std::remove_extent_t<T>>(to);
    }
  }

  envpool::host host_;
  std::deque<detail::field_record> fields_;
  std::array<std::uint32_t, 5> count_{};
};

// ---- stepping ----------------------------------------------------------------------------------

// The action. in[handle]: a scalar's value, a tensor's slice<const T> (of a ragged one: what is
// there), a text's string_view. in.agent(i)[handle]: of agent i.
class input {
 public:
  explicit input(const ep_input& raw, std::uint32_t agent = 0) : raw_(&raw), agent_(agent) {}
  std::uint32_t agents() const { return raw_->agents; }
  input agent(std::uint32_t i) const { return input(*raw_, i); }

  template <class T>
  auto operator[](const action<T>& h) const {
    using E = typename action<T>::element;
    const E* p = static_cast<const E*>(raw_->action[h.index]) + std::size_t{agent_} * h.stride;
    if constexpr (action<T>::scalar) {
      return *p;
    } else {
      std::size_t size = h.size();
      if constexpr (action<T>::dynamic) {
        if (h.inner != 0)
          size = std::size_t{raw_->action_length[h.index][h.stride != 0 ? agent_ : 0]} * h.inner;
      }
      if constexpr (action<T>::is_text)
        return std::string_view(reinterpret_cast<const char*>(p), size);
      else
        return slice<const E>(p, size);
    }
  }
  const ep_input& raw() const { return *raw_; }

 private:
  const ep_input* raw_;
  std::uint32_t agent_;
};

// Where observe() writes. v[handle]: a pointer to a scalar or a slice<T> of a tensor, null (false)
// if not wanted. v.put(handle, values...): writes them if wanted. v.agent(i): the same for agent i.
// Every element of a wanted field must be written.
class view {
 public:
  explicit view(const ep_view& raw, std::uint32_t agent = 0) : raw_(&raw), agent_(agent) {}
  std::uint32_t agents() const { return raw_->agents; }
  view agent(std::uint32_t i) const { return view(*raw_, i); }

  template <class T, ep_role Role>
  bool wants(const field<T, Role>& h) const {
    return base<T, Role>(h) != nullptr;
  }
  template <class T, ep_role Role>
  auto operator[](const field<T, Role>& h) const {
    using E = typename field<T, Role>::element;
    E* p = base<T, Role>(h);
    if (p != nullptr) p += std::size_t{agent_} * h.stride;
    if constexpr (field<T, Role>::scalar)
      return p;
    else
      return slice<E>(p, h.size());
  }

  // Tells how long a ragged field or a text is and gives the part to write.
  template <class T, ep_role Role>
    requires(field<T, Role>::dynamic)
  auto resize(const field<T, Role>& h, std::size_t length) const {
    auto all = (*this)[h];
    if (h.inner == 0 || length * h.inner > h.count)
      throw error(EP_E_FAILED, "a length that its field can't have: " + std::to_string(length));
    std::uint32_t* const* lengths = Role == EP_OBS    ? raw_->obs_length
                                    : Role == EP_INFO ? raw_->info_length
                                                      : raw_->global_length;
    if (all) lengths[h.index][h.stride != 0 ? agent_ : 0] = static_cast<std::uint32_t>(length);
    return decltype(all)(all.data(), length * h.inner);
  }

  // A scalar's value; all of a tensor's values, each an argument or together as a range; a text.
  template <class T, ep_role Role, class... V>
  void put(const field<T, Role>& h, const V&... values) const {
    using F = field<T, Role>;
    using E = typename F::element;
    if (!wants(h)) return;
    if constexpr (F::is_text) {
      put_text(h, values...);
    } else if constexpr (F::scalar) {
      *(*this)[h] = cast<E>(values...);
    } else if constexpr (sizeof...(V) == 1 && (std::ranges::sized_range<const V> && ...)) {
      put_range(h, values...);
    } else {
      static_assert(F::dynamic || sizeof...(V) == F::fixed, "one value for each element");
      put_range(h, std::array<E, sizeof...(V)>{cast<E>(values)...});
    }
  }
  const ep_view& raw() const { return *raw_; }

 private:
  template <class E, class V>
  static constexpr E cast(const V& v) {
    if constexpr (std::is_same_v<E, V>)
      return v;
    else
      return static_cast<E>(v);
  }
  template <class T, ep_role Role>
  auto base(const field<T, Role>& h) const {
    static_assert(Role != EP_ACTION, "an action is read from the input");
    void* const* of = Role == EP_OBS ? raw_->obs : Role == EP_INFO ? raw_->info : raw_->global;
    return static_cast<typename field<T, Role>::element*>(of == nullptr ? nullptr : of[h.index]);
  }
  template <ep_role Role>
  void put_text(const field<text, Role>& h, std::string_view s) const {
    std::size_t n = std::min<std::size_t>(s.size(), h.count);  // cut between characters
    while (n > 0 && n < s.size() && (static_cast<unsigned char>(s[n]) & 0xC0) == 0x80) --n;
    const auto to = resize(h, n);
    if (n != 0) std::memcpy(to.data(), s.data(), n);
  }
  template <class T, ep_role Role, class V>
  void put_range(const field<T, Role>& h, const V& values) const {
    using E = typename field<T, Role>::element;
    auto to = (*this)[h];
    if constexpr (field<T, Role>::dynamic) {
      if (h.inner != 0) to = resize(h, std::size(values) / h.inner);
    }
    if (std::size(values) != to.size())
      throw error(EP_E_FAILED, "put() of " + std::to_string(std::size(values)) + " values where " +
                                   std::to_string(to.size()) + " go");
    E* p = to.data();
    for (const auto& v : values) *p++ = cast<E>(v);
  }

  const ep_view* raw_;
  std::uint32_t agent_;
};

// What a single agent's step() gives.
struct result {
  double reward = 0;
  bool terminated = false;  // the task's own end
  bool truncated = false;   // cut short for the env's own reasons
};

// What a step of many agents fills, an entry each: reward 0 and flags 0 at first. With one agent
// its flags decide.
class results {
 public:
  explicit results(const ep_result& raw)
      : reward(raw.reward, raw.agents),
        terminated(raw.terminated, raw.agents),
        truncated(raw.truncated, raw.agents),
        raw_(&raw) {}
  std::span<double> reward;
  std::span<std::uint8_t> terminated, truncated;
  std::uint32_t agents() const { return raw_->agents; }
  void alive(std::uint32_t agent, bool yes) const {
    if (raw_->alive != nullptr) raw_->alive[agent] = yes;
  }
  void end_episode(bool yes = true) const {
    if (raw_->episode_over != nullptr) *raw_->episode_over = yes;
  }

 private:
  const ep_result* raw_;
};

// ---- options -----------------------------------------------------------------------------------

namespace detail {
template <class T>
inline constexpr bool is_vector = false;
template <class T>
inline constexpr bool is_vector<std::vector<T>> = element<T> && !std::same_as<T, bool>;

template <class T>
constexpr ep_type option_type() {
  if constexpr (std::same_as<T, bool>)
    return EP_T_BOOL;
  else if constexpr (std::integral<T>)
    return EP_T_INT;
  else if constexpr (std::floating_point<T>)
    return EP_T_FLOAT;
  else if constexpr (std::same_as<T, std::string>)
    return EP_T_STRING;
  else if constexpr (std::same_as<T, path>)
    return EP_T_PATH;
  else if constexpr (std::same_as<T, json>)
    return EP_T_JSON;
  else {
    static_assert(
        is_vector<T>,
        "an option is bool, an integer, float, double, std::string, path, json or std::vector");
    return EP_T_ARRAY;
  }
}
// Points into v where there is something to point to.
template <class T>
ep_value to_value(const T& v) {
  ep_value out{};
  out.type = option_type<T>();
  if constexpr (std::integral<T>)
    out.i = static_cast<std::int64_t>(v);
  else if constexpr (std::floating_point<T>)
    out.f = static_cast<double>(v);
  else if constexpr (is_vector<T>) {
    out.dtype = dtype_of<typename T::value_type>;
    out.data = v.data();
    out.count = v.size();
  } else
    out.s = v.c_str();
  return out;
}
template <class T>
void from_value(const ep_value& v, T& out) {
  if (v.type != option_type<T>()) throw error(EP_E_ARGUMENT, "an option value of the wrong type");
  if constexpr (std::same_as<T, bool>)
    out = v.i != 0;
  else if constexpr (std::integral<T>)
    out = static_cast<T>(v.i);
  else if constexpr (std::floating_point<T>)
    out = static_cast<T>(v.f);
  else if constexpr (is_vector<T>) {
    if (v.dtype != dtype_of<typename T::value_type>)
      throw error(EP_E_ARGUMENT, "an option array of the wrong dtype");
    out.resize(v.count);
    if (v.count != 0) std::memcpy(out.data(), v.data, v.count * sizeof(typename T::value_type));
  } else
    out.assign(v.s);
}
}  // namespace detail

// The options of a task whose values are the members of C. Defaults are what C{} holds.
template <class C>
class options {
  struct record {
    ep_option raw{};
    std::string name, doc, unit;
    ep_value min{}, max{};
    std::vector<ep_value> choices;
    std::deque<std::string> strings;
    std::function<void(C&, const ep_value&)> read;
  };

 public:
  template <class T>
  class builder {
   public:
    explicit builder(record* r) : r_(r) {}
    builder doc(std::string line) const {
      return r_->raw.doc = (r_->doc = std::move(line)).c_str(), *this;
    }
    builder unit(std::string name) const {
      return r_->raw.unit = (r_->unit = std::move(name)).c_str(), *this;
    }
    // Inclusive; of each element of a vector.
    template <class V>
    builder min(V v) const {
      return r_->min = bound(v), r_->raw.min = &r_->min, *this;
    }
    template <class V>
    builder max(V v) const {
      return r_->max = bound(v), r_->raw.max = &r_->max, *this;
    }
    template <class V>
    builder range(V low, V high) const {
      return min(low).max(high);
    }
    builder choices(const std::vector<T>& values) const {
      for (const T& v : values) {
        if constexpr (std::is_arithmetic_v<T>)
          r_->choices.push_back(detail::to_value(v));
        else
          r_->choices.push_back(detail::to_value(r_->strings.emplace_back(v)));
      }
      r_->raw.choices = r_->choices.data();
      r_->raw.choice_count = static_cast<std::uint32_t>(r_->choices.size());
      return *this;
    }
    // The user must give it. Reset takes it anew. What describe() says depends on it.
    builder required() const { return flag(EP_OPTION_REQUIRED); }
    builder at_reset() const { return flag(EP_OPTION_AT_RESET); }
    builder shapes_spec() const { return flag(EP_OPTION_SHAPES_SPEC); }

   private:
    builder flag(std::uint32_t bit) const { return r_->raw.flags |= bit, *this; }
    template <class V>
    static ep_value bound(V v) {
      if constexpr (std::integral<T>)
        return detail::to_value(static_cast<std::int64_t>(v));
      else
        return detail::to_value(static_cast<double>(v));
    }
    record* r_;
  };

  template <class T, class B>
    requires std::derived_from<C, B>
  builder<T> add(std::string name, T B::* member) {
    record& r = records_.emplace_back();
    r.raw.size = sizeof(ep_option);
    r.name = std::move(name);
    r.raw.name = r.name.c_str();
    r.raw.def = detail::to_value(defaults_.*member);
    r.read = [member](C& c, const ep_value& v) { detail::from_value(v, c.*member); };
    if constexpr (std::integral<T> && !std::same_as<T, bool>) {
      using L = std::numeric_limits<T>;
      if constexpr (std::unsigned_integral<T> || sizeof(T) < 8) builder<T>(&r).min(L::min());
      if constexpr (sizeof(T) < 8) builder<T>(&r).max(L::max());
    }
    raw_.push_back(&r.raw);
    return builder<T>(&r);
  }

  std::span<const ep_option* const> raw() const { return raw_; }
  bool any_at_reset() const {
    return std::ranges::any_of(
        raw_, [](const ep_option* o) { return (o->flags & EP_OPTION_AT_RESET) != 0; });
  }
  // Reads the values of all options that have these flags, in declared order.
  void read(C& into, const ep_value* values, std::uint32_t count, std::uint32_t flags = 0) const {
    const auto asked = [flags](const record& r) { return (r.raw.flags & flags) == flags; };
    if (std::ranges::count_if(records_, asked) != static_cast<std::ptrdiff_t>(count))
      throw error(EP_E_ARGUMENT, "a wrong number of option values");
    for (const record& r : records_)
      if (asked(r)) r.read(into, *values++);
  }

 private:
  C defaults_{};
  std::deque<record> records_;
  std::vector<const ep_option*> raw_;
};

// ---- state and pictures ------------------------------------------------------------------------

namespace detail {
// A state is visited member by member: numbers, enums, half, arrays, std::vector and std::string of
// these, and whatever has a member function state(archive).
template <class A, class T>
void visit(A& a, T& v) {
  using V = std::remove_const_t<T>;
  if constexpr (std::is_arithmetic_v<V> || std::is_enum_v<V> || std::same_as<V, half>)
    a.raw(&v, sizeof v);
  else if constexpr (requires { const_cast<V&>(v).state(a); })
    const_cast<V&>(v).state(a);
  else if constexpr (requires { v.resize(std::size_t{}); })
    a.sequence(const_cast<V&>(v));
  else
    for (auto& x : v) visit(a, x);
}
}  // namespace detail

// Where a state goes. Little-endian, no padding.
class writer {
 public:
  void raw(const void* data, std::size_t bytes) {
    const std::size_t before = out_.size();
    out_.resize(before + bytes);
    if (bytes != 0) std::memcpy(out_.data() + before, data, bytes);
  }
  template <class... T>
  void operator()(T&... values) {
    (detail::visit(*this, values), ...);
  }
  template <class S>
  void sequence(S& v) {
    const std::uint64_t n = v.size();
    raw(&n, sizeof n);
    for (auto& x : v) detail::visit(*this, x);
  }
  std::span<const std::byte> bytes() const { return out_; }

 private:
  std::vector<std::byte> out_;
};

// Where a state comes from. A dry reader only checks that the bytes suffice: it changes nothing.
class reader {
 public:
  explicit reader(std::span<const std::byte> in, bool dry = false) : in_(in), dry_(dry) {}
  std::span<const std::byte> take(std::size_t bytes) {
    if (bytes > in_.size()) throw error(EP_E_ARGUMENT, "a state that is too short");
    const auto out = in_.first(bytes);
    in_ = in_.subspan(bytes);
    return out;
  }
  void raw(void* data, std::size_t bytes) {
    const auto from = take(bytes);
    if (!dry_ && bytes != 0) std::memcpy(data, from.data(), bytes);
  }
  template <class... T>
  void operator()(T&... values) {
    (detail::visit(*this, values), ...);
  }
  template <class S>
  void sequence(S& v) {
    std::uint64_t n = 0;
    std::memcpy(&n, take(sizeof n).data(), sizeof n);
    if (n > in_.size()) throw error(EP_E_ARGUMENT, "a state that is too short");
    if (!dry_) v.resize(n);
    typename S::value_type scratch{};
    for (std::uint64_t i = 0; i < n; ++i) detail::visit(*this, dry_ ? scratch : v[i]);
  }
  std::size_t left() const { return in_.size(); }
  std::span<const std::byte> rest() const { return in_; }

 private:
  std::span<const std::byte> in_;
  bool dry_;
};
static_assert(std::endian::native == std::endian::little,
              "states are written as they stand in memory");

// Of a picture, in pixels.
struct size {
  std::uint32_t width, height;
};

// ---- glue: from a class to an ep_task ----------------------------------------------------------

namespace detail {

struct nothing {};
template <class E>
struct config_of {
  using type = nothing;
};
template <class E>
  requires requires { typename E::config; }
struct config_of<E> {
  using type = typename E::config;
};

// Explains the exception in flight: the cold end of every call.
[[gnu::cold, gnu::noinline]] inline ep_status report(const ep_host* h) noexcept {
  try {
    throw;
  } catch (const error& e) {
    h->explain(h, e.what());
    return e.status;
  } catch (const std::bad_alloc&) {
    h->explain(h, "out of memory");
    return EP_E_NOMEM;
  } catch (const std::exception& e) {
    h->explain(h, e.what());
    return EP_E_FAILED;
  } catch (...) {
    h->explain(h, "an exception that is no std::exception");
    return EP_E_BROKEN;
  }
}

// E{a..., context} or E{a...}.
template <class E, class... A>
E make(const context& x, const A&... a) {
  if constexpr (requires { E{a..., x}; }) {
    return E{a..., x};
  } else {
    static_assert(
        requires { E{a...}; },
        "a task is made from config, fields, entry (those it has) and maybe an envpool::context");
    return E{a...};
  }
}

// All of a task but its id: Entry is what tells the tasks of a family apart. Hidden, so that two
// plugins whose classes have one name do not share its statics.
template <class E, class Entry>
struct [[gnu::visibility("hidden")]] glue {
  using config = typename config_of<E>::type;
  static constexpr bool has_config = !std::same_as<config, nothing>;
  static constexpr bool has_entry = !std::same_as<Entry, nothing>;

  static auto fields(spec& s, const config& c, const Entry& e) {
    if constexpr (has_config && has_entry && requires { E::describe(s, c, e); })
      return E::describe(s, c, e);
    else if constexpr (has_entry && requires { E::describe(s, e); })
      return E::describe(s, e);
    else if constexpr (has_config && requires { E::describe(s, c); })
      return E::describe(s, c);
    else {
      static_assert(
          requires { E::describe(s); },
          "static fields describe(envpool::spec &[, const config &][, const entry &])");
      return E::describe(s);
    }
  }
  using fields_type = decltype(fields(std::declval<spec&>(), std::declval<const config&>(),
                                      std::declval<const Entry&>()));

  static E build(const context& x, const config& c, const fields_type& f, const Entry& e) {
    if constexpr (has_config && has_entry)
      return make<E>(x, c, f, e);
    else if constexpr (has_config)
      return make<E>(x, c, f);
    else if constexpr (has_entry)
      return make<E>(x, f, e);
    else
      return make<E>(x, f);
  }

  // An env as the host holds it.
  struct slot {
    const ep_host* host;
    bool running = false;  // between a reset and the end of its episode
    std::uint32_t actions, obs, infos;
    config c;
    E env;
    slot(const context& x, const spec& s, const config& with, const fields_type& f, const Entry& e)
        : host(x.get()),
          actions(s.count(EP_ACTION)),
          obs(s.count(EP_OBS)),
          infos(s.count(EP_INFO)),
          c(with),
          env(build(x, c, f, e)) {}
  };

  static constexpr bool many_agents = requires(E& e, const input& i, results& r) { e.step(i, r); };
  static constexpr bool reset_takes_config =
      has_config && requires(E& e, const config& c) { e.reset(c); };
  static constexpr bool batched = requires { requires static_cast<bool>(E::batch); };
  static constexpr bool drawn = requires(E& e, const ep_image& i) { e.draw(i); };
  static constexpr bool visited = requires(E& e, writer& w, reader& r) {
    e.state(w);
    e.state(r);
  };
  static constexpr bool saved = visited || requires(E& e, writer& w, reader& r) {
    e.save(w, 1);
    e.load(r, 1);
  };
  static constexpr bool named = requires {
    { E::agent_name(0u) } -> std::convertible_to<const char*>;
  };
  static constexpr std::size_t batch_fields = 32;  // per role, in a batched task

  static const envpool::options<config>& options() {
    static const envpool::options<config>& all = *[] {
      auto o = std::make_unique<envpool::options<config>>();
      if constexpr (requires { E::options(*o); }) E::options(*o);
      if (o->any_at_reset() && !reset_takes_config)
        throw error(EP_E_FAILED, "an at_reset() option, but no reset(const config &)");
      return o.release();  // immortal
    }();
    return all;
  }
  static config values(const ep_create* info) {
    config c{};
    options().read(c, info->options, info->option_count);
    return c;
  }

  static ep_status describe(const ep_host* h, const ep_create* info, ep_spec* to,
                            const Entry& e) noexcept try {
    spec s(h);
    fields(s, values(info), e);
    return s.emit(to);
  } catch (...) {
    return report(h);
  }
  static ep_status create(const ep_host* h, const ep_create* info, void** env,
                          const Entry& e) noexcept try {
    spec s(h);
    const config c = values(info);
    const fields_type f = fields(s, c, e);
    if (batched && std::max({s.count(EP_ACTION), s.count(EP_OBS), s.count(EP_INFO)}) > batch_fields)
      throw error(EP_E_UNSUPPORTED, "a batched task has at most 32 fields in a role");
    *env = new slot({envpool::host(h), info->env_id}, s, c, f, e);
    return EP_OK;
  } catch (...) {
    return report(h);
  }

  // Calls f with the env; an exception becomes a status. Costs nothing when nothing fails.
  template <class F>
  static ep_status on(void* p, F f) noexcept {
    slot& s = *static_cast<slot*>(p);
    try {
      f(s);
      return EP_OK;
    } catch (...) {
      return report(s.host);
    }
  }

  static ep_status EP_CALL reset(void* p, const ep_reset* how) noexcept {
    return on(p, [&](slot& s) {
      s.running = false;
      if constexpr (requires { s.env.seed(how->seed); }) {
        if (how->has_seed != 0) s.env.seed(how->seed);
      }
      if constexpr (reset_takes_config) {
        options().read(s.c, how->options, how->option_count, EP_OPTION_AT_RESET);
        s.env.reset(std::as_const(s.c));
      } else {
        s.env.reset();
      }
      s.running = true;
    });
  }
  static ep_status EP_CALL step(void* p, const ep_input* from, const ep_result* to) noexcept {
    return on(p, [&](slot& s) {
      if (!s.running) [[unlikely]]
        throw error(EP_E_STATE, "step() without a running episode: reset() comes first");
      s.running = false;  // stays so if step() fails
      if constexpr (many_agents) {
        results out(*to);
        s.env.step(input(*from), out);
        s.running = to->episode_over != nullptr ? *to->episode_over == 0
                                                : (*to->terminated | *to->truncated) == 0;
      } else {
        const result out = s.env.step(input(*from));
        *to->reward = out.reward;
        *to->terminated = out.terminated;
        *to->truncated = out.truncated;
        s.running = !(out.terminated || out.truncated);
      }
    });
  }
  static ep_status EP_CALL observe(void* p, const ep_view* to) noexcept {
    return on(p, [&](slot& s) { s.env.observe(view(*to)); });
  }
  static void EP_CALL destroy(void* p) noexcept { delete static_cast<slot*>(p); }

  static ep_status EP_CALL step_many(const ep_rows* rows) noexcept {
    const auto point = [](auto& to, const ep_column* from, std::uint32_t n, std::uint32_t row) {
      for (std::uint32_t k = 0; k < n; ++k)
        to[k] = from[k].data == nullptr
                    ? nullptr
                    : static_cast<char*>(from[k].data) + row * from[k].row_bytes;
    };
    const void* action[batch_fields];
    void *obs[batch_fields], *info[batch_fields];
    const ep_input in = {sizeof(ep_input), 1, action, nullptr};
    const ep_view view = {sizeof(ep_view),
                          1,
                          rows->obs ? obs : nullptr,
                          rows->info ? info : nullptr,
                          nullptr,
                          nullptr,
                          nullptr,
                          nullptr};
    ep_status all = EP_OK;
    for (std::uint32_t i = 0; i < rows->count; ++i) {
      const slot& s = *static_cast<const slot*>(rows->env[i]);
      const std::uint32_t to = rows->out[i];
      point(action, rows->action, s.actions, rows->in[i]);
      if (rows->obs != nullptr) point(obs, rows->obs, s.obs, to);
      if (rows->info != nullptr) point(info, rows->info, s.infos, to);
      const ep_result out = {
          sizeof(ep_result), 1,      rows->reward + to, rows->terminated + to, rows->truncated + to,
          nullptr,           nullptr};
      ep_status status = step(rows->env[i], &in, &out);
      if (status == EP_OK) status = observe(rows->env[i], &view);
      rows->status[to] = status;
      if (status != EP_OK) [[unlikely]]
        all = status;
    }
    return all;
  }

  static constexpr std::uint32_t formats() {
    if constexpr (requires { E::formats; })
      return E::formats;
    else
      return 1u << EP_RGB8;
  }
  static ep_status EP_CALL measure(void* p, ep_image* image) noexcept {
    return on(p, [&](slot& s) {
      if (image->format < 1 || image->format > 31 || (formats() >> image->format & 1u) == 0)
        throw error(EP_E_ARGUMENT, "a picture format that this env does not draw");
      if constexpr (requires { s.env.measure(*image); }) {
        s.env.measure(*image);
      } else {
        const envpool::size own = E::picture;
        if (image->width == 0) image->width = own.width;
        if (image->height == 0) image->height = own.height;
        if (image->width != own.width || image->height != own.height || image->camera != 0)
          throw error(EP_E_ARGUMENT, "this env draws one camera at " + std::to_string(own.width) +
                                         " x " + std::to_string(own.height));
      }
    });
  }
  static ep_status EP_CALL draw(void* p, const ep_image* image) noexcept {
    return on(p, [&](slot& s) { s.env.draw(*image); });
  }

  // A state's bytes: u32 version (E::state_version, else 1), u32 1 if an episode is running, then
  // what E writes.
  static constexpr std::uint32_t state_version() {
    if constexpr (requires { E::state_version; })
      return E::state_version;
    else
      return 1;
  }
  static constexpr std::uint32_t purposes() {
    if constexpr (requires { E::state_purposes; })
      return E::state_purposes;
    else
      return 1u << EP_STATE_CLONE | (visited ? 1u << EP_STATE_PERSIST : 0);
  }
  static ep_status EP_CALL save(void* p, std::int32_t purpose, const ep_writer* to) noexcept {
    ep_status written = EP_OK;
    const ep_status made = on(p, [&](slot& s) {
      writer w;
      const std::uint32_t head[] = {state_version(), s.running};
      w(head);
      if constexpr (visited)
        s.env.state(w);
      else
        s.env.save(w, purpose);
      written = to->write(to, w.bytes().data(), w.bytes().size());
    });
    return made != EP_OK ? made : written;
  }
  static ep_status EP_CALL load(void* p, std::int32_t purpose, const void* data,
                                std::uint64_t bytes) noexcept {
    return on(p, [&](slot& s) {
      reader r({static_cast<const std::byte*>(data), static_cast<std::size_t>(bytes)});
      std::uint32_t head[2];
      r(head);
      if (head[0] != state_version() || head[1] > 1)
        throw error(EP_E_ARGUMENT, "a state of another kind or version");
      if constexpr (visited) {
        reader dry(r.rest(), true);
        s.env.state(dry);
        if (dry.left() != 0) throw error(EP_E_ARGUMENT, "a state that is too long");
        s.env.state(r);
      } else {
        s.env.load(r, purpose);
      }
      s.running = head[1] != 0;
    });
  }

  static const void* EP_CALL extension(const char* id) noexcept {
    const std::string_view name(id);
    if constexpr (batched) {
      static_assert(!many_agents && E::sharing == EP_FREE,
                    "batch is for single-agent tasks that are EP_FREE");
      static constexpr ep_batch x = {sizeof(ep_batch), 0, step_many};
      if (name == EP_EXT_BATCH) return &x;
    }
    if constexpr (drawn) {
      static constexpr ep_render x = {sizeof(ep_render), formats(), measure, draw};
      if (name == EP_EXT_RENDER) return &x;
    }
    if constexpr (saved) {
      static constexpr ep_state x = {sizeof(ep_state), purposes(), save, load};
      if (name == EP_EXT_STATE) return &x;
    }
    if constexpr (named) {
      static constexpr ep_agents x = agents();
      if (name == EP_EXT_AGENTS) return &x;
    }
    return nullptr;
  }
  static constexpr ep_agents agents() {
    ep_agents x = {sizeof(ep_agents), 1,
                   [](std::uint32_t i) -> const char* { return E::agent_name(i); },
                   [](std::uint32_t) -> const char* { return "agents"; }};
    if constexpr (requires { E::group_name(0u); }) {
      x.group_count = E::group_count;
      x.group = [](std::uint32_t i) -> const char* { return E::group_name(i); };
    }
    return x;
  }

  static ep_task task(const char* id, const char* doc) {
    ep_task t{};
    t.size = sizeof t;
    if constexpr (requires { E::sharing; }) t.sharing = E::sharing;
    if constexpr (requires { E::flags; }) t.flags = E::flags;
    t.id = id;
    t.doc = doc;
    t.options = options().raw().data();
    t.option_count = static_cast<std::uint32_t>(options().raw().size());
    t.reset = reset;
    t.step = step;
    t.observe = observe;
    t.destroy = destroy;
    t.extension = extension;
    return t;
  }
  static constexpr const char* doc() {
    if constexpr (requires { E::doc; })
      return E::doc;
    else
      return nullptr;
  }
};

using task_list = std::vector<const ep_task*>;  // of immortal tasks

template <class E>
struct tasks_of {
  using G = glue<E, nothing>;
  static void append(task_list& to) {
    auto* t = new ep_task(G::task(E::id, G::doc()));
    t->describe = [](const ep_host* h, const ep_create* c, ep_spec* s) noexcept {
      return G::describe(h, c, s, nothing{});
    };
    t->create = [](const ep_host* h, const ep_create* c, void** env) noexcept {
      return G::create(h, c, env, nothing{});
    };
    to.push_back(t);
  }
};
}  // namespace detail

// Many tasks of one class. Entries is an std::array or C array with static storage (its length is
// fixed, its contents need not be constant) of a type with a member `const char *id` and maybe
// `doc`; E::describe() and E's constructor are given the task's entry:
//   ENVPOOL_PLUGIN("atari", "1.0.0", envpool::family<Atari, games>)
template <class E, const auto& Entries>
struct family;

namespace detail {
template <class E, const auto& Entries>
struct tasks_of<family<E, Entries>> {
  using G = glue<E, std::remove_cvref_t<decltype(Entries[0])>>;
  static void append(task_list& to) {
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      (to.push_back(one<I>()), ...);
    }(std::make_index_sequence<std::size(Entries)>{});
  }
  template <std::size_t I>
  static const ep_task* one() {
    const char* doc = G::doc();
    if constexpr (requires { Entries[I].doc; }) doc = Entries[I].doc;
    auto* t = new ep_task(G::task(Entries[I].id, doc));
    t->describe = [](const ep_host* h, const ep_create* c, ep_spec* s) noexcept {
      return G::describe(h, c, s, Entries[I]);
    };
    t->create = [](const ep_host* h, const ep_create* c, void** env) noexcept {
      return G::create(h, c, env, Entries[I]);
    };
    return t;
  }
};
}  // namespace detail

// What a plugin says of itself.
struct about {
  const char *name, *version, *license = nullptr, *url = nullptr;
};

// The plugin of these tasks; made once, never freed. nullptr, explained: something in their
// options() was wrong.
template <class... Tasks>
[[gnu::visibility("hidden")]] const ep_plugin* plugin(const about& a, const ep_host* h) noexcept
    try {
  struct storage {
    ep_plugin plugin;
    detail::task_list tasks;
  };
  static const storage* const made = [&a] {
    auto s = std::make_unique<storage>();
    (detail::tasks_of<Tasks>::append(s->tasks), ...);
    s->plugin = {sizeof(ep_plugin),
                 EP_ABI_MAJOR,
                 EP_ABI_MINOR,
                 0,
                 0,
                 static_cast<std::uint32_t>(s->tasks.size()),
                 s->tasks.data(),
                 a.name,
                 a.version,
                 a.license,
                 a.url};
    return s.release();
  }();
  return &made->plugin;
} catch (...) {
  detail::report(h);
  return nullptr;
}

}  // namespace envpool

// Makes this library a plugin: ENVPOOL_PLUGIN("classic", "1.0.0", CartPole, Acrobot). Once a
// library.
#define ENVPOOL_PLUGIN(NAME, VERSION, ...) \
  ENVPOOL_PLUGIN_ABOUT((::envpool::about{NAME, VERSION}), __VA_ARGS__)
// The same from an envpool::about, which has the licence and an address too.
#define ENVPOOL_PLUGIN_ABOUT(ABOUT, ...)                                              \
  extern "C" EP_EXPORT const ep_plugin* EP_CALL envpool_plugin_v1(const ep_host* h) { \
    return ::envpool::plugin<__VA_ARGS__>(ABOUT, h);                                  \
  }

#endif  // ENVPOOL_ENV_HPP
