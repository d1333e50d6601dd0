// test_transform.cpp - what stands between an env and its user, frame by frame, against
// docs/dev/atari-semantics.md. All pixels of a frame are one number, so that stacks can be worked
// out by hand.
#include "transform.hpp"

#include <random>

#include "fake_env.hpp"

using namespace envpool::test;

namespace {

using Stack = std::vector<int>;

PoolSettings settings_for(const Transforms& transforms) {
  PoolSettings settings = sizes(1, 1, 1);
  settings.plan.transforms = transforms;
  return settings;
}

// One number a frame, oldest first.
Stack stack_of(const Got& got) {
  Stack stack;
  for (std::size_t i = 0; i < got.image.size(); i += 4) {
    stack.push_back(got.image[i]);
    for (std::size_t k = 1; k < 4; ++k) CHECK(got.image[i + k] == got.image[i]);
  }
  return stack;
}

// Frames are 50 * episode + t.
void test_skip_and_stack() {
  script->step = [](FakeEnv& env) {
    env.reward = static_cast<double>(env.t);
    return EP_OK;
  };
  script->length = 14;
  Transforms t;
  t.frame_skip = 4;
  t.stack_num = 3;
  PoolPtr pool = make_pool(image_task(), settings_for(t));
  CHECK((stack_of(reset_all(*pool)) == Stack{50, 50, 50}));
  Got got = step(*pool);
  CHECK((stack_of(got) == Stack{50, 50, 54}) && got.reward[0] == 1 + 2 + 3 + 4);
  CHECK((stack_of(step(*pool)) == Stack{50, 54, 58}));
  CHECK((stack_of(step(*pool)) == Stack{54, 58, 62}));
  got = step(*pool);  // ends after two frames
  CHECK((stack_of(got) == Stack{58, 62, 64}) && got.terminated[0] && got.elapsed[0] == 4);
  CHECK(got.reward[0] == 13 + 14);
  CHECK((stack_of(step(*pool)) == Stack{100, 100, 100}));

  t.stack_pad = StackPad::kZero;
  pool = make_pool(image_task(), settings_for(t));
  CHECK((stack_of(reset_all(*pool)) == Stack{0, 0, 50}));
  CHECK((stack_of(step(*pool)) == Stack{0, 50, 54}));
  step(*pool);
  step(*pool);
  step(*pool);
  CHECK((stack_of(step(*pool)) == Stack{0, 0, 100}));
}

// Frames get darker, so that the one before shows.
void test_max_true() {
  script->pixel = [](const FakeEnv& env) { return static_cast<std::uint8_t>(200 - env.t); };
  Transforms t;
  t.frame_skip = 4;
  t.max_last_two = true;
  // Ends in frame: whole skip, the last one, the last but one, an earlier one.
  for (const auto& [length, shown] :
       std::vector<std::pair<int, int>>{{0, 197}, {4, 197}, {3, 197}, {2, 198}}) {
    script->length = length;
    PoolPtr pool = make_pool(image_task(), settings_for(t));
    CHECK(stack_of(reset_all(*pool)) == Stack{200});
    script->observed = 0;
    const Got got = step(*pool);
    CHECK(stack_of(got) == Stack{shown} && got.terminated[0] == (length > 0));
    // Unseen frames are never asked for: the last two at most, and the rest of the row.
    CHECK(script->observed <= 3);
  }
  script->length = 0;
  t.frame_skip = 1;
  PoolPtr pool = make_pool(image_task(), settings_for(t));
  reset_all(*pool);
  CHECK(stack_of(step(*pool)) == Stack{199});
  // Autoreset::kSameStep: the true last frame is in the final row.
  script->length = 7;
  t.frame_skip = 4;
  t.stack_num = 2;
  PoolSettings settings = settings_for(t);
  settings.plan.autoreset = Autoreset::kSameStep;
  pool = make_pool(image_task(), settings);
  reset_all(*pool);
  CHECK((stack_of(step(*pool)) == Stack{200, 197}));
  send(*pool, {0});
  auto batch = pool->recv(10s, nullptr);
  CHECK(batch->final_mask == std::vector<std::uint8_t>{1});
  const auto last = column<std::uint8_t>(*pool, batch->finals(), 1, "obs");
  CHECK(last[0] == 197 && last[4] == 193);
  CHECK((stack_of(take(*pool, std::move(batch))) == Stack{200, 200}));
}

void test_stale() {
  // By steps since the game began; frame 3 is brighter than 4, 7 than all.
  static constexpr std::uint8_t kFrames[] = {10, 11, 12, 40, 30, 31, 32, 90, 33, 34, 35, 36, 37};
  script->pixel = [](const FakeEnv& env) { return kFrames[env.t]; };
  Transforms t;
  t.frame_skip = 4;
  t.max_last_two = true;
  t.last_frame = LastFrame::kStale;
  for (const auto& [length, shown] : std::vector<std::pair<int, int>>{
           {0, 90},  // whole: max(frame 7, frame 8)
           {5, 40},  // stopped in frame 1: what was shown before
           {6, 40},
           {7, 40},     // the last but one is not looked at either
           {8, 90}}) {  // stopped in the last frame: max(shown before, frame 7)
    script->length = length;
    PoolPtr pool = make_pool(image_task(), settings_for(t));
    CHECK(stack_of(reset_all(*pool)) == Stack{10});
    CHECK(stack_of(step(*pool)) == Stack{40});
    const Got got = step(*pool);
    CHECK(stack_of(got) == Stack{shown} && got.terminated[0] == (length > 0));
    if (length) CHECK(stack_of(step(*pool)) == Stack{10});
  }
  // The very first step: there is nothing before the reset.
  script->length = 4;
  PoolPtr pool = make_pool(image_task(), settings_for(t));
  reset_all(*pool);
  CHECK(stack_of(step(*pool)) == Stack{40});  // max(10, frame 3)
  step(*pool);
  CHECK(stack_of(step(*pool)) == Stack{40});
  // Without the maximum, and without a skip.
  t.max_last_two = false;
  t.stack_num = 2;
  script->length = 6;
  pool = make_pool(image_task(), settings_for(t));
  reset_all(*pool);
  CHECK((stack_of(step(*pool)) == Stack{10, 30}));
  CHECK((stack_of(step(*pool)) == Stack{30, 30}));
  t.max_last_two = true;
  t.frame_skip = 1;
  script->length = 2;
  pool = make_pool(image_task(), settings_for(t));
  reset_all(*pool);
  CHECK((stack_of(step(*pool)) == Stack{10, 11}));
  CHECK((stack_of(step(*pool)) == Stack{11, 11}));
}

void test_reward_clip() {
  std::vector<double> rewards;
  script->step = [&](FakeEnv& env) {
    env.reward = rewards[static_cast<std::size_t>(env.t - 1)];
    return EP_OK;
  };
  Transforms t;
  t.frame_skip = 2;
  t.reward_clip = true;
  for (const bool narrow : {false, true}) {
    PoolSettings settings = settings_for(t);
    settings.plan.float32_reward = narrow;
    PoolPtr pool = make_pool(free_task(), settings);
    reset_all(*pool);
    rewards = {5, -2, 3, -3, -0.25, 0};
    for (const double raw : {3.0, 0.0, -0.25}) {
      send(*pool, {0});
      auto batch = pool->recv(10s, nullptr);
      const double clipped = (raw > 0) - (raw < 0);
      const double shown =
          narrow ? static_cast<double>(column<float>(*pool, batch->columns, 1, "reward")[0])
                 : column<double>(*pool, batch->columns, 1, "reward")[0];
      CHECK(shown == clipped);
      CHECK(column<float>(*pool, batch->columns, 1, "raw_reward")[0] == static_cast<float>(raw));
      pool->recycle(std::move(batch));
    }
    const Got got = take(*pool, pool->observe(std::nullopt));
    CHECK(got.returns[0] == 2.75);  // raw
  }
}

// A life is lost in frame 3 of the game, the first of the second step.
void test_episodic_life() {
  std::int32_t left = 2;
  script->step = [&](FakeEnv& env) {
    env.reward = 1;
    if (env.episode == 1 && env.t == 3) env.lives = left;
    return EP_OK;
  };
  Transforms t;
  t.frame_skip = 2;
  t.stack_num = 2;
  t.episodic_life = true;

  for (const bool stop : {false, true}) {  // EnvPool: the game goes on
    t.stop_on_life_loss = stop;
    PoolPtr pool = make_pool(image_task(), settings_for(t));
    CHECK((stack_of(reset_all(*pool)) == Stack{50, 50}));
    CHECK((stack_of(step(*pool)) == Stack{50, 52}));
    const int t2 = stop ? 53 : 54;
    Got got = step(*pool);
    CHECK((stack_of(got) == Stack{52, t2}) && got.terminated[0] && !got.truncated[0]);
    CHECK(got.lives[0] == 2 && got.elapsed[0] == 2 && got.reward[0] == t2 - 52);
    got = step(*pool);
    CHECK((stack_of(got) == Stack{t2, t2}) && !got.terminated[0] && got.reward[0] == 0);
    CHECK(got.elapsed[0] == 2 && got.returns[0] == t2 - 50);
    got = step(*pool);
    CHECK((stack_of(got) == Stack{t2, t2 + 2}) && got.elapsed[0] == 3 && !got.terminated[0]);
  }
  {  // Gymnasium, ale_py: a real reset
    t.stop_on_life_loss = true;
    t.life_loss_reset = LifeLossReset::kReal;
    PoolPtr pool = make_pool(image_task(), settings_for(t));
    reset_all(*pool);
    step(*pool);
    CHECK((stack_of(step(*pool)) == Stack{52, 53}));
    const Got got = step(*pool);
    CHECK((stack_of(got) == Stack{100, 100}) && got.elapsed[0] == 0 && got.returns[0] == 0);
  }
  // Falling to no lives counts only if that is wanted.
  left = 0;
  for (const bool at_zero : {false, true}) {
    t.life_loss_at_zero = at_zero;
    PoolPtr pool = make_pool(image_task(), settings_for(t));
    reset_all(*pool);
    step(*pool);
    CHECK(step(*pool).terminated[0] == at_zero);
  }
  // Out of time as well: a real reset, whatever the choice.
  left = 2;
  t.life_loss_reset = LifeLossReset::kContinue;
  PoolSettings settings = settings_for(t);
  settings.plan.max_episode_steps = 2;
  settings.plan.both_flags = true;
  PoolPtr pool = make_pool(image_task(), settings);
  reset_all(*pool);
  step(*pool);
  Got got = step(*pool);
  CHECK(got.terminated[0] && got.truncated[0]);
  CHECK((stack_of(step(*pool)) == Stack{100, 100}));
  // So is a reset that the user asks for.
  pool = make_pool(image_task(), settings_for(t));
  reset_all(*pool);
  step(*pool);
  CHECK(step(*pool).terminated[0]);
  CHECK((stack_of(reset_all(*pool)) == Stack{100, 100}));
  // Broken after a life was lost: the game can't go on.
  script->step = [&](FakeEnv& env) {
    if (env.t == 3) env.lives = 2;
    return env.t == 5 ? EP_E_BROKEN : EP_OK;
  };
  pool = make_pool(image_task(), settings_for(t));
  reset_all(*pool);
  step(*pool);
  step(*pool);
  CHECK(!step(*pool).fault[0]);  // goes on at frame 3
  CHECK(step(*pool).fault[0]);
  got = step(*pool);
  CHECK(!got.fault[0] && got.elapsed[0] == 0 && (stack_of(got) == Stack{50, 50}));
}

// A task of two agents, each with an image; the second one's pixels are 100 higher.
const ep_task& two_agents() {
  static const ep_task task = [] {
    ep_task t = image_task();
    t.describe = [](const ep_host* host, const ep_create* how, ep_spec* spec) {
      spec->max_agents = 2;
      ep_spec between = *spec;
      between.ctx = spec;
      between.add = [](ep_spec* from, const ep_field* field) {
        ep_field own = *field;
        if (field->role == EP_OBS) own.flags |= EP_FIELD_PER_AGENT;
        auto* to = static_cast<ep_spec*>(from->ctx);
        return to->add(to, &own);
      };
      return fake::describe<true>(host, how, &between);
    };
    t.step = [](void* env, const ep_input* in, const ep_result* out) {
      const ep_status status = fake::step(env, in, out);
      *out->episode_over = *out->terminated;
      return status;
    };
    t.observe = [](void* env, const ep_view* view) {
      const ep_status status = fake::observe<true>(env, view);
      if (view->obs && view->obs[0]) {
        auto* pixels = static_cast<std::uint8_t*>(view->obs[0]);
        std::memset(pixels + 4, pixels[0] + 100, 4);
      }
      return status;
    };
    return t;
  }();
  return task;
}

// Stacks of the first agent, then of the second.
void test_agents() {
  for (const LastFrame last : {LastFrame::kTrue, LastFrame::kStale}) {
    Transforms t;
    t.frame_skip = 4;
    t.max_last_two = true;
    t.last_frame = last;
    t.stack_num = 2;
    PoolPtr pool = make_pool(two_agents(), settings_for(t));
    const std::vector<std::int64_t> shape = {2, 2, 2, 2};
    CHECK(pool->plan().columns[pool->plan().obs[0].column].shape == shape);
    CHECK((stack_of(reset_all(*pool)) == Stack{50, 50, 150, 150}));
    CHECK((stack_of(step(*pool)) == Stack{50, 54, 150, 154}));
    CHECK((stack_of(step(*pool)) == Stack{54, 58, 154, 158}));
  }
  Transforms t;
  t.img_height = t.img_width = 1;
  PoolPtr pool = make_pool(two_agents(), settings_for(t));
  CHECK((reset_all(*pool).image == std::vector<std::uint8_t>{50, 150}));
}

// Going on after a life with LastFrame::kStale: a step that is cut short shows what was shown last.
void test_stale_goes_on() {
  script->step = [&](FakeEnv& env) {
    if (env.t == 3) env.lives = 2;
    return EP_OK;
  };
  script->length = 5;
  Transforms t;
  t.frame_skip = 4;
  t.stack_num = 2;
  t.episodic_life = t.stop_on_life_loss = true;
  t.last_frame = LastFrame::kStale;
  PoolPtr pool = make_pool(image_task(), settings_for(t));
  reset_all(*pool);
  CHECK((stack_of(step(*pool)) == Stack{50, 50}));  // life lost in frame 3, not shown
  CHECK((stack_of(step(*pool)) == Stack{50, 53}));  // the game goes on
  const Got got = step(*pool);                      // ends in frame 2 of 4
  CHECK((stack_of(got) == Stack{53, 53}) && got.terminated[0]);
}

void test_noop_and_fire() {
  std::vector<int> actions;
  int resets = 0;
  std::int64_t end_at = 0;
  script->step = [&](FakeEnv& env) {
    actions.push_back(env.action);
    env.terminated = env.t == end_at;
    env.lives = 1;  // no life counts as lost here
    env.reward = 5;
    return EP_OK;
  };
  script->reset = [&](FakeEnv&) {
    ++resets;
    return EP_OK;
  };
  for (const bool fire : {false, true}) {
    for (const FireOrder order : {FireOrder::kFirst, FireOrder::kLast}) {
      for (const int least : {0, 1}) {
        Transforms t;
        t.noop_min = least;
        t.noop_max = 6;
        t.use_fire_reset = fire;
        t.fire_order = order;
        t.frame_skip = 3;
        t.episodic_life = true;
        PoolPtr pool = make_pool(image_task(), settings_for(t));
        std::mt19937 generator(41);
        for (int episode = 0; episode < 8; ++episode) {
          actions.clear();
          const auto drawn = std::uniform_int_distribution<int>(0, 5)(generator);
          const int noops = std::max(0, least + drawn - fire);
          if (episode == 0) {
            reset(*pool, {0}, 41);
          } else {  // unseeded: the generator goes on
            pool->reset(Ids{0}, std::nullopt, {});
          }
          const Got got = recv(*pool);
          std::vector<int> expected(static_cast<std::size_t>(noops), 0);
          if (fire)
            expected.insert(order == FireOrder::kFirst ? expected.begin() : expected.end(), 1);
          CHECK(actions == expected);
          CHECK(got.elapsed[0] == 0 && got.reward[0] == 0 && got.returns[0] == 0);
          CHECK(!got.terminated[0] && !got.fault[0]);
          CHECK(stack_of(got)[0] == ((50 * (episode + 1) + noops + fire) & 255));
        }
      }
    }
  }
  // The game ends in the no-ops: begun anew, without another FIRE, with what is left.
  actions.clear();
  resets = 0;
  end_at = 3;
  Transforms t;
  t.noop_min = 5;
  t.noop_max = 1;
  t.use_fire_reset = true;
  t.fire_order = FireOrder::kFirst;
  t.stack_num = 2;
  PoolPtr pool = make_pool(image_task(), settings_for(t));
  CHECK((stack_of(reset_all(*pool)) == Stack{102, 102}));
  CHECK((actions == std::vector<int>{1, 0, 0, 0, 0}) && resets == 2);
  // A failure in the no-ops is one of the reset.
  script->step = [](FakeEnv& env) { return env.t == 2 ? EP_E_FAILED : EP_OK; };
  pool = make_pool(image_task(), settings_for(t));
  CHECK_THROWS(reset_all(*pool), kEnv, "env 0: step: EP_E_FAILED");
}

// A frame that can't be had is a fault of the step.
void test_frame_faults() {
  Transforms t;
  t.stack_num = 2;
  t.frame_skip = 2;
  t.max_last_two = true;
  for (const int bad : {3, 4}) {
    for (const LastFrame last : {LastFrame::kTrue, LastFrame::kStale}) {
      t.last_frame = last;
      script->observe = [&](FakeEnv& env) { return env.t == bad ? EP_E_BROKEN : EP_OK; };
      PoolPtr pool = make_pool(image_task(), settings_for(t));
      reset_all(*pool);
      CHECK((stack_of(step(*pool)) == Stack{50, 52}));
      Got got = step(*pool);
      CHECK(got.fault[0] && got.truncated[0] && got.reward[0] == 0 && got.elapsed[0] == 1);
      CHECK((stack_of(got) == Stack{0, 0}) && got.faults.size() == 1);
      got = step(*pool);
      CHECK(!got.fault[0] && (stack_of(got) == Stack{50, 50}));
    }
  }
  // At the first reset it is a clear error.
  script->observe = [](FakeEnv&) { return EP_E_FAILED; };
  PoolPtr pool = make_pool(image_task(), settings_for(t));
  CHECK_THROWS(reset_all(*pool), kEnv, "env 0: observe: EP_E_FAILED");
}

// ---- shapes

Field image_field(ep_layout layout, std::vector<std::int64_t> shape) {
  Field field;
  field.name = "screen";
  field.dtype = EP_UINT8;
  field.layout = layout;
  field.shape = std::move(shape);
  field.palette.resize(768);
  field.gray.resize(256);
  return field;
}

void test_shapes() {
  using Shape = std::vector<std::int64_t>;
  const auto shape = [](const Field& field, const Transforms& t) {
    const auto image = ImageTransform::make(field, t);
    return image ? image->result().shape : Shape{};
  };
  Transforms t;
  CHECK(shape(image_field(EP_HWC, {6, 4, 3}), t).empty());  // nothing to do
  CHECK((shape(image_field(EP_INDEXED, {6, 4}), t) == Shape{3, 6, 4}));
  t.stack_num = 5;
  CHECK((shape(image_field(EP_HWC, {6, 4, 3}), t) == Shape{15, 6, 4}));
  CHECK((shape(image_field(EP_CHW, {3, 6, 4}), t) == Shape{15, 6, 4}));
  CHECK((shape(image_field(EP_HW, {6, 4}), t) == Shape{5, 6, 4}));
  t.img_height = 3;
  t.img_width = 2;
  t.channels_last = true;
  CHECK((shape(image_field(EP_HWC, {6, 4, 3}), t) == Shape{5, 3, 2, 3}));
  t.gray_scale = true;
  CHECK((shape(image_field(EP_HWC, {6, 4, 3}), t) == Shape{5, 3, 2}));
  CHECK((shape(image_field(EP_INDEXED, {6, 4}), t) == Shape{5, 3, 2}));
  CHECK_THROWS(shape(image_field(EP_HWC, {6, 4, 4}), t), kValue, "gray_scale=True needs 1 or 3");
  Field field = image_field(EP_HW, {6, 4});
  CHECK(!ImageTransform::make(Field(field), Transforms{}));
  field.flags = EP_FIELD_PER_AGENT;
  CHECK((shape(field, t) == Shape{5, 3, 2}));  // one agent's
}

// Interleaved and planar images give the same stacks, whichever way they come.
void test_layouts() {
  constexpr std::size_t kPixels = 6;
  std::vector<std::uint8_t> hwc(3 * kPixels), chw(3 * kPixels);
  for (std::size_t pixel = 0; pixel < kPixels; ++pixel) {
    for (std::size_t channel = 0; channel < 3; ++channel) {
      hwc[3 * pixel + channel] = chw[channel * kPixels + pixel] =
          static_cast<std::uint8_t>(40 * channel + 7 * pixel);
    }
  }
  Transforms t;
  t.stack_num = 2;
  for (const bool last : {false, true}) {
    t.channels_last = last;
    for (const bool planar : {false, true}) {
      const Field field = planar ? image_field(EP_CHW, {3, 2, 3}) : image_field(EP_HWC, {2, 3, 3});
      const auto image = ImageTransform::make(field, t);
      std::vector<std::uint8_t> out(image->frame_bytes()), scratch(image->scratch_bytes());
      const auto& raw = planar ? chw : hwc;
      image->run(raw.data(), nullptr, out.data(), scratch.data());
      CHECK(out == (last ? hwc : chw));
      const std::vector<std::uint8_t> before(raw.size(), 100);
      image->run(raw.data(), before.data(), out.data(), scratch.data());
      for (std::size_t i = 0; i < out.size(); ++i) {
        CHECK(out[i] == std::max<int>(100, (last ? hwc : chw)[i]));
      }
    }
  }
}

}  // namespace

int main() {
  RUN(test_skip_and_stack);
  RUN(test_max_true);
  RUN(test_stale);
  RUN(test_reward_clip);
  RUN(test_episodic_life);
  RUN(test_agents);
  RUN(test_stale_goes_on);
  RUN(test_noop_and_fire);
  RUN(test_frame_faults);
  RUN(test_shapes);
  RUN(test_layouts);
  return report();
}
