// Numbers of JSON as people write them.
#include "documents/json_numbers.hpp"

#include <boost/json/parse.hpp>

#include <gtest/gtest.h>

#include <cstdlib>

namespace hpcbatch {
namespace {

TEST(PlainNumbers, HaveNoExponentWhereNoneIsNeeded) {
  EXPECT_EQ(with_plain_numbers(R"({"cpus":4E0,"a":[1.5E0,-2E2,0E0,1E-1,12,-3,1.25E10]})"),
            R"({"cpus":4,"a":[1.5,-200,0,0.1,12,-3,12500000000]})");
  EXPECT_EQ(with_plain_numbers("1E30"), "1e+30");
  EXPECT_EQ(with_plain_numbers("1.764072E9"), "1764072000");
  EXPECT_EQ(with_plain_numbers("1.7640720001234E9"), "1764072000.1234");
}

TEST(PlainNumbers, TextsStayAsTheyAre) {
  for (const char* json : {R"("4E0")", R"({"4E0":"a\"4E0","x":"\\"})", R"({"id":"12.3E4"})", "true",
                           "", R"("open)", "\""})
    EXPECT_EQ(with_plain_numbers(json), json);
}

TEST(ExactJson, NumbersAreReadToTheirLastDigit) {
  boost::system::error_code error;
  for (const char* text :
       {"0.00012103975866529293", "0.00020060709383209398", "-1.1e0046", "5e-324"})
    EXPECT_EQ(parse_json(text, error).to_number<double>(), std::strtod(text, nullptr)) << text;
  EXPECT_EQ(parse_json(R"({"a": [1, "x", null, true, 18446744073709551615]})", error),
            boost::json::parse(R"({"a": [1, "x", null, true, 18446744073709551615]})"));
  EXPECT_FALSE(error);
  for (const char* wrong : {"", "{", "1 2", "[1,]", "{\"a\"}"}) {
    parse_json(wrong, error);
    EXPECT_TRUE(error) << wrong;
  }
}

TEST(PlainNumbers, WhatIsTooLargeForADoubleIsFoundWhereverItStands) {
  for (const char* text : {"1e400", "[1, -0.1e4005]", R"({"a": {"b": [0.01e4005]}})"})
    EXPECT_TRUE(holds_infinity(boost::json::parse(text))) << text;
  for (const char* text : {"1.7e308", "1e-4000", R"({"1e400": ["1e400", null, true]})"})
    EXPECT_FALSE(holds_infinity(boost::json::parse(text))) << text;
}

}  // namespace
}  // namespace hpcbatch
