// test_loader.cpp - the host's callbacks, the handshake with a library, the check of a spec.
//
// Broken libraries are made here: one C file whose descriptors are right until the statement that
// EP_TEST_FLAW names has run. It is compiled once (by $CC, else cc); each case loads a copy of it.
#include <envpool/ext/agents.h>
#include <envpool/ext/placement.h>
#include <unistd.h>

#include <cctype>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <sstream>
#include <thread>

#include "check.hpp"
#include "host.hpp"
#include "plugin.hpp"
#include "spec.hpp"

namespace fs = std::filesystem;
using namespace envpool::runtime;

namespace {

// ---- host

void test_explanations() {
  const ep_host* host = Host::make({}).abi();
  CHECK(take_explanation(EP_E_NOMEM) == "EP_E_NOMEM: out of memory");
  CHECK(take_explanation(-77) == "unknown status -77");
  host->explain(host, "the board is full");
  std::thread([&] {
    CHECK(take_explanation(EP_E_FAILED) == "EP_E_FAILED: the call failed");
  }).join();
  CHECK(take_explanation(EP_E_FAILED) == "the board is full");
  CHECK(take_explanation(EP_E_FAILED) == "EP_E_FAILED: the call failed");
  host->explain(host, nullptr);
  CHECK(take_explanation(EP_E_STATE) == "EP_E_STATE: called out of order");
  host->explain(host, "bad \xff byte");
  CHECK(take_explanation(EP_E_STATE) == "bad \xEF\xBF\xBD byte");
}

void test_assets() {
  const ep_host* host = Host::make({{"rom", "/roms/pong.bin"}}).abi();
  char buf[32];
  std::uint64_t len = 0;
  CHECK(host->asset(host, "rom", buf, sizeof buf, &len) == EP_OK);
  CHECK(len == 14 && std::strcmp(buf, "/roms/pong.bin") == 0);
  CHECK(host->asset(host, "rom", nullptr, 0, &len) == EP_E_ARGUMENT && len == 14);
  CHECK(host->asset(host, "rom", buf, 14, &len) == EP_E_ARGUMENT);
  CHECK(host->asset(host, "rom", buf, 15, nullptr) == EP_OK);
  CHECK(host->asset(host, nullptr, buf, sizeof buf, &len) == EP_E_NOT_FOUND);
  CHECK(host->asset(host, "wad", buf, sizeof buf, &len) == EP_E_NOT_FOUND && len == 0);
  CHECK(take_explanation(EP_E_NOT_FOUND) == "the package has no asset \"wad\"");
}

void test_cancel() {
  Host& host = Host::make({});
  CHECK(host.abi()->cancelled(host.abi()) == 0);
  host.cancel();
  CHECK(host.abi()->cancelled(host.abi()) != 0);
}

void test_log() {
  const ep_host* host = Host::make({}).abi();
  std::atomic<int> lines{0};
  const auto count = [&](int, const std::string&) { ++lines; };
  set_log_sink(count);
  std::thread other([&] {
    for (int i = 0; i < 100; ++i) host->log(host, EP_LOG_INFO, "a line");
  });
  for (int i = 0; i < 100; ++i) set_log_sink(count);
  other.join();
  CHECK(lines == 100);
  std::string last;
  set_log_sink([&](int level, const std::string& text) { last = std::to_string(level) + text; });
  host->log(host, EP_LOG_ERROR, "\xff!");
  CHECK(last == "40\xEF\xBF\xBD!");
  host->log(host, EP_LOG_ERROR, nullptr);
  CHECK(last == "40");
  set_log_sink([](int, const std::string&) { throw 1; });
  host->log(host, EP_LOG_ERROR, "must not let it out");
  set_log_sink(nullptr);
  host->log(host, EP_LOG_DEBUG, "unseen by default");
}

void test_placement() {
  const ep_host* host = Host::make({}).abi();
  CHECK(host->extension(host, "envpool.nothing/1") == nullptr);
  CHECK(host->extension(host, nullptr) == nullptr);
  auto* placement = static_cast<const ep_placement*>(host->extension(host, EP_EXT_PLACEMENT));
  CHECK(placement && placement->size >= sizeof(ep_placement));
  std::int32_t cpus[2] = {-1, -1};
  std::uint32_t n = 0;
  CHECK(placement->worker(host, cpus, 1, &n) == -1);
  CHECK(n >= 1 && cpus[0] >= 0 && cpus[1] == -1);
  CHECK(placement->worker(host, nullptr, 0, nullptr) == -1);
  std::thread([&] {
    set_worker_index(3);
    CHECK(placement->worker(host, nullptr, 0, &n) == 3);
  }).join();
  CHECK(placement->worker(host, nullptr, 0, &n) == -1);
}

void test_utf8() {
  for (const char* good : {"", "a", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x8e\xae", "\xed\x9f\xbf"})
    CHECK(is_utf8(good));
  for (const char* bad : {"\x80", "\xc3", "\xc0\x80", "\xe0\x80\x80", "\xed\xa0\x80",
                          "\xf0\x80\x80\x80", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "a\xe2\x82"})
    CHECK(!is_utf8(bad));
  CHECK(shown(nullptr).empty());
}

// ---- the handshake

struct Flaw {
  const char* statement;  // makes the plugin wrong
  const char* message;    // what load() must then say
};

constexpr Flaw kFlaws[] = {
    {"", ""},
    {"plugin.abi_minor = 9; plugin.size += 64; task.size += 64; option.size += 8", ""},  // newer
    {"task.flags = EP_TASK_MAIN_THREAD | EP_TASK_STICKY | UINT64_C(1) << 63", ""},
    {"task.extension = 0; task.doc = 0; task.option_count = 0; task.options = 0", ""},
    {"return 0", "envpool_plugin_v1 refused to load and did not say why"},
    {"host->explain(host, \"no GPU here\"); return 0", "refused to load: no GPU here"},
    {"plugin.size = 0", "the struct size of the plugin is 0, but ABI 1.0 needs"},
    {"plugin.size -= 8", "the struct size of the plugin is"},
    {"plugin.abi_major = 2", "built for ABI 2.0, another major version than this host's, 1.0"},
    {"plugin.abi_major = 2; plugin.size = 12", "it was built for ABI 2.0"},
    {"plugin.host_minor = 3",
     "it needs a host of ABI 1.3 or a later minor version, but this one has 1.0"},
    {"plugin.name = 0", "it has no name"},
    {"plugin.version = \"\"", "it has no version"},
    {"plugin.license = \"\\xff\"", "its license is not UTF-8"},
    {"plugin.task_count = 0", "it has no tasks"},
    {"plugin.tasks = 0", "it has no tasks"},
    {"tasks[1] = 0", "tasks[1] is NULL"},
    {"tasks[1] = &task", "duplicate task id Good-v1"},
    {"task.size = 40", "the struct size of tasks[0] is 40"},
    {"task.id = 0", "tasks[0] has the bad id \"\""},
    {"task.id = \"Good\"", "has the bad id \"Good\": it may have letters"},
    {"task.id = \"-v1\"", "bad id"},
    {"task.id = \"Good-v\"", "bad id"},
    {"task.id = \"Good v1-v1\"", "bad id"},
    {"task.id = \"a/Good-v1\"", "bad id"},
    {"task.id = \"G\\xc3\\xb6-v1\"", "bad id"},
    {"task.doc = \"\\xff\"", "Good-v1: its doc is not UTF-8"},
    {"task.sharing = 3", "Good-v1: its sharing has the unknown value 3"},
    {"task.sharing = -1", "unknown value -1"},
    {"task.flags = 1 << 5", "Good-v1: it has flags that this host does not know (32)"},
    {"task.describe = 0", "its function describe is NULL"},
    {"task.create = 0", "its function create is NULL"},
    {"task.reset = 0", "its function reset is NULL"},
    {"task.step = 0", "its function step is NULL"},
    {"task.observe = 0", "its function observe is NULL"},
    {"task.destroy = 0", "its function destroy is NULL"},
    {"task.options = 0", "it has an option_count but no options"},
    {"options[1] = 0", "options[1] is NULL"},
    {"options[1] = &option", "Good-v1: duplicate option gravity"},
    {"option.def.f = -1",
     "Good-v1: option gravity: has a default that its own declaration refuses"},
};

constexpr const char* kSource = R"(
#include <envpool/env.h>
#include <stdlib.h>
static ep_value least = {.type = EP_T_FLOAT, .f = 0};
static ep_option option = {.size = sizeof(ep_option), .name = "gravity", .min = &least,
                           .def = {.type = EP_T_FLOAT, .f = 9.8}};
static ep_option second = {.size = sizeof(ep_option), .name = "steps", .def = {.type = EP_T_INT}};
static const ep_option *options[] = {&option, &second};
static ep_status describe(const ep_host *h, const ep_create *i, ep_spec *s) { return EP_OK; }
static ep_status create(const ep_host *h, const ep_create *i, void **e) { return EP_OK; }
static ep_status reset(void *e, const ep_reset *r) { return EP_OK; }
static ep_status step(void *e, const ep_input *i, const ep_result *o) { return EP_OK; }
static ep_status observe(void *e, const ep_view *v) { return EP_OK; }
static void destroy(void *e) {}
#define TASK(name) {.size = sizeof(ep_task), .sharing = EP_FREE, .id = name, .options = options, \
  .option_count = 2, .describe = describe, .create = create, .reset = reset, .step = step, \
  .observe = observe, .destroy = destroy}
static ep_task task = TASK("Good-v1"), other = TASK("Good-Deterministic_2.5-v10");
static const ep_task *tasks[] = {&task, &other};
static ep_plugin plugin = {.size = sizeof(ep_plugin), .abi_major = 1, .task_count = 2,
                           .tasks = tasks, .name = "good", .version = "1.0"};
static int calls;
const ep_plugin *envpool_plugin_v1(const ep_host *host) {
  if (calls++) abort();
  switch (atoi(getenv("EP_TEST_FLAW"))) {
)";

// Libraries to load, in a directory of their own that goes when the test ends.
class Workshop {
 public:
  Workshop() {
    char name[] = "/tmp/envpool-loader-XXXXXX";
    dir_ = mkdtemp(name);
    std::string source = kSource;
    for (std::size_t i = 0; i < std::size(kFlaws); ++i)
      source += "case " + std::to_string(i) + ": " + kFlaws[i].statement + "; break;\n";
    compile("flawed.so", source + "}\nreturn &plugin;\n}\n");
  }
  ~Workshop() { fs::remove_all(dir_); }

  std::string path(const std::string& name) const { return (dir_ / name).string(); }

  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path(name)) << text;
    return path(name);
  }

  std::string compile(const std::string& name, const std::string& source,
                      const std::string& flags = "") const {
    const char* cc = std::getenv("CC");
    const fs::path include = fs::absolute(__FILE__).parent_path() / "../../sdk/include";
    const std::string command = std::string(cc ? cc : "cc") + " -std=c99 -shared -fPIC -I" +
                                include.string() + " " + write(name + ".c", source) + " -o " +
                                path(name) + " " + flags;
    if (std::system(command.c_str()) != 0) envpool::test::fail(__FILE__, __LINE__, command);
    return path(name);
  }

  // A fresh copy of the plugin, which will have this flaw.
  std::string flawed(std::size_t flaw) const {
    setenv("EP_TEST_FLAW", std::to_string(flaw).c_str(), 1);
    const std::string copy = path("flaw" + std::to_string(flaw) + ".so");
    fs::copy_file(path("flawed.so"), copy, fs::copy_options::skip_existing);
    return copy;
  }

 private:
  fs::path dir_;
};

void test_good(const Workshop& workshop) {
  const std::string path = workshop.flawed(0);
  Plugin& plugin = Plugin::load(path, {{"rom", "/pong"}});
  CHECK(std::strcmp(plugin.abi().name, "good") == 0);
  CHECK(plugin.path() == path && plugin.tasks().size() == 2);
  CHECK(plugin.host().assets().at("rom") == "/pong");
  CHECK(plugin.task("Good-v1").option_count == 2);
  CHECK_THROWS(
      plugin.task("Bad-v1"), kValue,
      path + ": there is no task \"Bad-v1\"; there are: Good-v1, Good-Deterministic_2.5-v10");
  fs::create_symlink(path, workshop.path("link.so"));
  CHECK(&Plugin::load(workshop.path("link.so")) == &plugin);
  const fs::path before = fs::current_path();
  fs::current_path(fs::path(path).parent_path());
  CHECK(&Plugin::load(fs::path(path).filename()) == &plugin);
  fs::current_path(before);
}

void test_flaws(const Workshop& workshop) {
  for (std::size_t i = 1; i < std::size(kFlaws); ++i) {
    const std::string path = workshop.flawed(i);
    if (!*kFlaws[i].message) {
      Plugin::load(path);
      continue;
    }
    CHECK_THROWS(Plugin::load(path), kPlugin, path + ": ");
    CHECK_THROWS(Plugin::load(path), kPlugin, kFlaws[i].message);  // the entry is not called again
  }
}

void test_files(const Workshop& workshop) {
  CHECK_THROWS(Plugin::load(""), kPlugin, "there is no such file");
  CHECK_THROWS(Plugin::load("/none/foo.so"), kPlugin, "/none/foo.so: there is no such file");
  CHECK_THROWS(Plugin::load("/tmp"), kPlugin, "/tmp: it is a directory, not a shared library");
  CHECK_THROWS(Plugin::load("/dev/null"), kPlugin, "it is not a file");
  CHECK_THROWS(Plugin::load(workshop.write("text.so", "hello")), kPlugin,
               "text.so: it is not a shared library");
  CHECK_THROWS(Plugin::load(workshop.write("empty.so", "")), kPlugin, "it is not a shared library");
  CHECK_THROWS(Plugin::load(workshop.write("cut.so", "\177ELF")), kPlugin, "it can't be loaded: ");
  const std::string plain = workshop.compile("plain.so", "int x;");
  CHECK_THROWS(Plugin::load(plain), kPlugin,
               plain + ": not an envpool plugin: it does not export envpool_plugin_v1");
  CHECK_THROWS(Plugin::load(workshop.compile("two.so", "void envpool_plugin_v2(void) {}")), kPlugin,
               "it is a plugin for version 2 of the ABI (it exports envpool_plugin_v2)");
  CHECK_THROWS(Plugin::load(workshop.compile("undefined.so",
                                             "void gone(void); void envpool_plugin_v1(void) "
                                             "{ gone(); }")),
               kPlugin, "undefined symbol: gone");
  const std::string needed = workshop.compile("libneeded.so", "int needed(void) { return 1; }");
  const std::string needy =
      workshop.compile("needy.so", "int needed(void); int f(void) { return needed(); }", needed);
  fs::remove(needed);
  CHECK_THROWS(Plugin::load(needy), kPlugin, "libneeded.so: cannot open shared object file");
}

void test_threads(const Workshop& workshop) {
  setenv("EP_TEST_FLAW", "0", 1);
  const std::string path = workshop.path("shared.so");
  fs::copy_file(workshop.path("flawed.so"), path);
  Plugin* loaded[4] = {};
  std::vector<std::thread> threads;
  for (Plugin*& mine : loaded) threads.emplace_back([&] { mine = &Plugin::load(path); });
  for (std::thread& thread : threads) thread.join();
  for (const Plugin* mine : loaded) CHECK(mine && mine == loaded[0]);
}

// ---- specs

// What the fake task's describe() does in the test at hand.
std::function<ep_status(const ep_host*, ep_spec*)> describer;

ep_status EP_CALL fake_describe(const ep_host* host, const ep_create*, ep_spec* spec) {
  return describer(host, spec);
}

std::uint32_t groups = 1;
const void* EP_CALL fake_extension(const char* id) {
  static ep_agents agents{sizeof(ep_agents), 1, nullptr, nullptr};
  agents.group_count = groups;
  return std::strcmp(id, EP_EXT_AGENTS) == 0 ? &agents : nullptr;
}

Spec run(std::function<ep_status(const ep_host*, ep_spec*)> what) {
  static Host& host = Host::make({});
  describer = std::move(what);
  ep_task task{};
  task.size = sizeof task;
  task.id = "Fake-v0";
  task.describe = fake_describe;
  task.extension = fake_extension;
  return describe(task, host, Options(task, {}));
}

ep_field field(const char* name, ep_role role, ep_kind kind, ep_dtype dtype) {
  ep_field result{};
  result.size = sizeof result;
  result.name = name;
  result.role = role;
  result.kind = kind;
  result.dtype = dtype;
  return result;
}

constexpr std::int64_t kTwo = 2;

ep_field an_action() {
  ep_field result = field("", EP_ACTION, EP_DISCRETE, EP_INT64);
  result.n = &kTwo;
  result.bound_count = 1;
  return result;
}

// Describes an action, these fields, and an observation if there is none among them. Goes on after
// a refused field, as a careless plugin does.
Spec with(const std::vector<ep_field>& fields, std::uint32_t max_agents = 1) {
  return run([&](const ep_host*, ep_spec* spec) {
    spec->max_agents = max_agents;
    const ep_field action = an_action(), obs = field("o", EP_OBS, EP_BOX, EP_FLOAT32);
    bool any_obs = false, any_action = false;
    for (const ep_field& f : fields) {
      spec->add(spec, &f);
      any_obs |= f.role == EP_OBS;
      any_action |= f.role == EP_ACTION;
    }
    if (!any_action) spec->add(spec, &action);
    if (!any_obs) spec->add(spec, &obs);
    return EP_OK;
  });
}

void test_good_spec() {
  const std::int64_t shape[] = {2, 3}, n[] = {3, 4}, start[] = {-1, 0}, pair[] = {2};
  const float low[6] = {-1, -2, -3, -4, -5, -INFINITY}, high[1] = {1};
  const char* labels[] = {"NOOP", "FIRE", "UP"};
  const Spec spec = run([&](const ep_host*, ep_spec* s) {
    CHECK(s->max_agents == 1 && s->max_episode_steps == 0 && s->fps == 0);
    CHECK(std::isnan(s->reward_threshold));
    s->max_agents = 3;
    s->max_episode_steps = 200;
    s->reward_threshold = 195;
    s->fps = 50;
    ep_field f = field("arm/position", EP_OBS, EP_BOX, EP_FLOAT32);
    f.shape = shape;
    f.rank = 2;
    f.low = low;
    f.bound_count = 6;
    f.flags = EP_FIELD_PER_AGENT | EP_FIELD_VOLATILE | 1U << 31;
    f.doc = "where";
    f.unit = "m";
    CHECK(s->add(s, &f) == EP_OK);
    f = field("arm/limit", EP_OBS, EP_BOX, EP_FLOAT32);
    f.high = high;
    f.bound_count = 1;
    CHECK(s->add(s, &f) == EP_OK);
    f = field("keys", EP_ACTION, EP_DISCRETE, EP_INT8);
    f.shape = pair;
    f.rank = 1;
    f.n = n;
    f.start = start;
    f.bound_count = 2;
    f.labels = labels;
    CHECK(s->add(s, &f) == EP_OK);
    f = field("said", EP_INFO, EP_TEXT, EP_UINT8);
    f.shape = shape;
    f.rank = 1;
    CHECK(s->add(s, &f) == EP_OK);
    f = field("1", EP_GLOBAL, EP_MULTI_BINARY, EP_BOOL);
    f.size += 16;
    CHECK(s->add(s, &f) == EP_OK);
    f.name = "0";
    CHECK(s->add(s, &f) == EP_OK);
    return EP_OK;
  });
  CHECK(spec.max_agents == 3 && spec.max_episode_steps == 200 && spec.fps == 50);
  CHECK(spec.obs.size() == 2 && spec.action.size() == 1 && spec.info.size() == 1);
  CHECK(spec.global.size() == 2);
  const Field& position = spec.obs[0];
  CHECK(position.name == "arm/position" && position.doc == "where" && position.unit == "m");
  CHECK(position.count() == 6 && position.row_bytes(3) == 72 && position.per_agent());
  CHECK(position.low.size() == 24 && position.high.empty() && !position.has_length());
  const Field& keys = spec.action[0];
  CHECK(keys.n == std::vector<std::int64_t>({3, 4}) && keys.start[0] == -1);
  CHECK(keys.labels.size() == 3 && keys.labels[2] == "UP" && keys.row_bytes(3) == 2);
  CHECK(spec.info[0].has_length());

  Spec other = spec;
  other.max_episode_steps = 7;
  other.obs[0].doc = "elsewhere";
  CHECK(spec.compatible(other) && spec.compatible(spec));
  other.obs[0].low[0] = std::byte{1};
  CHECK(!spec.compatible(other));
}

void test_good_images() {
  const std::int64_t hw[] = {84, 84}, hwc[] = {84, 84, 3}, chw[] = {4, 84, 84};
  std::uint8_t palette[768] = {1}, gray[256] = {2};
  ep_field f[4];
  const ep_layout layouts[] = {EP_HW, EP_HWC, EP_CHW, EP_INDEXED};
  const std::int64_t* shapes[] = {hw, hwc, chw, hw};
  const char* names[] = {"a", "b", "c", "d"};
  for (int i = 0; i < 4; ++i) {
    f[i] = field(names[i], EP_OBS, EP_BOX, EP_UINT8);
    f[i].layout = layouts[i];
    f[i].shape = shapes[i];
    f[i].rank = i == 1 || i == 2 ? 3 : 2;
  }
  f[3].palette = palette;
  f[3].gray = gray;
  const Spec spec = with({f[0], f[1], f[2], f[3]});
  CHECK(spec.obs[3].palette.size() == 768 && spec.obs[3].gray[0] == 2);
}

// A field that is a box of 2 x 3 floats but for the change must be refused with this text.
template <class Change>
void refused(const char* flaw, Change change) {
  static const std::int64_t shape[] = {2, 3};
  ep_field f = field("x", EP_OBS, EP_BOX, EP_FLOAT32);
  f.shape = shape;
  f.rank = 2;
  change(f);
  CHECK_THROWS(with({f}), kPlugin, flaw);
}

void discrete(ep_field& f, ep_dtype dtype, const std::int64_t* n) {
  f.kind = EP_DISCRETE;
  f.dtype = dtype;
  f.n = n;
  f.bound_count = 1;
}

void test_refused_fields() {
  refused("Fake-v0: the struct size of a field is 8", [](ep_field& f) { f.size = 8; });
  refused("unknown role 9", [](ep_field& f) { f.role = 9; });
  refused("observation field \"\": its name is not a UTF-8", [](ep_field& f) { f.name = nullptr; });
  refused("is not a UTF-8 string", [](ep_field& f) { f.name = "\xff"; });
  refused("Fake-v0: observation field \"x\": unknown kind 7", [](ep_field& f) { f.kind = 7; });
  refused("unknown dtype 408", [](ep_field& f) { f.dtype = 408; });
  refused("unknown layout 5", [](ep_field& f) { f.layout = 5; });
  refused("does not know (8)", [](ep_field& f) { f.flags = 8; });
  refused("its doc is not UTF-8", [](ep_field& f) { f.doc = "\xff"; });
  refused("its meaning is not UTF-8", [](ep_field& f) { f.meaning = "\xff"; });
  refused("group 1, but the number of groups is 1", [](ep_field& f) { f.group = 1; });
  refused("can't be per agent", [](ep_field& f) {
    f.role = EP_GLOBAL;
    f.flags = EP_FIELD_PER_AGENT;
  });
  refused("rank 9 is more than 8", [](ep_field& f) { f.rank = 9; });
  refused("its shape NULL", [](ep_field& f) { f.shape = nullptr; });
  refused("it is ragged", [](ep_field& f) { f.rank = 0, f.flags = EP_FIELD_RAGGED; });
  const std::int64_t zero[] = {2, 0}, negative[] = {2, -1}, huge[] = {1LL << 31, 1LL << 30};
  refused("shape[1] is 0, but must be positive", [&](ep_field& f) { f.shape = zero; });
  refused("shape[1] is -1", [&](ep_field& f) { f.shape = negative; });
  refused("its shape is too large", [&](ep_field& f) { f.shape = huge; });
}

void test_refused_bounds() {
  const float low[6] = {0, 0, 0, 0, 0, 1}, high[6] = {1, 1, 1, 1, 1, 0}, nan[1] = {NAN};
  refused("bound_count is 2, but no bound is set", [](ep_field& f) { f.bound_count = 2; });
  refused("bound_count is 0, but must be 1 or", [&](ep_field& f) { f.low = low; });
  refused("1 or the number of elements, 6", [&](ep_field& f) { f.low = low, f.bound_count = 5; });
  refused("low[5] is greater than high[5]",
          [&](ep_field& f) { f.low = low, f.high = high, f.bound_count = 6; });
  refused("[0] is NaN", [&](ep_field& f) { f.high = nan, f.bound_count = 1; });
  const std::uint8_t two = 2;
  refused("[0] is neither 0 nor 1",
          [&](ep_field& f) { f.dtype = EP_BOOL, f.high = &two, f.bound_count = 1; });
  const std::uint64_t large[] = {~0ULL, ~0ULL - 1};  // alike as doubles
  refused("low[0] is greater", [&](ep_field& f) {
    f.dtype = EP_UINT64, f.low = large, f.high = large + 1, f.bound_count = 1;
  });
  const std::uint16_t halves[] = {0x3C00, 0xBC00};  // 1, -1
  refused("low[0] is greater", [&](ep_field& f) {
    f.dtype = EP_FLOAT16, f.low = halves, f.high = halves + 1, f.bound_count = 1;
  });
}

void test_refused_kinds() {
  const std::int64_t zero = 0, many = 257, two = 2, start = -1, last = 127, most = INT64_MAX;
  const char* labels[] = {"A", nullptr};
  refused("n, start and labels are for", [&](ep_field& f) { f.n = &two, f.bound_count = 1; });
  refused("low and high are for boxes", [&](ep_field& f) {
    discrete(f, EP_INT64, &two);
    f.low = &two;
  });
  refused("need an integer dtype, not float32",
          [&](ep_field& f) { discrete(f, EP_FLOAT32, &two); });
  refused("not bool", [&](ep_field& f) { discrete(f, EP_BOOL, &two); });
  refused("n is NULL", [&](ep_field& f) {
    discrete(f, EP_INT8, nullptr);
    f.start = &start;
  });
  refused("n[0] is 0, not positive", [&](ep_field& f) { discrete(f, EP_INT8, &zero); });
  refused("do not fit uint8", [&](ep_field& f) { discrete(f, EP_UINT8, &many); });
  refused("do not fit uint8", [&](ep_field& f) {
    discrete(f, EP_UINT8, &two);
    f.start = &start;
  });
  refused("do not fit int8", [&](ep_field& f) {
    discrete(f, EP_INT8, &two);
    f.start = &last;
  });
  refused("do not fit int64", [&](ep_field& f) {
    discrete(f, EP_INT64, &most);
    f.start = &two;
  });
  refused("labels[1] is not a UTF-8 string", [&](ep_field& f) {
    discrete(f, EP_INT8, &two);
    f.labels = labels;
  });
  refused("binary values need", [](ep_field& f) { f.kind = EP_MULTI_BINARY; });
  refused("a text needs the dtype uint8 and rank 1",
          [](ep_field& f) { f.kind = EP_TEXT, f.dtype = EP_UINT8; });
  refused("a text needs the dtype uint8 and rank 1",
          [](ep_field& f) { f.kind = EP_TEXT, f.rank = 1; });
}

void test_refused_images() {
  static const std::int64_t five[] = {5, 5, 5};
  static const std::uint8_t table[768] = {};
  const auto image = [](ep_field& f, ep_layout layout) {
    f.dtype = EP_UINT8, f.layout = layout, f.shape = five, f.rank = layout == EP_CHW ? 3 : 2;
  };
  refused("an image must be a box of dtype uint8", [&](ep_field& f) { f.layout = EP_HW; });
  refused("needs rank 3, not 2", [&](ep_field& f) { image(f, EP_HWC); });
  refused("1, 3 or 4 channels, not 5", [&](ep_field& f) { image(f, EP_CHW); });
  refused("needs a palette and a gray table", [&](ep_field& f) { image(f, EP_INDEXED); });
  refused("palette and gray are for", [&](ep_field& f) { image(f, EP_HW), f.gray = table; });
  refused("can't be ragged", [&](ep_field& f) { image(f, EP_HW), f.flags = EP_FIELD_RAGGED; });
}

void named(const char* flaw, const std::vector<const char*>& names) {
  std::vector<ep_field> fields;
  for (const char* name : names) fields.push_back(field(name, EP_OBS, EP_BOX, EP_FLOAT32));
  if (*flaw)
    CHECK_THROWS(with(fields), kPlugin, flaw);
  else
    with(fields);
}

void test_names() {
  named("", {""});
  named("", {"a", "b/c", "b/d"});
  named("", {"1", "0"});
  named("", {"arm/0/x", "arm/1/x", "arm/1/y", "leg"});
  named("", {"a", "ab/c"});
  named("field \"a\": duplicate name", {"a", "a"});
  named("must stand alone in its role", {"a", ""});
  named("must stand alone in its role", {"", "a"});
  named("it can't nest with \"a\"", {"a", "a/b"});
  named("it can't nest with \"a/b/c\"", {"a/b/c", "a"});
  named("has an empty segment", {"/a"});
  named("has an empty segment", {"a/"});
  named("has an empty segment", {"a//b"});
  named("has an empty segment", {"/"});
  named("field \"\": all-digit keys make a tuple; they must be 0 to 1", {"0", "2"});
  named("field \"arm/\": all-digit keys", {"arm/1"});
  named("all-digit keys", {"arm/0", "arm/x"});
  named("all-digit keys", {"00"});
}

void test_whole_spec() {
  const auto described = [](auto change) {
    return run([=](const ep_host*, ep_spec* spec) {
      const ep_field action = an_action(), obs = field("", EP_OBS, EP_BOX, EP_FLOAT32);
      spec->add(spec, &action);
      spec->add(spec, &obs);
      change(*spec);
      return EP_OK;
    });
  };
  CHECK_THROWS(described([](ep_spec& s) { s.max_agents = 0; }), kPlugin, "max_agents is 0");
  CHECK_THROWS(described([](ep_spec& s) { s.max_episode_steps = -1; }), kPlugin, "steps is -1");
  CHECK_THROWS(described([](ep_spec& s) { s.fps = NAN; }), kPlugin, "fps must be a number");
  CHECK_THROWS(described([](ep_spec& s) { s.add(&s, nullptr); }), kPlugin, "NULL for a field");
  const auto only = [](ep_field f) {
    return run([=](const ep_host*, ep_spec* spec) { return spec->add(spec, &f); });
  };
  CHECK_THROWS(only(an_action()), kPlugin, "there is no observation field");
  CHECK_THROWS(only(field("", EP_OBS, EP_BOX, EP_INT8)), kPlugin, "there is no action field");

  const std::int64_t large[] = {1LL << 59};
  ep_field f = field("x", EP_OBS, EP_BOX, EP_FLOAT64);
  f.shape = large;
  f.rank = 1;
  with({f}, 5);
  f.flags = EP_FIELD_PER_AGENT;
  CHECK_THROWS(with({f}, 5), kPlugin, "too large for all agents");
  f = field("x", EP_OBS, EP_BOX, EP_FLOAT64);
  f.group = 1;
  groups = 2;
  with({f}, 2);
  groups = 0;
  CHECK_THROWS(with({f}, 2), kPlugin, "there are 0 groups");
  groups = 1;
}

void test_describe_status() {
  const auto returning = [](ep_status status, const char* text) {
    return run([=](const ep_host* host, ep_spec*) {
      if (text) host->explain(host, text);
      return status;
    });
  };
  CHECK_THROWS(returning(EP_E_ARGUMENT, "no such level: 9"), kValue, "Fake-v0: no such level: 9");
  CHECK_THROWS(returning(EP_E_NOT_FOUND, nullptr), kValue, "EP_E_NOT_FOUND: an asset or file");
  CHECK_THROWS(returning(EP_E_NOMEM, nullptr), kEnv, "describe() failed: EP_E_NOMEM");
  CHECK_THROWS(returning(5, nullptr), kEnv, "describe() failed: unknown status 5");
  CHECK_THROWS(run([](const ep_host*, ep_spec*) -> ep_status { throw 1; }), kPlugin,
               "Fake-v0: describe() let an exception out");
  // A refused field is explained to the plugin, and is the plugin's flaw whatever it returns.
  CHECK_THROWS(run([](const ep_host*, ep_spec* spec) {
                 const ep_field f = field("x", EP_OBS, 9, EP_INT8);
                 CHECK(spec->add(spec, &f) == EP_E_ARGUMENT);
                 CHECK(take_explanation(EP_OK) == "observation field \"x\": unknown kind 9");
                 return EP_E_FAILED;
               }),
               kPlugin, "unknown kind 9");
}

void test_dtypes() {
  CHECK(std::strcmp(name_of(EP_FLOAT16), "float16") == 0 && name_of(100) == nullptr);
  const std::int64_t most = INT64_MAX;
  CHECK(number_at(EP_INT64, &most, 0) == 9223372036854775807.0L);
  std::uint64_t word = 0;
  CHECK(store_number(EP_UINT64, &word, 0, 18446744073709551615.0L) && word == ~0ULL);
  CHECK(!store_number(EP_UINT64, &word, 0, 18446744073709551616.0L));
  CHECK(!store_number(EP_UINT8, &word, 0, -1) && !store_number(EP_INT8, &word, 0, 0.5L));
  CHECK(!store_number(EP_BOOL, &word, 0, 2) && !store_number(EP_INT32, &word, 0, NAN));
  CHECK(!store_number(EP_FLOAT32, &word, 0, 1e300L) &&
        store_number(EP_FLOAT32, &word, 0, INFINITY));
  // Every float16 but NaN survives the way there and back.
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    std::uint16_t back = 0;
    const long double number = number_at(EP_FLOAT16, &half, 0);
    const bool held = store_number(EP_FLOAT16, &back, 0, number);
    if (!held || (std::isnan(number) ? (back & 0x7FFF) != 0x7E00 : back != half)) {
      CHECK(!"a float16 changed");
      break;
    }
  }
  std::uint16_t half = 0;
  CHECK(store_number(EP_FLOAT16, &half, 0, 65519) && half == 0x7BFF);
  CHECK(!store_number(EP_FLOAT16, &half, 0, 65520));
  CHECK(store_number(EP_FLOAT16, &half, 0, 2047.5L) && half == 0x6800);  // carries: 2048
  CHECK(store_number(EP_FLOAT16, &half, 0, 1e-9L) && half == 0);
}

