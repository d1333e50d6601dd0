// evil.cpp - a task that does to its process what engines do: crashes, hangs, leaks, prints, and
// changes what belongs to the whole process. Written against the ABI itself, since env.hpp would
// catch what is thrown here.
//
// Evil-v0 counts, so that a test can prove that every action was applied once:
//   obs     int64[4]: seed of the last seeded reset, steps since create, steps since reset, last
//           action
//   action  any int32 from 0; reward: the action
//   info    pid: of the process that runs it
// Ends after `length` steps. The evil `fault` is done in call `where`: in create, reset and draw
// always; in step and observe at step `at_step` of an episode, or when the action is `at_action`;
// and only in env `env_id` (-1: in any) while the file `while_exists` exists ("": always).
#include <envpool/env.h>
#include <envpool/ext/render.h>
#include <envpool/ext/state.h>
#include <fcntl.h>
#include <locale.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cfenv>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <limits>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>

namespace {

// ---- the evils ----------------------------------------------------------------------------------

void segfault() { *static_cast<volatile int*>(nullptr) = 1; }
void abort_() { std::abort(); }
void exit_() { std::exit(3); }
void quick_exit_() { _exit(0); }
void hang() {
  for (volatile bool on = true; on;) {
  }
}
void stop() { raise(SIGSTOP); }
void kill_() { raise(SIGKILL); }
void throw_() { throw std::runtime_error("evil: thrown across the boundary"); }
void throw_int() { throw 1; }

volatile char sink = 0;
void overflow_stack() {  // by calls without end
  volatile char frame[4096];
  frame[0] = sink;
  void (*volatile again)() = overflow_stack;
  again();
  sink = frame[0];
}

void leak() {  // 4 MiB, in use as far as the kernel knows
  constexpr std::size_t kBytes = std::size_t{4} << 20;
  auto* block = static_cast<char*>(std::malloc(kBytes));
  if (!block) segfault();  // as most engines do
  std::memset(block, 1, kBytes);
  static char* volatile last;  // so that it counts as used
  last = block;
  sink = last[0];
}

void print_line() { std::puts("evil: a line on stdout"); }
void print_part() { std::fputs("evil: no newline ", stdout); }
void print_much() {  // 1 MB
  for (int i = 0; i < 10000; ++i) std::printf("evil: %05d %s\n", i, std::string(87, 'x').c_str());
}
void print_bytes() { std::fwrite("evil: \xff\x01\x02\0\xc3\n", 1, 12, stderr); }

void change_directory() {
  if (chdir("/") != 0) std::abort();
}
void change_locale() {
  if (!setlocale(LC_ALL, "C.UTF-8")) std::abort();
}
void change_rounding() { std::fesetround(FE_UPWARD); }
void ignore_signals() {
  for (const int which : {SIGTERM, SIGINT, SIGCHLD, SIGPIPE, SIGSEGV, SIGABRT}) {
    signal(which, SIG_IGN);
  }
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, nullptr);
}
void close_files() { closefrom(0); }
void leave_child() {  // a process of its own, which holds what it inherited and does not end
  if (fork() == 0) {
    for (;;) pause();
  }
}

void scribble() {  // over the first MiB of what it shares with the user's process, then crashes
  std::FILE* maps = std::fopen("/proc/self/maps", "r");
  if (!maps) std::abort();
  for (char line[512]; std::fgets(line, sizeof line, maps);) {
    void* begin = nullptr;
    if (std::strstr(line, "memfd:envpool") && std::sscanf(line, "%p", &begin) == 1) {
      std::memset(begin, 0xff, std::size_t{1} << 20);
    }
  }
  segfault();
}

