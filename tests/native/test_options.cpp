// test_options.cpp - declared options, given values, and what a plugin receives of them.
#include "options.hpp"

#include <cmath>
#include <cstring>
#include <limits>
#include <memory>

#include "check.hpp"

using namespace envpool::runtime;

namespace {

ep_value bool_value(bool b) { return {EP_T_BOOL, 0, b, 0, nullptr, nullptr, 0}; }
ep_value int_value(std::int64_t i) { return {EP_T_INT, 0, i, 0, nullptr, nullptr, 0}; }
ep_value float_value(double f) { return {EP_T_FLOAT, 0, 0, f, nullptr, nullptr, 0}; }
ep_value text_value(ep_type type, const char* s) { return {type, 0, 0, 0, s, nullptr, 0}; }
ep_value array_value(ep_dtype dtype, const void* data, std::uint64_t count) {
  return {EP_T_ARRAY, dtype, 0, 0, nullptr, data, count};
}

ep_option declare(const char* name, ep_value def, std::uint32_t flags = 0) {
  ep_option option{};
  option.size = sizeof option;
  option.flags = flags;
  option.name = name;
  option.def = def;
  return option;
}

template <class T>
OptionArray array(ep_dtype dtype, const std::vector<T>& elements) {
  OptionArray result{dtype, std::vector<std::byte>(elements.size() * sizeof(T))};
  std::memcpy(result.bytes.data(), elements.data(), result.bytes.size());
  return result;
}

// A task with one option of every type.
struct Task {
  ep_value gravity_min = float_value(0), gravity_max = float_value(100), steps_min = int_value(1);
  ep_value modes[2] = {text_value(EP_T_STRING, "fast"), text_value(EP_T_STRING, "slow")};
  float weights_default[2] = {0.5F, 1.5F};

  ep_option gravity = declare("gravity", float_value(9.8), EP_OPTION_AT_RESET);
  ep_option steps = declare("steps", int_value(500));
  ep_option mode = declare("mode", text_value(EP_T_STRING, "fast"), EP_OPTION_AT_RESET);
  ep_option windy = declare("windy", bool_value(false));
  ep_option rom = declare("rom", text_value(EP_T_PATH, nullptr), EP_OPTION_REQUIRED);
  ep_option weights = declare("weights", array_value(EP_FLOAT32, weights_default, 2));
  ep_option layout = declare("layout", text_value(EP_T_JSON, "{}"));
  const ep_option* options[7] = {&gravity, &steps, &mode, &windy, &rom, &weights, &layout};
  ep_task abi{};

  Task() {
    gravity.min = &gravity_min;
    gravity.max = &gravity_max;
    steps.min = &steps_min;
    mode.choices = modes;
    mode.choice_count = 2;
    rom.doc = "the game";
    weights.min = &gravity_min;
    abi.size = sizeof abi;
    abi.id = "CartPole-v1";
    abi.options = options;
    abi.option_count = 7;
  }

