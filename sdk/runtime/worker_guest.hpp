// worker_guest.hpp - a worker process whose engine has a main loop of its own: the worker runs on a
// second thread, and what it asks of the env is answered by the loop. See <envpool/guest.h>.
#pragma once

#include <envpool/guest.h>

#include <condition_variable>
#include <mutex>
#include <string>

namespace envpool::runtime {

// The one env that a guest program is.
class Guest {
 public:
  // Of this process; nullptr: it is no guest.
  static Guest* get() noexcept;
  static Guest& make();

  // The task as its plugin describes it, whose env is this guest. Lives as long as the process.
  const ep_task& stand_in(const ep_task& described);

  // By the engine's loop.
  std::int32_t next(ep_guest_call* call, std::int64_t timeout_ms);
  ep_status done(ep_status status, const char* text);

  // By the worker's thread.
  ep_status ask(const ep_guest_call& call);
  void end();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  ep_guest_call call_{};
  bool waiting_ = false;  // a call is not answered
  bool ended_ = false;
  ep_status status_ = EP_OK;
  std::string text_;
  const ep_host* host_ = nullptr;  // of the env
  ep_task task_{};
};

}  // namespace envpool::runtime
