// Templates: what is put in, once and literally, and what is not let in.
#include "dropbox/job_file.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <stdexcept>

namespace hpcbatch {
namespace {

std::string refusal(const std::string& value) {
  try {
    return "accepted: " + render_template("x <<a>> y", {{"a", {value, false}}}).text;
  } catch (const std::invalid_argument& e) {
    return e.what();
  }
}

TEST(Template, PutsValuesInOnceAndLiterally) {
  EXPECT_EQ(render_template("run <<level>> <<level>>/<<out>>",
                            {{"level", {"6", false}}, {"out", {"a.tsv", true}}})
                .text,
            "run 6 6/a.tsv");
  EXPECT_EQ(render_template("<<a>>", {{"a", {"<<a>> \\1 $x", true}}}).text, "<<a>> \\1 $x")
      << "not looked at again";
}

TEST(Template, LeavesTheShellsOwnMarksAlone) {
  const std::string text = "cat <<EOF\nx\nEOF\necho $((1<<2)) <<< a << b >> c <<1a>>";
  EXPECT_EQ(render_template(text, {}).text, text);
  EXPECT_TRUE(render_template(text, {}).unknown.empty());
}

TEST(Template, AnUnknownNameIsLeftAndNamed) {
  const auto rendered = render_template("a <<nme>> <<name>>", {{"name", {"x", true}}});
  EXPECT_EQ(rendered.text, "a <<nme>> x");
  EXPECT_EQ(rendered.unknown, std::set<std::string>{"nme"});
}

TEST(Template, TakesAnyValueThatIsTrusted) {
  EXPECT_EQ(
      render_template("x <<a>>|<<b>>", {{"a", {"", true}}, {"b", {"it's \"two\" words", true}}})
          .text,
      "x |it's \"two\" words");
}

TEST(Template, QuotesWhatItIsToldToQuote) {
  const auto rendered = render_template("x <<a:q>> <<b:q>> <<c:q>> <<a:x>>",
                                        {{"a", {"it's $(id)", false}}, {"b", {"", true}}});
  EXPECT_EQ(rendered.text, "x 'it'\\''s $(id)' '' <<c:q>> <<a:x>>");
  EXPECT_EQ(rendered.unknown, std::set<std::string>{"c"});
}

TEST(Template, LetsOnlySafeValuesOfOthersIn) {
  for (const char* safe :
       {"6", "-3.5", "010", "large-v2", "a.b/c:d,e=f+g@h%i", "\xC3\xA9t\xC3\xA9"}) {
    EXPECT_EQ(refusal(safe), std::string("accepted: x ") + safe + " y");
  }
  for (const char* unsafe : {"",    " ",  "a b",   "$(id)", "`id`", "a;b", "a\nb", "'", "\"",
                             "-rf", "-",  "--x",   "a|b",   "a&b",  "a>b", "a\\1", "*", "~",
                             "a#b", "!x", "{a,b}", "(a)",   "a?b",  "a^b", "a\tb"}) {
    EXPECT_TRUE(refusal(unsafe).starts_with("the value of 'a' may hold only")) << unsafe;
  }
}

TEST(Template, AMPsSegmenterIsRenderedAsAMPRunsIt) {
  std::ostringstream text;
  text << std::ifstream(TOOL_TEMPLATES "/ina_speech_segmenter.template").rdbuf();
  const std::string script =
      render_template(text.str(), {{"workspace", {"/scratch/amp/host-12-1700000000", true}},
                                   {"containers", {"/sif", true}},
                                   {"input", {"dataset_12.dat", true}},
                                   {"segments", {"dataset_13.dat", true}}})
          .text;
  EXPECT_NE(script.find("module load singularity\n"), std::string::npos);
  EXPECT_NE(
      script.find(
          "singularity run --nv --bind /scratch/amp/host-12-1700000000:/mnt /sif/inaspeech.sif "
          "/mnt/input/dataset_12.dat /mnt/output/dataset_13.dat\n"),
      std::string::npos)
      << script;
}

}  // namespace
}  // namespace hpcbatch
