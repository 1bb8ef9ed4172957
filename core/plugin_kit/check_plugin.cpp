#include "plugin_kit/plugin_verbs.hpp"

#include "cli/show/values.hpp"
#include "hpcbatch/contract/estimator.hpp"
#include "hpcbatch/contract/scheduler.hpp"
#include "hpcbatch/contract/tool.hpp"
#include "hpcbatch/contract/transport.hpp"
#include "plugin_host/plugin_host.hpp"
#include "tools/tool_file.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

namespace hpcbatch::plugin_kit {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;

/// For one promise; a transport to a far site moves a few files.
constexpr auto kLongest = 120s;

/// "WhatIsValidRenders" as words.
std::string in_words(std::string_view name) {
  name = name.substr(0, name.find('/'));
  std::string words;
  for (const char c : name) {
    const bool is_capital = c >= 'A' && c <= 'Z';
    if (is_capital && !words.empty()) words += ' ';
    words += is_capital && !words.empty() ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return words;
}

/// Tells a pipe what happens: each promise before the plugin is asked, so that one which ends the
/// process is seen to have done it there.
class Teller final : public testing::EmptyTestEventListener {
 public:
  explicit Teller(int pipe) : pipe_(pipe) {}
  void begins(std::string_view promise) { tell({{"promise", promise}}); }
  void over(bool is_good, std::string_view text) { tell({{"good", is_good}, {"text", text}}); }

  void OnTestStart(const testing::TestInfo& test) override { begins(in_words(test.name())); }
  void OnTestPartResult(const testing::TestPartResult& result) override {
    if (!result.failed()) return;
    if (!why_.empty()) why_ += '\n';
    why_ += result.summary();
  }
  void OnTestEnd(const testing::TestInfo& test) override {
    over(test.result()->Passed(), why_);
    why_.clear();
  }

 private:
  void tell(const json::object& what) const {
    const std::string line = json::serialize(what) + "\n";
    (void)!::write(pipe_, line.data(), line.size());
  }
  int pipe_;
  std::string why_;
};

[[noreturn]] void run_contract(int pipe) {
  // What it prints is no answer of ours.
  ::dup2(STDERR_FILENO, STDOUT_FILENO);
  auto* teller = new Teller(pipe);
  teller->begins("Opens with its configuration");
  try {
    make_one();
  } catch (const std::exception& error) {
    teller->over(false, fmt::format("it makes no object: {}", error.what()));
    ::_exit(0);
  }
  teller->over(true, "");
  int count = 1;
  std::array<char, 16> name{"plugin"};
  std::array<char*, 2> words{name.data(), nullptr};
  testing::InitGoogleTest(&count, words.data());
  testing::TestEventListeners& listeners = testing::UnitTest::GetInstance()->listeners();
  delete listeners.Release(listeners.default_result_printer());
  listeners.Append(teller);  // GoogleTest owns it
  const int failed = RUN_ALL_TESTS();
  ::_exit(failed == 0 ? 0 : 1);
}

std::string new_directory() {
  const char* base = std::getenv("TMPDIR");
  std::string pattern =
      std::string(base != nullptr && *base != '\0' ? base : "/tmp") + "/hpcbatch-plugin-XXXXXX";
  if (::mkdtemp(pattern.data()) == nullptr)
    throw std::invalid_argument(
        fmt::format("cannot make a folder to check it in: {}", std::strerror(errno)));
  return pattern;
}

/// Lines of a pipe, each within its time.
class LinesOf {
 public:
  explicit LinesOf(int pipe) : pipe_(pipe) {}
  /// Nothing: there are no more, or none came in time.
  std::optional<std::string> next() {
    const auto until = std::chrono::steady_clock::now() + kLongest;
    for (;;) {
      if (const auto end = read_.find('\n'); end != std::string::npos) {
        std::string line = read_.substr(0, end);
        read_.erase(0, end + 1);
        return line;
      }
      const auto left =
          std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
      pollfd wait{pipe_, POLLIN, 0};
      const int count = ::poll(&wait, 1, std::max(0, static_cast<int>(left.count())));
      if (count < 0 && errno == EINTR) continue;
      is_late_ = count == 0;
      std::array<char, 4096> part{};
      const ssize_t got = count > 0 ? ::read(pipe_, part.data(), part.size()) : 0;
      if (got <= 0) return std::nullopt;
      read_.append(part.data(), static_cast<std::size_t>(got));
    }
  }
  bool is_late() const { return is_late_; }

 private:
  int pipe_;
  bool is_late_{false};
  std::string read_;
};

/// Hands on what the process says, and says what speaks against the plugin.
std::string listen_to(pid_t child, int pipe, const std::string& name, const Heard& heard) {
  LinesOf lines(pipe);
  bool is_broken = false, is_asked = false;
  while (const auto line = lines.next()) {
    const json::value value = json::parse(*line);
    is_asked = value.as_object().contains("promise");
    if (!is_asked && !value.as_object().at("good").as_bool()) is_broken = true;
    heard(value.as_object());
  }
  if (lines.is_late()) ::kill(child, SIGKILL);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (lines.is_late())
    return fmt::format("{} is not to be used: it gave no answer there for {} s", name,
                       kLongest.count());
  if (WIFSIGNALED(status))
    return fmt::format("{} is not to be used: it ended the process by SIG{} there", name,
                       ::sigabbrev_np(WTERMSIG(status)));
  if (is_asked) return fmt::format("{} is not to be used: it ended the process there", name);
  if (is_broken)
    return fmt::format("{} breaks the contract; the headers in hpcbatch/ say what each promise is",
                       name);
  return "";
}

}  // namespace

std::string check_plugin(const CheckAsked& asked, const Heard& heard) {
  const auto facts = PluginHost::check(asked.file);
  if (!facts) return facts.error().text;
  heard({{"plugin", facts->name},
         {"kind", kind_name(facts->kind)},
         {"version", facts->version},
         {"fingerprint", facts->fingerprint}});
  CheckAsked with_folder = asked;
  const bool is_ours = facts->kind == HPCBATCH_KIND_TRANSPORT && asked.directory.empty();
  if (is_ours) with_folder.directory = new_directory();
  set_case(facts->kind, with_folder);
  std::array<int, 2> pipe{};
  if (::pipe2(pipe.data(), O_CLOEXEC) != 0)
    throw std::invalid_argument(fmt::format("cannot ask it: {}", std::strerror(errno)));
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(pipe[0]);
    run_contract(pipe[1]);
  }
  ::close(pipe[1]);
  if (child < 0) {
    ::close(pipe[0]);
    throw std::invalid_argument(fmt::format("cannot start a process: {}", std::strerror(errno)));
  }
  std::string verdict = listen_to(child, pipe[0], facts->name, heard);
  ::close(pipe[0]);
  std::error_code error;
  if (is_ours) std::filesystem::remove_all(with_folder.directory, error);
  return verdict;
}

