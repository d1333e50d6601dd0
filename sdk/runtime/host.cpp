// host.cpp - the callbacks of ep_host: log, explain, assets, cancellation, placement.
#include "host.hpp"

#include <envpool/ext/placement.h>

#include <cstdio>
#include <cstring>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "cpus.hpp"

#ifndef ENVPOOL_SDK_VERSION
#define ENVPOOL_SDK_VERSION "0.0.0"
#endif

namespace envpool::runtime {
namespace {

thread_local std::string explanation;
thread_local int worker_index = -1;

// ---- log

void log_to_stderr(int level, const std::string& text) {
  if (level < EP_LOG_WARN) return;
  std::fprintf(stderr, "envpool: %s: %s\n", level < EP_LOG_ERROR ? "warning" : "error",
               text.c_str());
}

struct Log {
  std::mutex mutex;
  std::shared_ptr<const LogSink> sink = std::make_shared<const LogSink>(log_to_stderr);
};

// Never destroyed: a plugin's thread may log while the process ends.
Log& the_log() {
  static Log& log = *new Log;
  return log;
}

void EP_CALL log(const ep_host*, int32_t level, const char* text) noexcept try {
  log_line(level, shown(text));
} catch (...) {
  // A line is lost; the plugin could do nothing about it.
}

void EP_CALL explain(const ep_host*, const char* text) noexcept try {
  explanation = shown(text);
} catch (...) {
  explanation.clear();
}

// ---- placement

int32_t EP_CALL placement_worker(const ep_host*, int32_t* cpus, uint32_t cap, uint32_t* n) noexcept
    try {
  const std::vector<int> allowed = allowed_cpus();
  for (std::size_t i = 0; cpus && i < cap && i < allowed.size(); ++i) cpus[i] = allowed[i];
  if (n) *n = static_cast<uint32_t>(allowed.size());
  return worker_index;
} catch (...) {
  if (n) *n = 0;
  return worker_index;
}

const ep_placement placement{sizeof(ep_placement), 0, placement_worker};

const void* EP_CALL extension(const ep_host*, const char* id) noexcept {
  return id && std::strcmp(id, EP_EXT_PLACEMENT) == 0 ? &placement : nullptr;
}

// ---- texts

const char* describe_status(ep_status status) {
  switch (status) {
    case EP_OK:
      return "EP_OK: success";
    case EP_E_FAILED:
      return "EP_E_FAILED: the call failed";
    case EP_E_ARGUMENT:
      return "EP_E_ARGUMENT: bad option value, action or argument";
    case EP_E_UNSUPPORTED:
      return "EP_E_UNSUPPORTED: not implemented by this env";
    case EP_E_STATE:
      return "EP_E_STATE: called out of order";
    case EP_E_NOMEM:
      return "EP_E_NOMEM: out of memory";
    case EP_E_NOT_FOUND:
      return "EP_E_NOT_FOUND: an asset or file is missing";
    case EP_E_CANCELLED:
      return "EP_E_CANCELLED: stopped because the host asked for it";
    case EP_E_BROKEN:
      return "EP_E_BROKEN: the env is unusable";
    default:
      return nullptr;
  }
}

// Bytes of the well-formed UTF-8 sequence that `text` begins with, 0 if it begins with none.
std::size_t utf8_length(std::string_view text) noexcept {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  if (byte(0) < 0x80) return 1;
  // Overlong forms (0xC0, 0xC1) and what is beyond U+10FFFF (0xF5 up) never begin a sequence.
  const std::size_t length = byte(0) < 0xC2   ? 0
                             : byte(0) < 0xE0 ? 2
                             : byte(0) < 0xF0 ? 3
                             : byte(0) < 0xF5 ? 4
                                              : 0;
  if (length == 0 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xC0) != 0x80) return 0;
  const bool overlong = (byte(0) == 0xE0 && byte(1) < 0xA0) || (byte(0) == 0xF0 && byte(1) < 0x90);
  const bool surrogate = byte(0) == 0xED && byte(1) >= 0xA0;
  const bool beyond = byte(0) == 0xF4 && byte(1) >= 0x90;
  return overlong || surrogate || beyond ? 0 : length;
}

// All hosts there ever were: they are immortal, and being reachable from here they are no leaks.
struct Hosts {
  std::mutex mutex;
  std::vector<std::unique_ptr<Host>> all;
};

Hosts& the_hosts() {
  static Hosts& hosts = *new Hosts;
  return hosts;
}

}  // namespace

