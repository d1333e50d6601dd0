// libenv.hpp - the gym3 "libenv" C interface, version 1, and a library of it that is loaded at run
// time.
//
// The declarations are those that such a library is called by: their layout is the interface. What
// is said of them here is what Procgen's library does with them.
#ifndef LIBENV_PROCGEN_LIBENV_HPP
#define LIBENV_PROCGEN_LIBENV_HPP

#include <dlfcn.h>

#include <cstdint>
#include <envpool/env.hpp>
#include <string>

namespace libenv {

constexpr int version = 1;
constexpr int max_name = 128, max_rank = 16;

enum dtype : int { UINT8 = 1, INT32 = 2, FLOAT32 = 3 };
enum space : int { OBSERVATION = 1, ACTION = 2, INFO = 3 };

struct handle;  // an engine's set of games; here always of one

union value {
  std::uint8_t uint8;
  std::int32_t int32;
  float float32;
};

// One array of a space.
struct tensor {
  char name[max_name];
  int scalar_type;
  int dtype;
  int shape[max_rank];
  int rank;
  value low, high;
};

struct option {
  char name[max_name];
  int dtype;
  int count;
  void* data;
};

struct options {
  option* items;
  int count;
};

// Where a game reads its action and writes all else. Ours, and kept until close().
struct buffers {
  void** obs;
  float* reward;
  std::uint8_t* first;  // the observation begins an episode: the one before it is over
  void** info;
  void** action;
};

// A loaded library. Never unloaded, like the plugin that uses it.
struct library {
  int (*get_version)();
  handle* (*make)(int count, options with);
  int (*tensors)(handle*, int space, tensor* to);  // to may be null: only counts
  void (*set_buffers)(handle*, buffers*);
  void (*observe)(handle*);
  void (*act)(handle*);
  void (*close)(handle*);
  // Procgen's own, beside the interface. Bytes that are no state end the process.
  int (*get_state)(handle*, int game, char* to, int capacity);
  void (*set_state)(handle*, int game, const char* from, int bytes);

  explicit library(const std::string& path) {
    void* const found = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (found == nullptr) throw envpool::error(EP_E_NOT_FOUND, dlerror());
    const auto symbol = [found]<class F>(F*& to, const char* name) {
      to = reinterpret_cast<F*>(dlsym(found, name));
      if (to == nullptr) throw envpool::error(EP_E_UNSUPPORTED, dlerror());
    };
    symbol(get_version, "libenv_version");
    symbol(make, "libenv_make");
    symbol(tensors, "libenv_get_tensortypes");
    symbol(set_buffers, "libenv_set_buffers");
    symbol(observe, "libenv_observe");
    symbol(act, "libenv_act");
    symbol(close, "libenv_close");
    symbol(get_state, "get_state");
    symbol(set_state, "set_state");
    if (get_version() != version)
      throw envpool::error(EP_E_UNSUPPORTED,
                           path + ": libenv " + std::to_string(get_version()) + ", not 1");
  }
};

}  // namespace libenv

#endif  // LIBENV_PROCGEN_LIBENV_HPP
