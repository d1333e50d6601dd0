// test_env_hpp.cpp - env.hpp against a host of a few lines: options, specs, exceptions, views,
// states, families. Prints what fails; exits 0 if nothing did.
#include <cmath>
#include <cstdio>
#include <cstring>
#include <envpool/env.hpp>
#include <string>
#include <vector>

static int failures = 0;
#define CHECK(what) \
  ((what) ? void() : void((++failures, std::printf("%s:%d: %s\n", __FILE__, __LINE__, #what))))

namespace {

// ---- the host ----------------------------------------------------------------------------------

std::string explained;

const ep_host fake_host = {
    .size = sizeof(ep_host),
    .abi_major = EP_ABI_MAJOR,
    .abi_minor = EP_ABI_MINOR,
    .ctx = nullptr,
    .name = "fake",
    .version = "0",
    .extension = [](const ep_host*, const char*) -> const void* { return nullptr; },
    .log = [](const ep_host*, std::int32_t, const char*) {},
    .explain = [](const ep_host*, const char* text) { explained = text; },
    .asset = [](const ep_host*, const char* name, char* buf, std::uint64_t cap,
                std::uint64_t* len) -> ep_status {
      if (std::string_view(name) != "long") return EP_E_NOT_FOUND;
      const std::string path(2000, 'p');
      *len = path.size();
      if (cap <= path.size()) return EP_E_ARGUMENT;
      std::memcpy(buf, path.c_str(), path.size() + 1);
      return EP_OK;
    },
    .cancelled = [](const ep_host*) -> std::int32_t { return 0; },
};

struct seen_field {
  ep_field raw;
  std::string name;
  std::vector<std::int64_t> shape;
};

// Describes a task with options (empty: the defaults).
struct described {
  ep_status status = EP_OK;
  ep_spec spec{};
  std::vector<seen_field> fields;
  ep_status refuse = EP_OK;

  described(const ep_task& t, std::vector<ep_value> v, ep_status refusal = EP_OK)
      : refuse(refusal) {
    spec.size = sizeof spec;
    spec.max_agents = 1;
    spec.ctx = this;
    spec.add = [](ep_spec* s, const ep_field* f) {
      auto* d = static_cast<described*>(s->ctx);
      d->fields.push_back(
          {*f, f->name,
           f->rank == 0 ? std::vector<std::int64_t>{} : std::vector(f->shape, f->shape + f->rank)});
      return d->refuse;
    };
    const ep_create c = {sizeof c, static_cast<std::uint32_t>(v.size()), v.data(), 0};
    status = t.describe(&fake_host, &c, &spec);
  }
};

std::vector<ep_value> defaults(const ep_task& t, std::uint32_t flags = 0) {
  std::vector<ep_value> v;
  for (std::uint32_t i = 0; i < t.option_count; ++i)
    if ((t.options[i]->flags & flags) == flags) v.push_back(t.options[i]->def);
  return v;
}

ep_status make(const ep_task& t, const std::vector<ep_value>& v, void** env, std::uint64_t id = 0) {
  const ep_create c = {sizeof c, static_cast<std::uint32_t>(v.size()), v.data(), id};
  return t.create(&fake_host, &c, env);
}
ep_status reset(const ep_task& t, void* env, std::uint64_t seed, const std::vector<ep_value>& v) {
  const ep_reset how = {sizeof how, 1, seed, v.data(), static_cast<std::uint32_t>(v.size()), 0};
  return t.reset(env, &how);
}
struct outcome {
  ep_status status;
  double reward = 0;
  std::uint8_t terminated = 0, truncated = 0;
};
outcome step(const ep_task& t, void* env, std::int64_t action) {
  outcome o{};
  const void* const actions[] = {&action};
  const ep_input in = {sizeof in, 1, actions, nullptr};
  const ep_result out = {sizeof out, 1, &o.reward, &o.terminated, &o.truncated, nullptr, nullptr};
  o.status = t.step(env, &in, &out);
  return o;
}

// ---- a task that uses what is tested -----------------------------------------------------------

struct base_config {
  double rate = 0.5;
};
struct Sample {
  static constexpr const char* id = "Sample-v3";
  static constexpr ep_sharing sharing = EP_FREE;
  static constexpr std::uint64_t flags = EP_TASK_STICKY;
  static constexpr bool batch = true;
  struct config : base_config {
    bool on = true;
    std::int32_t small = 7;
    std::uint64_t big = 1;
    std::string mode = "b";
    envpool::path file;
    envpool::json extra = "{}";
    std::vector<float> list = {1, 2};
    std::int64_t start = 3;
  };
  static void options(envpool::options<config>& o) {
    o.add("rate", &config::rate).range(0, 1).unit("Hz").doc("a rate");
    o.add("on", &config::on);
    o.add("small", &config::small);
    o.add("big", &config::big);
    o.add("mode", &config::mode).choices({"a", "b"}).shapes_spec();
    o.add("file", &config::file);
    o.add("extra", &config::extra);
    o.add("list", &config::list).min(-1);
    o.add("start", &config::start).at_reset().max(100);
  }
  struct fields {
    envpool::obs<float[2]> pair;
    envpool::obs<std::uint8_t[]> image;
    envpool::obs<bool> flag;
    envpool::action<std::int64_t> act;
    envpool::info<envpool::half> h;
    envpool::info<double> sum;
  };
  static fields describe(envpool::spec& s, const config& c) {
    s.max_episode_steps = 9;
    s.fps = 30;
    if (c.list.size() == 5) throw envpool::error(EP_E_NOT_FOUND, "no such list");
    return {.pair = s.obs<float[2]>("a/pair").within({-1, -2}, {1, 2}).unit("m"),
            .image = s.obs<std::uint8_t[]>("image", {c.mode == "a" ? 2 : 4, 3}).image(EP_HW),
            .flag = s.obs<bool>("flag"),
            .act = s.action<std::int64_t>("").discrete(4, -1).labels({"w", "x", "y", "z"}),
            .h = s.info<envpool::half>("half"),
            .sum = s.info<double>("sum").meaning("total").not_deterministic()};
  }

  Sample(const config& c, const fields& f, const envpool::context& x)
      : c_(c), f_(f), id_(x.env_id) {}
  void seed(std::uint64_t s) { rng_.word = s; }
  void reset(const config& c) { t_ = c.start; }
  envpool::result step(const envpool::input& in) {
    switch (in[f_.act]) {
      case -1:
        throw 5;
      case 1:
        throw envpool::error(EP_E_CANCELLED, "cancelled");
      case 2:
        throw std::runtime_error("odd");
      default:
        return {.reward = rng_.uniform(0, 1), .terminated = ++t_ == 5, .truncated = t_ == 6};
    }
  }
  void observe(const envpool::view& v) const {
    ++observed;
    v.put(f_.pair, t_, -t_);
    if (const auto image = v[f_.image])
      for (auto& p : image) p = static_cast<std::uint8_t>(t_);
    v.put(f_.flag, true);
    v.put(f_.h, envpool::half{0x3c00});
    if (v.wants(f_.sum)) v.put(f_.sum, double(id_) + c_.rate + double(c_.list.size()));
  }
  template <class A>
  void state(A& a) {
    a(t_, trail_, rng_);
  }

  static inline int observed = 0;
  const config c_;
  const fields f_;
  const std::uint64_t id_;
  std::int64_t t_ = 0;
  std::vector<std::string> trail_ = {"one", ""};
  envpool::rng rng_;
};

// An aggregate without options, made one per entry; safe by default.
struct game {
  const char* id;
  int lives;
};
const std::array<game, 3> games = {game{"Ant-v1", 1}, game{"Bee-v1", 2}, game{"Cat-v1", 3}};
struct Game {
  struct fields {
    envpool::obs<std::int32_t> lives;
    envpool::action<std::int64_t> act;
  };
  static fields describe(envpool::spec& s, const game& g) {
    s.max_episode_steps = g.lives;
    return {s.obs<std::int32_t>("").within(0, g.lives), s.action<std::int64_t>("").discrete(2)};
  }
  fields f;
  game g;
  void reset() {}
  envpool::result step(const envpool::input&) { return {}; }
  void observe(const envpool::view& v) const { v.put(f.lives, g.lives); }
};

// Lengths, texts and agents.
struct Team {
  static constexpr const char* id = "Team-v0";
  static const char* agent_name(std::uint32_t i) { return i == 0 ? "left" : "right"; }
  struct fields {
    envpool::obs<float[]> path;
    envpool::obs<envpool::text> say;
    envpool::obs<float> shared;
    envpool::action<envpool::text> talk;
  };
  static fields describe(envpool::spec& s) {
    s.max_agents = 2;
    return {s.obs<float[]>("path", {3, 2}).ragged().per_agent(),
            s.obs<envpool::text>("say", {5}).per_agent(), s.obs<float>("shared"),
            s.action<envpool::text>("", {4}).per_agent()};
  }
  fields f;
  std::string said[2] = {};
  void reset() {}
  void step(const envpool::input& in, envpool::results& out) {
    for (std::uint32_t i = 0; i < in.agents(); ++i) {
      said[i] = in.agent(i)[f.talk];
      out.reward[i] = i + 1.;
    }
    out.alive(0, false);
    out.end_episode(said[1] == "end");
  }
  void observe(const envpool::view& v) const {
    for (std::uint32_t i = 0; i < 2; ++i) {
      v.agent(i).put(f.say, said[i] + "\xc3\xa9\xc3\xa9");  // cut between characters
      v.agent(i).put(f.path, std::vector<int>(2 * (i + 1), static_cast<int>(i)));
    }
    v.put(f.shared, 7);
  }
};

struct Careless {  // at_reset() without reset(const config &)
  static constexpr const char* id = "Careless-v0";
  struct config {
    int a = 0;
  };
  static void options(envpool::options<config>& o) { o.add("a", &config::a).at_reset(); }
  struct fields {};
  static fields describe(envpool::spec&, const config&) { return {}; }
  config c;
  fields f;
  void reset() {}
  envpool::result step(const envpool::input&) { return {}; }
  void observe(const envpool::view&) const {}
};

// ---- tests -------------------------------------------------------------------------------------

const ep_task& task_named(const ep_plugin* p, std::string_view id) {
  for (std::uint32_t i = 0; i < p->task_count; ++i)
    if (p->tasks[i]->id == id) return *p->tasks[i];
  std::printf("no task %s\n", std::string(id).c_str());
  std::exit(1);
}

void test_options(const ep_task& t) {
  CHECK(t.option_count == 9);
  const auto& o = t.options;
  CHECK(o[0]->def.type == EP_T_FLOAT && o[0]->def.f == 0.5 && o[0]->min->f == 0 &&
        o[0]->max->f == 1);
  CHECK(std::string(o[0]->unit) == "Hz" && std::string(o[0]->doc) == "a rate");
  CHECK(o[1]->def.type == EP_T_BOOL && o[1]->def.i == 1 && !o[1]->min && !o[1]->doc && !o[1]->unit);
  CHECK(o[2]->def.type == EP_T_INT && o[2]->min->i == INT32_MIN && o[2]->max->i == INT32_MAX);
  CHECK(o[3]->min->i == 0 && !o[3]->max);
  CHECK(o[4]->def.type == EP_T_STRING && o[4]->choice_count == 2 &&
        std::string(o[4]->choices[1].s) == "b");
  CHECK(o[4]->flags == EP_OPTION_SHAPES_SPEC && o[8]->flags == EP_OPTION_AT_RESET);
  CHECK(o[5]->def.type == EP_T_PATH && std::string(o[5]->def.s).empty());
  CHECK(o[6]->def.type == EP_T_JSON && std::string(o[6]->def.s) == "{}");
  CHECK(o[7]->def.type == EP_T_ARRAY && o[7]->def.dtype == EP_FLOAT32 && o[7]->def.count == 2 &&
        o[7]->min->f == -1);
  CHECK(static_cast<const float*>(o[7]->def.data)[1] == 2 && !o[8]->min && o[8]->max->i == 100);
  for (std::uint32_t i = 0; i < t.option_count; ++i) CHECK(o[i]->size == sizeof(ep_option));

  auto v = defaults(t);
  v.pop_back();
  CHECK(described(t, v).status == EP_E_ARGUMENT);
  v = defaults(t);
  v[0].type = EP_T_INT;
  CHECK(described(t, v).status == EP_E_ARGUMENT);
  const float five[5] = {};
  v = defaults(t);
  v[7].data = five;
  v[7].count = 5;
  CHECK(described(t, v).status == EP_E_NOT_FOUND && explained == "no such list");
  v[7].dtype = EP_FLOAT64;
  CHECK(described(t, v).status == EP_E_ARGUMENT);
}

void test_spec(const ep_task& t) {
  auto v = defaults(t);
  described d(t, v);
  CHECK(d.status == EP_OK && d.fields.size() == 6);
  CHECK(d.spec.max_episode_steps == 9 && d.spec.fps == 30 && std::isnan(d.spec.reward_threshold));
  const auto& f = d.fields;
  CHECK(f[0].name == "a/pair" && f[0].raw.role == EP_OBS && f[0].raw.dtype == EP_FLOAT32 &&
        f[0].shape == std::vector<std::int64_t>{2});
  CHECK(f[0].raw.bound_count == 2 && !f[0].raw.doc);
  CHECK((f[1].shape == std::vector<std::int64_t>{4, 3}) && f[1].raw.layout == EP_HW &&
        f[1].raw.bound_count == 0 && !f[1].raw.low);
  CHECK(f[2].raw.dtype == EP_BOOL && f[2].raw.rank == 0 && !f[2].raw.shape);
  CHECK(f[3].raw.role == EP_ACTION && f[3].raw.kind == EP_DISCRETE && f[3].raw.bound_count == 1 &&
        f[3].raw.labels);
  CHECK(f[4].raw.role == EP_INFO && f[4].raw.dtype == EP_FLOAT16 &&
        f[5].raw.flags == EP_FIELD_VOLATILE);
  v[4].s = "a";
  CHECK((described(t, v).fields[1].shape == std::vector<std::int64_t>{2, 3}));
  explained = "host's own";
  described refused(t, v, EP_E_ARGUMENT);
  CHECK(refused.status == EP_E_ARGUMENT && refused.fields.size() == 1 && explained == "host's own");

  envpool::spec s(&fake_host);
  const auto fails = [](auto&& call) {
    try {
      call();
      return false;
    } catch (const envpool::error& e) {
      return e.status == EP_E_FAILED;
    }
  };
  CHECK(fails([&] { s.obs<float[]>("x"); }));
  CHECK(fails([&] { s.obs<float>("x", {2}); }));
  CHECK(fails([&] { s.obs<float[2]>("x", {2}); }));
  CHECK(fails([&] { s.obs<float[]>("x", {2, 0}); }));
  CHECK(fails([&] { s.obs<float[]>("x", {1 << 20, 1 << 20}); }));
  CHECK(fails([&] { s.obs<envpool::text>("x", {2, 2}); }));
  CHECK(fails([&] { s.obs<float[2]>("x").within({1, 2}, {3}); }));
  const envpool::obs<float[]> late =
      envpool::spec(&fake_host).obs<float[]>("y", {5, 2, 3}).ragged().per_agent(4);
  CHECK(late.index == 0 && late.count == 30 && late.stride == 30 && late.inner == 6);
  const std::string path = s.host().asset("long");
  CHECK(path == std::string(2000, 'p'));
  try {
    s.host().asset("none");
    CHECK(false);
  } catch (const envpool::error& e) {
    CHECK(e.status == EP_E_NOT_FOUND);
  }
}

void test_running(const ep_task& t) {
  CHECK(t.sharing == EP_FREE && t.flags == EP_TASK_STICKY);
  void* env = nullptr;
  CHECK(make(t, defaults(t), &env, 40) == EP_OK);
  const auto at_reset = defaults(t, EP_OPTION_AT_RESET);
  CHECK(at_reset.size() == 1);
  CHECK(step(t, env, 0).status == EP_E_STATE && explained.find("reset") != std::string::npos);
  CHECK(reset(t, env, 1, {}) == EP_E_ARGUMENT);
  CHECK(reset(t, env, 1, at_reset) == EP_OK);
  const outcome first = step(t, env, 0), second = step(t, env, 0);
  CHECK(first.status == EP_OK && !first.terminated && second.terminated == 1);
  CHECK(step(t, env, 0).status == EP_E_STATE);
  auto later = at_reset;
  later[0].i = 4;
  CHECK(reset(t, env, 1, later) == EP_OK);
  CHECK(step(t, env, 0).terminated == 1);

  const std::pair<std::int64_t, ep_status> throws[] = {
      {-1, EP_E_BROKEN}, {1, EP_E_CANCELLED}, {2, EP_E_FAILED}};
  for (const auto& [action, status] : throws) {
    CHECK(reset(t, env, 1, at_reset) == EP_OK);
    CHECK(step(t, env, action).status == status);
    CHECK(step(t, env, 0).status == EP_E_STATE);
  }

  // NULL entries, NULL arrays.
  reset(t, env, 1, at_reset);
  float pair[2] = {9, 9};
  std::uint8_t image[12] = {}, flag = 0;
  std::uint16_t half = 0;
  double sum = 0;
  void *const obs[] = {pair, nullptr, nullptr}, *const infos[] = {&half, nullptr};
  ep_view view = {sizeof view, 1, obs, nullptr, nullptr, nullptr, nullptr, nullptr};
  CHECK(t.observe(env, &view) == EP_OK && pair[0] == 3 && pair[1] == -3 && half == 0);
  view.info = infos;
  CHECK(t.observe(env, &view) == EP_OK && half == 0x3c00 && sum == 0);
  void *const all_obs[] = {pair, image, &flag}, *const all_infos[] = {&half, &sum};
  view.obs = all_obs;
  view.info = all_infos;
  CHECK(t.observe(env, &view) == EP_OK && image[11] == 3 && flag == 1 && sum == 42.5);
  view.obs = nullptr;
  view.info = nullptr;
  CHECK(t.observe(env, &view) == EP_OK);
  t.destroy(env);
}

void test_state(const ep_task& t) {
  const auto* x = static_cast<const ep_state*>(t.extension(EP_EXT_STATE));
  CHECK(x != nullptr && x->purposes == (1u << EP_STATE_CLONE | 1u << EP_STATE_PERSIST));
  CHECK(t.extension(EP_EXT_RENDER) == nullptr && t.extension("else") == nullptr);
  const auto save = [x](void* env) {
    std::string out;
    const ep_writer w = {
        &out, [](const ep_writer* to, const void* data, std::uint64_t bytes) -> ep_status {
          static_cast<std::string*>(to->ctx)->append(static_cast<const char*>(data), bytes);
          return EP_OK;
        }};
    CHECK(x->save(env, EP_STATE_PERSIST, &w) == EP_OK);
    return out;
  };
  const auto at_reset = defaults(t, EP_OPTION_AT_RESET);
  void *a = nullptr, *b = nullptr;
  make(t, defaults(t), &a);
  make(t, defaults(t), &b);
  reset(t, a, 5, at_reset);
  step(t, a, 0);
  const std::string saved = save(a);
  // version, running, t_, trail_ (2: "one", ""), rng
  CHECK(saved.size() == 4 + 4 + 8 + 8 + (8 + 3) + 8 + 8);
  CHECK(x->load(b, EP_STATE_PERSIST, saved.data(), saved.size()) == EP_OK && save(b) == saved);
  const outcome of_a = step(t, a, 0), of_b = step(t, b, 0);
  CHECK(of_a.status == EP_OK && of_a.reward == of_b.reward && of_b.terminated == 1);
  const std::string end = save(b);
  for (std::size_t n = 0; n < saved.size(); ++n)
    CHECK(x->load(b, EP_STATE_PERSIST, saved.data(), n) == EP_E_ARGUMENT && save(b) == end);
  CHECK(x->load(b, EP_STATE_PERSIST, (saved + "x").data(), saved.size() + 1) == EP_E_ARGUMENT &&
        save(b) == end);
  std::string huge = saved;
  std::memset(huge.data() + 16, 0xff, 8);
  CHECK(x->load(b, EP_STATE_PERSIST, huge.data(), huge.size()) == EP_E_ARGUMENT && save(b) == end);
  const ep_writer full = {nullptr, [](const ep_writer*, const void*, std::uint64_t) -> ep_status {
                            return EP_E_NOMEM;
                          }};
  CHECK(x->save(a, EP_STATE_CLONE, &full) == EP_E_NOMEM);
  t.destroy(a);
  t.destroy(b);
}

void test_batch(const ep_task& t) {
  const auto* x = static_cast<const ep_batch*>(t.extension(EP_EXT_BATCH));
  CHECK(x != nullptr);
  void* env[3] = {};
  for (auto& e : env) {
    make(t, defaults(t), &e);
    reset(t, e, 8, defaults(t, EP_OPTION_AT_RESET));
  }
  const std::int64_t actions[3] = {0, 2, 0};  // row 1 fails
  const std::uint32_t in[3] = {2, 1, 0}, out[3] = {0, 2, 1};
  float pairs[3][2] = {};
  double reward[3] = {};
  std::uint8_t terminated[3], truncated[3];
  ep_status status[3] = {9, 9, 9};
  const ep_column action = {const_cast<std::int64_t*>(actions), 8};
  const ep_column obs[] = {{pairs, 8}, {nullptr, 0}, {nullptr, 0}};
  const ep_rows rows = {sizeof rows, 3,       env,    in,         out,       &action,
                        obs,         nullptr, reward, terminated, truncated, status};
  CHECK(x->step_many(&rows) == EP_E_FAILED);
  CHECK(status[0] == EP_OK && status[1] == EP_OK && status[2] == EP_E_FAILED && explained == "odd");
  CHECK(pairs[0][0] == 4 && pairs[1][1] == -4 && reward[0] == reward[1] && reward[0] > 0);
  for (void* e : env) t.destroy(e);
}

void test_family(const ep_plugin* p) {
  for (const game& g : games) {
    const ep_task& t = task_named(p, g.id);
    CHECK(t.sharing == EP_ONE_PER_PROCESS && t.flags == 0 && t.option_count == 0);
    CHECK(described(t, {}).spec.max_episode_steps == g.lives);
    void* env = nullptr;
    CHECK(make(t, {}, &env) == EP_OK && reset(t, env, 0, {}) == EP_OK);
    std::int32_t lives = 0;
    void* const obs[] = {&lives};
    const ep_view view = {sizeof view, 1, obs, nullptr, nullptr, nullptr, nullptr, nullptr};
    CHECK(t.observe(env, &view) == EP_OK && lives == g.lives);
    t.destroy(env);
  }
}

void test_agents(const ep_task& t) {
  const auto* names = static_cast<const ep_agents*>(t.extension(EP_EXT_AGENTS));
  CHECK(names != nullptr && names->group_count == 1 && std::string(names->name(1)) == "right");
  CHECK(described(t, {}).spec.max_agents == 2);
  void* env = nullptr;
  CHECK(make(t, {}, &env) == EP_OK && reset(t, env, 0, {}) == EP_OK);
  const auto talk = [&](const char* texts, std::uint32_t first, std::uint32_t second,
                        double* reward, std::uint8_t* alive) {
    const void* const action[] = {texts};
    const std::uint32_t lengths[] = {first, second}, *const length[] = {lengths};
    const ep_input in = {sizeof in, 2, action, length};
    std::uint8_t terminated[2] = {}, truncated[2] = {}, over = 0;
    const ep_result out = {sizeof out, 2, reward, terminated, truncated, alive, &over};
    CHECK(t.step(env, &in, &out) == EP_OK);
    return over;
  };
  double reward[2] = {};
  std::uint8_t alive[2] = {1, 1};
  CHECK(talk("hi  abcd", 2, 4, reward, alive) == 0 && reward[1] == 2 && alive[0] == 0 &&
        alive[1] == 1);
  float path[2][3][2] = {}, shared = 0;
  char say[2][5] = {};
  std::uint32_t path_length[2] = {}, say_length[2] = {};
  void* const obs[] = {path, say, &shared};
  std::uint32_t* const lengths[] = {path_length, say_length, nullptr};
  const ep_view view = {sizeof view, 2, obs, nullptr, nullptr, lengths, nullptr, nullptr};
  CHECK(t.observe(env, &view) == EP_OK);
  CHECK(path_length[0] == 1 && path_length[1] == 2 && path[1][1][1] == 1 && path[0][2][0] == 0 &&
        shared == 7);
  CHECK(say_length[0] == 4 && std::string(say[0], 4) == "hi\xc3\xa9" && say_length[1] == 4 &&
        std::string(say[1], 4) == "abcd");
  CHECK(talk("    end ", 0, 3, reward, alive) == 1);
  const ep_input none{};
  const ep_result nowhere{};
  CHECK(t.step(env, &none, &nowhere) == EP_E_STATE);
  t.destroy(env);
}

}  // namespace

constexpr envpool::about self{"test", "1.2.3", "MIT"};
ENVPOOL_PLUGIN_ABOUT(self, Sample, Team, envpool::family<Game, games>)

int main() {
  const ep_plugin* p = envpool_plugin_v1(&fake_host);
  CHECK(p != nullptr && p == envpool_plugin_v1(&fake_host));
  CHECK(p->size == sizeof(ep_plugin) && p->abi_major == EP_ABI_MAJOR && p->host_minor == 0 &&
        p->task_count == 5);
  CHECK(std::string(p->license) == "MIT" && p->url == nullptr);
  const ep_task& sample = task_named(p, "Sample-v3");
  test_options(sample);
  test_spec(sample);
  test_running(sample);
  test_state(sample);
  test_batch(sample);
  test_family(p);
  test_agents(task_named(p, "Team-v0"));
  CHECK(envpool::plugin<Careless>({"careless", "0"}, &fake_host) == nullptr &&
        explained.find("at_reset") != std::string::npos);
  if (failures == 0) std::puts("env.hpp: all good");
  return failures != 0;
}
