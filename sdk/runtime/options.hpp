// options.hpp - a task's typed options with their values: validated, completed with defaults,
// owned.
#pragma once

#include <envpool/env.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace envpool::runtime {

// An array option: its bytes in dtype.
struct OptionArray {
  ep_dtype dtype = EP_FLOAT64;
  std::vector<std::byte> bytes;
  bool operator==(const OptionArray&) const = default;
};

// A value as a user gives it. A bool passes for BOOL only; an int for INT and FLOAT; a float for
// FLOAT, and for INT if it is a whole number; an array for an ARRAY whose dtype can hold its
// values.
using OptionValue = std::variant<bool, std::int64_t, double, std::string, OptionArray>;

struct NamedOption {
  std::string name;
  OptionValue value;
};

// All options of one env in declared order, each with a value.
class Options {
 public:
  // Throws Error(kValue) that names the task, the option, the value and what is allowed: unknown
  // name (with all names), wrong type, out of [min, max], not among the choices, not JSON, a
  // required one missing, one given twice.
  Options(const ep_task& task, const std::vector<NamedOption>& given);

  Options(const Options& other);
  Options& operator=(const Options&) = delete;

  // All of them by name, as they may be given to a constructor.
  std::vector<NamedOption> named() const;

  // Valid as long as this object is, in declared order.
  const std::vector<ep_value>& values() const noexcept { return values_; }

  // The values of the EP_OPTION_AT_RESET options after `given` replaced some of them (which must be
  // AT_RESET ones), as an Options object of only those. Throws as the constructor does.
  Options at_reset(const std::vector<NamedOption>& given) const;

 private:
  explicit Options(const ep_task& task) : task_(&task) {}

  // Takes the values given; which options they were for.
  std::vector<bool> replace(const std::vector<NamedOption>& given, const char* noun);
  std::size_t index_of(const std::string& name, const char* noun) const;
  void point();  // makes values_ anew from owned_

  const ep_task* task_;
  std::vector<const ep_option*> declared_;
  std::vector<OptionValue> owned_;  // one for each of declared_; what values_ points to
  std::vector<ep_value> values_;
};

// A value for people: 'fast', 3, [1.0, 2.0]. Long ones are cut.
std::string to_string(const ep_value& value);

// Throws Error(kPlugin) if an option is declared badly: its name, its type, flags that this host
// does not know, a default that its own range or choices exclude.
void check_declaration(const ep_option& option);

}  // namespace envpool::runtime