struct Evil {
  const char* name;
  void (*run)();
};
constexpr Evil kEvils[] = {{"none", [] {}},
                           {"segfault", segfault},
                           {"abort", abort_},
                           {"exit", exit_},
                           {"quick_exit", quick_exit_},
                           {"kill", kill_},
                           {"throw", throw_},
                           {"throw_int", throw_int},
                           {"overflow_stack", overflow_stack},
                           {"hang", hang},
                           {"stop", stop},
                           {"leak", leak},
                           {"print_line", print_line},
                           {"print_part", print_part},
                           {"print_much", print_much},
                           {"print_bytes", print_bytes},
                           {"change_directory", change_directory},
                           {"change_locale", change_locale},
                           {"change_rounding", change_rounding},
                           {"ignore_signals", ignore_signals},
                           {"close_files", close_files},
                           {"leave_child", leave_child},
                           {"scribble", scribble}};

// ---- spec ---------------------------------------------------------------------------------------

ep_value text(const char* s) {
  ep_value value{};
  value.type = EP_T_STRING;
  value.s = s;
  return value;
}

ep_value number(std::int64_t i) {
  ep_value value{};
  value.type = EP_T_INT;
  value.i = i;
  return value;
}

ep_option option(const char* name, ep_value def) {
  ep_option o{};
  o.size = sizeof o;
  o.name = name;
  o.def = def;
  return o;
}

// In the order of these.
enum { kFault, kWhere, kAtStep, kAtAction, kEnvId, kLength, kWhileExists, kOptions };

const ep_option* const* the_options() {
  static ep_value faults[std::size(kEvils)];
  for (std::size_t i = 0; i < std::size(kEvils); ++i) faults[i] = text(kEvils[i].name);
  static const ep_value wheres[] = {text("create"), text("reset"), text("step"), text("observe"),
                                    text("draw")};
  static ep_option options[kOptions] = {
      option("fault", text("none")),    option("where", text("step")),
      option("at_step", number(-1)),    option("at_action", number(-1)),
      option("env_id", number(-1)),     option("length", number(1000)),
      option("while_exists", text("")),
  };
  options[kFault].choices = faults;
  options[kFault].choice_count = std::size(faults);
  options[kWhere].choices = wheres;
  options[kWhere].choice_count = std::size(wheres);
  static const ep_option* pointers[kOptions];
  for (int i = 0; i < kOptions; ++i) pointers[i] = &options[i];
  return pointers;
}

ep_status EP_CALL describe(const ep_host*, const ep_create*, ep_spec* spec) {
  static const std::int64_t shape[] = {4}, actions[] = {std::numeric_limits<std::int32_t>::max()};
  ep_field obs{};
  obs.size = sizeof obs;
  obs.role = EP_OBS;
  obs.kind = EP_BOX;
  obs.dtype = EP_INT64;
  obs.name = "";
  obs.shape = shape;
  obs.rank = 1;
  ep_field action{};
  action.size = sizeof action;
  action.role = EP_ACTION;
  action.kind = EP_DISCRETE;
  action.dtype = EP_INT64;
  action.name = "";
  action.n = actions;
  action.bound_count = 1;
  ep_field pid{};
  pid.size = sizeof pid;
  pid.role = EP_INFO;
  pid.kind = EP_BOX;
  pid.dtype = EP_INT64;
  pid.name = "pid";
  pid.flags = EP_FIELD_VOLATILE;
  for (const ep_field* field : {&obs, &action, &pid}) {
    if (const ep_status status = spec->add(spec, field)) return status;
  }
  return EP_OK;
}

// ---- the env ------------------------------------------------------------------------------------

struct Counts {
  std::int64_t seed = 0, life = 0, episode = 0, action = 0;
};

struct Env {
  const ep_host* host;
  std::string where, while_exists;
  void (*evil)() = nullptr;
  std::int64_t at_step, at_action, length;
  bool is_meant;
  Counts counts;

  void tempt(std::string_view call) const {
    if (!is_meant || call != where) return;
    const bool by_step = call == "step" || call == "observe";
    if (by_step && counts.episode != at_step && (counts.episode == 0 || counts.action != at_action))
      return;
    if (!while_exists.empty() && access(while_exists.c_str(), F_OK) != 0) return;
    evil();
  }
};

Env& from(void* env) { return *static_cast<Env*>(env); }

