// library.hpp - MuJoCo's library: opened at run time, its functions by name, its errors as
// exceptions.
//
// The file is the one that `import mujoco` loads, so a process has one copy of it, whoever comes
// first. The headers we are compiled with have to be of the same minor version, since the structs
// differ between minors.
#pragma once

#include <mujoco/mujoco.h>

#include <csetjmp>
#include <envpool/env.hpp>
#include <string>

namespace mujoco {

// Every function that this plugin calls.
#define ENVPOOL_MUJOCO_FUNCTIONS(X) \
  X(mj_version)                     \
  X(mj_versionString)               \
  X(mj_parseXML)                    \
  X(mj_parseXMLString)              \
  X(mj_compile)                     \
  X(mj_deleteSpec)                  \
  X(mjs_findBody)                   \
  X(mjs_findElement)                \
  X(mjs_firstElement)               \
  X(mjs_nextElement)                \
  X(mjs_findDefault)                \
  X(mjs_getSpecDefault)             \
  X(mjs_asGeom)                     \
  X(mjs_asCamera)                   \
  X(mjs_asSensor)                   \
  X(mjs_addBody)                    \
  X(mjs_addJoint)                   \
  X(mjs_addGeom)                    \
  X(mjs_addSite)                    \
  X(mjs_addActuator)                \
  X(mjs_setToMotor)                 \
  X(mjs_addSensor)                  \
  X(mjs_addTendon)                  \
  X(mjs_wrapSite)                   \
  X(mjs_delete)                     \
  X(mjs_setName)                    \
  X(mjs_setString)                  \
  X(mjs_getError)                   \
  X(mj_deleteModel)                 \
  X(mj_makeData)                    \
  X(mj_deleteData)                  \
  X(mj_resetData)                   \
  X(mj_resetDataKeyframe)           \
  X(mj_normalizeQuat)               \
  X(mj_forward)                     \
  X(mj_step)                        \
  X(mj_step1)                       \
  X(mj_step2)                       \
  X(mj_objectVelocity)              \
  X(mj_rnePostConstraint)           \
  X(mj_stateSize)                   \
  X(mj_getState)                    \
  X(mj_setState)                    \
  X(mj_name2id)                     \
  X(mj_id2name)                     \
  X(mju_axisAngle2Quat)             \
  X(mjv_defaultCamera)              \
  X(mjv_defaultFreeCamera)          \
  X(mjv_defaultOption)              \
  X(mjv_defaultPerturb)             \
  X(mjv_defaultScene)               \
  X(mjv_makeScene)                  \
  X(mjv_freeScene)                  \
  X(mjv_updateScene)                \
  X(mjr_defaultContext)             \
  X(mjr_makeContext)                \
  X(mjr_freeContext)                \
  X(mjr_resizeOffscreen)            \
  X(mjr_setBuffer)                  \
  X(mjr_uploadHField)               \
  X(mjr_render)                     \
  X(mjr_readPixels)

struct Functions {
#define ENVPOOL_MUJOCO_POINTER(name) decltype(&::name) name = nullptr;
  ENVPOOL_MUJOCO_FUNCTIONS(ENVPOOL_MUJOCO_POINTER)
#undef ENVPOOL_MUJOCO_POINTER
  // Sets what this thread's errors and warnings go to (nullptr: the process's handler) and returns
  // what they went to. MuJoCo's own Python bindings catch errors with it, too.
  mjfLogHandler (*set_thread_log_handler)(mjfLogHandler) = nullptr;
};

// Opens the library that the host's asset "mujoco_library" names, if that did not happen yet.
// Throws envpool::error naming the file and what to install. [any thread]
void open(const envpool::host& host);

// The functions. Only after open(); having a model implies that.
const Functions& lib();

namespace detail {
// The call into MuJoCo that is under way on this thread.
struct Call {
  std::jmp_buf escape;
  char error[1024];
  char warning[1024];  // the first one; empty: none
};
// Begins a call: from now on MuJoCo's messages on this thread go to it. Returns what they went to
// before in `handler`, for leave().
Call& enter(mjfLogHandler& handler) noexcept;
void leave(mjfLogHandler handler) noexcept;
[[noreturn]] void fail(const Call& call);
}  // namespace detail

// Runs f, which calls MuJoCo. MuJoCo's errors must not return to it and would end the process: they
// jump back to here and become an envpool::error with EP_E_BROKEN, since the mjData they happened
// in may be left half written. So f may hold nothing that needs a destructor, nor call guarded().
// Warnings stay out of the working directory's MUJOCO_LOG.TXT; the first one is returned, as a
// string that lasts until this thread's next call ("": none). Only this thread's handler is
// touched, and put back.
template <class F>
[[gnu::noinline]] const char* guarded(F&& f) {
  mjfLogHandler handler;
  detail::Call& call = detail::enter(handler);
  // Nothing that changes between setjmp and longjmp is read afterwards.
  if (_setjmp(call.escape) == 0) {
    f();
    detail::leave(handler);
    return call.warning;
  }
  detail::leave(handler);
  detail::fail(call);
}

}  // namespace mujoco
