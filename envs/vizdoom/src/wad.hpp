// wad.hpp - the directory of a WAD file: enough to see whether a map is there.
#pragma once

#include <set>
#include <string>

namespace doom {

class Wad {
 public:
  // Throws envpool::error: EP_E_NOT_FOUND, or EP_E_ARGUMENT if it is no WAD. A ZIP (pk3) is taken
  // on trust.
  explicit Wad(const std::string& path);

  // In any case ("map01").
  bool has(const std::string& map) const;

 private:
  bool archive_ = false;
  std::set<std::string> names_;
};

}  // namespace doom
