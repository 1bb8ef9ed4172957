// The documents beside a job: the form in which AMP's clients read them.
#include "documents/texts.hpp"
#include "documents/yaml.hpp"
#include "dropbox/written_documents.hpp"
#include "folder_of_test.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>

namespace hpcbatch {
namespace {

struct InUtc : testing::Test {
  InUtc() {
    ::setenv("TZ", "UTC", 1);
    ::tzset();
  }
  ~InUtc() override {
    ::unsetenv("TZ");
    ::tzset();
  }
};

struct JobDocument : InUtc {
  Submitted job{
      .document =
          parse_job("script: ina\nargs: {level: 010, text: 'no'}\ninput_map: {input: /d/a b.wav}\n"
                    "output_map: {segments: /d/a.tsv}\n",
                    "x.job")
              .document,
      .key = "x.job:5:17:00ff",
      .workspace = "/w/host-5-17",
      .owner = 1000,
      .inputs = {{"input", "/w/host-5-17/input/a_b.wav"}},
      .outputs = {{"segments", "/w/host-5-17/output/a.tsv"}}};
};

TEST_F(JobDocument, IsWrittenAsPyYamlWrites) {
  JobResult result{.ok = false,
                   .message = "Remote process failed with RC 3",
                   .exit_code = 3,
                   .standard_output = "line 1\nit's\n",
                   .standard_error = "",
                   .start = from_microseconds(1'700'000'000'000'000),
                   .end = from_microseconds(1'700'000'060'000'120)};
  EXPECT_EQ(finished_document(job, result), R"(args:
  level: 010
  text: 'no'
hpc:
  finished_file: /w/host-5-17/finished.out
  input_map:
    input: /w/host-5-17/input/a_b.wav
  key: 'x.job:5:17:00ff'
  output_map:
    segments: /w/host-5-17/output/a.tsv
  owner: 1000
  workspace: /w/host-5-17
input_map:
  input: /d/a b.wav
job:
  end: '2023-11-14 22:14:20.000120'
  message: Remote process failed with RC 3
  rc: 3
  start: '2023-11-14 22:13:20.000000'
  status: error
  stderr: ''
  stdout: "line 1\nit's\n"
output_map:
  segments: /d/a.tsv
script: ina
)");
}

TEST_F(JobDocument, IsReadBack) {
  const ReadSubmitted read = parse_submitted(submitted_document(job), "x");
  EXPECT_FALSE(read.is_finished);
  EXPECT_EQ(read.job.key, job.key);
  EXPECT_EQ(read.job.workspace, job.workspace);
  EXPECT_EQ(read.job.owner, 1000U);
  EXPECT_EQ(read.job.inputs, job.inputs);
  EXPECT_EQ(read.job.outputs, job.outputs);
  EXPECT_EQ(job_of(read.job.document, "x").args, (JobFile::Map{{"level", "010"}, {"text", "no"}}));
  EXPECT_TRUE(parse_submitted(finished_document(job, {}), "x").is_finished);
  EXPECT_THROW(parse_submitted("script: a\n", "x"), DocumentError);
}

TEST_F(JobDocument, ARefusedFileKeepsWhatCouldBeRead) {
  const Node node = parse_yaml(
      refused_document(parse_yaml("script: 3\nhpc: {a: 1}\n", "x"), {.message = "no"}, 1000), "y");
  EXPECT_EQ(node.find("script")->text, "3");
  EXPECT_EQ(node.find("hpc")->find("a"), nullptr) << "it is ours to write";
  EXPECT_EQ(submitter_in(refused_document({}, {}, 1000), "y"), 1000U);
  EXPECT_EQ(submitter_in(finished_document(job, {}), "y"), 1000U);
  EXPECT_EQ(submitter_in("script: a\n", "y"), std::nullopt);
  EXPECT_EQ(node.find("job")->find("status")->text, "error");
  EXPECT_EQ(node.find("job")->find("rc")->text, "-1");
  EXPECT_NE(parse_yaml(refused_document({}, {.message = "no"}, 1000), "y").find("job"), nullptr);
}

TEST_F(JobDocument, PyYamlReadsWhateverAToolPrinted) {
  std::string nasty;
  for (int i = 0; i < 256; ++i) nasty += static_cast<char>(i);
  nasty += "\xC2\x85\xE2\x80\xA8\xEF\xBF\xBE\xEF\xBB\xBF\xF0\x9F\x98\x80 \x1b[31mred\x1b[0m\n";
  const JobResult result{.ok = true,
                         .message = "yes",
                         .exit_code = 0,
                         .standard_output = nasty,
                         .standard_error = std::string(300'000, 'x') + "\nend",
                         .start = {},
                         .end = {}};
  const FolderOfTest folder;
  const std::string file = folder.write("x.job.finished", finished_document(job, result));
  EXPECT_FALSE(find_invalid_utf8(folder.read("x.job.finished")));
  EXPECT_LT(std::filesystem::file_size(file), 80'000U);
  const std::string program =
      "import sys, yaml\n"
      "job = yaml.safe_load(open(sys.argv[1], encoding='utf-8'))['job']\n"
      "assert job['rc'] == 0 and job['status'] == 'ok' and job['message'] == 'yes', job\n"
      "assert 'red' in job['stdout'] and job['stdout'].endswith('\\n'), repr(job['stdout'])\n"
      "assert '\\U0001F600' in job['stdout'] and '\\u2028' in job['stdout']\n"
      "assert job['stderr'].endswith('end') and 'bytes left out' in job['stderr']\n"
      "assert isinstance(job['start'], str)\n";
  const std::string script = folder.write("check.py", program);
  EXPECT_EQ(std::system(("python3 " + script + " " + file).c_str()), 0);
}

TEST(PythonYaml, QuotesWhatWouldBeReadAsSomethingElse) {
  for (const std::string text :
       {"yes", "No", "null", "~",  "12",  "1.5",   "2024-01-01", "a: b", "a #b",
        "- a", "",   " a",   "a ", "'q'", "\"d\"", "x\ny",       "é",    "*a",
        "&a",  "!a", "%a",   "@a", "[",   "{",     "0x1f",       "=",    "<<"}) {
    Node map;
    map.kind = Node::Kind::Map;
    map.fields.push_back(Field{"k", 1, text_node(text)});
    Node again;
    ASSERT_NO_THROW(again = parse_yaml(python_yaml(map), "f")) << python_yaml(map);
    EXPECT_EQ(again.find("k")->kind, Node::Kind::Scalar) << text;
    EXPECT_EQ(again.find("k")->text, text);
  }
  EXPECT_EQ(python_yaml(parse_yaml("b: [1, {c: 2, d: []}, [3]]\na: {}\n", "f")),
            "a: {}\nb:\n- 1\n- c: 2\n  d: []\n- - 3\n");
}

TEST(JobKey, TellsDroppedFilesApart) {
  const std::string key = job_key("x.job", 5, 17, "text");
  EXPECT_EQ(key, job_key("x.job", 5, 17, "text"));
  EXPECT_NE(key, job_key("x.job", 5, 17, "other"));
  EXPECT_NE(key, job_key("x.job", 5, 18, "text"));
  EXPECT_NE(key, job_key("x.job", 6, 17, "text"));
  EXPECT_NE(key, job_key("y.job", 5, 17, "text"));
}

TEST(Shortened, KeepsHeadAndTail) {
  EXPECT_EQ(shortened("abc", 3), "abc");
  EXPECT_EQ(shortened("abcdefgh", 4), "ab\n[... 4 bytes left out ...]\ngh");
}

}  // namespace
}  // namespace hpcbatch
