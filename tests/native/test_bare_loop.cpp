// test_bare_loop.cpp - the loop makes the ABI's calls in order, reads no memory but its own (the
// sanitizers look), counts what it did, and tells of what fails.
#include "bare_loop.hpp"

#include <cstdint>
#include <string>
#include <vector>

#include "check.hpp"
#include "plugin.hpp"

using namespace envpool::runtime;
using envpool::test::report;
using namespace std::chrono_literals;

namespace {

Plan plan_of(Plugin& plugin, const ep_task& task, std::int64_t frame_skip = 1) {
  PlanSettings settings;
  settings.transforms.frame_skip = frame_skip;
  return Plan(task, plugin.host(), describe(task, plugin.host(), Options(task, {})), settings);
}

// Zeros for every action field, which every field of the reference plugins allows or is given by
// its start.
struct Zeros {
  explicit Zeros(const Plan& plan, std::size_t rows) {
    for (const Field& field : plan.source.action) {
      auto& data = buffers.emplace_back(rows * field.row_bytes(plan.agents));
      ActionRows action{data.data(), nullptr};
      if (field.kind == EP_DISCRETE && !field.start.empty()) {
        for (std::size_t i = 0; i < data.size() / bytes_of(field.dtype); ++i) {
          const std::size_t element = i % field.count();
          store_number(
              field.dtype, data.data(), i,
              static_cast<long double>(field.start[field.start.size() == 1 ? 0 : element]));
        }
      }
      if (field.has_length())
        action.lengths = lengths.emplace_back(rows * field.agents(plan.agents)).data();
      actions.push_back(action);
    }
  }
  std::vector<std::vector<std::byte>> buffers;
  std::vector<std::vector<std::uint32_t>> lengths;
  std::vector<ActionRows> actions;
};

void test_every_kind_of_field() {
  for (const auto& [file, id] : {std::pair{"cartpole_c", "CartPole-v1"},
                                 {"cartpole_cpp", "CartPole-v1"},
                                 {"kitchen_sink", "KitchenSink-v0"},
                                 {"kitchen_sink", "Image-v0"},
                                 {"kitchen_sink", "Bound-v0"},
                                 {"multi_agent", "Pursuit-v0"}}) {
    Plugin& plugin = Plugin::load(std::string(ENVPOOL_REFERENCE_DIR) + "/" + file + ".so");
    const ep_task& task = plugin.task(id);
    for (const std::int64_t skip : {1, 3}) {
      const Plan plan = plan_of(plugin, task, skip);
      const Zeros zeros(plan, 5);
      const BareLoop done = bare_loop(plan, Options(task, {}), zeros.actions, 5, 1, 2ms, [] {});
      CHECK(done.steps > 0);
      CHECK(done.took >= 2ms);
    }
  }
}

void test_interrupt_ends_it() {
  Plugin& plugin = Plugin::load(std::string(ENVPOOL_REFERENCE_DIR) + "/cartpole_c.so");
  const ep_task& task = plugin.task("CartPole-v1");
  const Plan plan = plan_of(plugin, task);
  const Zeros zeros(plan, 1);
  const auto stop = [] { throw Error(ErrorKind::kRuntime, "stop"); };
  CHECK_THROWS(bare_loop(plan, Options(task, {}), zeros.actions, 1, 1, 1h, stop), kRuntime, "stop");
}

void test_failures() {
  Plugin& plugin = Plugin::load(std::string(ENVPOOL_REFERENCE_DIR) + "/bad_step_status.so");
  const ep_task& task = *plugin.tasks().front();
  const Plan plan = plan_of(plugin, task);
  const Zeros zeros(plan, 1);
  CHECK_THROWS(bare_loop(plan, Options(task, {}), zeros.actions, 1, 1, 1ms, [] {}), kEnv, "12345");
  CHECK_THROWS(bare_loop(plan, Options(task, {}), zeros.actions, 0, 1, 1ms, [] {}), kValue,
               "no rows");
}

}  // namespace

int main() {
  test_every_kind_of_field();
  test_interrupt_ends_it();
  test_failures();
  return report();
}
