// orders.cpp - see orders.hpp.
#include "orders.hpp"

#include <cstring>
#include <type_traits>
#include <utility>
#include <variant>

#include "error.hpp"

namespace envpool::runtime {
namespace {

static_assert(std::is_trivially_copyable_v<PlanSettings>);

class Writer {
 public:
  template <class T>
    requires std::is_trivially_copyable_v<T>
  void put(const T& value) {
    const auto* bytes = reinterpret_cast<const std::byte*>(&value);
    out_.insert(out_.end(), bytes, bytes + sizeof value);
  }
  void put(const std::string& text) { put_all(text.data(), text.size()); }
  void put(const OptionArray& array) {
    put(array.dtype);
    put_all(array.bytes.data(), array.bytes.size());
  }
  void put(const NamedOption& option) {
    put(option.name);
    put(static_cast<std::uint8_t>(option.value.index()));
    std::visit([&](const auto& value) { put(value); }, option.value);
  }
  template <class T>
  void put(const std::vector<T>& all) {
    put(all.size());
    for (const T& one : all) put(one);
  }
  std::vector<std::byte> take() { return std::move(out_); }

 private:
  void put_all(const void* data, std::size_t bytes) {
    put(bytes);
    const auto* from = static_cast<const std::byte*>(data);
    out_.insert(out_.end(), from, from + bytes);
  }

  std::vector<std::byte> out_;
};

class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : rest_(bytes) {}

  template <class T>
    requires std::is_trivially_copyable_v<T>
  void get(T& value) {
    std::memcpy(&value, next(sizeof value).data(), sizeof value);
  }
  void get(std::string& text) {
    const auto bytes = next(size());
    text.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  void get(OptionArray& array) {
    get(array.dtype);
    const auto bytes = next(size());
    array.bytes.assign(bytes.begin(), bytes.end());
  }
  void get(NamedOption& option) {
    get(option.name);
    std::uint8_t index = 0;
    get(index);
    const auto read = [&]<class T>(T value) {
      get(value);
      option.value = std::move(value);
    };
    switch (index) {
      case 0:
        return read(bool{});
      case 1:
        return read(std::int64_t{});
      case 2:
        return read(double{});
      case 3:
        return read(std::string{});
      default:
        return read(OptionArray{});
    }
  }
  template <class T>
  void get(std::vector<T>& all) {
    all.clear();
    for (std::size_t count = size(); count > 0; --count) get(all.emplace_back());
  }

 private:
  std::size_t size() {
    std::size_t value = 0;
    get(value);
    return value;
  }
  std::span<const std::byte> next(std::size_t bytes) {
    if (bytes > rest_.size()) {
      throw Error(ErrorKind::kRuntime, "a worker's orders are cut short");
    }
    const auto taken = rest_.first(bytes);
    rest_ = rest_.subspan(bytes);
    return taken;
  }

  std::span<const std::byte> rest_;
};

// All members in one order, for both directions.
template <class Side, class O, class Act>
void each_member(Side& side, O& o, Act act) {
  act(side, o.plugin_path);
  act(side, o.task_id);
  act(side, o.options);
  act(side, o.plan);
  act(side, o.num_envs);
  act(side, o.envs_per_worker);
  act(side, o.affinity_offset);
  act(side, o.cpus);
  act(side, o.spins);
  act(side, o.timed);
  act(side, o.digest);
}

}  // namespace

std::vector<std::byte> to_bytes(const Orders& orders) {
  Writer writer;
  each_member(writer, orders, [](Writer& w, const auto& member) { w.put(member); });
  writer.put(orders.assets.size());
  for (const auto& [name, path] : orders.assets) {
    writer.put(name);
    writer.put(path);
  }
  return writer.take();
}

Orders orders_from(std::span<const std::byte> bytes) {
  Reader reader(bytes);
  Orders orders;
  each_member(reader, orders, [](Reader& r, auto& member) { r.get(member); });
  std::size_t count = 0;
  reader.get(count);
  for (; count > 0; --count) {
    std::string name, path;
    reader.get(name);
    reader.get(path);
    orders.assets[name] = path;
  }
  return orders;
}

std::vector<std::byte> to_bytes(const std::vector<NamedOption>& options) {
  Writer writer;
  writer.put(options);
  return writer.take();
}

std::vector<NamedOption> options_from(std::span<const std::byte> bytes) {
  Reader reader(bytes);
  std::vector<NamedOption> options;
  reader.get(options);
  return options;
}

}  // namespace envpool::runtime
