// test_xla.cpp - pools called as XLA calls them: frames made by hand, good ones and bad ones.
#include "xla.hpp"

#include <cfenv>
#include <limits>
#include <map>

#include "fake_env.hpp"
#include "floats.hpp"

using namespace envpool::test;

namespace {

// ---- XLA's side ---------------------------------------------------------------------------------

struct Failure {
  std::int32_t code = 0;
  std::string message;
};

xla_error* create_error(xla_error_create_args* args) {
  return reinterpret_cast<xla_error*>(new Failure{args->errc, args->message});
}

template <class T>
constexpr std::int32_t dtype_of() {
  if constexpr (std::is_same_v<T, bool>) return XLA_PRED;
  if constexpr (std::is_same_v<T, std::uint8_t>) return XLA_U8;
  if constexpr (std::is_same_v<T, std::int32_t>) return XLA_S32;
  if constexpr (std::is_same_v<T, std::uint32_t>) return XLA_U32;
  if constexpr (std::is_same_v<T, std::int64_t>) return XLA_S64;
  if constexpr (std::is_same_v<T, float>) return XLA_F32;
  if constexpr (std::is_same_v<T, double>) return XLA_F64;
}

// An array of the program's.
struct Array {
  std::vector<std::int64_t> dims;
  std::vector<std::byte> bytes;
  xla_buffer buffer{};

  Array(std::int32_t dtype, std::size_t size, std::vector<std::int64_t> shape) : dims(shape) {
    for (const std::int64_t dim : dims) size *= static_cast<std::size_t>(dim);
    bytes.resize(size);
    buffer = {sizeof buffer, nullptr, dtype, bytes.data(), static_cast<std::int64_t>(dims.size()),
              dims.data()};
  }
  template <class T>
  static std::unique_ptr<Array> of(std::vector<std::int64_t> shape) {
    return std::make_unique<Array>(dtype_of<T>(), sizeof(T), std::move(shape));
  }
  template <class T>
  static std::unique_ptr<Array> of(std::vector<std::int64_t> shape, const std::vector<T>& values) {
    auto array = of<T>(std::move(shape));
    CHECK(array->bytes.size() == values.size() * sizeof(T));
    std::memcpy(array->bytes.data(), values.data(), array->bytes.size());
    return array;
  }
  template <class T>
  std::vector<T> values() const {
    std::vector<T> all(bytes.size() / sizeof(T));
    std::memcpy(all.data(), bytes.data(), bytes.size());
    return all;
  }
};
using Arrays = std::vector<std::unique_ptr<Array>>;

template <class... One>
Arrays arrays(One... one) {
  Arrays all;
  (all.push_back(std::move(one)), ...);
  return all;
}

using Handler = xla_error* (*)(xla_call_frame*) noexcept;

Failure call(Handler handler, const Arrays& args, const Arrays& rets) {
  const auto buffers = [](const Arrays& from, std::vector<void*>& to) {
    for (const auto& one : from) to.push_back(&one->buffer);
    return xla_buffers{sizeof(xla_buffers), nullptr, static_cast<std::int64_t>(to.size()), nullptr,
                       to.data()};
  };
  std::vector<void*> in, out;
  xla_api api{};
  api.api_version = {sizeof api.api_version, nullptr, XLA_MAJOR, XLA_MINOR};
  api.error_create = create_error;
  xla_call_frame frame{};
  frame.api = &api;
  frame.args = buffers(args, in);
  frame.rets = buffers(rets, out);
  const std::unique_ptr<Failure> failure(reinterpret_cast<Failure*>(handler(&frame)));
  return failure ? *failure : Failure{};
}

#define CHECK_FAILS(failure, status, part)                                       \
  do {                                                                           \
    const Failure failed_ = (failure);                                           \
    CHECK(failed_.code == (status));                                             \
    if (failed_.message.find(part) == std::string::npos)                         \
      fail(__FILE__, __LINE__, "\"" + failed_.message + "\" has no: " + (part)); \
  } while (false)

std::unique_ptr<Array> handle_of(std::uint64_t number) {
  auto array = Array::of<std::uint8_t>({8});
  std::memcpy(array->bytes.data(), &number, sizeof number);
  return array;
}

// What recv gives of a plain fake pool: a result for each column, 64 bits wide or not.
struct Results {
  Arrays arrays;
  std::map<std::string, Array*> at;

