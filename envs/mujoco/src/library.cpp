#include "library.hpp"

#include <dlfcn.h>

#include <cstdio>
#include <cstring>
#include <mutex>

namespace mujoco {
namespace {

constexpr int kMinor = mjVERSION_HEADER / 1000;  // 4.0.1 is 4000001: 4000 is 4.0

// Written once, by open() under its mutex; whoever reads it has been through open().
Functions functions;
bool opened = false;
std::mutex mutex;

std::string minor(int number) {
  return std::to_string(number / 1000) + "." + std::to_string(number % 1000);
}

std::string advice() {
  return "pip install 'mujoco-core>=" + minor(kMinor) + ",<" + minor(kMinor + 1) + "'";
}

Functions look_up(const std::string& file) {
  void* const handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (handle == nullptr)
    throw envpool::error(EP_E_NOT_FOUND, std::string("can't load MuJoCo: ") + dlerror());
  Functions found;
  std::string missing;
  const auto find = [&]<class F>(F& function, const char* name) {
    function = reinterpret_cast<F>(dlsym(handle, name));
    if (function == nullptr) missing += (missing.empty() ? "" : ", ") + std::string(name);
  };
  // The version first: another one may lack functions for good reasons.
  find(found.mj_version, "mj_version");
  if (found.mj_version != nullptr && found.mj_version() / 1000 != kMinor) {
    const int version = found.mj_version();
    throw envpool::error(EP_E_UNSUPPORTED, file + " is MuJoCo " + minor(version / 1000) + "." +
                                               std::to_string(version % 1000) +
                                               ", but envpool-mujoco " + ENVPOOL_MUJOCO_VERSION +
                                               " is built for MuJoCo " + minor(kMinor) +
                                               ", whose data structures differ: " + advice());
  }
#define ENVPOOL_MUJOCO_FIND(name) find(found.name, #name);
  ENVPOOL_MUJOCO_FUNCTIONS(ENVPOOL_MUJOCO_FIND)
#undef ENVPOOL_MUJOCO_FIND
  find(found.set_thread_log_handler, "_mjPRIVATE_setTlsLogHandler");
  if (!missing.empty())
    throw envpool::error(EP_E_UNSUPPORTED, file + " lacks " + missing + ": " + advice());
  return found;
}

thread_local detail::Call call;

void copy_text(char (&to)[1024], const char* from) { std::snprintf(to, sizeof to, "%s", from); }

// Where MuJoCo's messages go while one of our calls is under way on the thread.
void handle(const mjLogMessage* message) {
  if (message->level == mjLOG_ERROR) {
    copy_text(call.error, message->subject);
    std::longjmp(call.escape, 1);
  }
  if (message->level == mjLOG_WARNING && call.warning[0] == 0)
    copy_text(call.warning, message->subject);
}

}  // namespace

void open(const envpool::host& host) {
  const std::lock_guard lock(mutex);
  if (opened) return;
  functions = look_up(host.asset("mujoco_library"));
  opened = true;
}

const Functions& lib() { return functions; }

namespace detail {

Call& enter(mjfLogHandler& handler) noexcept {
  call.error[0] = call.warning[0] = 0;
  handler = functions.set_thread_log_handler(&handle);
  return call;
}

void leave(mjfLogHandler handler) noexcept { functions.set_thread_log_handler(handler); }

void fail(const Call& failed) {
  throw envpool::error(EP_E_BROKEN, std::string("MuJoCo: ") + failed.error);
}

}  // namespace detail
}  // namespace mujoco
