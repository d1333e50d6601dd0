// wad.cpp - see wad.hpp.
#include "wad.hpp"

#include <cstdint>
#include <cstring>
#include <envpool/env.hpp>
#include <fstream>
#include <vector>

#include "names.hpp"

namespace doom {
namespace {

struct Header {
  char magic[4];
  std::uint32_t count, offset;  // of the directory
};
struct Entry {
  std::uint32_t offset, size;
  char name[8];  // ends at 8 characters or a NUL
};

}  // namespace

Wad::Wad(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw envpool::error(EP_E_NOT_FOUND, "there is no WAD file " + path);
  Header header{};
  in.read(reinterpret_cast<char*>(&header), sizeof header);
  archive_ = std::memcmp(header.magic, "PK\3\4", 4) == 0;
  if (archive_) return;
  const bool wad =
      std::memcmp(header.magic, "PWAD", 4) == 0 || std::memcmp(header.magic, "IWAD", 4) == 0;
  if (!in || !wad || header.count > 1000000)
    throw envpool::error(EP_E_ARGUMENT,
                         path + " is no WAD file: it begins with neither PWAD nor IWAD");
  std::vector<Entry> entries(header.count);
  in.seekg(header.offset);
  in.read(reinterpret_cast<char*>(entries.data()),
          static_cast<std::streamsize>(entries.size() * sizeof(Entry)));
  if (!in)
    throw envpool::error(EP_E_ARGUMENT, path + " is a broken WAD file: its directory is cut off");
  for (const Entry& e : entries) names_.insert(upper({e.name, strnlen(e.name, sizeof e.name)}));
}

bool Wad::has(const std::string& map) const { return archive_ || names_.contains(upper(map)); }

}  // namespace doom
