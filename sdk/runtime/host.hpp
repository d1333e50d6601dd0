// host.hpp - what the runtime offers to plugins: the ep_host handed to every call into them.
#pragma once

#include <envpool/env.h>

#include <atomic>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "error.hpp"

namespace envpool::runtime {

// Packaged files that a plugin may ask for by name: name -> absolute path.
using Assets = std::map<std::string, std::string>;

// One for each loaded plugin (describe) and one for each pool (create). Envs may keep the pointer,
// and a thread that hangs in a plugin may outlive its pool, so hosts are made by make() and live as
// long as the process.
class Host {
 public:
  static Host& make(Assets assets);

  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  const ep_host* abi() const noexcept { return &abi_; }
  const Assets& assets() const noexcept { return assets_; }

  // From now on cancelled() tells plugins to stop long work. [any-thread]
  void cancel() noexcept;
  // ... and so it does when this word, of another process, is not zero. Before the first env.
  void watch(const std::atomic<std::uint32_t>& stopping) noexcept { stopping_ = &stopping; }

 private:
  explicit Host(Assets assets);

  // The callbacks of abi_. A plugin calls them, so no exception may leave them.
  static const Host& from(const ep_host* host) { return *static_cast<const Host*>(host->ctx); }
  static ep_status EP_CALL asset(const ep_host* host, const char* name, char* buf, uint64_t cap,
                                 uint64_t* len) noexcept;
  static int32_t EP_CALL cancelled(const ep_host* host) noexcept;

  ep_host abi_{};
  Assets assets_;
  std::atomic<bool> cancelled_{false};
  const std::atomic<std::uint32_t>* stopping_ = nullptr;
};

// The text that the plugin gave by ep_host.explain on this thread since the last call of
// take_explanation(), or a plain description of the status ("EP_E_NOMEM: out of memory") if it gave
// none.
std::string take_explanation(ep_status status);

// Receives every line that plugins log, on whichever thread they do it. The default writes warnings
// and errors to stderr. The sink must be callable at any time until the process ends. [any-thread]
using LogSink = std::function<void(int level, const std::string& text)>;
void set_log_sink(LogSink sink);
// Gives a line to it. [any-thread]
void log_line(int level, const std::string& text);

// What the calling thread is to plugins that ask by envpool.placement/1: the index of a worker, -1
// outside pools.
void set_worker_index(int index) noexcept;

// ---- texts of plugins, and messages about their flaws

bool is_utf8(std::string_view text) noexcept;

// A text that can always be shown: NULL becomes "", bytes that are not UTF-8 become U+FFFD.
std::string shown(const char* text);

// Does `check`; an Error that it throws gets "where: " in front of its text.
template <class Check>
void within(const std::string& where, Check check) {
  try {
    check();
  } catch (const Error& error) {
    throw Error(error.kind(), where + ": " + error.what());
  }
}

}  // namespace envpool::runtime