ep_status EP_CALL create(const ep_host* host, const ep_create* how, void** out) {
  const ep_value* o = how->options;
  auto env = std::make_unique<Env>();
  env->host = host;
  env->where = o[kWhere].s;
  env->while_exists = o[kWhileExists].s;
  for (const Evil& evil : kEvils) {
    if (std::string_view(evil.name) == o[kFault].s) env->evil = evil.run;
  }
  env->at_step = o[kAtStep].i;
  env->at_action = o[kAtAction].i;
  env->length = o[kLength].i;
  env->is_meant = o[kEnvId].i < 0 || static_cast<std::uint64_t>(o[kEnvId].i) == how->env_id;
  env->tempt("create");
  *out = env.release();
  return EP_OK;
}

ep_status EP_CALL reset(void* handle, const ep_reset* how) {
  Env& env = from(handle);
  if (how->has_seed) env.counts.seed = static_cast<std::int64_t>(how->seed);
  env.counts.episode = env.counts.action = 0;
  env.tempt("reset");
  return EP_OK;
}

ep_status EP_CALL step(void* handle, const ep_input* in, const ep_result* out) {
  Env& env = from(handle);
  ++env.counts.life;
  ++env.counts.episode;
  std::memcpy(&env.counts.action, in->action[0], sizeof env.counts.action);
  env.tempt("step");
  out->reward[0] = static_cast<double>(env.counts.action);
  out->terminated[0] = env.counts.episode == env.length;
  return EP_OK;
}

ep_status EP_CALL observe(void* handle, const ep_view* out) {
  const Env& env = from(handle);
  env.tempt("observe");
  if (out->obs && out->obs[0]) std::memcpy(out->obs[0], &env.counts, sizeof env.counts);
  if (out->info && out->info[0]) {
    const std::int64_t pid = getpid();
    std::memcpy(out->info[0], &pid, sizeof pid);
  }
  return EP_OK;
}

void EP_CALL destroy(void* handle) { delete &from(handle); }

constexpr std::uint32_t kSide = 8;

ep_status EP_CALL measure(void*, ep_image* image) {
  image->width = image->height = kSide;
  return EP_OK;
}

ep_status EP_CALL draw(void* handle, const ep_image* image) {
  const Env& env = from(handle);
  env.tempt("draw");
  for (std::uint32_t y = 0; y < kSide; ++y) {
    std::memset(static_cast<char*>(image->pixels) + y * image->row_bytes,
                static_cast<int>(env.counts.episode % 256), 3 * kSide);
  }
  return EP_OK;
}

ep_status EP_CALL save(void* handle, std::int32_t, const ep_writer* writer) {
  return writer->write(writer, &from(handle).counts, sizeof(Counts));
}

ep_status EP_CALL load(void* handle, std::int32_t, const void* data, std::uint64_t bytes) {
  Env& env = from(handle);
  if (bytes != sizeof(Counts)) return ep_fail(env.host, EP_E_ARGUMENT, "evil: no state of mine");
  std::memcpy(&env.counts, data, sizeof(Counts));
  return EP_OK;
}

const void* EP_CALL extension(const char* id) {
  static const ep_render render{sizeof(ep_render), 1u << EP_RGB8, measure, draw};
  static const ep_state state{sizeof(ep_state), 1u << EP_STATE_CLONE | 1u << EP_STATE_PERSIST, save,
                              load};
  if (std::strcmp(id, EP_EXT_RENDER) == 0) return &render;
  if (std::strcmp(id, EP_EXT_STATE) == 0) return &state;
  return nullptr;
}

}  // namespace

const ep_plugin* EP_CALL envpool_plugin_v1(const ep_host*) {
  static const ep_task task{
      sizeof(ep_task), EP_FREE,  0,       "Evil-v0", "Does harm to its process.",
      the_options(),   kOptions, 0,       describe,  create,
      reset,           step,     observe, destroy,   extension};
  static const ep_task* const tasks[] = {&task};
  static const ep_plugin plugin{
      sizeof(ep_plugin), EP_ABI_MAJOR, EP_ABI_MINOR, 0, 0, 1, tasks, "evil",
      "1.0.0",           nullptr,      nullptr};
  return &plugin;
}
