// gl.hpp - OpenGL without a screen: by EGL, or by OSMesa, whichever the machine has. Both are
// looked up at run time; nothing of them is needed to build this.
#pragma once

#include <memory>

namespace mujoco {

// An OpenGL context of one thread. It is made, used and destroyed there.
class GlContext {
 public:
  // By EGL, else by OSMesa; MUJOCO_GL=egl or osmesa in the environment, which MuJoCo's Python
  // bindings heed as well, decides. Throws envpool::error (EP_E_UNSUPPORTED) telling what is wrong
  // with each.
  static std::unique_ptr<GlContext> create();
  virtual ~GlContext() = default;

  // Makes it current on this thread; false: it can't any more, as after the display was closed.
  virtual bool enter() = 0;
  // Gives the thread back what was current before enter().
  virtual void leave() = 0;
};

}  // namespace mujoco
