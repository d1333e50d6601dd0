// options.cpp - checks declared options and given values by the same rules.
#include "options.hpp"

#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <string_view>
#include <utility>

#include "error.hpp"
#include "host.hpp"
#include "spec.hpp"

namespace envpool::runtime {
namespace {

// Text longer than this is cut in messages: a JSON document or an array may be huge.
constexpr std::size_t kMostShown = 200;
constexpr std::size_t kMostElementsShown = 8;

// ---- values as text

// As short as can be read back: 0, 9.8, 1e+20.
std::string shortest(double number) {
  char text[32];
  return std::string(text, std::to_chars(text, text + sizeof text, number).ptr);
}

std::string float_text(double number) {
  std::string text = shortest(number);
  const bool looks_integer = text.find_first_not_of("-0123456789") == std::string::npos;
  return looks_integer ? text + ".0" : text;
}

std::string quoted(const char* text) {
  std::string all = shown(text);
  if (all.size() <= kMostShown) return "'" + all + "'";
  std::size_t end = kMostShown;
  while ((static_cast<unsigned char>(all[end]) & 0xC0) == 0x80) --end;  // not within a character
  return "'" + all.substr(0, end) + "...'";
}

std::string array_text(const ep_value& value) {
  std::string text = "[";
  for (std::size_t i = 0; i < value.count; ++i) {
    if (i) text += ", ";
    if (i == kMostElementsShown) return text + "... " + std::to_string(value.count) + " in all]";
    const long double number = number_at(value.dtype, value.data, i);
    if (value.dtype >= EP_FLOAT16)
      text += float_text(static_cast<double>(number));
    else if (number < 0)
      text += std::to_string(static_cast<std::int64_t>(number));
    else
      text += std::to_string(static_cast<std::uint64_t>(number));
  }
  return text + "]";
}

const char* type_name(ep_type type) {
  switch (type) {
    case EP_T_BOOL:
      return "a bool";
    case EP_T_INT:
      return "an int";
    case EP_T_FLOAT:
      return "a float";
    case EP_T_STRING:
      return "a string";
    case EP_T_PATH:
      return "a path";
    case EP_T_ARRAY:
      return "an array";
    case EP_T_JSON:
      return "JSON text";
    default:
      return nullptr;
  }
}

bool is_text(ep_type type) { return type == EP_T_STRING || type == EP_T_PATH || type == EP_T_JSON; }

// ---- JSON

// RFC 8259, strictly; only says whether a text is JSON. UTF-8 is checked elsewhere.
class JsonCheck {
 public:
  explicit JsonCheck(std::string_view text) : text_(text) {}

  bool ok() {
    space();
    return value(0) && (space(), at_ == text_.size());
  }
  std::size_t position() const { return at_; }

 private:
  // Deeper documents are refused, so that none can overflow the stack.
  static constexpr int kMostNested = 256;

  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool digit() const { return peek() >= '0' && peek() <= '9'; }
  bool take(char c) { return peek() == c && at_ < text_.size() ? ++at_ : false; }
  void space() {
    while (take(' ') || take('\t') || take('\n') || take('\r')) {
    }
  }
  bool word(std::string_view w) {
    if (text_.substr(at_, w.size()) != w) return false;
    at_ += w.size();
    return true;
  }
  bool digits() {
    if (!digit()) return false;
    while (digit()) ++at_;
    return true;
  }

  bool number() {
    take('-');
    if (!take('0') && !digits()) return false;
    if (take('.') && !digits()) return false;
    if (!take('e') && !take('E')) return true;
    if (!take('+')) take('-');
    return digits();
  }

  bool escape() {
    if (!take('u')) return peek() && std::strchr("\"\\/bfnrt", peek()) && ++at_;
    for (int i = 0; i < 4; ++i, ++at_)
      if (!peek() || !std::strchr("0123456789abcdefABCDEF", peek())) return false;
    return true;
  }

