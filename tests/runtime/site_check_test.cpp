// What `sites check` says of shapes, and what it makes of schedulers that know of no survey.
#include "sites/site_check.hpp"

#include <gtest/gtest.h>

namespace hpcbatch {
namespace {

using namespace std::chrono_literals;

Site with_shape(const std::string& partition, std::int64_t cpus, Duration walltime) {
  Shape shape;
  shape.name = "s";
  shape.partition = partition;
  shape.capacity.set(kCpus, Amount::of(cpus));
  shape.walltime = walltime;
  Site site;
  site.shapes = {shape};
  return site;
}

Survey offered() {
  Offer offer;
  offer.partition = "cpu";
  offer.nodes = 4;
  offer.cpus = 8;
  offer.memory = std::uint64_t{1} << 34;
  offer.gpus["a100"] = 1;
  offer.walltime = 1h;
  return survey_of({offer});
}

TEST(SiteCheck, AnOfferIsAPartitionOfOneKindOfNode) {
  const Survey survey = offered();
  ASSERT_EQ(survey.partitions.size(), 1u);
  const SurveyedPartition& partition = survey.partitions.front();
  EXPECT_EQ(partition.name, "cpu");
  EXPECT_TRUE(partition.is_open);
  EXPECT_EQ(partition.walltime, 1h);
  ASSERT_EQ(partition.kinds.size(), 1u);
  EXPECT_EQ(partition.kinds.front().nodes, 4u);
  EXPECT_EQ(partition.kinds.front().gpus.at("a100"), 1u);
}

TEST(SiteCheck, ShapesAreHeldAgainstTheirPartition) {
  const auto check = [](const Site& site) { return check_shapes(site, offered()).at(0); };
  EXPECT_TRUE(check(with_shape("cpu", 8, 1h)).ok);
  EXPECT_TRUE(check(with_shape("", 8, 1h)).ok);
  EXPECT_EQ(check(with_shape("gpu", 8, 1h)).text, "there is no partition 'gpu'");
  EXPECT_EQ(check(with_shape("cpu", 9, 1h)).text, "asks for 9 cpus of 8");
  EXPECT_FALSE(check(with_shape("cpu", 8, 2h)).ok);
  Site wide = with_shape("cpu", 8, 1h);
  wide.shapes.front().nodes = 5;
  EXPECT_EQ(check(wide).text, "asks for 5 nodes of 4");
  Site full = with_shape("cpu", 8, 1h);
  Shape& shape = full.shapes.front();
  shape.capacity.set(kMemory, Amount::of(std::int64_t{1} << 34));
  shape.capacity.set("gpus/a100", Amount::of(1));
  EXPECT_TRUE(check(full).ok) << check(full).text;
  shape.capacity.set("gpus/a100", Amount::of(2));
  EXPECT_EQ(check(full).text, "asks for 2 a100, which no node there has");
  shape.capacity.set("gpus/a100", Amount::of(1));
  shape.capacity.set(kMemory, Amount::of(std::int64_t{1} << 35));
  EXPECT_EQ(check(full).text, "asks for 32768 MB of memory of 16384");
}

TEST(SiteCheck, AShapeFitsOneKindOfNodeAndNotTheBestOfAll) {
  Survey survey = offered();
  survey.partitions.front().kinds.push_back({1, 64, std::uint64_t{1} << 30, {}});
  Site site = with_shape("cpu", 64, 1h);
  EXPECT_TRUE(check_shapes(site, survey).at(0).ok);
  site.shapes.front().capacity.set(kMemory, Amount::of(std::int64_t{1} << 34));
  EXPECT_EQ(check_shapes(site, survey).at(0).text,
            "no node there has all that it asks for: cpus, memory and GPUs together");
}

TEST(SiteCheck, APartitionThatIsClosedFitsNobody) {
  Survey survey = offered();
  survey.partitions.front().is_open = false;
  survey.partitions.front().why_closed = "drain";
  const SiteCheck line = check_shapes(with_shape("cpu", 8, 1h), survey).at(0);
  EXPECT_FALSE(line.ok);
  EXPECT_EQ(line.text, "partition cpu takes no batch jobs now: it is drain");
}

TEST(SiteCheck, AShapeWithoutAPartitionMayFitAny) {
  Survey survey = offered();
  survey.partitions.push_back({.name = "small", .kinds = {{1, 2, 0, {}}}});
  EXPECT_TRUE(check_shapes(with_shape("", 8, 1h), survey).at(0).ok);
  EXPECT_FALSE(check_shapes(with_shape("", 9, 1h), survey).at(0).ok);
}

}  // namespace
}  // namespace hpcbatch
