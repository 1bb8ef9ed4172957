// The layout of what crosses the plugin border.  Whoever changes a number here also changes
// HPCBATCH_ABI_MAJOR: plugins that were built before would read the wrong bytes.
#include "hpcbatch/estimator.hpp"
#include "hpcbatch/scheduler.hpp"
#include "hpcbatch/tool.hpp"
#include "hpcbatch/transport.hpp"

#include <gtest/gtest.h>

#include <cstddef>

namespace hpcbatch {
namespace {

#if defined(__x86_64__) && !defined(_GLIBCXX_DEBUG)
#pragma GCC diagnostic ignored "-Winvalid-offsetof"

static_assert(HPCBATCH_ABI_MAJOR == 2);
static_assert(sizeof(hpcbatch_plugin_descriptor) == 48);
static_assert(offsetof(hpcbatch_plugin_descriptor, create) == 40);

static_assert(sizeof(CommandLine) == 104 && offsetof(CommandLine, input) == 72);
static_assert(sizeof(CommandOutput) == 72 && offsetof(CommandOutput, standard_error) == 40);
static_assert(sizeof(Error) == 40 && sizeof(Result<void>) == 48 &&
              sizeof(Result<std::string>) == 48);

static_assert(sizeof(AllocationRequest) == 248 && offsetof(AllocationRequest, directory) == 216);
static_assert(offsetof(AllocationRequest, gpus) == 88 &&
              offsetof(AllocationRequest, options) == 144);
static_assert(sizeof(SubmitRefused) == 40);
static_assert(sizeof(BatchJob) == 144 && offsetof(BatchJob, nodes) == 120);
static_assert(sizeof(Offer) == 120 && offsetof(Offer, walltime) == 104);

static_assert(sizeof(InputFile) == 48 && sizeof(ToolRequest) == 176 &&
              offsetof(ToolRequest, outputs) == 128);
static_assert(sizeof(ToolNeeds) == 112 && offsetof(ToolNeeds, gpus) == 48);
static_assert(sizeof(ToolTask) == 216 && offsetof(ToolTask, needs) == 104);
static_assert(sizeof(ToolDescription) == 32);

static_assert(sizeof(FeatureTable) == 48 && sizeof(TrainingTable) == 120 &&
              offsetof(TrainingTable, is_pending) == 96);
#endif

TEST(PluginBorder, ItsKindsKeepTheirNumbers) {
  EXPECT_EQ(HPCBATCH_ABI_MAGIC, 0x42435048u);
  EXPECT_EQ(Scheduler::kKind, 1);
  EXPECT_EQ(Transport::kKind, 2);
  EXPECT_EQ(Tool::kKind, 3);
  EXPECT_EQ(Estimator::kKind, 4);
  EXPECT_EQ(static_cast<int>(Refusal::Permanent), 3);
  EXPECT_EQ(static_cast<int>(BatchState::Ended), 7);
  EXPECT_EQ(static_cast<int>(EndCause::Failed), 8);
}

}  // namespace
}  // namespace hpcbatch
