#include "gl.hpp"

#include <dlfcn.h>

#include <cstdint>
#include <cstdlib>
#include <envpool/env.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace mujoco {
namespace {

// A library that stays open. Its symbols are global: MuJoCo looks for them there to find OpenGL.
void* open_global(std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (void* handle = dlopen(name, RTLD_NOW | RTLD_GLOBAL | RTLD_NODELETE)) return handle;
  throw envpool::error(EP_E_UNSUPPORTED, std::string(*names.begin()) + " is not installed");
}

template <class F>
void look_up(void* handle, F& function, const char* name) {
  function = reinterpret_cast<F>(dlsym(handle, name));
  if (function == nullptr) throw envpool::error(EP_E_UNSUPPORTED, std::string("it has no ") + name);
}

// ---- EGL ----------------------------------------------------------------------------------------

// Types and numbers from the registry of EGL 1.5 and EGL_EXT_platform_device.
using EglHandle = void*;
using EglInt = std::int32_t;
constexpr unsigned kPlatformDevice = 0x313F, kOpenGlApi = 0x30A2;
constexpr EglInt kDraw = 0x3059, kRead = 0x305A;
constexpr EglInt kConfig[] = {0x3024, 8,      0x3023, 8, 0x3022, 8, 0x3021, 8,  // R G B A
                              0x3025, 24,     0x3026, 8,                        // depth, stencil
                              0x303F, 0x308E, 0x3033, 1, 0x3040, 8, 0x3038};    // RGB pbuffer GL

struct Egl {
  void* (*get_proc)(const char*);
  unsigned (*initialize)(EglHandle, EglInt*, EglInt*);
  unsigned (*choose_config)(EglHandle, const EglInt*, EglHandle*, EglInt, EglInt*);
  unsigned (*bind_api)(unsigned);
  EglHandle (*create_context)(EglHandle, EglHandle, EglHandle, const EglInt*);
  unsigned (*destroy_context)(EglHandle, EglHandle);
  unsigned (*make_current)(EglHandle, EglHandle, EglHandle, EglHandle);
  EglHandle (*current_context)();
  EglHandle (*current_display)();
  EglHandle (*current_surface)(EglInt);
  EglHandle display;

  Egl() {
    void* const handle = open_global({"libEGL.so.1"});
    look_up(handle, get_proc, "eglGetProcAddress");
    look_up(handle, initialize, "eglInitialize");
    look_up(handle, choose_config, "eglChooseConfig");
    look_up(handle, bind_api, "eglBindAPI");
    look_up(handle, create_context, "eglCreateContext");
    look_up(handle, destroy_context, "eglDestroyContext");
    look_up(handle, make_current, "eglMakeCurrent");
    look_up(handle, current_context, "eglGetCurrentContext");
    look_up(handle, current_display, "eglGetCurrentDisplay");
    look_up(handle, current_surface, "eglGetCurrentSurface");
    display = open_display();
  }

  // That of the first device, or the one that MUJOCO_EGL_DEVICE_ID numbers, that works.
  EglHandle open_display() const {
    const auto query =
        reinterpret_cast<unsigned (*)(EglInt, EglHandle*, EglInt*)>(get_proc("eglQueryDevicesEXT"));
    const auto display_of = reinterpret_cast<EglHandle (*)(unsigned, EglHandle, const EglInt*)>(
        get_proc("eglGetPlatformDisplayEXT"));
    EglInt count = 0;
    std::vector<EglHandle> devices(64);
    if (query == nullptr || display_of == nullptr ||
        query(static_cast<EglInt>(devices.size()), devices.data(), &count) == 0)
      throw envpool::error(EP_E_UNSUPPORTED, "it lists no devices");
    devices.resize(static_cast<std::size_t>(count));
    if (const char* chosen = std::getenv("MUJOCO_EGL_DEVICE_ID")) {
      const auto index = static_cast<std::size_t>(std::strtoul(chosen, nullptr, 10));
      if (index >= devices.size())
        throw envpool::error(EP_E_UNSUPPORTED, std::string("MUJOCO_EGL_DEVICE_ID=") + chosen +
                                                   ": there are " + std::to_string(count) +
                                                   " devices");
      devices = {devices[index]};
    }
    for (EglHandle device : devices) {
      EglHandle found = display_of(kPlatformDevice, device, nullptr);
      if (found != nullptr && initialize(found, nullptr, nullptr) != 0) return found;
    }
    throw envpool::error(EP_E_UNSUPPORTED,
                         "none of its " + std::to_string(devices.size()) + " devices works");
  }
};

class EglContext : public GlContext {
 public:
  EglContext() : egl_(library()) {
    EglHandle config = nullptr;
    EglInt count = 0;
    if (egl_.choose_config(egl_.display, kConfig, &config, 1, &count) == 0 || count < 1 ||
        egl_.bind_api(kOpenGlApi) == 0)
      throw envpool::error(EP_E_UNSUPPORTED, "it has no OpenGL");
    context_ = egl_.create_context(egl_.display, config, nullptr, nullptr);
    if (context_ == nullptr) throw envpool::error(EP_E_UNSUPPORTED, "it gives no context");
  }
  ~EglContext() override { egl_.destroy_context(egl_.display, context_); }

