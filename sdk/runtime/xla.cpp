// xla.cpp - see xla.hpp.
#include "xla.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "floats.hpp"

namespace envpool::runtime {
namespace {

// ---- which pool ---------------------------------------------------------------------------------

// By number. Weak, so that a table that nobody cleans up keeps no pool.
class Pools {
 public:
  std::uint64_t add(const std::shared_ptr<Pool>& pool) {
    const std::lock_guard lock(mutex_);
    std::erase_if(pools_, [](const auto& entry) { return entry.second.expired(); });
    for (const auto& [number, known] : pools_) {
      if (!known.owner_before(pool) && !pool.owner_before(known)) return number;  // the same
    }
    std::uint64_t number = 0;
    do {
      number = (std::uint64_t{random_()} << 32) | random_();
    } while (!pools_.try_emplace(number, pool).second);
    return number;
  }

  std::shared_ptr<Pool> find(std::uint64_t number) {
    const std::lock_guard lock(mutex_);
    const auto entry = pools_.find(number);
    return entry == pools_.end() ? nullptr : entry->second.lock();
  }

 private:
  std::mutex mutex_;
  std::random_device random_;
  std::unordered_map<std::uint64_t, std::weak_ptr<Pool>> pools_;
};

// Never destroyed: a program may still run at the process's end.
Pools& pools() {
  static Pools& all = *new Pools;
  return all;
}

// ---- numbers ------------------------------------------------------------------------------------

// Nothing for the dtypes that no field has.
std::optional<ep_dtype> dtype_of(std::int32_t dtype) {
  switch (dtype) {
    case XLA_PRED:
      return EP_BOOL;
    case XLA_U8:
      return EP_UINT8;
    case XLA_U16:
      return EP_UINT16;
    case XLA_U32:
      return EP_UINT32;
    case XLA_U64:
      return EP_UINT64;
    case XLA_S8:
      return EP_INT8;
    case XLA_S16:
      return EP_INT16;
    case XLA_S32:
      return EP_INT32;
    case XLA_S64:
      return EP_INT64;
    case XLA_F16:
      return EP_FLOAT16;
    case XLA_F32:
      return EP_FLOAT32;
    case XLA_F64:
      return EP_FLOAT64;
    default:
      return std::nullopt;
  }
}

bool is_integer(ep_dtype dtype) { return dtype < EP_FLOAT16; }

bool convertible(ep_dtype from, ep_dtype to) {
  if (from == to || (is_integer(from) && is_integer(to))) return true;
  const auto wide = [](ep_dtype dtype) { return dtype == EP_FLOAT32 || dtype == EP_FLOAT64; };
  return wide(from) && wide(to);
}

// False if an integer does not fit: it is cut.
template <class From, class To>
bool convert_as(const void* from, void* to, std::size_t count) {
  const auto* in = static_cast<const From*>(from);
  auto* out = static_cast<To*>(to);
  bool fit = true;
  for (std::size_t i = 0; i < count; ++i) {
    if constexpr (std::is_integral_v<From>) fit &= std::in_range<To>(in[i]);
    out[i] = static_cast<To>(in[i]);
  }
  return fit;
}

template <class Call>
bool with_integer(ep_dtype dtype, Call call) {
  switch (dtype) {
    case EP_BOOL:
    case EP_UINT8:
      return call(std::uint8_t{});
    case EP_UINT16:
      return call(std::uint16_t{});
    case EP_UINT32:
      return call(std::uint32_t{});
    case EP_UINT64:
      return call(std::uint64_t{});
    case EP_INT8:
      return call(std::int8_t{});
    case EP_INT16:
      return call(std::int16_t{});
    case EP_INT32:
      return call(std::int32_t{});
    default:
      return call(std::int64_t{});
  }
}

// Of convertible dtypes. False if an integer does not fit: it is cut.
bool convert(ep_dtype from, const void* in, ep_dtype to, void* out, std::size_t count) {
  if (from == to) {
    std::memcpy(out, in, count * bytes_of(to));
    return true;
  }
  if (from == EP_FLOAT32) return convert_as<float, double>(in, out, count);
  if (from == EP_FLOAT64) return convert_as<double, float>(in, out, count);
  return with_integer(from, [&]<class From>(From) {
    return with_integer(to, [&]<class To>(To) { return convert_as<From, To>(in, out, count); });
  });
}

// ---- what a program passes ----------------------------------------------------------------------

constexpr std::int64_t kHandleBytes = sizeof(std::uint64_t);

// Of an array of rows; the rest may be one row's shape or an agent's.
class Shape {
 public:
  explicit Shape(std::int64_t rows) { push(rows); }
  void push(std::int64_t dim) { dims_[rank_++] = dim; }
  void push(std::span<const std::int64_t> dims) {
    for (const std::int64_t dim : dims) push(dim);
  }
  std::span<const std::int64_t> dims() const { return std::span(dims_).first(rank_); }