Host& Host::make(Assets assets) {
  std::unique_ptr<Host> host(new Host(std::move(assets)));
  std::lock_guard lock(the_hosts().mutex);
  return *the_hosts().all.emplace_back(std::move(host));
}

Host::Host(Assets assets) : assets_(std::move(assets)) {
  abi_.size = sizeof(ep_host);
  abi_.abi_major = EP_ABI_MAJOR;
  abi_.abi_minor = EP_ABI_MINOR;
  abi_.ctx = this;
  abi_.name = "envpool-sdk";
  abi_.version = ENVPOOL_SDK_VERSION;
  abi_.extension = runtime::extension;
  abi_.log = log;
  abi_.explain = explain;
  abi_.asset = asset;
  abi_.cancelled = cancelled;
}

// Relaxed: the flag carries no other data, and a plugin that polls sees it soon enough.
void Host::cancel() noexcept { cancelled_.store(true, std::memory_order_relaxed); }

int32_t Host::cancelled(const ep_host* host) noexcept {
  // Relaxed: see cancel().
  const Host& self = from(host);
  return self.cancelled_.load(std::memory_order_relaxed) ||
                 (self.stopping_ && self.stopping_->load(std::memory_order_relaxed))
             ? 1
             : 0;
}

ep_status Host::asset(const ep_host* host, const char* name, char* buf, uint64_t cap,
                      uint64_t* len) noexcept try {
  if (len) *len = 0;
  const Assets& assets = from(host).assets_;
  const auto found = assets.find(name ? name : "");
  if (found == assets.end()) {
    explain(host, ("the package has no asset \"" + shown(name) + "\"").c_str());
    return EP_E_NOT_FOUND;
  }
  const std::string& path = found->second;
  if (len) *len = path.size();
  // Not explained: asking with cap 0 is how a plugin learns the length.
  if (!buf || cap <= path.size()) return EP_E_ARGUMENT;
  std::memcpy(buf, path.c_str(), path.size() + 1);
  return EP_OK;
} catch (...) {
  return EP_E_NOMEM;
}

std::string take_explanation(ep_status status) {
  if (!explanation.empty()) return std::exchange(explanation, {});
  const char* text = describe_status(status);
  return text ? text : "unknown status " + std::to_string(status);
}

void log_line(int level, const std::string& text) {
  std::shared_ptr<const LogSink> sink;
  {
    std::lock_guard lock(the_log().mutex);
    sink = the_log().sink;
  }
  // Called without the lock: a sink may log, wait or replace the sink.
  (*sink)(level, text);
}

void set_log_sink(LogSink sink) {
  auto fresh = std::make_shared<const LogSink>(sink ? std::move(sink) : LogSink(log_to_stderr));
  std::lock_guard lock(the_log().mutex);
  // The old one is destroyed after the lock is released: its destructor may log.
  the_log().sink.swap(fresh);
}

void set_worker_index(int index) noexcept { worker_index = index; }

bool is_utf8(std::string_view text) noexcept {
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string shown(const char* text) {
  std::string_view rest = text ? text : "";
  std::string result;
  while (!rest.empty()) {
    const std::size_t length = utf8_length(rest);
    result += length ? rest.substr(0, length) : std::string_view("\xEF\xBF\xBD");  // U+FFFD
    rest.remove_prefix(length ? length : 1);
  }
  return result;
}

}  // namespace envpool::runtime