  bool enter() override {
    before_ = {egl_.current_display(), egl_.current_surface(kDraw), egl_.current_surface(kRead),
               egl_.current_context()};
    egl_.bind_api(kOpenGlApi);
    return egl_.make_current(egl_.display, nullptr, nullptr, context_) != 0;
  }
  void leave() override {
    if (before_.context == nullptr)
      egl_.make_current(egl_.display, nullptr, nullptr, nullptr);
    else
      egl_.make_current(before_.display, before_.draw, before_.read, before_.context);
  }

 private:
  // Opened once; a failure is tried again the next time.
  static const Egl& library() {
    static const Egl& only = *new Egl;
    return only;
  }
  struct Current {
    EglHandle display, draw, read, context;
  };
  const Egl& egl_;
  EglHandle context_ = nullptr;
  Current before_{};
};

// ---- OSMesa -------------------------------------------------------------------------------------

constexpr unsigned kRgba = 0x1908, kUnsignedByte = 0x1401;
constexpr int kType = 0x23;  // OSMESA_TYPE

struct OsMesa {
  void* (*create)(unsigned, int, int, int, void*);
  void (*destroy)(void*);
  unsigned char (*make_current)(void*, void*, unsigned, int, int);
  void* (*current_context)();
  unsigned char (*color_buffer)(void*, int*, int*, int*, void**);
  void (*get_integer)(int, int*);
  OsMesa() {
    void* const handle = open_global({"libOSMesa.so.8", "libOSMesa.so.6", "libOSMesa.so"});
    look_up(handle, create, "OSMesaCreateContextExt");
    look_up(handle, destroy, "OSMesaDestroyContext");
    look_up(handle, make_current, "OSMesaMakeCurrent");
    look_up(handle, current_context, "OSMesaGetCurrentContext");
    look_up(handle, color_buffer, "OSMesaGetColorBuffer");
    look_up(handle, get_integer, "OSMesaGetIntegerv");
  }
};

class OsMesaContext : public GlContext {
 public:
  OsMesaContext() : mesa_(library()), context_(mesa_.create(kRgba, 24, 8, 0, nullptr)) {
    if (context_ == nullptr) throw envpool::error(EP_E_UNSUPPORTED, "it gives no context");
  }
  ~OsMesaContext() override { mesa_.destroy(context_); }
  // MuJoCo draws into a buffer of its own, so this one may be small.
  bool enter() override {
    before_ = {};
    before_.context = mesa_.current_context();
    if (before_.context != nullptr) {
      int format = 0;
      mesa_.color_buffer(before_.context, &before_.width, &before_.height, &format,
                         &before_.buffer);
      mesa_.get_integer(kType, &before_.type);
    }
    return mesa_.make_current(context_, buffer_, kUnsignedByte, kSide, kSide) != 0;
  }
  void leave() override {
    mesa_.make_current(before_.context, before_.buffer, static_cast<unsigned>(before_.type),
                       before_.width, before_.height);
  }

 private:
  static const OsMesa& library() {
    static const OsMesa& only = *new OsMesa;
    return only;
  }
  struct Current {
    void *context, *buffer;
    int type, width, height;
  };
  static constexpr int kSide = 16;
  const OsMesa& mesa_;
  void* const context_;
  unsigned char buffer_[4 * kSide * kSide];
  Current before_{};
};

}  // namespace

std::unique_ptr<GlContext> GlContext::create() {
  const char* const wish = std::getenv("MUJOCO_GL");
  const std::string_view only = wish == nullptr ? "" : wish;
  std::string problems;
  const auto attempt = [&]<class C>(const char* name, C*) -> std::unique_ptr<GlContext> {
    try {
      return std::make_unique<C>();
    } catch (const envpool::error& e) {
      problems += std::string(problems.empty() ? "" : "; ") + name + ": " + e.what();
      return nullptr;
    }
  };
  if (only != "osmesa")
    if (auto context = attempt("EGL", static_cast<EglContext*>(nullptr))) return context;
  if (only != "egl")
    if (auto context = attempt("OSMesa", static_cast<OsMesaContext*>(nullptr))) return context;
  throw envpool::error(EP_E_UNSUPPORTED,
                       "pictures need OpenGL by EGL or OSMesa (" + problems +
                           "). On Debian: apt-get install libegl1 libgl1-mesa-dri, or libosmesa6");
}

}  // namespace mujoco
