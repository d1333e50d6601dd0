// error.hpp - the one exception type of the runtime; the bindings turn its kind into a Python
// class.
#pragma once

#include <stdexcept>
#include <string>

namespace envpool::runtime {

enum class ErrorKind {
  kValue,    // an argument is wrong: ValueError
  kType,     // an argument has the wrong type: TypeError
  kRuntime,  // a call out of order: RuntimeError
  kTimeout,  // the time given ran out, nothing is lost: TimeoutError
  kMemory,   // MemoryError
  kPlugin,   // a file is no usable plugin: envpool_sdk.PluginError
  kClosed,   // the pool is closed: envpool_sdk.ClosedError
  kEnv,      // an env failed in create or reset, or too often: envpool_sdk.EnvError
};

class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& what) : std::runtime_error(what), kind_(kind) {}
  ErrorKind kind() const noexcept { return kind_; }

 private:
  ErrorKind kind_;
};

}  // namespace envpool::runtime
