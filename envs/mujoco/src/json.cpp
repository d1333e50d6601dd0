#include "json.hpp"

#include <cstdlib>
#include <string_view>
#include <vector>

namespace mujoco {
namespace {

class Reader {
 public:
  Reader(const char* option, const std::string& json) : option_(option), json_(json) {}

  // Whether the next thing is `c`, which then is passed.
  bool pass(char c) {
    const std::size_t next = json_.find_first_not_of(" \t\r\n", at_);
    if (next == json_.npos || json_[next] != c) return false;
    at_ = next + 1;
    return true;
  }
  void expect(char c) {
    if (!pass(c)) refuse();
  }
  std::string key() {
    expect('"');
    const std::size_t end = json_.find('"', at_);
    std::string out = json_.substr(at_, end - at_);
    at_ = end + 1;
    return out;
  }
  double value() {
    at_ = json_.find_first_not_of(" \t\r\n", at_);
    for (const std::string_view word : {"true", "false"})
      if (json_.compare(at_, word.size(), word) == 0) {
        at_ += word.size();
        return word == "true";
      }
    char* end = nullptr;
    const double number = std::strtod(json_.c_str() + at_, &end);
    if (end == json_.c_str() + at_) refuse();
    at_ = static_cast<std::size_t>(end - json_.c_str());
    return number;
  }
  [[noreturn]] void refuse() const {
    throw envpool::error(EP_E_ARGUMENT, std::string(option_) + "=" + json_ +
                                            ": it must be an object whose values are numbers, "
                                            "booleans or arrays of these");
  }

 private:
  const char* const option_;
  const std::string& json_;
  std::size_t at_ = 0;
};

}  // namespace

void for_each_member(const char* option, const std::string& json,
                     const std::function<void(const std::string&, std::span<const double>)>& f) {
  Reader in(option, json);
  in.expect('{');
  if (in.pass('}')) return;
  do {
    const std::string key = in.key();
    in.expect(':');
    std::vector<double> values;
    if (in.pass('[')) {
      if (!in.pass(']')) {
        do values.push_back(in.value());
        while (in.pass(','));
        in.expect(']');
      }
    } else {
      values.push_back(in.value());
    }
    f(key, values);
  } while (in.pass(','));
  in.expect('}');
}

}  // namespace mujoco
