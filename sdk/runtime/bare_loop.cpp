#include "bare_loop.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <string>
#include <vector>

#include "env.hpp"
#include "error.hpp"

namespace envpool::runtime {
namespace {

using Clock = std::chrono::steady_clock;

// One env, and the memory that its calls read and write.
class BareEnv {
 public:
  BareEnv(const Plan& plan, const Options& options)
      : plan_(plan),
        at_reset_(options.at_reset({})),
        scratch_(plan),
        action_(plan.source.action.size()),
        action_length_(plan.source.action.size()) {
    allocate(plan.source.obs, scratch_.obs, scratch_.obs_length);
    allocate(plan.source.info, scratch_.info, scratch_.info_length);
    allocate(plan.source.global, scratch_.global, scratch_.global_length);
    const ep_create how{sizeof how, static_cast<std::uint32_t>(options.values().size()),
                        options.values().data(), 0};
    check(plan.task.create(plan.host.abi(), &how, &handle_), "create");
    if (!handle_) throw Error(ErrorKind::kEnv, where("create") + "returned EP_OK without an env");
  }
  ~BareEnv() {
    if (handle_) plan_.task.destroy(handle_);
  }
  BareEnv(const BareEnv&) = delete;
  BareEnv& operator=(const BareEnv&) = delete;

  void reset(const std::uint64_t* seed) {
    const ep_reset how{sizeof how,
                       seed != nullptr,
                       seed ? *seed : 0,
                       at_reset_.values().data(),
                       static_cast<std::uint32_t>(at_reset_.values().size()),
                       0};
    check(plan_.task.reset(handle_, &how), "reset");
    observe();
  }

  // True: the episode is over.
  bool step(const Actions& actions, std::uint32_t row) {
    actions.point(row, action_, action_length_);
    const ep_input in{sizeof in, plan_.agents, action_.data(), action_length_.data()};
    const bool many = plan_.agents > 1;
    std::uint8_t over = 0;
    std::fill(scratch_.reward.begin(), scratch_.reward.end(), 0.0);
    std::fill(scratch_.terminated.begin(), scratch_.terminated.end(), std::uint8_t{0});
    std::fill(scratch_.truncated.begin(), scratch_.truncated.end(), std::uint8_t{0});
    std::fill(scratch_.alive.begin(), scratch_.alive.end(), std::uint8_t{1});
    const ep_result out{sizeof out,
                        plan_.agents,
                        scratch_.reward.data(),
                        scratch_.terminated.data(),
                        scratch_.truncated.data(),
                        many ? scratch_.alive.data() : nullptr,
                        many ? &over : nullptr};
    check(plan_.task.step(handle_, &in, &out), "step");
    return many ? over != 0 : (scratch_.terminated[0] | scratch_.truncated[0]) != 0;
  }

  void observe() {
    const auto array = [](auto& pointers) { return pointers.empty() ? nullptr : pointers.data(); };
    const ep_view view{sizeof view,
                       plan_.agents,
                       array(scratch_.obs),
                       array(scratch_.info),
                       array(scratch_.global),
                       array(scratch_.obs_length),
                       array(scratch_.info_length),
                       array(scratch_.global_length)};
    check(plan_.task.observe(handle_, &view), "observe");
  }

 private:
  void allocate(const std::vector<Field>& fields, std::vector<void*>& data,
                std::vector<std::uint32_t*>& lengths) {
    for (std::size_t i = 0; i < fields.size(); ++i) {
      data[i] = buffers_.emplace_back(fields[i].row_bytes(plan_.agents)).data();
      lengths[i] = fields[i].has_length()
                       ? lengths_.emplace_back(fields[i].agents(plan_.agents)).data()
                       : nullptr;
    }
  }

  std::string where(const char* call) const {
    return std::string(plan_.task.id) + ": " + call + ": ";
  }
  void check(ep_status status, const char* call) const {
    if (status != EP_OK) [[unlikely]]
      throw Error(ErrorKind::kEnv, where(call) + take_explanation(status));
  }

  const Plan& plan_;
  const Options at_reset_;
  Scratch scratch_;
  std::vector<std::vector<std::byte>> buffers_;  // one a field
  std::vector<std::vector<std::uint32_t>> lengths_;
  std::vector<const void*> action_;
  std::vector<const std::uint32_t*> action_length_;
  void* handle_ = nullptr;
};

}  // namespace

BareLoop bare_loop(const Plan& plan, const Options& options, std::span<const ActionRows> actions,
                   std::uint32_t rows, std::uint64_t seed, std::chrono::nanoseconds time,
                   const std::function<void()>& interrupt) {
  if (rows == 0) throw Error(ErrorKind::kValue, std::string(plan.task.id) + ": no rows of actions");
  Actions drawn(plan, rows);
  std::vector<std::uint32_t> all(rows);
  std::iota(all.begin(), all.end(), 0u);
  drawn.check(actions, all);
  drawn.store(actions, all);

  BareEnv env(plan, options);
  env.reset(&seed);
  BareLoop done;
  std::int64_t elapsed = 0;
  std::uint32_t row = 0;
  // The clock is read every so many steps: often enough for slow envs, seldom enough for fast ones.
  constexpr int kStepsPerLook = 16;
  const auto start = Clock::now();
  auto looked = start;
  do {
    for (int i = 0; i < kStepsPerLook; ++i) {
      bool over = false;
      for (std::int64_t skip = plan.settings.transforms.frame_skip; skip > 0 && !over; --skip)
        over = env.step(drawn, row);
      ++done.steps;
      row = row + 1 == rows ? 0 : row + 1;
      env.observe();
      if (over || ++elapsed == plan.limit) {
        ++done.episodes;
        elapsed = 0;
        env.reset(nullptr);
      }
    }
    const auto now = Clock::now();
    done.took = now - start;
    if (now - looked > std::chrono::milliseconds(50)) {
      looked = now;
      interrupt();
    }
  } while (done.took < time);
  return done;
}

}  // namespace envpool::runtime
