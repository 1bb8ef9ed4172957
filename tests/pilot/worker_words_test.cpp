// What services that answer and their workers say to each other, and what a pilot says of a request.
#include "pilot/answering/answering_service.hpp"
#include "pilot/answering/worker_process.hpp"
#include "pilot/services/service_socket.hpp"

#include <gtest/gtest.h>

#include <array>

namespace hpcbatch::pilot {
namespace {

TEST(WorkerWords, ABatchIsOneLine) {
  EXPECT_EQ(
      batch_line({{"7#1", {"python", "a\nb"}, "/work", {{"X", "\"1\""}}}}),
      "{\"requests\":[{\"id\":\"7#1\",\"argv\":[\"python\",\"a\\nb\"],\"directory\":\"/work\","
      "\"env\":{\"X\":\"\\\"1\\\"\"}}]}\n");
  EXPECT_EQ(cancel_line("7#1"), "{\"cancel\":\"7#1\"}\n");
}

TEST(WorkerWords, AreUnderstood) {
  EXPECT_TRUE(std::holds_alternative<WorkerStarts>(read_word(R"({"starting": "loading"})")));
  EXPECT_TRUE(std::holds_alternative<WorkerIsReady>(read_word(R"({"ready": true})")));
  EXPECT_TRUE(std::holds_alternative<WorkerRenews>(read_word(R"({"renew": true})")));
  const auto output = std::get<WorkerOutput>(read_word("{\"id\": \"1\", \"stderr\": \"a\xff\"}"));
  EXPECT_TRUE(output.is_error);
  EXPECT_EQ(output.text, "a\xff");
  const auto answer = std::get<WorkerAnswer>(read_word(R"({"id": "1", "exit": 255})"));
  EXPECT_EQ(answer.id, "1");
  EXPECT_EQ(answer.exit_code, 255);
}

TEST(WorkerWords, OthersAreNot) {
  for (const char* line :
       {"", "[]", "hello", R"({"ready": false})", R"({"id": "1"})", R"({"exit": 0})",
        R"({"id": "1", "exit": 256})", R"({"id": "1", "exit": "0"})", R"({"id": 1, "exit": 0})",
        R"({"id": "1", "exit": 0)"}) {
    EXPECT_TRUE(std::holds_alternative<NotUnderstood>(read_word(line))) << line;
  }
}

TEST(AnsweringOptions, AreReadOrRefused) {
  const auto options = read_answering_options(
      {"--batch", "8", "--idle-ms", "1500", "--devices", "1", "--", "python", "--", "x"});
  ASSERT_TRUE(options);
  EXPECT_EQ(options->terms.batch, 8U);
  EXPECT_EQ(options->terms.idle, std::chrono::milliseconds(1500));
  EXPECT_TRUE(options->terms.waits_for_devices);
  EXPECT_EQ(options->command, (std::vector<std::string>{"python", "--", "x"}));
  for (const auto& wrong : std::vector<std::vector<std::string>>{{},
                                                                 {"--"},
                                                                 {"--batch", "--", "x"},
                                                                 {"--batch", "x", "--", "y"},
                                                                 {"--other", "1", "--", "y"}})
    EXPECT_FALSE(read_answering_options(wrong));
}

TEST(ServiceRequest, IsReadAsItWasWritten) {
  ServiceRequest request;
  request.argv = {"a", "", "b c"};
  std::string variable = "X=1=2";
  std::array<char*, 2> environment{variable.data(), nullptr};
  request.environment = environment.data();
  request.directory = "/here";
  request.cpus = {0, 12};
  request.open_files = rlimit{1024, RLIM_INFINITY};
  request.umask = 027;
  const std::string bytes = to_bytes(request);
  const auto read = read_request(bytes);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->request.argv, request.argv);
  EXPECT_EQ(read->request.directory, "/here");
  EXPECT_EQ(read->request.cpus, request.cpus);
  ASSERT_TRUE(read->request.open_files);
  EXPECT_EQ(read->request.open_files->rlim_cur, 1024U);
  EXPECT_EQ(read->request.open_files->rlim_max, RLIM_INFINITY);
  EXPECT_EQ(read->request.umask, mode_t{027});
  EXPECT_EQ(read->environment, std::vector<std::string>{"X=1=2"});
  // Cut anywhere: refused, or it lacks variables, which no kernel memory file does.
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const auto cut = read_request(bytes.substr(0, size));
    EXPECT_TRUE(!cut || cut->request.argv == request.argv) << size;
  }
}

}  // namespace
}  // namespace hpcbatch::pilot