 private:
  std::array<std::int64_t, 16> dims_;  // a field's 8, rows and agents, with room to spare
  std::size_t rank_ = 0;
};

std::span<const std::int64_t> dims_of(const xla_buffer& buffer) {
  return {buffer.dims, static_cast<std::size_t>(buffer.rank)};
}

std::string text_of(std::span<const std::int64_t> dims) {
  std::string text = "(";
  for (std::size_t i = 0; i < dims.size(); ++i) {
    text += (i ? ", " : "") + std::to_string(dims[i]);
  }
  return text + (dims.size() == 1 ? ",)" : ")");
}

std::size_t count_of(const xla_buffer& buffer) {
  std::size_t count = 1;
  for (const std::int64_t dim : dims_of(buffer)) count *= static_cast<std::size_t>(dim);
  return count;
}

// Why this is no array of that shape, in a dtype that converts to or from that one; "": it is.
std::string flaw_of(const xla_buffer& buffer, const Shape& shape, ep_dtype dtype) {
  if (!std::ranges::equal(dims_of(buffer), shape.dims())) {
    return " has shape " + text_of(dims_of(buffer)) + ", allowed: " + text_of(shape.dims());
  }
  const std::optional<ep_dtype> given = dtype_of(buffer.dtype);
  if (given && convertible(*given, dtype)) return "";
  return std::string(" has the wrong dtype, allowed: ") + name_of(dtype);
}

// A batch that goes back to its pool.
class Received {
 public:
  explicit Received(Pool& pool) : pool_(pool), batch_(pool.recv(std::nullopt, nullptr)) {}
  ~Received() { pool_.recycle(std::move(batch_)); }
  Received(const Received&) = delete;
  Received& operator=(const Received&) = delete;
  const Batch* operator->() const { return batch_.get(); }

 private:
  Pool& pool_;
  std::unique_ptr<Batch> batch_;
};

// One call of a program.
class Call {
 public:
  explicit Call(const xla_call_frame& frame) : args_(frame.args), rets_(frame.rets) {
    if (args_.size < 1 || rets_.size < 1 || !is_handle(arg(0)) || !is_handle(ret(0))) {
      throw Error(ErrorKind::kValue, "the first array must be the handle that xla() gave");
    }
    std::uint64_t number = 0;
    std::memcpy(&number, arg(0).data, kHandleBytes);
    pool_ = pools().find(number);
    if (!pool_) {
      throw Error(ErrorKind::kClosed,
                  "this handle's pool is gone, or it is the handle of another process");
    }
  }

  void send() {
    const auto& fields = pool_->plan().source.action;
    std::int64_t arrays = 0;
    for (const Field& field : fields) arrays += field.has_length() ? 2 : 1;
    if (args_.size != 1 + arrays && args_.size != 2 + arrays) {
      refuse("send takes the handle, env_id or nothing, and " + std::to_string(arrays) +
             " arrays of actions, not " + std::to_string(args_.size) + " arrays");
    }
    std::int64_t at = 1;
    Pool::EnvIds ids;
    std::size_t rows = pool_->num_envs();
    if (args_.size == 2 + arrays) {
      const xla_buffer& given = arg(at++);
      rows = given.rank ? static_cast<std::size_t>(given.dims[0]) : 0;
      const void* data = take("env_id", given, Shape(given.rank ? given.dims[0] : 0), EP_INT32);
      ids.emplace(static_cast<const std::int32_t*>(data), rows);
    }
    std::vector<ActionRows> actions;
    actions.reserve(fields.size());
    for (const Field& field : fields) {
      Shape shape(static_cast<std::int64_t>(rows));
      if (field.per_agent()) shape.push(pool_->plan().agents);
      const Shape lengths = shape;
      shape.push(field.shape);
      ActionRows& action = actions.emplace_back();
      action.data = take("action", arg(at++), shape, field.dtype, &field);
      if (!field.has_length()) continue;
      action.lengths = static_cast<const std::uint32_t*>(
          take("length of action", arg(at++), lengths, EP_UINT32, &field));
    }
    pool_->send(actions, ids);
  }

  // How many rows the program has room for. Comes before send() and recv(): a program that was made
  // for other pools must not cost this one its rows.
  std::int64_t check_results() const {
    const std::vector<Column>& columns = pool_->plan().columns;
    if (rets_.size != 1 + static_cast<std::int64_t>(columns.size())) {
      refuse("recv gives the handle and " + std::to_string(columns.size()) + " arrays, not " +
             std::to_string(rets_.size));
    }
    const std::int64_t rows = ret(1).rank ? ret(1).dims[0] : 0;
    for (std::size_t i = 0; i < columns.size(); ++i) {
      Shape shape(rows);
      shape.push(columns[i].shape);
      const std::string flaw = flaw_of(result(i), shape, columns[i].dtype);
      if (!flaw.empty()) refuse(columns[i].section + " '" + columns[i].name + "'" + flaw);
    }
    return rows;
  }

