// json.hpp - reads the options that are JSON.
#pragma once

#include <map>
#include <string>
#include <variant>
#include <vector>

namespace doom {

struct Json {
  using Array = std::vector<Json>;
  using Object = std::map<std::string, Json>;
  std::variant<std::nullptr_t, bool, double, std::string, Array, Object> value;
};

// Of text that is JSON, which the host has checked. Throws envpool::error(EP_E_ARGUMENT) if it is
// not, `where` first.
Json parse_json(const std::string& text, const std::string& where);

}  // namespace doom