// ---- the reference plugins

bool contains_word(std::string text, const std::string& word) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text.find(word) != std::string::npos;
}

// What load() or describe() says of a plugin's first task; "" if it suits them.
std::string verdict_on(const std::string& path, const std::string& where) {
  try {
    const Plugin& plugin = Plugin::load(path);
    if (where != "load") describe(*plugin.tasks()[0], plugin.host(), {*plugin.tasks()[0], {}});
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

// Each plugin of reference/bad, by its line in flaws.txt; those that fail later must pass here.
void test_reference_flaws() {
#ifdef ENVPOOL_REFERENCE_DIR
  std::ifstream list(fs::absolute(__FILE__).parent_path() / "../../reference/bad/flaws.txt");
  int count = 0;
  for (std::string line; std::getline(list, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream words(line);
    std::string name, where, word;
    words >> name >> where >> std::ws;
    std::getline(words, word);
    const std::string flaw = verdict_on(ENVPOOL_REFERENCE_DIR "/bad_" + name + ".so", where);
    const bool here = where == "load" || where == "describe";
    if (flaw.empty() == here || (here && !contains_word(flaw, word)))
      envpool::test::fail(__FILE__, __LINE__, line + ": " + flaw);
    ++count;
  }
  CHECK(count > 0);
#endif
}

}  // namespace

int main() {
  test_explanations();
  test_assets();
  test_cancel();
  test_log();
  test_placement();
  test_utf8();
  const Workshop workshop;
  test_good(workshop);
  test_flaws(workshop);
  test_files(workshop);
  test_threads(workshop);
  test_good_spec();
  test_good_images();
  test_refused_fields();
  test_refused_bounds();
  test_refused_kinds();
  test_refused_images();
  test_names();
  test_whole_spec();
  test_describe_status();
  test_dtypes();
  test_reference_flaws();
  return envpool::test::report();
}
