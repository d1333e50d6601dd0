// floats.hpp - how floating point works while envs run, whoever's thread they run on.
#pragma once

#if defined(__SSE__)
#include <xmmintrin.h>
#else
#include <cfenv>
#endif

namespace envpool::runtime {

// For its lifetime this thread rounds to nearest and keeps denormal numbers, as threads do by
// themselves. XLA's threads flush them to zero, and so does PyTorch's set_flush_denormal(): an env
// must not give other bits because such a thread helps out, or starts one that does.
class OrdinaryFloats {
 public:
#if defined(__SSE__)
  // By the register itself, since this comes with every call. Where this is, double and float need
  // nothing else.
  OrdinaryFloats() : before_(_mm_getcsr()) {
    if ((before_ & kMode) != kOrdinary) _mm_setcsr(kOrdinary);
  }
  ~OrdinaryFloats() {
    if ((before_ & kMode) != kOrdinary) _mm_setcsr(before_);
  }

 private:
  // All but what was noted of past operations.
  static constexpr unsigned kMode = 0xFFC0, kOrdinary = 0x1F80;
  const unsigned before_;
#else
  OrdinaryFloats() {
    std::fegetenv(&before_);
    std::fesetenv(FE_DFL_ENV);
  }
  ~OrdinaryFloats() { std::fesetenv(&before_); }

 private:
  std::fenv_t before_;
#endif

 public:
  OrdinaryFloats(const OrdinaryFloats&) = delete;
  OrdinaryFloats& operator=(const OrdinaryFloats&) = delete;
};

}  // namespace envpool::runtime
