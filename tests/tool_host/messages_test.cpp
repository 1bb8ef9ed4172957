// What goes between the engine and the process of tools' plugins comes out as it went in.
#include "tool_host/messages.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <thread>

#include <sys/socket.h>
#include <unistd.h>

namespace hpcbatch::tool_host {
namespace {

using namespace std::chrono_literals;

TEST(ToolHostMessages, QuestionsComeBack) {
  ToolRequest request{
      .tool = "cut",
      .parameters = {{"a", "1"}, {"\xff", "bytes \xfe that are no UTF-8"}},
      .inputs = {{"in", {{.path = "/d/\xe4.wav", .size = ~std::uint64_t{0}}}}, {"none", {}}},
      .outputs = {{"out", "/o\n"}}};
  request.inputs["in"].front().modified += 12345678901ns;
  const Question back =
      question_of(to_text(Question{Question::What::Render, "media", "tool: cut\n", request}));
  EXPECT_EQ(back.what, Question::What::Render);
  EXPECT_EQ(back.plugin, "media");
  EXPECT_EQ(back.text, "tool: cut\n");
  EXPECT_EQ(back.request.tool, "cut");
  EXPECT_EQ(back.request.parameters, request.parameters);
  EXPECT_EQ(back.request.outputs, request.outputs);
  ASSERT_EQ(back.request.inputs.size(), 2U);
  const InputFile& file = back.request.inputs.at("in").at(0);
  EXPECT_EQ(file.path, "/d/\xe4.wav");
  EXPECT_EQ(file.size, ~std::uint64_t{0});
  EXPECT_EQ(file.modified, request.inputs["in"].front().modified);
  const Question of_file = question_of(to_text(Question{.what = Question::What::FactsOf,
                                                        .plugin = "media",
                                                        .text = "",
                                                        .request = {},
                                                        .file = file}));
  EXPECT_EQ(of_file.what, Question::What::FactsOf);
  EXPECT_EQ(of_file.file.path, "/d/\xe4.wav");
  EXPECT_EQ(of_file.file.size, ~std::uint64_t{0});
}

TEST(ToolHostMessages, AnswersComeBack) {
  const ToolTask task{.argv = {"ffmpeg", "-i", "\xe4"},
                      .environment = {{"A", ""}},
                      .container = "docker://x",
                      .needs = {.cpus = 0.1 + 0.2,
                                .memory = std::uint64_t{1} << 63U,
                                .disk = {},
                                .gpus = {{"", 0.25}},
                                .time = 90s}};
  const auto back = std::get<ToolTask>(answer_of(to_text(Answer(task))));
  EXPECT_EQ(back.argv, task.argv);
  EXPECT_EQ(back.environment, task.environment);
  EXPECT_EQ(back.container, task.container);
  EXPECT_EQ(back.needs.cpus, task.needs.cpus);
  EXPECT_EQ(back.needs.memory, task.needs.memory);
  EXPECT_FALSE(back.needs.disk);
  EXPECT_EQ(back.needs.gpus, task.needs.gpus);
  EXPECT_EQ(back.needs.time, task.needs.time);
  EXPECT_EQ(std::get<ToolDescription>(answer_of(to_text(Answer(ToolDescription{"s"})))).summary,
            "s");
  EXPECT_EQ(std::get<Objection>(answer_of(to_text(Answer(Objection{"no"})))).text, "no");
  EXPECT_TRUE(std::holds_alternative<std::monostate>(answer_of(to_text(Answer(std::monostate{})))));
  const KnownFacts facts{{"seconds", FactDescription::OfMany::Sum},
                         {"width", FactDescription::OfMany::Largest}};
  const auto known = std::get<KnownFacts>(answer_of(to_text(Answer(facts))));
  ASSERT_EQ(known.size(), 2U);
  EXPECT_EQ(known[0].name, "seconds");
  EXPECT_EQ(known[0].of_many, FactDescription::OfMany::Sum);
  EXPECT_EQ(known[1].of_many, FactDescription::OfMany::Largest);
  const FactValues values{{"seconds", 0.1 + 0.2}, {"width", 0}, {"odd", std::nan("")}};
  EXPECT_EQ(std::get<FactValues>(answer_of(to_text(Answer(values)))),
            (FactValues{{"seconds", 0.1 + 0.2}, {"width", 0}}))
      << "whoever asked misses what is no number";
  for (const char* text : {"", "{", "[]", "{}", "[9,0]", R"([2,{"argv":[1]}])", R"([3,[["a"]]])",
                           R"([4,{"a":"b"}])", "\xff"})
    EXPECT_THROW((void)answer_of(text), std::exception) << text;
}

TEST(ToolHostFrames, AreWholeOrNotAtAll) {
  std::array<int, 2> pair{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, pair.data()), 0);
  const std::string large(5'000'000, 'x');
  std::thread sender([&] {
    EXPECT_TRUE(send_frame(pair[0], ""));
    EXPECT_TRUE(send_frame(pair[0], large));
    ASSERT_EQ(::write(pair[0], "\0\0\0\7half", 8), 8);
    ::close(pair[0]);
  });
  EXPECT_EQ(receive_frame(pair[1]), "");
  EXPECT_EQ(receive_frame(pair[1]), large);
  EXPECT_FALSE(receive_frame(pair[1]));
  EXPECT_FALSE(send_frame(pair[1], "x"));
  sender.join();
  ::close(pair[1]);
}

TEST(ToolHostFrames, NobodyIsWaitedForBeyondTheDeadline) {
  std::array<int, 2> pair{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, pair.data()), 0);
  EXPECT_FALSE(receive_frame(pair[0], std::chrono::steady_clock::now() + 20ms));
  std::string fills_the_socket;
  fills_the_socket.resize(50'000'000, 'x');
  EXPECT_FALSE(send_frame(pair[0], fills_the_socket, std::chrono::steady_clock::now() + 20ms));
  ASSERT_EQ(::write(pair[1], "\x7f\xff\xff\xff", 4), 4);
  EXPECT_FALSE(receive_frame(pair[0])) << "longer than anything may be";
  for (const int socket : pair) ::close(socket);
}

}  // namespace
}  // namespace hpcbatch::tool_host