namespace {

std::string indented(std::string text) {
  for (std::size_t at = 0; (at = text.find('\n', at)) != std::string::npos; at += 5)
    text.replace(at, 1, "\n    ");
  return text;
}

}  // namespace

void print_heard(const json::object& heard) {
  if (heard.contains("plugin")) {
    std::printf("%s plugin %s %s, %s\n", text_at(heard, "kind").c_str(),
                text_at(heard, "plugin").c_str(), text_at(heard, "version").c_str(),
                text_at(heard, "fingerprint").c_str());
  } else if (heard.contains("promise")) {
    std::printf("%s ... ", text_at(heard, "promise").c_str());
  } else if (heard.at("good").as_bool()) {
    std::printf("good\n");
  } else {
    std::printf("BROKEN\n    %s\n", indented(text_at(heard, "text")).c_str());
  }
  std::fflush(stdout);
}

void HeardTogether::add(const json::object& heard) {
  if (heard.contains("plugin"))
    plugin_ = heard;
  else if (heard.contains("promise"))
    promises_.emplace_back(heard);
  else
    for (const auto& [key, value] : heard) promises_.back().as_object()[key] = value;
}

json::object HeardTogether::take() {
  json::object all = std::move(plugin_);
  all["promises"] = std::move(promises_);
  return all;
}

}  // namespace hpcbatch::plugin_kit

