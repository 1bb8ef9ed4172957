#include "plugin_kit/check_plugin.hpp"

#include "cli/process/exit.hpp"
#include "plugin_host/plugin_host.hpp"
#include "plugin_kit/contract_cases.hpp"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <stdexcept>

#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace hpcbatch::plugin_kit {
namespace {

/// A transport to a far site moves a few files.
constexpr int kLongestMs = 600'000;

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

/// A line for each promise: it stands there before the plugin is asked, so that one which ends the
/// process is seen to have done it there.
class Lines final : public testing::EmptyTestEventListener {
 public:
  void OnTestStart(const testing::TestInfo& test) override {
    std::printf("%s ... ", in_words(test.name()).c_str());
    std::fflush(stdout);
  }
  void OnTestPartResult(const testing::TestPartResult& result) override {
    if (result.failed()) why_ += fmt::format("\n    {}", indented(result.summary()));
  }
  void OnTestEnd(const testing::TestInfo& test) override {
    std::printf("%s%s\n", test.result()->Passed() ? "good" : "BROKEN", why_.c_str());
    std::fflush(stdout);
    why_.clear();
  }

 private:
  static std::string indented(std::string text) {
    for (std::size_t at = 0; (at = text.find('\n', at)) != std::string::npos; at += 5)
      text.replace(at, 1, "\n    ");
    return text;
  }
  std::string why_;
};

[[noreturn]] void run_contract() {
  std::printf("Opens with its configuration ... ");
  std::fflush(stdout);
  try {
    make_one();
  } catch (const std::exception& error) {
    std::printf("BROKEN\n    it makes no object: %s\n", error.what());
    std::fflush(stdout);
    ::_exit(kExitTaskFailed);
  }
  std::printf("good\n");
  int count = 1;
  std::array<char, 16> name{"plugin"};
  std::array<char*, 2> words{name.data(), nullptr};
  testing::InitGoogleTest(&count, words.data());
  testing::TestEventListeners& listeners = testing::UnitTest::GetInstance()->listeners();
  delete listeners.Release(listeners.default_result_printer());
  listeners.Append(new Lines);  // GoogleTest owns it
  const int failed = RUN_ALL_TESTS();
  std::fflush(stdout);
  ::_exit(failed == 0 ? kExitDone : kExitTaskFailed);
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

/// How the process that holds it against its contract ended.
int verdict(pid_t child, const std::string& name) {
  // glibc 2.36 declares pidfd_open without extern "C".
  const int process = static_cast<int>(::syscall(SYS_pidfd_open, child, 0));
  pollfd wait{process, POLLIN, 0};
  int count = 0;
  while ((count = ::poll(&wait, 1, kLongestMs)) < 0 && errno == EINTR) {
  }
  if (count == 0) ::kill(child, SIGKILL);
  ::close(process);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (count == 0) {
    std::printf("\n%s is not to be used: it gave no answer for ten minutes\n", name.c_str());
  } else if (WIFSIGNALED(status)) {
    std::printf("\n%s is not to be used: it ended the process by SIG%s there\n", name.c_str(),
                ::sigabbrev_np(WTERMSIG(status)));
  } else if (WEXITSTATUS(status) != kExitDone) {
    std::printf("%s breaks the contract; the headers in hpcbatch/ say what each promise is\n",
                name.c_str());
  } else {
    std::printf("%s keeps the contract\n", name.c_str());
    return kExitDone;
  }
  return kExitTaskFailed;
}

}  // namespace

int check_plugin(const CheckAsked& asked) {
  const auto facts = PluginHost::check(asked.file);
  if (!facts) {
    std::fprintf(stderr, "hpcbatch: %s\n", facts.error().text.c_str());
    return kExitTaskFailed;
  }
  const std::string what = fmt::format(
      "{} plugin {} {}", facts->kind == HPCBATCH_KIND_TOOL ? "tool" : kind_name(facts->kind),
      facts->name, facts->version);
  std::printf("%s, %s\n", what.c_str(), facts->fingerprint.c_str());
  if (facts->kind == HPCBATCH_KIND_TOOL && asked.config.empty())
    std::printf("without --config FILE.yaml, a tool's file that names it, no request is tried\n");
  CheckAsked with_folder = asked;
  const bool is_ours = facts->kind == HPCBATCH_KIND_TRANSPORT && asked.directory.empty();
  if (is_ours) with_folder.directory = new_directory();
  set_case(facts->kind, with_folder);
  std::fflush(stdout);
  const pid_t child = ::fork();
  if (child < 0)
    throw std::invalid_argument(std::string("cannot start a process: ") + std::strerror(errno));
  if (child == 0) run_contract();
  const int code = verdict(child, facts->name);
  std::error_code error;
  if (is_ours) std::filesystem::remove_all(with_folder.directory, error);
  return code;
}

}  // namespace hpcbatch::plugin_kit