  // All options, with `rom` given, since it is required.
  Options make(std::vector<NamedOption> given) const {
    given.push_back({"rom", std::string("pong.bin")});
    return Options(abi, given);
  }
};

void test_defaults() {
  const Task task;
  const Options options = task.make({});
  const std::vector<ep_value>& values = options.values();
  CHECK(values.size() == 7);
  CHECK(values[0].type == EP_T_FLOAT && values[0].f == 9.8);
  CHECK(values[1].type == EP_T_INT && values[1].i == 500);
  CHECK(std::strcmp(values[2].s, "fast") == 0);
  CHECK(values[3].type == EP_T_BOOL && values[3].i == 0);
  CHECK(values[4].type == EP_T_PATH && std::strcmp(values[4].s, "pong.bin") == 0);
  CHECK(values[5].dtype == EP_FLOAT32 && values[5].count == 2);
  CHECK(static_cast<const float*>(values[5].data)[1] == 1.5F);
  CHECK(values[6].type == EP_T_JSON && std::strcmp(values[6].s, "{}") == 0);
  CHECK(values[0].s == nullptr && values[0].i == 0 && values[2].f == 0);
}

void test_conversions() {
  const Task task;
  const Options options = task.make({{"gravity", std::int64_t{3}},
                                     {"steps", 20.0},
                                     {"windy", true},
                                     {"weights", array<std::int64_t>(EP_INT64, {1, 2, 3})}});
  const std::vector<ep_value>& values = options.values();
  CHECK(values[0].type == EP_T_FLOAT && values[0].f == 3.0);
  CHECK(values[1].type == EP_T_INT && values[1].i == 20);
  CHECK(values[3].i == 1);
  CHECK(values[5].dtype == EP_FLOAT32 && values[5].count == 3);
  CHECK(static_cast<const float*>(values[5].data)[2] == 3.0F);
  CHECK(task.make({{"weights", OptionArray{}}}).values()[5].count == 0);
}

void test_refused_values() {
  const Task task;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK_THROWS(task.make({{"gravity", -1.0}}), kValue,
               "CartPole-v1: option gravity=-1.0 is out of range [0, 100]");
  CHECK_THROWS(task.make({{"gravity", nan}}), kValue, "option gravity=nan is out of range");
  CHECK_THROWS(task.make({{"steps", std::int64_t{0}}}), kValue,
               "option steps=0 is out of range [1, inf)");
  CHECK_THROWS(task.make({{"steps", 2.5}}), kValue, "steps=2.5 must be an int, not a float");
  CHECK_THROWS(task.make({{"steps", 1e30}}), kValue, "steps=1e+30 must be an int");
  CHECK_THROWS(task.make({{"steps", true}}), kValue, "steps=True must be an int, not a bool");
  CHECK_THROWS(task.make({{"gravity", true}}), kValue, "gravity=True must be a float, not a bool");
  CHECK_THROWS(task.make({{"windy", std::int64_t{1}}}), kValue, "windy=1 must be a bool");
  CHECK_THROWS(task.make({{"mode", std::string("fats")}}), kValue,
               "option mode='fats' is not one of 'fast', 'slow'");
  CHECK_THROWS(task.make({{"mode", 1.0}}), kValue, "mode=1.0 must be a string, not a float");
  CHECK_THROWS(task.make({{"layout", std::string("{\"a\":}")}}), kValue,
               "option layout='{\"a\":}' is not JSON (wrong at byte 5)");
  CHECK_THROWS(task.make({{"layout", std::string("a\0b", 3)}}), kValue, "NUL");
  CHECK_THROWS(task.make({{"layout", std::string("\"\xff\"")}}), kValue, "is not UTF-8");
  CHECK_THROWS(task.make({{"weights", array<double>(EP_FLOAT64, {1.0, -2.0})}}), kValue,
               "option weights=[1.0, -2.0] is out of range [0, inf)");
  CHECK_THROWS(task.make({{"weights", array<double>(EP_FLOAT64, {1.0, 1e300})}}), kValue,
               "element [1] that no float32 holds");
  CHECK_THROWS(task.make({{"weights", OptionArray{7, {}}}}), kValue, "unknown dtype 7");
  CHECK_THROWS(task.make({{"weights", 1.0}}), kValue, "must be an array");
}

void test_refused_names() {
  const Task task;
  CHECK_THROWS(task.make({{"gravty", 1.0}}), kValue,
               "CartPole-v1: there is no option 'gravty'; there are: gravity, steps, mode, windy, "
               "rom, weights, layout");
  CHECK_THROWS(task.make({{"steps", 2.0}, {"steps", 3.0}}), kValue, "option steps is given twice");
  CHECK_THROWS(Options(task.abi, {}), kValue, "option rom is required (a path: the game)");
  ep_task bare{};
  bare.id = "Bare-v0";
  CHECK(Options(bare, {}).values().empty());
  CHECK_THROWS(Options(bare, {{"x", 1.0}}), kValue, "there is no option 'x'; it has none");
}

void test_copies() {
  const Task task;
  const std::string slow = "slow";
  auto original = std::make_unique<Options>(task.make({{"mode", slow}}));
  const Options copy = *original;
  CHECK(copy.values()[2].s != original->values()[2].s);
  original.reset();
  CHECK(copy.values()[2].s == slow);
}

void test_at_reset() {
  const Task task;
  const Options options = task.make({{"gravity", 5.0}});
  const Options same = options.at_reset({});
  CHECK(same.values().size() == 2);
  CHECK(same.values()[0].f == 5.0 && std::strcmp(same.values()[1].s, "fast") == 0);
  const Options other = options.at_reset({{"mode", std::string("slow")}});
  CHECK(other.values()[0].f == 5.0 && std::strcmp(other.values()[1].s, "slow") == 0);
  CHECK(options.values()[0].f == 5.0 && std::strcmp(options.values()[2].s, "fast") == 0);
  CHECK_THROWS(options.at_reset({{"steps", 3.0}}), kValue,
               "there is no option for reset 'steps'; there are: gravity, mode");
  CHECK_THROWS(options.at_reset({{"gravity", 101.0}}), kValue, "gravity=101.0 is out of range");
}

bool is_json(const std::string& text) {
  const Task task;
  try {
    task.make({{"layout", text}});
    return true;
  } catch (const Error&) {
    return false;
  }
}

void test_json() {
  for (const char* good :
       {"null", "true", " false ", "0", "-0", "12", "1.5", "1e5", "-1.25E-3", "\"\"", "[]", "{ }",
        "[1, 2,3]", "{\"a\": [1, {\"b\": null}], \"c\": \"\\u00e9\\n\\\"\"}", "\"\xc3\xa9\"",
        "[[], {}]", "\t[\r\n1 ]"})
    CHECK(is_json(good));
  for (const char* bad :
       {"",    " ",    "nul",   "nullx",   "True",       "01",      "-",           "1.",
        ".5",  "1e",   "+1",    "NaN",     "\"",         "\"\\x\"", "\"\\u12g4\"", "\"\n\"",
        "[",   "[1,]", "[1 2]", "{\"a\"}", "{\"a\":1,}", "{a:1}",   "{1:2}",       "[]]",
        "1 2", "\"\\", "'a'",   "//x\n1"})
    CHECK(!is_json(bad));
  CHECK(is_json(std::string(200, '[') + std::string(200, ']')));
  CHECK(!is_json(std::string(1'000'000, '[')));  // must not overflow the stack
}

void test_text() {
  const double numbers[] = {1, 2.5};
  const std::uint64_t large[] = {std::numeric_limits<std::uint64_t>::max()};
  const std::int8_t many[20] = {-1};
  CHECK(to_string(text_value(EP_T_STRING, "fast")) == "'fast'");
  CHECK(to_string(int_value(3)) == "3");
  CHECK(to_string(float_value(3)) == "3.0");
  CHECK(to_string(float_value(-0.1)) == "-0.1");
  CHECK(to_string(float_value(INFINITY)) == "inf");
  CHECK(to_string(bool_value(true)) == "True");
  CHECK(to_string(array_value(EP_FLOAT64, numbers, 2)) == "[1.0, 2.5]");
  CHECK(to_string(array_value(EP_UINT64, large, 1)) == "[18446744073709551615]");
  CHECK(to_string(array_value(EP_INT8, many, 20)) == "[-1, 0, 0, 0, 0, 0, 0, 0, ... 20 in all]");
  const std::string cut = to_string(text_value(EP_T_STRING, std::string(1000, 'x').c_str()));
  CHECK(cut == "'" + std::string(200, 'x') + "...'");
}

template <class Change>
void declared_badly(const char* flaw, Change change) {
  Task task;
  change(task);
  CHECK_THROWS(
      [&] {
        for (const ep_option* option : task.options) check_declaration(*option);
      }(),
      kPlugin, flaw);
}

void test_declarations() {
  const Task task;
  for (const ep_option* option : task.options) check_declaration(*option);
  ep_value nan = float_value(NAN);
  declared_badly("ABI 1.0 needs", [](Task& t) { t.mode.size = 8; });
  declared_badly("bad name ''", [](Task& t) { t.mode.name = nullptr; });
  declared_badly("bad name ''", [](Task& t) { t.mode.name = ""; });
  declared_badly("bad name 'Mode'", [](Task& t) { t.mode.name = "Mode"; });
  declared_badly("bad name '2d'", [](Task& t) { t.mode.name = "2d"; });
  declared_badly("bad name", [](Task& t) { t.mode.name = "\xff"; });
  declared_badly("option mode: has a doc that is not UTF-8", [](Task& t) { t.mode.doc = "\xff"; });
  declared_badly("does not know (8)", [](Task& t) { t.mode.flags = 8; });
  declared_badly("unknown type 9", [](Task& t) { t.mode.def.type = 9; });
  declared_badly("unknown dtype 5", [](Task& t) { t.weights.def.dtype = 5; });
  declared_badly("s is NULL", [](Task& t) { t.mode.def.s = nullptr; });
  declared_badly("default that is not UTF-8", [](Task& t) { t.layout.def.s = "\xc0\x80"; });
  declared_badly("no data", [](Task& t) { t.weights.def.data = nullptr; });
  declared_badly("not 0 or 1", [](Task& t) { t.windy.def.i = 2; });
  declared_badly("'' is not JSON", [](Task& t) { t.layout.def.s = ""; });
  declared_badly("refuses: 101.0 is out of range [0, 100]", [](Task& t) { t.gravity.def.f = 101; });
  declared_badly("'x' is not one of", [](Task& t) { t.mode.def.s = "x"; });
  declared_badly("has a min above its max: [0, -1]", [](Task& t) { t.gravity_max.f = -1; });
  declared_badly("NaN", [&](Task& t) { t.gravity.max = &nan; });
  declared_badly("min or max of another type", [](Task& t) { t.steps_min.type = EP_T_FLOAT; });
  declared_badly("has min or max, but is a string", [](Task& t) { t.mode.min = &t.steps_min; });
  declared_badly("no choices", [](Task& t) { t.mode.choices = nullptr; });
  declared_badly("choice_count of 0", [](Task& t) { t.mode.choice_count = 0; });
  declared_badly("choice of another type", [](Task& t) { t.modes[1] = int_value(3); });
  declared_badly("choice that has no text", [](Task& t) { t.modes[1].s = nullptr; });
  declared_badly("has choices, but is a bool", [](Task& t) {
    t.windy.choices = t.modes;
    t.windy.choice_count = 1;
  });
  Task newer;  // what may be ignored, is
  newer.mode.size += 8;
  newer.mode.flags |= 1U << 16;
  check_declaration(newer.mode);
}

}  // namespace

int main() {
  test_defaults();
  test_conversions();
  test_refused_values();
  test_refused_names();
  test_copies();
  test_at_reset();
  test_json();
  test_text();
  test_declarations();
  return envpool::test::report();
}
