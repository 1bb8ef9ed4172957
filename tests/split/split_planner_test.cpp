// Which parts and merges of a data set run when.
#include "split/split_planner.hpp"

#include <gtest/gtest.h>

#include <random>

namespace hpcbatch::split {
namespace {

std::string said_of(const std::vector<SplitPlanner::Action>& actions) {
  struct {
    std::string operator()(const SplitPlanner::RunParts& run) const {
      std::string text = "run";
      for (const Part& part : run.parts) text += " " + part.name;
      return text;
    }
    std::string operator()(const SplitPlanner::RunMerges& run) const {
      std::string text;
      for (const Merge& merge : run.merges) {
        text += (text.empty() ? "" : "; ") + merge.name + (merge.is_last ? " last:" : ":");
        for (const std::string& one : merge.of) text += " " + one;
      }
      return text;
    }
    std::string operator()(const SplitPlanner::Over& over) const {
      std::string text = over.failed.empty() ? "over" : "failed";
      for (const std::string& one : over.failed) text += " " + one;
      return text;
    }
  } visitor;
  std::string text;
  for (const auto& action : actions)
    text += (text.empty() ? "" : " | ") + std::visit(visitor, action);
  return text;
}

std::vector<Part> three() {
  return {{"000001", 0, 2}, {"000002", 2, 2}, {"000003", 4, 1}};
}

TEST(SplitPlanner, MergesInOrderWhenAllIsDone) {
  SplitPlanner planner(three(), 100);
  EXPECT_EQ(said_of(planner.decide()), "run 000001 000002 000003");
  planner.ended("000003", PartEnd::Done);
  planner.ended("000001", PartEnd::Done);
  EXPECT_EQ(said_of(planner.decide()), "");
  planner.ended("000002", PartEnd::Done);
  EXPECT_EQ(said_of(planner.decide()), "merge1-000001 last: 000001 000002 000003");
  planner.ended("merge1-000001", PartEnd::Done);
  EXPECT_EQ(said_of(planner.decide()), "over");
  EXPECT_EQ(said_of(planner.decide()), "");
}

TEST(SplitPlanner, CutsInTwoWhatIsTooLarge) {
  SplitPlanner planner(three(), 100);
  planner.decide();
  planner.ended("000002", PartEnd::TooLarge);
  EXPECT_EQ(said_of(planner.decide()), "run 000002a 000002b");
  for (const char* name : {"000001", "000002b", "000002a", "000003"})
    planner.ended(name, PartEnd::Done);
  EXPECT_EQ(said_of(planner.decide()), "merge1-000001 last: 000001 000002a 000002b 000003");
  EXPECT_EQ(planner.counts().halved, 1U);
}

TEST(SplitPlanner, OneFileThatIsTooLargeFailsAndNothingIsMerged) {
  SplitPlanner planner(three(), 100);
  planner.decide();
  planner.ended("000003", PartEnd::TooLarge);
  planner.ended("000001", PartEnd::Failed);
  EXPECT_EQ(said_of(planner.decide()), "") << "the others go on";
  planner.ended("000002", PartEnd::Done);
  EXPECT_EQ(said_of(planner.decide()), "failed 000001 000003");
}

TEST(SplitPlanner, MergesManyAsATree) {
  std::vector<Part> parts = cut_into_parts(std::vector<std::uint64_t>(7, 1), {});
  SplitPlanner planner(parts, 3);
  planner.decide();
  for (const Part& part : parts) planner.ended(part.name, PartEnd::Done);
  EXPECT_EQ(said_of(planner.decide()),
            "merge1-000001: 000001 000002 000003; merge1-000002: 000004 000005 000006; "
            "merge1-000003: 000007");
  for (const char* name : {"merge1-000002", "merge1-000001", "merge1-000003"})
    planner.ended(name, PartEnd::Done);
  EXPECT_EQ(said_of(planner.decide()),
            "merge2-000001 last: merge1-000001 merge1-000002 merge1-000003");
  planner.ended("merge2-000001", PartEnd::Failed);
  EXPECT_EQ(said_of(planner.decide()), "failed merge2-000001");
}

TEST(SplitPlanner, OnePartIsMergedAloneAndWithoutMergingNothingIs) {
  SplitPlanner one({{"000001", 0, 1}}, 100);
  one.decide();
  one.ended("000001", PartEnd::Done);
  EXPECT_EQ(said_of(one.decide()), "merge1-000001 last: 000001");
  SplitPlanner none(three(), 0);
  none.decide();
  for (const char* name : {"000001", "000002", "000003"}) none.ended(name, PartEnd::Done);
  EXPECT_EQ(said_of(none.decide()), "over");
  SplitPlanner empty({}, 100);
  EXPECT_EQ(said_of(empty.decide()), "over");
}

/// Whatever is too large in whatever order: each file is in one part of the last merge's tree.
TEST(SplitPlanner, LosesNoFile) {
  for (unsigned seed = 1; seed <= 200; ++seed) {
    std::mt19937 random(seed);
    const std::size_t files = 1 + random() % 60;
    std::vector<Part> running;
    std::map<std::string, std::vector<std::size_t>> holds;
    SplitPlanner planner(
        cut_into_parts(std::vector<std::uint64_t>(files, 1), {.files = 1 + random() % 9}),
        2 + random() % 4);
    std::vector<std::string> order;
    std::vector<std::string> merging;
    std::string last;
    bool is_over = false;
    while (!is_over) {
      for (const auto& action : planner.decide()) {
        if (const auto* run = std::get_if<SplitPlanner::RunParts>(&action))
          running.insert(running.end(), run->parts.begin(), run->parts.end());
        if (const auto* run = std::get_if<SplitPlanner::RunMerges>(&action)) {
          for (const Merge& merge : run->merges) {
            for (const std::string& one : merge.of)
              holds[merge.name].insert(holds[merge.name].end(), holds.at(one).begin(),
                                       holds.at(one).end());
            merging.push_back(merge.name);
            if (merge.is_last) last = merge.name;
          }
        }
        if (const auto* over = std::get_if<SplitPlanner::Over>(&action)) {
          EXPECT_TRUE(over->failed.empty());
          is_over = true;
        }
      }
      if (!running.empty()) {
        const std::size_t at = random() % running.size();
        const Part part = running[at];
        running.erase(running.begin() + static_cast<std::ptrdiff_t>(at));
        const bool is_too_large = part.count > 1 && random() % 3 == 0;
        for (std::size_t file = part.first; file < part.first + part.count; ++file)
          holds[part.name].push_back(file);
        planner.ended(part.name, is_too_large ? PartEnd::TooLarge : PartEnd::Done);
      } else if (!merging.empty()) {
        const std::size_t at = random() % merging.size();
        const std::string name = merging[at];
        merging.erase(merging.begin() + static_cast<std::ptrdiff_t>(at));
        planner.ended(name, PartEnd::Done);
      }
    }
    std::vector<std::size_t> all(files);
    for (std::size_t file = 0; file < files; ++file) all[file] = file;
    EXPECT_EQ(holds.at(last), all) << seed;
  }
}

}  // namespace
}  // namespace hpcbatch::split
