// What goes between the engine and the process of a drop box comes out as it went in.
#include "dropbox_host/box_process.hpp"
#include "dropbox_host/serve_box.hpp"
#include "posix/files.hpp"

#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include <sys/socket.h>

namespace hpcbatch {
namespace {

using namespace std::chrono_literals;

/// As it goes over the sockets, without its line end.
boost::json::value sent(boost::json::value value) {
  const std::string line = message("what", std::move(value));
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  const auto said = read_message(line);
  EXPECT_EQ(said.key(), "what");
  return said.value();
}

TEST(DropboxMessages, SettingsComeBack) {
  const DropboxOptions options{.directory = "/box \xff",
                               .workspace = "/work",
                               .allow = {"/a", "/b\n"},
                               .templates = {"/t"},
                               .variables = {{"level", "7"}},
                               .trust_group = "lab",
                               .warn = {},
                               .most_active_of_one = 12,
                               .input_limit = ~std::uint64_t{0}};
  const DropboxOptions back = struct_of_json<DropboxOptions>(sent(json_of_struct(options)));
  EXPECT_EQ(back.directory, options.directory);
  EXPECT_EQ(back.workspace, options.workspace);
  EXPECT_EQ(back.allow, options.allow);
  EXPECT_EQ(back.templates, options.templates);
  EXPECT_EQ(back.variables, options.variables);
  EXPECT_EQ(back.trust_group, options.trust_group);
  EXPECT_EQ(back.most_active_of_one, options.most_active_of_one);
  EXPECT_EQ(back.input_limit, options.input_limit);
}

TEST(DropboxMessages, TasksComeBack) {
  DropboxTask task{.key = "k",
                   .client = "dropbox:/box",
                   .name = "x.job",
                   .directory = "/d",
                   .work = std::vector<std::string>{"sh", "-c", "a\nb\xfe"},
                   .output_directory = "/d/output"};
  DropboxTask back = struct_of_json<DropboxTask>(sent(json_of_struct(task)));
  EXPECT_EQ(back.key, task.key);
  EXPECT_EQ(back.client, task.client);
  EXPECT_EQ(back.name, task.name);
  EXPECT_EQ(back.directory, task.directory);
  EXPECT_EQ(back.work.index(), 0U);
  EXPECT_EQ(std::get<0>(back.work), std::get<0>(task.work));
  EXPECT_EQ(back.output_directory, task.output_directory);
  ToolCall call{.tool = "cut",
                .parameters = {{"a", "1"}},
                .inputs = {{"in", {{.path = "/d/\xe4.wav", .size = ~std::uint64_t{0}}}}},
                .outputs = {{"out", "/o"}}};
  call.inputs["in"].front().modified += 12345678901ns;
  task.work = call;
  back = struct_of_json<DropboxTask>(sent(json_of_struct(task)));
  const auto& called = std::get<ToolCall>(back.work);
  EXPECT_EQ(called.tool, call.tool);
  EXPECT_EQ(called.parameters, call.parameters);
  EXPECT_EQ(called.outputs, call.outputs);
  ASSERT_EQ(called.inputs.at("in").size(), 1U);
  EXPECT_EQ(called.inputs.at("in").front().path, "/d/\xe4.wav");
  EXPECT_EQ(called.inputs.at("in").front().size, ~std::uint64_t{0});
  EXPECT_EQ(called.inputs.at("in").front().modified, call.inputs["in"].front().modified);
}

TEST(DropboxMessages, EndsComeBack) {
  DropboxTaskEnd end;
  end.key = "k";
  EXPECT_FALSE(struct_of_json<DropboxTaskEnd>(sent(json_of_struct(end))).failure);
  end.failure = Failure::OomTask;
  end.exit_code = 137;
  end.message = "too much";
  end.standard_output = std::string("\0\xff\n", 3);
  end.standard_error = "e";
  end.start = Time{5s};
  end.end = Time{7s};
  end.outputs["out"] = {"file", true};
  const DropboxTaskEnd back = struct_of_json<DropboxTaskEnd>(sent(json_of_struct(end)));
  EXPECT_EQ(back.key, end.key);
  EXPECT_EQ(back.failure, end.failure);
  EXPECT_EQ(back.exit_code, end.exit_code);
  EXPECT_EQ(back.message, end.message);
  EXPECT_EQ(back.standard_output, end.standard_output);
  EXPECT_EQ(back.standard_error, end.standard_error);
  EXPECT_EQ(back.start, end.start);
  EXPECT_EQ(back.end, end.end);
  EXPECT_EQ(back.outputs.at("out").file, "file");
  EXPECT_TRUE(back.outputs.at("out").optional);
}

TEST(DropboxMessages, WhatIsNoneIsRefused) {
  for (const char* line : {"", "{}", "[]", R"({"a": 1, "b": 2})"})
    EXPECT_THROW((void)read_message(line), std::exception) << line;
  EXPECT_THROW((void)struct_of_json<DropboxTask>(boost::json::object{{"key", "k"}}),
               std::exception);
}

/// What was said by now.
std::vector<std::string> keys_said(int socket) {
  char bytes[4096];
  const ssize_t size = ::recv(socket, bytes, sizeof bytes, MSG_DONTWAIT);
  std::vector<std::string> keys;
  std::istringstream lines(std::string(bytes, size < 0 ? 0 : static_cast<std::size_t>(size)));
  for (std::string line; std::getline(lines, line);) keys.emplace_back(read_message(line).key());
  return keys;
}

TEST(DropboxMessages, NothingIsSaidBeforeTheBoxHasOpened) {
  int pair[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
  const Fd engine(pair[0]);
  const Fd process(pair[1]);
  BoxWords words(process.get());
  words.warn("w");
  words.submit({.key = "k", .work = std::vector<std::string>{"true"}});
  EXPECT_EQ(keys_said(engine.get()), std::vector<std::string>());
  words.open({});
  EXPECT_EQ(keys_said(engine.get()), (std::vector<std::string>{"opened", "warn", "submit"}));
  words.cancel("k");
  EXPECT_EQ(keys_said(engine.get()), std::vector<std::string>{"cancel"});
}

}  // namespace
}  // namespace hpcbatch
