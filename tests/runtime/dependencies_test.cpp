// What a submission waits for, by whatever id that was said.
#include "runtime/client_requests.hpp"

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

}  // namespace
}  // namespace hpcbatch