  bool string() {
    if (!take('"')) return false;
    while (!take('"')) {
      if (static_cast<unsigned char>(peek()) < 0x20) return false;  // the end, too
      if (take('\\') ? !escape() : !++at_) return false;
    }
    return true;
  }

  // What stands between brackets: items with commas between them, or nothing.
  template <class Item>
  bool list(char close, Item item) {
    space();
    if (take(close)) return true;
    do {
      space();
      if (!item()) return false;
      space();
    } while (take(','));
    return take(close);
  }

  bool value(int depth) {
    if (depth > kMostNested) return false;
    const auto inner = [&] { return space(), value(depth + 1); };
    if (take('[')) return list(']', inner);
    if (take('{')) return list('}', [&] { return string() && (space(), take(':')) && inner(); });
    if (peek() == '"') return string();
    return word("true") || word("false") || word("null") || number();
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

// ---- the rules for a value

// The value of an INT or FLOAT; of a bound of an ARRAY, too.
long double number_of(const ep_value& value) {
  return value.type == EP_T_INT ? static_cast<long double>(value.i)
                                : static_cast<long double>(value.f);
}

std::string bound_text(const ep_value& bound) {
  return bound.type == EP_T_INT ? std::to_string(bound.i) : shortest(bound.f);
}

std::string range_text(const ep_option& option) {
  return (option.min ? "[" + bound_text(*option.min) : "(-inf") + ", " +
         (option.max ? bound_text(*option.max) + "]" : "inf)");
}

// Written so that NaN is out of every range.
bool in_range(const ep_option& option, long double number) {
  return (!option.min || number >= number_of(*option.min)) &&
         (!option.max || number <= number_of(*option.max));
}

bool all_in_range(const ep_option& option, const ep_value& value) {
  if (value.type == EP_T_INT || value.type == EP_T_FLOAT) return in_range(option, number_of(value));
  if (value.type != EP_T_ARRAY || (!option.min && !option.max)) return true;
  for (std::size_t i = 0; i < value.count; ++i)
    if (!in_range(option, number_at(value.dtype, value.data, i))) return false;
  return true;
}

bool same(const ep_value& a, const ep_value& b) {
  return is_text(a.type) ? std::strcmp(a.s, b.s) == 0 : number_of(a) == number_of(b);
}

std::string choices_text(const ep_option& option) {
  std::string text;
  for (std::uint32_t i = 0; i < option.choice_count; ++i)
    text += (i ? ", " : "") + to_string(option.choices[i]);
  return text;
}

// What is wrong with the parts of a value that its type uses, or "".
std::string shape_flaw(const ep_value& value) {
  if (value.type == EP_T_BOOL && value.i != 0 && value.i != 1) return "is a bool but not 0 or 1";
  if (is_text(value.type) && !value.s) return "has no text (s is NULL)";
  if (is_text(value.type) && !is_utf8(value.s)) return "is not UTF-8";
  if (value.type != EP_T_ARRAY) return "";
  if (!name_of(value.dtype)) return "has the unknown dtype " + std::to_string(value.dtype);
  if (value.count && !value.data) return "has elements but no data";
  return "";
}

// Why a well-shaped value is not allowed, or "". Reads as a continuation of "option name=value".
std::string value_flaw(const ep_option& option, const ep_value& value) {
  if (value.type == EP_T_JSON) {
    JsonCheck json(value.s);
    if (!json.ok()) return "is not JSON (wrong at byte " + std::to_string(json.position()) + ")";
  }
  if (!all_in_range(option, value)) return "is out of range " + range_text(option);
  if (!option.choices) return "";
  for (std::uint32_t i = 0; i < option.choice_count; ++i)
    if (same(option.choices[i], value)) return "";
  return "is not one of " + choices_text(option);
}

// ---- from what was given to the declared type

ep_value view(ep_type type, const OptionValue& owned) {
  ep_value value{};
  value.type = type;
  if (auto* flag = std::get_if<bool>(&owned)) value.i = *flag;
  if (auto* whole = std::get_if<std::int64_t>(&owned)) value.i = *whole;
  if (auto* number = std::get_if<double>(&owned)) value.f = *number;
  if (auto* text = std::get_if<std::string>(&owned)) value.s = text->c_str();
  if (auto* array = std::get_if<OptionArray>(&owned)) {
    value.dtype = array->dtype;
    value.data = array->bytes.data();
    value.count = array->bytes.size() / bytes_of(array->dtype);
  }
  return value;
}

OptionValue own(const ep_value& value) {
  if (value.type == EP_T_BOOL) return value.i != 0;
  if (value.type == EP_T_INT) return value.i;
  if (value.type == EP_T_FLOAT) return value.f;
  if (is_text(value.type)) return std::string(value.s);
  OptionArray array{value.dtype, std::vector<std::byte>(value.count * bytes_of(value.dtype))};
  if (value.count) std::memcpy(array.bytes.data(), value.data, array.bytes.size());
  return array;
}

ep_type type_of(const OptionValue& given) {
  static constexpr ep_type kTypes[] = {EP_T_BOOL, EP_T_INT, EP_T_FLOAT, EP_T_STRING, EP_T_ARRAY};
  return kTypes[given.index()];
}

[[noreturn]] void bad_value(const std::string& flaw) { throw Error(ErrorKind::kValue, flaw); }

[[noreturn]] void wrong_type(const ep_option& option, const OptionValue& given) {
  bad_value(std::string("must be ") + type_name(option.def.type) + ", not " +
            type_name(type_of(given)));
}

OptionValue to_int(const ep_option& option, const OptionValue& given) {
  if (std::holds_alternative<std::int64_t>(given)) return given;
  const double* number = std::get_if<double>(&given);
  std::int64_t whole = 0;
  if (!number || !store_number(EP_INT64, &whole, 0, *number)) wrong_type(option, given);
  return whole;
}

OptionValue to_float(const ep_option& option, const OptionValue& given) {
  if (std::holds_alternative<double>(given)) return given;
  const std::int64_t* whole = std::get_if<std::int64_t>(&given);
  if (!whole) wrong_type(option, given);
  return static_cast<double>(*whole);
}

OptionValue to_text(const ep_option& option, const OptionValue& given) {
  const std::string* text = std::get_if<std::string>(&given);
  if (!text) wrong_type(option, given);
  if (text->find('\0') != std::string::npos) bad_value("has a NUL character in it");
  if (!is_utf8(*text)) bad_value("is not UTF-8");
  return given;
}

OptionValue to_array(const ep_option& option, const OptionValue& given) {
  const OptionArray* array = std::get_if<OptionArray>(&given);
  if (!array) wrong_type(option, given);
  const ep_dtype dtype = option.def.dtype;
  const std::size_t count = array->bytes.size() / bytes_of(array->dtype);
  OptionArray result{dtype, std::vector<std::byte>(count * bytes_of(dtype))};
  for (std::size_t i = 0; i < count; ++i)
    if (!store_number(dtype, result.bytes.data(), i,
                      number_at(array->dtype, array->bytes.data(), i)))
      bad_value("has an element [" + std::to_string(i) + "] that no " + name_of(dtype) + " holds");
  return result;
}

OptionValue convert(const ep_option& option, const OptionValue& given) {
  switch (option.def.type) {
    case EP_T_BOOL:
      if (!std::holds_alternative<bool>(given)) wrong_type(option, given);
      return given;
    case EP_T_INT:
      return to_int(option, given);
    case EP_T_FLOAT:
      return to_float(option, given);
    case EP_T_ARRAY:
      return to_array(option, given);
    default:
      return to_text(option, given);
  }
}

// ---- the value of one option

[[noreturn]] void refuse_value(const ep_task& task, const std::string& flaw) {
  throw Error(ErrorKind::kValue, task.id + (": " + flaw));
}

// What the user gave, in the declared type.
OptionValue accept(const ep_task& task, const ep_option& option, const OptionValue& given) {
  OptionValue value;
  std::string text = std::string("option ") + option.name;
  try {
    if (auto* array = std::get_if<OptionArray>(&given); array && !name_of(array->dtype))
      bad_value("has the unknown dtype " + std::to_string(array->dtype));
    text += "=" + to_string(view(type_of(given), given));
    value = convert(option, given);
    const std::string flaw = value_flaw(option, view(option.def.type, value));
    if (!flaw.empty()) bad_value(flaw);
  } catch (const Error& error) {
    refuse_value(task, text + " " + error.what());
  }
  return value;
}

OptionValue default_of(const ep_task& task, const ep_option& option) {
  if (!(option.flags & EP_OPTION_REQUIRED)) return own(option.def);
  refuse_value(task, std::string("option ") + option.name + " is required (" +
                         type_name(option.def.type) + (option.doc ? ": " + shown(option.doc) : "") +
                         ")");
}

// ---- declarations

[[noreturn]] void refuse(const std::string& flaw) { throw Error(ErrorKind::kPlugin, flaw); }

// An ep_option of ABI 1.0 ends here.
constexpr std::size_t kLeastSize = offsetof(ep_option, reserved) + sizeof(ep_option::reserved);

bool is_identifier(const char* name) {
  if (!name || !*name || (*name >= '0' && *name <= '9')) return false;
  return name[std::strspn(name, "abcdefghijklmnopqrstuvwxyz_0123456789")] == '\0';
}

void check_type(const ep_option& option) {
  // Bits 16 up may be ignored, as those of fields.
  constexpr std::uint32_t kKnown = EP_OPTION_REQUIRED | EP_OPTION_AT_RESET | EP_OPTION_SHAPES_SPEC;
  if (const std::uint32_t unknown = option.flags & 0xFFFF & ~kKnown)
    refuse("has flags that this host does not know (" + std::to_string(unknown) + ")");
  if (!type_name(option.def.type))
    refuse("has the unknown type " + std::to_string(option.def.type));
  if (option.def.type == EP_T_ARRAY && !name_of(option.def.dtype))
    refuse("has the unknown dtype " + std::to_string(option.def.dtype));
}

void check_bounds(const ep_option& option) {
  if (!option.min && !option.max) return;
  const ep_type type = option.def.type;
  if (type != EP_T_INT && type != EP_T_FLOAT && type != EP_T_ARRAY)
    refuse(std::string("has min or max, but is ") + type_name(type));
  for (const ep_value* bound : {option.min, option.max}) {
    if (!bound) continue;
    if (bound->type != (type == EP_T_INT ? EP_T_INT : EP_T_FLOAT))
      refuse("has a min or max of another type");
    if (std::isnan(number_of(*bound))) refuse("has NaN as min or max");
  }
  if (option.min && option.max && number_of(*option.min) > number_of(*option.max))
    refuse("has a min above its max: " + range_text(option));
}

void check_choices(const ep_option& option) {
  if (!option.choices && option.choice_count) refuse("has a choice_count but no choices");
  if (!option.choices) return;
  if (!option.choice_count) refuse("has choices but a choice_count of 0");
  const ep_type type = option.def.type;
  if (type != EP_T_INT && type != EP_T_FLOAT && type != EP_T_STRING)
    refuse(std::string("has choices, but is ") + type_name(type));
  for (std::uint32_t i = 0; i < option.choice_count; ++i) {
    const ep_value& choice = option.choices[i];
    if (choice.type != type) refuse("has a choice of another type");
    if (const std::string flaw = shape_flaw(choice); !flaw.empty())
      refuse("has a choice that " + flaw);
    if (!all_in_range(option, choice))
      refuse("has the choice " + to_string(choice) + " out of range " + range_text(option));
  }
}

void check_default(const ep_option& option) {
  if (option.flags & EP_OPTION_REQUIRED) return;
  if (const std::string flaw = shape_flaw(option.def); !flaw.empty())
    refuse("has a default that " + flaw);
  if (const std::string flaw = value_flaw(option, option.def); !flaw.empty())
    refuse("has a default that its own declaration refuses: " + to_string(option.def) + " " + flaw);
}

}  // namespace

std::string to_string(const ep_value& value) {
  switch (value.type) {
    case EP_T_BOOL:
      return value.i ? "True" : "False";
    case EP_T_INT:
      return std::to_string(value.i);
    case EP_T_FLOAT:
      return float_text(value.f);
    case EP_T_ARRAY:
      return array_text(value);
    default:
      return quoted(value.s);
  }
}

void check_declaration(const ep_option& option) {
  if (option.size < kLeastSize)
    refuse("the struct size of an option is " + std::to_string(option.size) +
           ", but ABI 1.0 needs " + std::to_string(kLeastSize));
  if (!is_identifier(option.name))
    refuse("an option has the bad name " + quoted(option.name) +
           ": it may have lower case letters, digits and \"_\", and must not begin with a digit");
  within(std::string("option ") + option.name, [&] {
    check_type(option);
    if (option.doc && !is_utf8(option.doc)) refuse("has a doc that is not UTF-8");
    if (option.unit && !is_utf8(option.unit)) refuse("has a unit that is not UTF-8");
    check_bounds(option);
    check_choices(option);
    check_default(option);
  });
}

Options::Options(const ep_task& task, const std::vector<NamedOption>& given)
    : task_(&task),
      declared_(task.options, task.options + task.option_count),
      owned_(task.option_count) {
  const std::vector<bool> was_given = replace(given, "option");
  for (std::size_t i = 0; i < declared_.size(); ++i)
    if (!was_given[i]) owned_[i] = default_of(*task_, *declared_[i]);
  point();
}

Options::Options(const Options& other)
    : task_(other.task_), declared_(other.declared_), owned_(other.owned_) {
  point();
}

std::vector<NamedOption> Options::named() const {
  std::vector<NamedOption> all;
  for (std::size_t i = 0; i < declared_.size(); ++i) all.push_back({declared_[i]->name, owned_[i]});
  return all;
}

Options Options::at_reset(const std::vector<NamedOption>& given) const {
  Options result(*task_);
  for (std::size_t i = 0; i < declared_.size(); ++i) {
    if (!(declared_[i]->flags & EP_OPTION_AT_RESET)) continue;
    result.declared_.push_back(declared_[i]);
    result.owned_.push_back(owned_[i]);
  }
  result.replace(given, "option for reset");
  result.point();
  return result;
}

std::vector<bool> Options::replace(const std::vector<NamedOption>& given, const char* noun) {
  std::vector<bool> was_given(declared_.size());
  for (const auto& [name, value] : given) {
    const std::size_t i = index_of(name, noun);
    if (was_given[i]) refuse_value(*task_, "option " + name + " is given twice");
    was_given[i] = true;
    owned_[i] = accept(*task_, *declared_[i], value);
  }
  return was_given;
}

std::size_t Options::index_of(const std::string& name, const char* noun) const {
  std::string names;
  for (std::size_t i = 0; i < declared_.size(); ++i) {
    if (name == declared_[i]->name) return i;
    names += (i ? ", " : "") + std::string(declared_[i]->name);
  }
  refuse_value(*task_, std::string("there is no ") + noun + " " + quoted(name.c_str()) +
                           (names.empty() ? "; it has none" : "; there are: " + names));
}

void Options::point() {
  values_.clear();
  for (std::size_t i = 0; i < declared_.size(); ++i)
    values_.push_back(view(declared_[i]->def.type, owned_[i]));
}

}  // namespace envpool::runtime
