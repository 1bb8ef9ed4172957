// What has ended, line by line.
#include "../store/store_in_folder.hpp"
#include "api/answers/to_json.hpp"

#include <gtest/gtest.h>

namespace hpcbatch {
namespace {

using TaskLines = store::StoreInFolder;

TEST_F(TaskLines, AreNoMoreThanAreAskedFor) {
  for (const std::uint64_t id : {1U, 2U, 3U}) {
    SaveResults cancelled{ArrayId{id}, IndexRange{1, 4}, {}};
    cancelled.outcome.failure = Failure::Cancelled;
    save({array(id, IndexRange{1, 4}), {cancelled, {}}});
  }
  ListAsked asked;
  asked.full = true;
  asked.filter.limit = 6;
  Lines lines{{TaskId{ArrayId{4}, 0}, {}}};
  add_ended(*store, asked, lines);
  ASSERT_EQ(lines.size(), 7U) << "with what was there";
  EXPECT_EQ(lines[1].first, (TaskId{ArrayId{3}, 4})) << "the highest first";
  EXPECT_EQ(lines[6].first, (TaskId{ArrayId{2}, 3}));
  EXPECT_EQ(lines[6].second.at("id").as_string(), "2.3");
  asked.full = false;
  lines.clear();
  add_ended(*store, asked, lines);
  EXPECT_EQ(lines.size(), 3U) << "of neighbours one";
}

}  // namespace
}  // namespace hpcbatch
