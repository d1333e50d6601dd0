// check.hpp - checks for the native tests: plain programs whose main() ends in `return report();`.
//
// A failed check is printed and counted, and the test goes on. Checks may be made on any thread.
#pragma once

#include <atomic>
#include <cstdio>
#include <exception>
#include <string>

#include "error.hpp"

namespace envpool::test {

inline std::atomic<int> failures{0};

inline void fail(const char* file, int line, const std::string& what) {
  ++failures;
  std::fprintf(stderr, "%s:%d: %s\n", file, line, what.c_str());
}

// 0 if every check held.
inline int report() {
  if (failures) std::fprintf(stderr, "%d check(s) failed\n", failures.load());
  return failures ? 1 : 0;
}

// What is wrong with how `call` ended, or "" if it threw the Error expected.
template <class Call>
std::string throws_flaw(Call call, runtime::ErrorKind kind, const std::string& part) {
  try {
    call();
  } catch (const runtime::Error& error) {
    const std::string what = error.what();
    if (what.find(part) == std::string::npos) return "threw \"" + what + "\" without: " + part;
    if (error.kind() != kind) return "threw the wrong kind of Error: " + what;
    return "";
  } catch (const std::exception& error) {
    return std::string("threw no Error, but: ") + error.what();
  }
  return "threw nothing";
}

}  // namespace envpool::test

// The condition must hold.
#define CHECK(...)                                                                          \
  do {                                                                                      \
    if (!(__VA_ARGS__)) envpool::test::fail(__FILE__, __LINE__, "not true: " #__VA_ARGS__); \
  } while (false)

// The expression must throw a runtime::Error of that kind (kValue ...) whose text contains `part`.
#define CHECK_THROWS(expr, kind, part)                                                             \
  do {                                                                                             \
    const std::string flaw_ = envpool::test::throws_flaw([&] { static_cast<void>(expr); },         \
                                                         envpool::runtime::ErrorKind::kind, part); \
    if (!flaw_.empty()) envpool::test::fail(__FILE__, __LINE__, #expr ": " + flaw_);               \
  } while (false)
