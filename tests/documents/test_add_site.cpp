// A site is added to a configuration of which all else stays.
#include "documents/site_proposal.hpp"

#include <gtest/gtest.h>

namespace hpcbatch {
namespace {

constexpr const char* kItem = "- name: new\n  scheduler: slurm\n";

TEST(AddSite, BeginsAListWhereThereIsNone) {
  EXPECT_EQ(with_site("", kItem), "sites:\n  - name: new\n    scheduler: slurm\n");
  EXPECT_EQ(with_site("tool_path: [/t]", kItem),
            "tool_path: [/t]\nsites:\n  - name: new\n    scheduler: slurm\n");
}

TEST(AddSite, GoesBehindTheLastOneAndKeepsComments) {
  EXPECT_EQ(with_site("# mine\nsites:  # two\n- name: a  # first\n  x: 1\n\n- name: b\n\n# tools\n"
                      "tool_path: [/t]\n",
                      kItem),
            "# mine\nsites:  # two\n- name: a  # first\n  x: 1\n\n- name: b\n- name: new\n"
            "  scheduler: slurm\n\n# tools\ntool_path: [/t]\n");
  EXPECT_EQ(with_site("sites:\n    - {name: a}\n", kItem),
            "sites:\n    - {name: a}\n    - name: new\n      scheduler: slurm\n");
}

TEST(AddSite, AListOnOneLineIsLeftToItsAuthor) {
  EXPECT_FALSE(with_site("sites: [{name: a}]\n", kItem));
}

}  // namespace
}  // namespace hpcbatch
