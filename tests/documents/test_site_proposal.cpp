// What is proposed for a site, and that the reader of configurations takes it.
#include "documents/configuration.hpp"
#include "documents/site_proposal.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hpcbatch {
namespace {

using namespace std::chrono_literals;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr std::uint64_t kGiga = std::uint64_t{1} << 30;

Site site() {
  Site site;
  site.name = "cluster";
  site.scheduler = "slurm";
  site.transport = "shared_fs";
  site.workspace = "/scratch/me";
  return site;
}

SurveyedPartition partition(const std::string& name, std::vector<NodeKind> kinds) {
  SurveyedPartition partition;
  partition.name = name;
  partition.kinds = std::move(kinds);
  return partition;
}

Survey survey(std::vector<SurveyedPartition> partitions) {
  Survey survey;
  survey.partitions = std::move(partitions);
  return survey;
}

Site read_back(const SiteProposal& proposal) {
  return parse_configuration("sites:\n" + proposal.yaml, "proposal").sites.at(0);
}

const NodeKind kPlain{4, 64, 256 * kGiga, {}};
const NodeKind kA100{2, 64, 256 * kGiga, {{"a100", 4}}};

TEST(SiteProposal, HasGpusOfNoKind) {
  Site asked = site();
  asked.asks_for_memory = false;
  const Site back = read_back(
      propose_site(asked, survey({partition("gpu", {NodeKind{2, 64, 256 * kGiga, {{"", 4}}}})})));
  ASSERT_EQ(back.shapes.size(), 1u);
  EXPECT_EQ(back.shapes[0].capacity.get("gpus/gpu"), Amount::of(4));
  EXPECT_FALSE(back.asks_for_memory);
}

TEST(SiteProposal, HasAShapeForEachKindOfNode) {
  auto gpu = partition("gpu", {kPlain, kA100, {1, 32, 128 * kGiga, {{"v100", 2}}}});
  gpu.walltime = 2h;
  const Site back = read_back(propose_site(site(), survey({gpu, partition("cpu", {kPlain})})));
  ASSERT_EQ(back.shapes.size(), 4u);
  EXPECT_EQ(back.shapes[0].name, "gpu");
  EXPECT_EQ(back.shapes[1].name, "gpu-a100");
  EXPECT_EQ(back.shapes[1].partition, "gpu");
  EXPECT_EQ(back.shapes[1].capacity.get("gpus/a100"), Amount::of(4));
  EXPECT_EQ(back.shapes[1].capacity.get(kCpus), Amount::of(64));
  EXPECT_EQ(back.shapes[1].walltime, 2h);
  EXPECT_EQ(back.shapes[2].name, "gpu-v100");
  EXPECT_EQ(back.shapes[3].name, "cpu");
  EXPECT_EQ(back.shapes[3].walltime, 24h) << "no limit, and yet no endless batch job";
}

TEST(SiteProposal, AsksForABitLessMemoryThanTheNodesHave) {
  const Site back = read_back(propose_site(
      site(), survey({partition("big", {kPlain}), partition("small", {{1, 4, kGiga, {}}})})));
  const auto memory = [&](std::size_t i) {
    return back.shapes.at(i).capacity.get(kMemory).whole();
  };
  EXPECT_EQ(memory(0), static_cast<std::int64_t>(243 * kGiga));
  EXPECT_EQ(memory(1), std::int64_t{960} << 20);
}

TEST(SiteProposal, TellsLikeKindsApartByWhatDiffers) {
  const auto names = [](std::vector<NodeKind> kinds) {
    std::vector<std::string> all;
    const SiteProposal proposal = propose_site(site(), survey({partition("p", std::move(kinds))}));
    for (const Shape& shape : read_back(proposal).shapes) all.push_back(shape.name);
    return all;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(names({{1, 8, 64 * kGiga, {}}, {1, 16, 64 * kGiga, {}}}), (Names{"p-8c", "p-16c"}));
  EXPECT_EQ(names({{1, 8, 64 * kGiga, {}}, {1, 8, 128 * kGiga, {}}}), (Names{"p-60G", "p-121G"}));
  EXPECT_EQ(names({{1, 8, 64 * kGiga, {{"a", 1}}}, {1, 8, 64 * kGiga, {{"a", 2}}}}),
            (Names{"p-1a", "p-2a"}));
  EXPECT_EQ(names({{1, 8, 64 * kGiga, {}}, {1, 8, 128 * kGiga, {}}, {1, 4, 64 * kGiga, {}}}),
            (Names{"p-8c-60G", "p-8c-121G", "p-4c-60G"}));
  EXPECT_EQ(names({{1, 8, 64 * kGiga, {}}, {1, 8, 64 * kGiga + 1, {}}}), Names{"p"})
      << "what differs by less than what is left to the node is one";
}

TEST(SiteProposal, KeepsWhatTheEntrySays) {
  Site now = site();
  now.transport = "ssh";
  now.transport_config =
      "host: login.example.org\nenvironment:\n  SLURM_CONF: \"/a b/slurm.conf\"\noptions: [x, \"y: "
      "z\"]\n";
  now.workspace = "/scratch/my \"own\"";
  now.trust_group = "a: group";
  now.path_map = {{"/home", "/gpfs/home"}};
  now.link = LinkKind::Relay;
  now.interface = "10.0.0.5";
  now.relay_interface = "fd00::1";
  now.store_limit = std::uint64_t{50} << 30;
  now.keep_for = 48h;
  now.keep_limit = std::uint64_t{1} << 30;
  now.output_limit = kNoOutputLimit;
  now.scratch = "/local";
  now.setup = {"module load python", "a\nb"};
  now.options = {"--account=abc", "null"};
  now.idle_after = 2min;
  now.poll_every = 500ms;
  now.settle_after = 0s;
  now.lost_after = 90min;
  now.max_queued = 7;
  const SiteProposal proposal = propose_site(now, survey({partition("cpu", {kPlain})}));
  Site back = read_back(proposal);
  EXPECT_THAT(back.transport_config, HasSubstr("/a b/slurm.conf"));
  EXPECT_THAT(back.transport_config, HasSubstr("y: z"));
  // How it is laid out is another matter.
  back.transport_config = now.transport_config;
  now.shapes = back.shapes;
  EXPECT_EQ(back, now) << proposal.yaml;
}

TEST(SiteProposal, AsksForNoMoreThanTheBatchSystemGrants) {
  auto few = partition("few", {kPlain});
  few.limits.all = 3;
  auto many = partition("many", {kPlain});
  many.limits.running = 5000;
  Survey found = survey({few, many});
  found.limits.running = 10;
  const SiteProposal proposal = propose_site(site(), found);
  const Site back = read_back(proposal);
  EXPECT_EQ(back.max_queued, 4u);
  EXPECT_EQ(back.max_running, 10u);
  EXPECT_EQ(back.shapes[0].max_queued, 1u);
  EXPECT_EQ(back.shapes[0].max_running, 2u);
  EXPECT_EQ(back.shapes[1].max_running, 0u) << "as many as the site has";
  EXPECT_THAT(proposal.notes, Contains(HasSubstr("10 batch jobs running")));
}

TEST(SiteProposal, ShapesOfOnePartitionStayWithinItsLimitTogether) {
  auto both = partition("both", {kPlain, kA100});
  both.limits.running = 3;
  auto one = partition("one", {kPlain, kA100});
  one.limits.all = 1;
  const SiteProposal proposal = propose_site(site(), survey({both, one}));
  const Site back = read_back(proposal);
  ASSERT_EQ(back.shapes.size(), 3u);
  EXPECT_EQ(back.shapes[0].max_running, 2u);
  EXPECT_EQ(back.shapes[1].max_running, 1u);
  EXPECT_EQ(back.shapes[2].partition, "one");
  EXPECT_EQ(back.shapes[2].max_running, 1u);
  EXPECT_THAT(proposal.notes, Contains(HasSubstr("1 kinds of nodes are left out")));
}

TEST(SiteProposal, SaysWhatItLeavesOut) {
  auto closed = partition("old", {kPlain});
  closed.is_open = false;
  closed.why_closed = "drain";
  const SiteProposal proposal = propose_site(
      site(), survey({closed, partition("no name", {kPlain}),
                      partition("unsized", {{1, 8, 1 << 20, {}}}), partition("empty", {}),
                      partition("cpu", {{1, 8, 64 * kGiga, {{"", 2}, {"a100", 1}}}})}));
  EXPECT_EQ(read_back(proposal).shapes.size(), 1u);
  EXPECT_THAT(proposal.notes, Contains(HasSubstr("partition old is left out: it is drain")));
  EXPECT_THAT(proposal.notes, Contains(HasSubstr("cannot be configured")));
  EXPECT_THAT(proposal.notes, Contains(HasSubstr("how much memory")));
  EXPECT_THAT(proposal.notes, Contains(HasSubstr("partition empty is left out")));
  EXPECT_THAT(proposal.notes, Contains(HasSubstr("shape cpu: GPUs whose kind")));
}

TEST(SiteProposal, IsNoneWhereNothingCanBeAskedFor) {
  EXPECT_THAT(propose_site(site(), survey({partition("empty", {})})).yaml, IsEmpty());
}

TEST(SiteProposal, OfThisMachineNamesNoPartition) {
  Site here = site();
  here.scheduler = "local";
  const SiteProposal proposal =
      propose_site(here, survey({partition("", {{1, 8, 16 * kGiga, {}}})}));
  const Site back = read_back(proposal);
  ASSERT_EQ(back.shapes.size(), 1u);
  EXPECT_EQ(back.shapes[0].partition, "");
  EXPECT_EQ(back.shapes[0].walltime, Duration{});
  EXPECT_THAT(proposal.yaml, Not(HasSubstr("walltime")));
}

}  // namespace
}  // namespace hpcbatch