  void recv(std::int64_t rows) {
    const Received batch(*pool_);
    if (batch->rows() != rows) {
      throw Error(ErrorKind::kRuntime, std::string(pool_->plan().task.id) + ": recv got " +
                                           std::to_string(batch->rows()) +
                                           " rows, but the program is made for batches of " +
                                           std::to_string(rows));
    }
    const std::vector<Column>& columns = pool_->plan().columns;
    for (std::size_t i = 0; i < columns.size(); ++i) {
      const xla_buffer& to = result(i);
      convert(columns[i].dtype, batch->columns.data[i], *dtype_of(to.dtype), to.data, count_of(to));
    }
  }

  // The handle comes out as it went in.
  void finish() const { std::memcpy(ret(0).data, arg(0).data, kHandleBytes); }

 private:
  const xla_buffer& arg(std::int64_t i) const {
    return *static_cast<const xla_buffer*>(args_.buffers[i]);
  }
  const xla_buffer& ret(std::int64_t i) const {
    return *static_cast<const xla_buffer*>(rets_.buffers[i]);
  }
  const xla_buffer& result(std::size_t column) const {
    return ret(1 + static_cast<std::int64_t>(column));
  }
  static bool is_handle(const xla_buffer& buffer) {
    return buffer.dtype == XLA_U8 && buffer.rank == 1 && buffer.dims[0] == kHandleBytes;
  }
  [[noreturn]] void refuse(const std::string& what) const {
    throw Error(ErrorKind::kValue, std::string(pool_->plan().task.id) + ": " + what);
  }

  // The elements of an argument in this dtype, valid as long as we are.
  const void* take(const std::string& what, const xla_buffer& buffer, const Shape& shape,
                   ep_dtype dtype, const Field* field = nullptr) {
    const auto name = [&] {
      return field && !field->name.empty() ? what + " '" + field->name + "'" : what;
    };
    const std::string flaw = flaw_of(buffer, shape, dtype);
    if (!flaw.empty()) refuse(name() + flaw);
    const ep_dtype given = *dtype_of(buffer.dtype);
    if (given == dtype) return buffer.data;
    const std::size_t count = count_of(buffer);
    std::vector<std::byte>& converted = converted_.emplace_back(count * bytes_of(dtype));
    if (!convert(given, buffer.data, dtype, converted.data(), count)) {
      refuse(name() + " holds values that " + name_of(dtype) + " can't");
    }
    return converted.data();
  }

  const xla_buffers& args_;
  const xla_buffers& rets_;
  std::shared_ptr<Pool> pool_;  // not freed while we are here
  std::vector<std::vector<std::byte>> converted_;
};

// ---- the interface's own needs ------------------------------------------------------------------

// XLA asks each handler once which version of the interface it speaks. All that is used here is
// alike in 0.1 and later, so we speak the older of XLA's and the one that we know. XLA 0.1 does not
// tell its own.
bool tell_version(const xla_call_frame& frame) {
  for (auto* one = frame.extension_start; one; one = one->next) {
    if (one->type != XLA_EXTENSION_METADATA) continue;
    xla_api_version& told = reinterpret_cast<xla_metadata_extension*>(one)->metadata->api_version;
    told.major_version = XLA_MAJOR;
    const std::int32_t theirs = frame.api ? frame.api->api_version.minor_version : 1;
    told.minor_version = std::min<std::int32_t>(XLA_MINOR, theirs);
    return true;
  }
  return false;
}

std::int32_t code_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kValue:
    case ErrorKind::kType:
      return XLA_INVALID_ARGUMENT;
    case ErrorKind::kTimeout:
      return XLA_DEADLINE_EXCEEDED;
    case ErrorKind::kMemory:
      return XLA_RESOURCE_EXHAUSTED;
    case ErrorKind::kRuntime:
    case ErrorKind::kClosed:
      return XLA_FAILED_PRECONDITION;
    case ErrorKind::kPlugin:
    case ErrorKind::kEnv:
      break;
  }
  return XLA_INTERNAL;
}

xla_error* error(const xla_call_frame& frame, std::int32_t code, const char* what) {
  xla_error_create_args args{sizeof args, nullptr, what, code};
  return frame.api->error_create(&args);
}

template <class Act>
xla_error* handle(const xla_call_frame& frame, Act act) noexcept {
  if (tell_version(frame)) return nullptr;
  const OrdinaryFloats ordinary;
  try {
    Call call(frame);
    act(call);
    call.finish();
    return nullptr;
  } catch (const Error& failure) {
    return error(frame, code_of(failure.kind()), failure.what());
  } catch (const std::exception& failure) {
    return error(frame, XLA_INTERNAL, failure.what());
  }
}

}  // namespace

std::uint64_t lend_to_xla(const std::shared_ptr<Pool>& pool) { return pools().add(pool); }

xla_error* xla_send(xla_call_frame* frame) noexcept {
  return handle(*frame, [](Call& call) { call.send(); });
}

xla_error* xla_recv(xla_call_frame* frame) noexcept {
  return handle(*frame, [](Call& call) { call.recv(call.check_results()); });
}

xla_error* xla_step(xla_call_frame* frame) noexcept {
  return handle(*frame, [](Call& call) {
    const std::int64_t rows = call.check_results();
    call.send();
    call.recv(rows);
  });
}

}  // namespace envpool::runtime
