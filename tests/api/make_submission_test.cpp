// What a task that was asked for becomes: where its files have to be staged in, who publishes what it
// makes.
#include "api/make/make_submission.hpp"

#include "api/read/read_task.hpp"
#include "hardware/cpu_binding.hpp"
#include "links/recipe.hpp"
#include "wire/wire.pb.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <boost/json/parse.hpp>

#include <filesystem>
#include <fstream>

#include <stdlib.h>

namespace hpcbatch {
namespace {

using testing::ElementsAre;

class Solver final : public Tool {
 public:
  explicit Solver(std::string program) : program_(std::move(program)) {}
  ToolDescription describe() const override { return {}; }
  void validate(const ToolRequest&) const override {}
  ToolTask render(const ToolRequest& request) const override {
    ToolTask task;
    task.argv = {program_, request.inputs.at("in").front().path, request.outputs.at("out")};
    return task;
  }

 private:
  std::string program_;
};

struct SubmissionMakerTest : testing::Test {
  SubmissionMakerTest() {
    std::string name = testing::TempDir() + "/maker_XXXXXX";
    folder_ = ::mkdtemp(name.data());
    std::ofstream(folder_ / "solver") << "#!/bin/sh\n";
    std::ofstream(folder_ / "solve.yaml")
        << "tool: solve\ninputs: {in: {type: file}}\noutputs: {out: {file: out.txt}}\n"
           "command: [solver]\n";
    half_.name = "half";
    half_.path_map = {{"/work", "/work"}};
    task_.array.indices = IndexRange{0, 0};
    task_.tool = "solve";
    task_.inputs["in"] = {"/data/a.wav"};
    task_.outputs["out"] = "/work/out.txt";
    task_.directory = "/work/job";
    task_.shared = {"/work/job"};
  }
  ~SubmissionMakerTest() override { std::filesystem::remove_all(folder_); }

  /// The outputs that the client is told of.
  std::vector<RenderedOutput> make() {
    ToolRegistry registry({folder_.string()}, [this](const std::string&, const std::string&) {
      return Result<std::shared_ptr<Tool>>(std::make_shared<Solver>(folder_ / "solver"));
    });
    const SubmitRequest request;
    SubmissionMaker maker(registry, {&half_}, request, 022, estimates_);
    auto outputs = maker.add(task_, {{"/data/a.wav", InputFile{.path = "/data/a.wav"}}});
    made_ = maker.take();
    start_ = start_from_bytes(made_.recipes.at(0).bytes);
    return outputs;
  }

  std::filesystem::path folder_;
  Site half_;
  records::Estimates estimates_;
  TaskRequest task_;
  Submission made_;
  wire::Start start_;
};

TEST_F(SubmissionMakerTest, AToolsInputsAndItsOwnFilesGoWhereTheyAreNotSeen) {
  for (const char* stays_in : {"", "/work/job/outputs"}) {
    task_.outputs_stay_in = stays_in;
    make();
    EXPECT_THAT(start_.inputs(), ElementsAre("/data/a.wav", (folder_ / "solver").string()));
    EXPECT_THAT(made_.arrays.at(0).needs.staged_to, ElementsAre("half")) << stays_in;
  }
}

TEST_F(SubmissionMakerTest, WhatThePilotAloneActsOnGoesIntoItsMessageByTheNumberOfItsField) {
  task_.for_pilot =
      read_task(
          boost::json::parse(R"({"command": ["x"], "cpu_bind": "numa", "threads_per_core": "2"})"),
          "task")
          .for_pilot;
  make();
  EXPECT_EQ(start_.cpu_bind(), static_cast<unsigned>(CpuBind::Numa));
  EXPECT_EQ(start_.threads_per_core(), 2U);
}

TEST_F(SubmissionMakerTest, OutputsThatStayAreTheClientsToPublish) {
  make();
  EXPECT_EQ(start_.outputs_size(), 1);
  EXPECT_EQ(*start_.argv().rbegin(), start_.directory_token() + "/out.txt");
  task_.outputs_stay_in = "/work/job/outputs";
  const auto outputs = make();
  EXPECT_TRUE(start_.outputs().empty());
  EXPECT_EQ(start_.directory_token(), "");
  EXPECT_EQ(*start_.argv().rbegin(), "/work/job/outputs/out.txt");
  ASSERT_EQ(outputs.size(), 1U);
  EXPECT_EQ(outputs[0].staged, "out.txt");
  EXPECT_EQ(outputs[0].destination, "/work/out.txt");
}

TEST_F(SubmissionMakerTest, TheSubmitsWordOnEstimatesGoesOverTheSites) {
  Shape shape{.name = "cpu", .walltime = std::chrono::hours{1}};
  shape.capacity.set(kCpus, Amount::of(4));
  shape.capacity.set(kMemory, Amount::of(std::int64_t{16} << 30));
  half_.shapes = {shape};
  estimates_["solve"] = {
      .runs = 20, .memory = std::int64_t{1} << 30, .time = std::chrono::minutes{5}};
  make();
  EXPECT_FALSE(made_.arrays.at(0).needs.guess);
  half_.estimate = EstimateMode::Use;
  make();
  ASSERT_TRUE(made_.arrays.at(0).needs.guess);
  EXPECT_EQ(made_.arrays.at(0).needs.guess->runs, 20U);
  task_.estimate = EstimateMode::Off;
  make();
  EXPECT_FALSE(made_.arrays.at(0).needs.guess);
  task_.kind = "another";
  task_.estimate = EstimateMode::Use;
  make();
  EXPECT_FALSE(made_.arrays.at(0).needs.guess) << "of its kind nothing is known";
}

Shape shape_with(const char* name, std::int64_t cpus, std::int64_t gigabytes) {
  Shape shape{.name = name};
  shape.capacity.set(kCpus, Amount::of(cpus));
  shape.capacity.set(kMemory, Amount::of(gigabytes << 30));
  return shape;
}

TEST(WholeNodeTest, IsOneOfTheShapeWithTheLeastMemoryThatHasAllElse) {
  Site site;
  site.name = "here";
  site.shapes = {shape_with("big", 64, 512), shape_with("small", 8, 16), shape_with("tiny", 1, 2)};
  TaskRequest task;
  task.all_memory = true;
  Needs needs;
  needs.amounts.set(kCpus, Amount::of(2));
  choose_whole_node(task, {&site}, needs);
  EXPECT_EQ(needs.amounts.get(kMemory), usable(site.shapes[1]).get(kMemory));
  EXPECT_EQ(needs.amounts.get(kCpus), Amount::of(2));
  task.all_cpus = true;
  needs.amounts = {};
  needs.amounts.set(kMemory, Amount::of(std::int64_t{100} << 30));
  task.all_memory = false;
  choose_whole_node(task, {&site}, needs);
  EXPECT_EQ(needs.amounts.get(kCpus), Amount::of(64));
  needs.tags = {"nowhere"};
  needs.amounts = {};
  choose_whole_node(task, {&site}, needs);
  EXPECT_TRUE(needs.amounts.empty()) << "that nothing has the tag is told later";
}

}  // namespace
}  // namespace hpcbatch
