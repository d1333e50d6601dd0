// json.cpp - see json.hpp.
#include "json.hpp"

#include <cctype>
#include <cstdlib>
#include <cstring>
#include <envpool/env.hpp>

namespace doom {
namespace {

class Parser {
 public:
  Parser(const std::string& text, const std::string& where) : at_(text.c_str()), where_(where) {}

  Json all() {
    Json json = value(0);
    space();
    if (*at_ != '\0') fail();
    return json;
  }

 private:
  static constexpr int kDeepest = 32;

  [[noreturn]] void fail() const {
    throw envpool::error(EP_E_ARGUMENT,
                         where_ + ": not JSON at \"" + std::string(at_).substr(0, 20) + "\"");
  }
  void space() {
    while (std::isspace(static_cast<unsigned char>(*at_)) != 0) ++at_;
  }
  bool take(char c) {
    space();
    if (*at_ != c) return false;
    ++at_;
    return true;
  }
  bool take(const char* word) {
    if (std::strncmp(at_, word, std::strlen(word)) != 0) return false;
    at_ += std::strlen(word);
    return true;
  }

  Json value(int depth) {
    if (depth > kDeepest) fail();
    space();
    if (*at_ == '"') return {string()};
    if (take('{')) return object(depth);
    if (take('[')) return array(depth);
    if (take("true")) return {true};
    if (take("false")) return {false};
    if (take("null")) return {nullptr};
    char* end = nullptr;
    const double number = std::strtod(at_, &end);
    if (end == at_) fail();
    at_ = end;
    return {number};
  }
  Json object(int depth) {
    Json::Object out;
    if (take('}')) return {out};
    do {
      space();
      if (*at_ != '"') fail();
      const std::string key = string();
      if (!take(':')) fail();
      out.insert_or_assign(key, value(depth + 1));
    } while (take(','));
    if (!take('}')) fail();
    return {out};
  }
  Json array(int depth) {
    Json::Array out;
    if (take(']')) return {out};
    do out.push_back(value(depth + 1));
    while (take(','));
    if (!take(']')) fail();
    return {out};
  }
  // Escapes beyond ASCII are of no use in names and paths that the host gives as UTF-8: not taken.
  std::string string() {
    std::string out;
    for (++at_; *at_ != '"'; ++at_) {
      if (*at_ == '\0') fail();
      if (*at_ != '\\') {
        out += *at_;
        continue;
      }
      ++at_;
      if (*at_ == 'u') {
        char* end = nullptr;
        const std::string digits(at_ + 1, strnlen(at_ + 1, 4));
        const long code = std::strtol(digits.c_str(), &end, 16);
        if (digits.size() != 4 || *end != '\0' || code > 0x7f) fail();
        out += static_cast<char>(code);
        at_ += 4;
        continue;
      }
      static constexpr char kFrom[] = "\"\\/bfnrt", kTo[] = "\"\\/\b\f\n\r\t";
      const char* found = *at_ != '\0' ? std::strchr(kFrom, *at_) : nullptr;
      if (found == nullptr) fail();
      out += kTo[found - kFrom];
    }
    ++at_;
    return out;
  }

  const char* at_;
  const std::string& where_;
};

}  // namespace

Json parse_json(const std::string& text, const std::string& where) {
  return Parser(text, where).all();
}

}  // namespace doom
