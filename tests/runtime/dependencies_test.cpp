// What a submission waits for, by whatever id that was said.
#include "links/recipe.hpp"
#include "runtime/client_requests.hpp"
#include "wire/wire.pb.h"

#include <gtest/gtest.h>

namespace hpcbatch {
namespace {

TEST(Dependencies, AnIdThatAnArrayTookForATaskIsThatTask) {
  std::vector<NewArray> arrays(1);
  arrays[0].after = {{.array = ArrayId{15}},
                     {.array = ArrayId{15}, .kind = Dependency::Kind::AnyEnd},
                     {.array = ArrayId{15}, .kind = Dependency::Kind::EachSuccess},
                     {.array = ArrayId{15}, .index = 3},
                     {.array = ArrayId{12}}};
  const std::vector<Dependency> before = arrays[0].after;
  name_tasks(arrays, {{ArrayId{15}, TaskId{ArrayId{12}, 4}}});
  const std::vector<Dependency>& after = arrays[0].after;
  EXPECT_EQ(after[0], (Dependency{.array = ArrayId{12}, .index = 4}));
  EXPECT_EQ(after[1], (Dependency{.array = ArrayId{12}, .index = 4, .kind = before[1].kind}));
  EXPECT_EQ(after[2], before[2]) << "which pairs whole arrays, and is refused";
  EXPECT_EQ(after[3], before[3]) << "which is no array's";
  EXPECT_EQ(after[4], before[4]);
}

class PairsTest : public testing::Test {
 protected:
  static std::string recipe(bool from_zero, Filled filled = Filled::Nothing) {
    wire::Start start;
    start.set_from_zero(from_zero);
    return to_bytes(start, filled);
  }
  /// Where an array with such a recipe is to wait for each task of that one.
  static std::string refusal(const std::string& first, const std::string& then) {
    Submission submission;
    submission.arrays.resize(1);
    submission.arrays[0].after = {{.array = ArrayId{23}, .kind = Dependency::Kind::EachSuccess}};
    submission.recipes = {{.bytes = then}};
    return why_not_paired(submission, {{ArrayId{23}, counting_of(first)}}).value_or("");
  }
};

TEST_F(PairsTest, HaveEqualIndices) {
  EXPECT_EQ(refusal(recipe(true), recipe(true)), "");
  EXPECT_EQ(refusal(recipe(false), recipe(false)), "");
  EXPECT_EQ(refusal(recipe(true), recipe(false)),
            "cannot pair tasks with those of 23: its indices begin at 0, and those of the array "
            "that is to wait at 1; begin both at 0 or both at 1, or wait for all of it");
  EXPECT_NE(refusal(recipe(false), recipe(true)), "");
  EXPECT_EQ(refusal(recipe(true), recipe(false, Filled::Items)), "")
      << "items have places alone: the first is for the first";
  EXPECT_EQ(refusal(recipe(false, Filled::Rows), recipe(true)), "");
}

TEST_F(PairsTest, OfOneSubmissionToo) {
  Submission submission;
  submission.arrays.resize(2);
  submission.arrays[1].after = {{.kind = Dependency::Kind::EachSuccess, .sibling = 1}};
  submission.recipes = {{.bytes = recipe(true)}, {.bytes = recipe(false)}};
  EXPECT_TRUE(why_not_paired(submission, {})
                  .value_or("")
                  .starts_with("cannot pair tasks with those of #1: "));
}

}  // namespace
}  // namespace hpcbatch