namespace hpcbatch::plugin_kit {
namespace {

/// At most one of them has an element.
struct Cases {
  std::vector<contract::ToolCase> tools;
  std::vector<contract::SchedulerCase> schedulers;
  std::vector<contract::TransportCase> transports;
  std::vector<contract::EstimatorCase> estimators;
};
Cases& cases() {
  static Cases all;
  return all;
}

std::string value_for(const ParameterDeclaration& parameter) {
  if (parameter.default_value) return *parameter.default_value;
  if (!parameter.choices.empty()) return parameter.choices.front();
  switch (parameter.type) {
    case ParameterDeclaration::Type::String:
      return "text";
    case ParameterDeclaration::Type::Boolean:
      return "false";
    default:
      return "1";
  }
}

/// A request that its declarations allow.
ToolRequest request_for(const ToolFile& tool) {
  ToolRequest request{
      .tool = tool.name, .parameters = {{"tool_dir", "/tool"}}, .inputs = {}, .outputs = {}};
  for (const auto& parameter : tool.parameters)
    request.parameters[parameter.name] = value_for(parameter);
  for (const auto& input : tool.inputs)
    request.inputs[input.name] = {{.path = "/data/" + input.name, .size = 1000}};
  for (const auto& output : tool.outputs) request.outputs[output.name] = "/task/" + output.staged;
  return request;
}

}  // namespace

void set_case(hpcbatch_plugin_kind kind, const CheckAsked& asked) {
  const std::string file = asked.file.string(), config = asked.config;
  switch (kind) {
    case HPCBATCH_KIND_TOOL: {
      contract::ToolCase one{.make = [file, config] { return contract::load<Tool>(file, config); },
                             .good = {},
                             .bad = {}};
      if (!config.empty()) one.good.push_back(request_for(parse_tool(config, asked.config_file)));
      cases().tools.push_back(std::move(one));
      break;
    }
    case HPCBATCH_KIND_SCHEDULER:
      cases().schedulers.push_back(
          {.make = [file, config] { return contract::load<Scheduler>(file, config); }});
      break;
    case HPCBATCH_KIND_TRANSPORT:
      cases().transports.push_back(
          {.make = [file, config] { return contract::load<Transport>(file, config); },
           .directory = asked.directory});
      break;
    case HPCBATCH_KIND_ESTIMATOR:
      cases().estimators.push_back(
          {.make = [file, config] { return contract::load<Estimator>(file, config); }});
      break;
  }
}

void make_one() {
  for (const auto& one : cases().tools) (void)one.make();
  for (const auto& one : cases().schedulers) (void)one.make();
  for (const auto& one : cases().transports) (void)one.make();
  for (const auto& one : cases().estimators) (void)one.make();
}

}  // namespace hpcbatch::plugin_kit

namespace hpcbatch::contract {
// Read when GoogleTest is initialised, which is after the case is set.
INSTANTIATE_TEST_SUITE_P(Checked, ToolContract, testing::ValuesIn(plugin_kit::cases().tools));
INSTANTIATE_TEST_SUITE_P(Checked, SchedulerContract,
                         testing::ValuesIn(plugin_kit::cases().schedulers));
INSTANTIATE_TEST_SUITE_P(Checked, TransportContract,
                         testing::ValuesIn(plugin_kit::cases().transports));
INSTANTIATE_TEST_SUITE_P(Checked, EstimatorContract,
                         testing::ValuesIn(plugin_kit::cases().estimators));
}  // namespace hpcbatch::contract
