// What of the caller's environment a task is given.
#include "cli/process/process.hpp"

#include <gmock/gmock.h>

namespace hpcbatch {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

TEST(Surroundings, TheUsersOwnIsHandedOn) {
  EXPECT_THAT(
      handed_on(
          {{"PATH", "/bin"}, {"LANG", "C"}, {"HPCBATCH_HOME", "/h"}, {"OMP_NUM_THREADS", "4"}}),
      ElementsAre(Pair("HPCBATCH_HOME", "/h"), Pair("LANG", "C"), Pair("OMP_NUM_THREADS", "4"),
                  Pair("PATH", "/bin")));
}

TEST(Surroundings, WhatDiffersFromShellToShellIsNot) {
  EXPECT_THAT(
      handed_on(
          {{"_", "/bin/x"}, {"SHLVL", "3"}, {"OLDPWD", "/a"}, {"PWD", "/b"}, {"TMPDIR", "/t"}}),
      IsEmpty());
}

TEST(Surroundings, ATaskThatSubmitsDoesNotHandOnWhatItWasGiven) {
  EXPECT_THAT(handed_on({{"HPCBATCH_TASK_ID", "12"},
                         {"HPCBATCH_CPUS", "2"},
                         {"OMP_NUM_THREADS", "2"},
                         {"CUDA_VISIBLE_DEVICES", "0"},
                         {"HOME", "/h"}}),
              ElementsAre(Pair("HOME", "/h")));
}

TEST(Surroundings, ATaskOverSeveralNodesKeepsThemToItself) {
  EXPECT_THAT(handed_on({{"HPCBATCH_NODES_FOLDER", "/w"},
                         {"HPCBATCH_NODES", "n1,n2"},
                         {"HPCBATCH_NTASKS", "4"},
                         {"HPCBATCH_SERVICE", "s"},
                         {"SLURM_NNODES", "2"},
                         {"SLURM_CONF", "/c"},
                         {"PBS_NODEFILE", "/w/nodefile"},
                         {"OMPI_MCA_plm_rsh_agent", "/w/node-rsh"},
                         {"OMPI_MCA_btl", "self"},
                         {"HYDRA_HOST_FILE", "/w/hosts"},
                         {"PMI_RANK", "1"}}),
              ElementsAre(Pair("OMPI_MCA_btl", "self"), Pair("SLURM_CONF", "/c")));
  EXPECT_THAT(handed_on({{"HYDRA_LAUNCHER", "ssh"}}), ElementsAre(Pair("HYDRA_LAUNCHER", "ssh")));
}

TEST(Surroundings, ATaskIsNamedByWhatItsPilotGaveIt) {
  EXPECT_FALSE(own_task({{"HOME", "/h"}}));
  EXPECT_FALSE(own_task({{"HPCBATCH_TASK_ID", "12"}}));
  const auto task = own_task({{"HPCBATCH_TASK_ID", "12"}, {"HPCBATCH_PILOT", "hb1.0"}});
  ASSERT_TRUE(task);
  EXPECT_EQ(task->task, "12");
  EXPECT_EQ(task->pilot, "hb1.0");
}

TEST(Surroundings, ABatchJobsVariablesStayWithIt) {
  EXPECT_THAT(handed_on({{"SLURM_JOB_ID", "7"},
                         {"SLURM_NODELIST", "n1"},
                         {"SLURM_CONF", "/c"},
                         {"SBATCH_ACCOUNT", "abc"}}),
              ElementsAre(Pair("SBATCH_ACCOUNT", "abc"), Pair("SLURM_CONF", "/c")));
  EXPECT_THAT(handed_on({{"SLURM_TIME_FORMAT", "x"}}), ElementsAre(Pair("SLURM_TIME_FORMAT", "x")));
  EXPECT_THAT(handed_on({{"PBS_JOBID", "7"}, {"PBS_NODEFILE", "f"}, {"PALS_RANKID", "0"}}),
              IsEmpty());
  EXPECT_THAT(handed_on({{"SLURM_JOB_ID", "7"}, {"SLURM_STEP_ID", "0"}, {"PMIX_RANK", "0"}}),
              IsEmpty());
  EXPECT_THAT(handed_on({{"PBS_JOBID", "7"}, {"NCPUS", "4"}, {"ENVIRONMENT", "BATCH"}}), IsEmpty());
  EXPECT_THAT(handed_on({{"SLURM_JOB_ID", "7"}, {"NCPUS", "4"}, {"ENVIRONMENT", "BATCH"}}),
              ElementsAre(Pair("NCPUS", "4")));
  EXPECT_THAT(handed_on({{"SLURM_JOB_ID", "7"}, {"ENVIRONMENT", "test"}}),
              ElementsAre(Pair("ENVIRONMENT", "test")))
      << "which a batch system does not say";
}

TEST(Surroundings, VariablesOfTheUserMayBeginAsThoseOfABatchSystem) {
  const EnvironmentMap own{{"ENVIRONMENT", "BATCH"}, {"LSB_X", "1"},       {"MOM_GRID", "025"},
                           {"NCPUS", "4"},           {"PBS_HOME", "/p"},   {"PMI_TEST", "2"},
                           {"SLURM_CONF", "/c"},     {"TORQUE_MODEL", "x"}};
  EXPECT_EQ(handed_on(own), own);
}

}  // namespace
}  // namespace hpcbatch
