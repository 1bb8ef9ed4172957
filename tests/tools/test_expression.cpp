// Amounts as expressions: units, names, and what is no expression.
#include "tools/tool_resources.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>

namespace hpcbatch {
namespace {

const std::map<std::string, double> kValues{
    {"input.size", 5e6}, {"inputs.count", 3}, {"level", 6}, {"sin", 2}};

double value(const std::string& text) {
  std::vector<std::string> names;
  names.reserve(kValues.size());
  for (const auto& [name, unused] : kValues) names.push_back(name);
  return Expression(text, names).evaluate(kValues);
}

TEST(Expression, KnowsUnits) {
  EXPECT_DOUBLE_EQ(value("2G + 3 * input.size"), 2.0 * 1024 * 1024 * 1024 + 15e6);
  EXPECT_DOUBLE_EQ(value("10m + input.size / 1M * 2s"), 600 + 5e6 / 1048576 * 2);
  EXPECT_DOUBLE_EQ(value("1h30m"), 5400);
  EXPECT_DOUBLE_EQ(value("1.5KiB + 1KB"), 2560);
  EXPECT_DOUBLE_EQ(value("500ms"), 0.5);
  EXPECT_DOUBLE_EQ(value("1M"), 1048576);
  EXPECT_DOUBLE_EQ(value("1m"), 60);
  EXPECT_DOUBLE_EQ(value(".5d"), 43200);
}

TEST(Expression, Computes) {
  EXPECT_DOUBLE_EQ(value("max(1, min(inputs.count, 8))"), 3);
  EXPECT_DOUBLE_EQ(value("ceil(level / 4)"), 2);
  EXPECT_DOUBLE_EQ(value("level >= 6 ? 2 : 1"), 2);
  EXPECT_DOUBLE_EQ(value("level == 5 ? 2 : 1"), 1);
  EXPECT_DOUBLE_EQ(value("-level + 2^3"), 2);
  EXPECT_DOUBLE_EQ(value("sin * 2"), 4) << "names of functions that we do not offer are free";
}

TEST(Expression, GivesWhatIsNoNumberToTheCaller) {
  EXPECT_TRUE(std::isinf(value("1 / (level - 6)")));
  EXPECT_TRUE(std::isnan(value("(level - 6) / (level - 6)")));
}

TEST(Expression, CanBeEvaluatedAgain) {
  const Expression e("a * 2", {"a"});
  EXPECT_DOUBLE_EQ(e.evaluate({{"a", 1}}), 2);
  EXPECT_DOUBLE_EQ(e.evaluate({{"a", 4}}), 8);
}

std::string why_not(const std::string& text) {
  try {
    value(text);
  } catch (const std::invalid_argument& e) {
    return e.what();
  }
  return "accepted";
}

std::string wrong_unit(const std::string& text, Measure measure) {
  try {
    check_units(text, measure);
  } catch (const std::invalid_argument& e) {
    return e.what();
  }
  return "";
}

TEST(Expression, RefusesUnitsThatCannotBeMeant) {
  EXPECT_EQ(wrong_unit("500m + 2 * sound.size", Measure::Bytes),
            "'500m' is a time; sizes are written with K, M, G, T, as in 500M");
  EXPECT_NE(wrong_unit("2 * (x.size + 1d)", Measure::Bytes), "");
  EXPECT_NE(wrong_unit("1m", Measure::Count), "");
  EXPECT_EQ(wrong_unit("10M + x.size / 1M * 1s", Measure::Seconds),
            "'10M' is a size and not a time; minutes are m, as in 10m");
  EXPECT_NE(wrong_unit("1m + 10M", Measure::Seconds), "");
  EXPECT_NE(wrong_unit("level > 2 ? 10M : 5m", Measure::Seconds), "");
  EXPECT_NE(wrong_unit("level > 2 ? 10m : 5M", Measure::Seconds), "");
}

TEST(Expression, TakesUnitsThatCanBeMeant) {
  EXPECT_EQ(wrong_unit("500M + 2 * sound.size", Measure::Bytes), "");
  EXPECT_EQ(wrong_unit("ceil(x.size / 1G)", Measure::Count), "");
  for (const char* time :
       {"10m + x.size / 1M * 1s", "x.size > 1G ? 1h : 10m", "1G < x.size ? 1h : 10m",
        "1G + x.size > 5G ? 1h30m : 10m", "min(x.size, 1G) / 1M * 1s", "(x.size + 10M) / 1M * 1s",
        "10M / x.rate * 1s", "x.size / (1M) * 2"}) {
    EXPECT_EQ(wrong_unit(time, Measure::Seconds), "") << time;
  }
}

TEST(Expression, SaysWhatIsWrong) {
  EXPECT_EQ(why_not("input.sise"), "'input.sise' is not known here; did you mean 'input.size'?");
  EXPECT_EQ(why_not("10 parsecs"),
            "'parsecs' is not known here; known are input.size, inputs.count, level, sin");
  EXPECT_EQ(why_not("10parsecs"),
            "'parsecs' is no unit; units are K, M, G, T of bytes and ms, s, m, h, d of time");
  EXPECT_EQ(why_not("2 +"), "it ends too early or is empty");
  EXPECT_EQ(why_not(""), "it ends too early or is empty");
  EXPECT_EQ(why_not("(2"), "a ')' is missing");
  EXPECT_EQ(why_not("2)"), "it cannot be read at ')'");
  EXPECT_EQ(why_not("2 3"), "it cannot be read at '('");
  EXPECT_EQ(why_not("level = 3"), "'=' cannot stand here; a comparison is ==");
  EXPECT_EQ(why_not("2 $ 3"), "'$' cannot stand in an expression");
  EXPECT_EQ(why_not("`ls`"), "'`' cannot stand in an expression");
  EXPECT_EQ(why_not("max()"), "it cannot be read at 'max'");
}

}  // namespace
}  // namespace hpcbatch