  Results(const Pool& pool, std::int64_t rows, bool wide = true) {
    arrays.push_back(Array::of<std::uint8_t>({8}));
    for (const Column& column : pool.plan().columns) {
      std::vector<std::int64_t> shape{rows};
      shape.insert(shape.end(), column.shape.begin(), column.shape.end());
      arrays.push_back([&] {
        switch (column.dtype) {
          case EP_BOOL:
            return Array::of<bool>(shape);
          case EP_INT32:
            return Array::of<std::int32_t>(shape);
          case EP_INT64:
            return wide ? Array::of<std::int64_t>(shape) : Array::of<std::int32_t>(shape);
          case EP_FLOAT32:
            return Array::of<float>(shape);
          default:
            return wide ? Array::of<double>(shape) : Array::of<float>(shape);
        }
      }());
      at[column.name] = arrays.back().get();
    }
  }
  template <class T>
  std::vector<T> get(const std::string& name) const {
    return at.at(name)->values<T>();
  }
};

std::shared_ptr<Pool> shared_pool(const PoolSettings& settings) {
  return make_pool(free_task(), settings);
}

std::unique_ptr<Array> actions(std::vector<std::int32_t> values) {
  const auto rows = static_cast<std::int64_t>(values.size());
  return Array::of<std::int32_t>({rows}, values);
}

// ---- tests --------------------------------------------------------------------------------------

void test_rows_are_the_pools() {
  script->length = 5;
  const auto pool = shared_pool(sizes(3, 3, 2));
  const PoolPtr other = make_pool(free_task(), sizes(3, 3, 2));
  const std::uint64_t number = lend_to_xla(pool);
  CHECK(lend_to_xla(pool) == number);
  reset_all(*pool);
  reset_all(*other);
  for (int t = 0; t < 20; ++t) {
    const std::vector<std::int32_t> act{t % 4, (t + 1) % 4, (t + 2) % 4};
    Results got(*pool, 3);
    if (t % 2) {
      CHECK(call(xla_step, arrays(handle_of(number), actions(act)), got.arrays).code == 0);
    } else {
      Arrays back = arrays(Array::of<std::uint8_t>({8}));
      CHECK(call(xla_send, arrays(handle_of(number), actions(act)), back).code == 0);
      CHECK(back[0]->bytes == handle_of(number)->bytes);
      CHECK(call(xla_recv, arrays(handle_of(number)), got.arrays).code == 0);
    }
    CHECK(got.arrays[0]->bytes == handle_of(number)->bytes);
    send(*other, {0, 1, 2}, act);
    const Got want = recv(*other);
    CHECK(got.get<std::int64_t>("obs") == want.obs);
    CHECK(got.get<double>("reward") == want.reward);
    CHECK(got.get<std::uint8_t>("terminated") == want.terminated);
    CHECK(got.get<std::int32_t>("elapsed_step") == want.elapsed);
  }
}

void test_some_envs() {
  const auto pool = shared_pool(sizes(4, 4, 1));
  const std::uint64_t number = lend_to_xla(pool);
  reset_all(*pool);
  Results got(*pool, 2);
  const auto ids = [](std::vector<std::int64_t> values) {
    const auto rows = static_cast<std::int64_t>(values.size());
    return Array::of<std::int64_t>({rows}, values);
  };
  CHECK(call(xla_step, arrays(handle_of(number), ids({3, 1}), actions({0, 1})), got.arrays).code ==
        0);
  CHECK((got.get<std::int32_t>("env_id") == Ids{3, 1}));
  const auto refused = [&](std::vector<std::int64_t> values, const char* why) {
    CHECK_FAILS(call(xla_step, arrays(handle_of(number), ids(std::move(values)), actions({0, 1})),
                     got.arrays),
                XLA_INVALID_ARGUMENT, why);
  };
  refused({0, 4}, "env_id 4, allowed: 0 .. 3");
  refused({1, 1}, "env_id 1 is given twice");
  refused({0, std::int64_t{1} << 32}, "env_id holds values that int32 can't");
  CHECK(pool->pending() == 0);
}

void test_asynchronous() {
  const auto pool = shared_pool(sizes(4, 2, 2));
  const std::uint64_t number = lend_to_xla(pool);
  reset(*pool, all_ids(*pool));
  std::vector<int> seen(4);
  // All of them get their turn; but a thread that sleeps may hold two of them for a while.
  const auto end = std::chrono::steady_clock::now() + 60s;
  const auto missing = [&] { return std::ranges::find(seen, 0) != seen.end(); };
  for (int t = 0; t < 50 || (missing() && std::chrono::steady_clock::now() < end); ++t) {
    Results got(*pool, 2);
    CHECK(call(xla_recv, arrays(handle_of(number)), got.arrays).code == 0);
    const auto ids = got.get<std::int32_t>("env_id");
    for (const std::int32_t id : ids) ++seen[static_cast<std::size_t>(id)];
    Arrays back = arrays(Array::of<std::uint8_t>({8}));
    CHECK(call(xla_send,
               arrays(handle_of(number), Array::of<std::int32_t>({2}, ids), actions({1, 2})), back)
              .code == 0);
  }
  CHECK(!missing());
  CHECK(pool->pending() == 4);
}

// JAX has 64 bits only when asked to.
void test_other_dtypes() {
  const auto pool = shared_pool(sizes(2, 2, 1));
  const PoolPtr other = make_pool(free_task(), sizes(2, 2, 1));
  const std::uint64_t number = lend_to_xla(pool);
  reset_all(*pool);
  reset_all(*other);
  Results got(*pool, 2, false);
  const auto step_with = [&](auto action) {
    return call(xla_step, arrays(handle_of(number), std::move(action)), got.arrays);
  };
  CHECK(step_with(Array::of<std::int64_t>({2}, {3, 0})).code == 0);
  send(*other, {0, 1}, {3, 0});
  const Got want = recv(*other);
  const auto obs = got.get<std::int32_t>("obs");
  for (std::size_t i = 0; i < obs.size(); ++i) {
    CHECK(obs[i] == static_cast<std::int32_t>(want.obs[i]));  // cut, as JAX does it
  }
  const auto reward = got.get<float>("reward");
  for (std::size_t i = 0; i < reward.size(); ++i) {
    CHECK(reward[i] == static_cast<float>(want.reward[i]));
  }
  CHECK(step_with(Array::of<std::uint8_t>({2}, std::vector<std::uint8_t>{1, 2})).code == 0);
  // 1 in the lower half must not pass for 1.
  CHECK_FAILS(step_with(Array::of<std::int64_t>({2}, {0, (std::int64_t{1} << 32) + 1})),
              XLA_INVALID_ARGUMENT, "Fake-v1: action holds values that int32 can't");
  CHECK_FAILS(step_with(Array::of<float>({2}, std::vector<float>{1, 2})), XLA_INVALID_ARGUMENT,
              "action has the wrong dtype, allowed: int32");
  auto unknown = Array::of<std::int32_t>({2}, {1, 2});
  unknown->buffer.dtype = 16;  // BF16
  CHECK_FAILS(step_with(std::move(unknown)), XLA_INVALID_ARGUMENT, "wrong dtype");
}

void test_bad_frames() {
  const auto pool = shared_pool(sizes(2, 2, 1));
  const std::uint64_t number = lend_to_xla(pool);
  reset_all(*pool);
  Results got(*pool, 2);
  const auto refused = [&](Handler handler, const Arrays& args, const Arrays& rets,
                           const char* why) {
    CHECK_FAILS(call(handler, args, rets), XLA_INVALID_ARGUMENT, why);
    CHECK(pool->pending() == 0);
  };
  refused(xla_step, arrays(handle_of(number), actions({0, 9})), got.arrays,
          "Fake-v1: action of env 1 is 9, allowed: 0 .. 3");
  refused(xla_step, arrays(handle_of(number), actions({0})), got.arrays,
          "Fake-v1: action has shape (1,), allowed: (2,)");
  refused(xla_step, arrays(handle_of(number)), got.arrays, "1 arrays of actions, not 1 arrays");
  refused(xla_step, arrays(), got.arrays, "the first array must be the handle");
  refused(xla_step, arrays(actions({0, 1})), got.arrays, "the first array must be the handle");
  refused(xla_recv, arrays(handle_of(number)), arrays(Array::of<std::uint8_t>({8})),
          "recv gives the handle and");
  Results few(*pool, 2);
  few.at["obs"]->dims[1] = 2;
  refused(xla_step, arrays(handle_of(number), actions({0, 1})), few.arrays,
          "obs 'obs' has shape (2, 2), allowed: (2, 3)");
  Results scalar(*pool, 2);
  scalar.at["obs"]->buffer.rank = 0;
  refused(xla_step, arrays(handle_of(number), actions({0, 1})), scalar.arrays, "has shape ()");

  CHECK_FAILS(call(xla_recv, arrays(handle_of(number)), got.arrays), XLA_FAILED_PRECONDITION,
              "Fake-v1: recv has nothing to wait for");
  CHECK_FAILS(call(xla_recv, arrays(handle_of(number + 1)), got.arrays), XLA_FAILED_PRECONDITION,
              "this handle's pool is gone");
  // More rows than the program has room for.
  Results small(*pool, 1);
  send(*pool, {0, 1});
  CHECK_FAILS(call(xla_recv, arrays(handle_of(number)), small.arrays), XLA_FAILED_PRECONDITION,
              "Fake-v1: recv got 2 rows, but the program is made for batches of 1");
  CHECK(call(xla_step, arrays(handle_of(number), actions({0, 1})), got.arrays).code == 0);
}

void test_faults_and_failures() {
  script->step = [](FakeEnv& env) { return env.id == 1 ? EP_E_FAILED : EP_OK; };
  PoolSettings settings = sizes(2, 2, 1);
  settings.max_faults = 1;
  const auto pool = shared_pool(settings);
  const std::uint64_t number = lend_to_xla(pool);
  Results got(*pool, 2);
  CHECK_FAILS(call(xla_step, arrays(handle_of(number), actions({0, 0})), got.arrays),
              XLA_FAILED_PRECONDITION, "env 0 was never reset");
  reset_all(*pool);
  const auto step_once = [&] {
    return call(xla_step, arrays(handle_of(number), actions({0, 0})), got.arrays);
  };
  CHECK(step_once().code == 0);
  CHECK((got.get<std::uint8_t>("fault") == std::vector<std::uint8_t>{0, 1}));
  CHECK((got.get<std::uint8_t>("truncated") == std::vector<std::uint8_t>{0, 1}));
  CHECK(step_once().code == 0);  // the reset
  CHECK_FAILS(step_once(), XLA_INTERNAL, "more than max_faults=1 faults");
}

// A program waits in recv while the pool is closed and given up: an error, and nothing is touched
// that is gone. The last one to leave frees the pool.
void test_closed_while_waiting() {
  Gate gate;
  std::atomic<int> inside{0};
  script->step = [&](FakeEnv&) {
    ++inside;
    gate.pass();
    return EP_OK;
  };
  std::shared_ptr<Pool> pool = shared_pool(sizes(2, 1, 2));
  const std::uint64_t number = lend_to_xla(pool);
  reset(*pool, all_ids(*pool));
  recv(*pool);
  recv(*pool);
  send(*pool, {0, 1});
  Results got(*pool, 1), later(*pool, 1);
  Failure failure;
  std::thread program([&] { failure = call(xla_recv, arrays(handle_of(number)), got.arrays); });
  while (inside < 2) std::this_thread::yield();
  std::thread closer([&, mine = std::move(pool)]() mutable {
    mine->close(60s);
    mine.reset();
  });
  program.join();  // close() ends the wait before the envs end
  CHECK_FAILS(failure, XLA_FAILED_PRECONDITION, "Fake-v1: the pool is closed");
  gate.open();
  closer.join();
  CHECK_FAILS(call(xla_recv, arrays(handle_of(number)), later.arrays), XLA_FAILED_PRECONDITION,
              "this handle's pool is gone");
}

// Programs on several threads, each with its pool, while others are lent and given up.
void test_many_threads() {
  std::atomic<bool> done{false};
  std::thread lender([&] {
    while (!done) {
      const auto pool = shared_pool(sizes(1, 1, 1));
      CHECK(lend_to_xla(pool) == lend_to_xla(pool));
    }
  });
  std::vector<std::thread> programs;
  for (int i = 0; i < 3; ++i) {
    programs.emplace_back([] {
      const auto pool = shared_pool(sizes(2, 2, 1));
      const std::uint64_t number = lend_to_xla(pool);
      reset_all(*pool);
      for (int t = 1; t <= 100; ++t) {
        Results got(*pool, 2);
        CHECK(call(xla_step, arrays(handle_of(number), actions({0, 1})), got.arrays).code == 0);
        CHECK((got.get<std::int32_t>("elapsed_step") == std::vector<std::int32_t>{t, t}));
      }
    });
  }
  for (std::thread& program : programs) program.join();
  done = true;
  lender.join();
}

// XLA's threads round and flush as XLA likes; envs must not notice, and XLA neither.
void test_floating_point() {
  const auto ordinary = [] {
    volatile double least = std::numeric_limits<double>::min(), one = 1, tiny = 1e-30;
    return least / 4 != 0 && one + tiny == 1;
  };
  std::atomic<int> odd{0};
  script->step = [&](FakeEnv&) {
    odd += !ordinary();
    return EP_OK;
  };
  const auto pool = shared_pool(sizes(2, 2, 1));
  const std::uint64_t number = lend_to_xla(pool);
  reset_all(*pool);
  Results got(*pool, 2);
  std::fenv_t before;
  std::fegetenv(&before);
  std::fesetround(FE_UPWARD);
  CHECK(!ordinary());
  CHECK(call(xla_step, arrays(handle_of(number), actions({0, 1})), got.arrays).code == 0);
  CHECK(!ordinary());
  std::fesetenv(&before);
#ifdef __SSE__
  _mm_setcsr(_mm_getcsr() | 0x8040);  // flush results to zero, take denormal operands for zero
  CHECK(!ordinary());
  CHECK(call(xla_step, arrays(handle_of(number), actions({0, 1})), got.arrays).code == 0);
  CHECK(!ordinary());
  std::fesetenv(&before);
#endif
  CHECK(ordinary() && odd == 0);
}

void test_version() {
  for (const int theirs : {1, int{XLA_MINOR}, XLA_MINOR + 1}) {
    xla_metadata metadata{};
    xla_metadata_extension extension{{sizeof extension, XLA_EXTENSION_METADATA, nullptr},
                                     &metadata};
    xla_api api{};
    api.api_version = {sizeof api.api_version, nullptr, XLA_MAJOR, theirs};
    xla_call_frame frame{};
    frame.api = &api;
    frame.extension_start = &extension.extension_base;
    for (const Handler handler : {xla_send, xla_recv, xla_step}) {
      CHECK(handler(&frame) == nullptr);
      CHECK(metadata.api_version.major_version == XLA_MAJOR);
      CHECK(metadata.api_version.minor_version == std::min<int>(theirs, XLA_MINOR));
      frame.api = nullptr;
      CHECK(handler(&frame) == nullptr && metadata.api_version.minor_version == 1);
      frame.api = &api;
    }
  }
}

}  // namespace

int main() {
  RUN(test_rows_are_the_pools);
  RUN(test_some_envs);
  RUN(test_asynchronous);
  RUN(test_other_dtypes);
  RUN(test_bad_frames);
  RUN(test_faults_and_failures);
  RUN(test_closed_while_waiting);
  RUN(test_many_threads);
  RUN(test_floating_point);
  RUN(test_version);
  return report();
}
