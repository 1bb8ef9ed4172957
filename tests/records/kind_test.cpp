// What kind of task one is.
#include "records/estimate.hpp"

#include <gtest/gtest.h>

namespace hpcbatch::records {
namespace {

TEST(Kind, IsWhatSaysMost) {
  EXPECT_EQ(kind_of({"bwa_map", "tool", "name", "/bin/sh"}), "bwa_map");
  EXPECT_EQ(kind_of({"", "ina_speech_segmenter", "name", "/bin/sh"}), "ina_speech_segmenter");
  EXPECT_EQ(kind_of({"", "", "my sweep", "/bin/sh"}), "my sweep");
  EXPECT_EQ(kind_of({"", "", "", "/usr/bin/ffmpeg"}), "ffmpeg");
  EXPECT_EQ(kind_of({}), "(others)");
  EXPECT_EQ(kind_of({"", "", "", "dir/"}), "(others)");
}

TEST(Kind, OfNamesThatCountIsOne) {
  EXPECT_EQ(kind_of({.name = "run 17"}), kind_of({.name = "run 1800"}));
  EXPECT_EQ(kind_of({.name = "sample17.bam"}), "sample#.bam");
  EXPECT_EQ(kind_of({.name = "2026-11-26"}), "#-#-#");
  EXPECT_EQ(kind_of({.name = "run1"}), kind_of({.name = "run99"}));
  // A program's is a part of what it is called.
  EXPECT_EQ(kind_of({.program = "/opt/x86_64-gcc12"}), "x86_64-gcc12");
}

TEST(Kind, IsShortAndOnALine) {
  EXPECT_EQ(kind_of({.said = "a\nb\x01"}), "a b ");
  const std::string umlauts = kind_of({.said = std::string(99, 'x') + "\xc3\xbc"});
  EXPECT_EQ(umlauts, std::string(99, 'x'));
}

}  // namespace
}  // namespace hpcbatch::records
