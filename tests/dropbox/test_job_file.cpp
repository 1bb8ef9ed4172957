// Job files: what is kept of them, and what each that is none is told.
#include "dropbox/job_file.hpp"
#include "dropbox/job_folder.hpp"

#include <gtest/gtest.h>

namespace hpcbatch {
namespace {

TEST(JobFile, ReadsWhatAClientWrites) {
  const JobFile job = parse_job(
      "args: {level: 6, code: 010, flag: yes, date: 2024-01-01, exact: 1e3}\n"
      "input_map: {input: /data/a.wav}\noutput_map: {segments: '/data/a b.tsv'}\nscript: "
      "ina\nextra: [1]\n",
      "x.job");
  EXPECT_EQ(job.script, "ina");
  EXPECT_EQ(job.args, (JobFile::Map{{"level", "6"},
                                    {"code", "010"},
                                    {"flag", "yes"},
                                    {"date", "2024-01-01"},
                                    {"exact", "1e3"}}));
  EXPECT_EQ(job.inputs, (JobFile::Map{{"input", "/data/a.wav"}}));
  EXPECT_EQ(job.outputs, (JobFile::Map{{"segments", "/data/a b.tsv"}}));
  EXPECT_NE(job.document.find("extra"), nullptr) << "unknown keys are kept";
  EXPECT_TRUE(job.warnings.empty());
}

TEST(JobFile, IgnoresReservedNodes) {
  const JobFile job = parse_job(
      "script: a\ninput_map: {}\noutput_map: {}\nhpc: {workspace: /etc}\njob: {status: ok}\n",
      "x.job");
  EXPECT_EQ(job.document.find("hpc"), nullptr);
  EXPECT_EQ(job.document.find("job"), nullptr);
  EXPECT_EQ(job.warnings.size(), 2U);
}

struct Bad {
  const char* name;
  std::string text;
  std::string says;
};

class BadJob : public testing::TestWithParam<Bad> {};

TEST_P(BadJob, IsToldWhere) {
  try {
    parse_job(GetParam().text, "x.job");
    FAIL() << "accepted";
  } catch (const DocumentError& e) {
    EXPECT_EQ(std::string(e.what()), GetParam().says);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Table, BadJob,
    testing::Values(
        Bad{"Empty", "", "x.job:1: 'the job file' must be a map (key: value), not empty"},
        Bad{"List", "- a\n", "x.job:1: 'the job file' must be a map (key: value), not a list"},
        Bad{"Scalar", "hello", "x.job:1: 'the job file' must be a map (key: value), not 'hello'"},
        Bad{"NoScript", "input_map: {}\noutput_map: {}\n",
            "x.job:1: 'script' is missing in the job file"},
        Bad{"CutOff", "args: {}\ninput_map:\n  input: /data/a.wav\noutput_map: amp_js",
            "x.job:1: 'script' is missing in the job file"},
        Bad{"NoInputs", "script: a\noutput_map: {}\n",
            "x.job:1: 'input_map' is missing in the job file"},
        Bad{"WrongType", "script: a\ninput_map: {}\noutput_map: amp_js\n",
            "x.job:3: 'output_map' must be a map (key: value), not 'amp_js'"},
        Bad{"RelativePath", "script: a\ninput_map: {input: a.wav}\noutput_map: {}\n",
            "x.job:2: 'input' must be an absolute path (beginning with '/'), not 'a.wav'"},
        Bad{"NullArgument", "script: a\nargs: {level: ~}\ninput_map: {}\noutput_map: {}\n",
            "x.job:2: 'level' must be a text, not empty"},
        Bad{"ListArgument", "script: a\nargs: {level: [1]}\ninput_map: {}\noutput_map: {}\n",
            "x.job:2: 'level' must be a text, not a list"},
        Bad{"OddKey", "script: a\nargs: {a-b: 1}\ninput_map: {}\noutput_map: {}\n",
            "x.job:2: the key 'a-b' in 'args' must be letters, digits and '_', no digit first"},
        Bad{"Tag", "script: !!python/name:os.system x\n",
            "x.job:1: a tag (tag:yaml.org,2002:python/name:os.system) is not allowed"}),
    [](const auto& row) { return row.param.name; });

TEST(StagedNames, KeepWhatIsSafeAndMakeTheRestSafe) {
  std::set<std::string> taken;
  EXPECT_EQ(staged_name("/data/dataset_12.dat", taken), "dataset_12.dat");
  EXPECT_EQ(staged_name("/other/dataset_12.dat", taken), "dataset_12_2.dat");
  EXPECT_EQ(staged_name("/third/dataset_12.dat", taken), "dataset_12_3.dat");
  EXPECT_EQ(staged_name("/x/-rf *.wav", taken), "_rf__.wav");
  EXPECT_EQ(staged_name("/x/a\nb$(id).mp3", taken), "a_b__id_.mp3");
  EXPECT_EQ(staged_name("/x/.hidden", taken), "_hidden");
  EXPECT_EQ(staged_name("/x/\xF0\x9F\x98\x80.wav", taken), "____.wav");
  const std::string longest = staged_name("/x/" + std::string(250, 'l') + ".wav", taken);
  EXPECT_LE(longest.size(), 120U);
  EXPECT_TRUE(longest.ends_with(".wav"));
  EXPECT_NE(staged_name("/y/" + std::string(250, 'l') + ".wav", taken), longest);
}

}  // namespace
}  // namespace hpcbatch
