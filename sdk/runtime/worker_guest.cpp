// worker_guest.cpp - see worker_guest.hpp.
#include "worker_guest.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "worker.hpp"

namespace envpool::runtime {
namespace {

Guest* the_guest = nullptr;  // set once, before the worker's thread starts

ep_guest_call call_of(std::int32_t what) {
  ep_guest_call call{};
  call.size = sizeof call;
  call.what = what;
  return call;
}

// The functions of Guest::stand_in(): the env's handle is the guest.

ep_status EP_CALL create(const ep_host* host, const ep_create* how, void** env) {
  ep_guest_call call = call_of(EP_GUEST_CREATE);
  call.host = host;
  call.create = how;
  *env = the_guest;
  return the_guest->ask(call);
}

ep_status EP_CALL reset(void*, const ep_reset* how) {
  ep_guest_call call = call_of(EP_GUEST_RESET);
  call.reset = how;
  return the_guest->ask(call);
}

ep_status EP_CALL step(void*, const ep_input* in, const ep_result* out) {
  ep_guest_call call = call_of(EP_GUEST_STEP);
  call.input = in;
  call.result = out;
  return the_guest->ask(call);
}

ep_status EP_CALL observe(void*, const ep_view* view) {
  ep_guest_call call = call_of(EP_GUEST_OBSERVE);
  call.view = view;
  return the_guest->ask(call);
}

void EP_CALL destroy(void*) { the_guest->ask(call_of(EP_GUEST_DESTROY)); }

const ep_guest_api kApi{
    sizeof(ep_guest_api), 0,
    [](ep_guest_call* call, std::int64_t timeout_ms) { return the_guest->next(call, timeout_ms); },
    [](ep_status status, const char* text) { return the_guest->done(status, text); }};

}  // namespace

Guest* Guest::get() noexcept { return the_guest; }

Guest& Guest::make() {
  the_guest = new Guest;  // lives as long as the process
  return *the_guest;
}

const ep_task& Guest::stand_in(const ep_task& described) {
  std::memcpy(&task_, &described, std::min<std::size_t>(described.size, sizeof task_));
  task_.size = sizeof task_;
  task_.create = create;
  task_.reset = reset;
  task_.step = step;
  task_.observe = observe;
  task_.destroy = destroy;
  task_.extension = nullptr;
  return task_;
}

std::int32_t Guest::next(ep_guest_call* call, std::int64_t timeout_ms) {
  std::unique_lock lock(mutex_);
  const auto there = [this] { return waiting_ || ended_; };
  if (timeout_ms < 0) {
    changed_.wait(lock, there);
  } else {
    changed_.wait_for(lock, std::chrono::milliseconds(timeout_ms), there);
  }
  ep_guest_call given = waiting_ ? call_ : call_of(ended_ ? EP_GUEST_END : EP_GUEST_NOTHING);
  given.host = host_;
  given.size = std::min(call->size, given.size);
  std::memcpy(call, &given, given.size);
  return given.what;
}

ep_status Guest::done(ep_status status, const char* text) {
  const std::lock_guard lock(mutex_);
  if (!waiting_) return EP_E_STATE;
  waiting_ = false;
  status_ = status;
  text_ = text ? text : "";
  changed_.notify_all();
  return EP_OK;
}

ep_status Guest::ask(const ep_guest_call& call) {
  std::unique_lock lock(mutex_);
  call_ = call;
  if (call.host) host_ = call.host;
  waiting_ = true;
  changed_.notify_all();
  changed_.wait(lock, [this] { return !waiting_; });
  if (status_ != EP_OK && !text_.empty()) host_->explain(host_, text_.c_str());
  return status_;
}

void Guest::end() {
  const std::lock_guard lock(mutex_);
  ended_ = true;
  changed_.notify_all();
}

}  // namespace envpool::runtime

// What <envpool/guest.h> looks up: makes this process a worker.
extern "C" __attribute__((visibility("default"))) const ep_guest_api* envpool_guest_open_v1(
    std::uint32_t abi_major, std::uint32_t abi_minor) {
  using namespace envpool::runtime;
  const char* told = std::getenv("ENVPOOL_GUEST");  // "number parent": see ProcessPool::spawn
  unsigned number = 0;
  int parent = 0;
  if (abi_major != EP_ABI_MAJOR || abi_minor > EP_ABI_MINOR || Guest::get() || !told ||
      std::sscanf(told, "%u %d", &number, &parent) != 2) {
    return nullptr;
  }
  // Not for processes that the engine starts.
  unsetenv("ENVPOOL_GUEST");
  unsetenv("ENVPOOL_GUEST_LIBRARY");
  Guest& guest = Guest::make();
  std::thread([number, parent, &guest] {
    run_worker(number, parent);
    guest.end();
  }).detach();
  return &kApi;
}
