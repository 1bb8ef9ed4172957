#include "hardware/gpu_kind.hpp"

#include <gtest/gtest.h>

#include <stdexcept>

namespace hpcbatch {
namespace {

TEST(GpuWords, AreReadAsTheyAreMeant) {
  EXPECT_EQ(parse_gpus("2"), std::pair(std::string(), 2.0));
  EXPECT_EQ(parse_gpus("0.25"), std::pair(std::string(), 0.25));
  EXPECT_EQ(parse_gpus("a100"), std::pair(std::string("a100"), 1.0));
  EXPECT_EQ(parse_gpus("a100:4"), std::pair(std::string("a100"), 4.0));
  EXPECT_EQ(parse_gpus("a100|1g.5gb:0.5"), std::pair(std::string("a100|1g.5gb"), 0.5));
  EXPECT_EQ(parse_gpus("any"), std::pair(std::string(), 1.0));
  EXPECT_EQ(parse_gpus("any:2"), std::pair(std::string(), 2.0));
}

std::string refusal(const char* text) {
  try {
    parse_gpus(text);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "taken";
}

TEST(GpuWords, WhatIsNoKindIsTold) {
  EXPECT_EQ(refusal("a100,v100"),
            "'a100,v100' is not a number of GPUs; where either would do, say a100|v100; a part of "
            "one is 0.25");
  for (const char* text : {"25%", "1/4", "v100=2"}) {
    EXPECT_EQ(refusal(text), "'" + std::string(text) +
                                 "' is not a number of GPUs; a kind of GPU has letters, digits and "
                                 "._-+ alone, as a100; a part of one is 0.25");
  }
  for (const char* text : {"a100|", "|a100", "a100||v100", "a100|:2"})
    EXPECT_NE(refusal(text).find("between and around |"), std::string::npos) << text;
  for (const char* text : {"", ":2", "a100:x", "-1", "a100:-1"})
    EXPECT_NE(refusal(text).find("say 1, a100 or a100:2"), std::string::npos) << text;
  for (const char* text : {"1.5", "a100:2.5"})
    EXPECT_NE(refusal(text).find("whole ones, or a part of one"), std::string::npos) << text;
  EXPECT_NE(refusal("a100|any").find("stands alone"), std::string::npos);
}

}  // namespace
}  // namespace hpcbatch
