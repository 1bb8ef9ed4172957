// The program `hpcbatch-tool-host`: what tools' plugins run in.  The engine starts it with the
// plugins' path, and asks on descriptor 3.
#include "plugin_host/plugin_host.hpp"
#include "plugin_host/search_path.hpp"
#include "tool_host/messages.hpp"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

namespace {

using namespace hpcbatch;
using namespace hpcbatch::tool_host;

constexpr int kSocket = 3;
/// More than any recipe of a command takes; less than what harms a login node.
[[maybe_unused]] constexpr rlim_t kMostMemory = rlim_t{4} << 30U;
constexpr std::size_t kMostTools = 200;

void limit_ourselves() {
  const rlimit no_core{0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  const rlimit memory{kMostMemory, kMostMemory};
  ::setrlimit(RLIMIT_AS, &memory);
#endif
}

/// A plugin that never comes back would outlive the engine otherwise.
void end_with_the_engine() {
  pollfd engine{kSocket, POLLRDHUP, 0};
  while (::poll(&engine, 1, -1) < 0 && errno == EINTR) {
  }
  // With what plugins have started: the engine gave us a group of our own.
  if (::getpgrp() == ::getpid()) ::kill(0, SIGKILL);
  ::_exit(0);
}

/// Tools as they were opened, by plugin and text.
class OpenTools {
 public:
  explicit OpenTools(PluginHost plugins) : plugins_(std::move(plugins)) {}

  Answer answer(const Question& question) {
    try {
      const Tool& tool = opened(question);
      switch (question.what) {
        case Question::What::Describe:
          return tool.describe();
        case Question::What::Validate:
          tool.validate(question.request);
          return std::monostate{};
        case Question::What::Render:
          return tool.render(question.request);
        case Question::What::Facts: {
          const auto* facts = dynamic_cast<const InputFacts*>(&tool);
          return facts ? facts->facts() : KnownFacts{};
        }
        case Question::What::FactsOf:
          return dynamic_cast<const InputFacts&>(tool).facts_of(question.file);
      }
      return Objection{"a question of no known kind"};
    } catch (const std::exception& error) {
      return Objection{error.what()};
    } catch (...) {
      return Objection{"its plugin " + question.plugin +
                       " threw something that is no std::exception"};
    }
  }

 private:
  const Tool& opened(const Question& question) {
    const std::pair key(question.plugin, question.text);
    if (const auto at = tools_.find(key); at != tools_.end()) return *at->second;
    auto made = plugins_.tool(question.plugin, question.text);
    if (!made) throw std::runtime_error(made.error().text);
    if (tools_.size() >= kMostTools) tools_.clear();
    return *tools_.emplace(key, std::move(*made)).first->second;
  }

  PluginHost plugins_;
  std::map<std::pair<std::string, std::string>, std::unique_ptr<Tool>> tools_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("hpcbatch: this program is a part of hpcbatch, which starts it\n", stderr);
    return 2;
  }
  ::fcntl(kSocket, F_SETFD, FD_CLOEXEC);
  limit_ourselves();
  std::thread(end_with_the_engine).detach();
  OpenTools tools(
      PluginHost(plugin_search_path({}, argv[1], std::filesystem::read_symlink("/proc/self/exe"))));
  while (const auto text = receive_frame(kSocket)) {
    try {
      if (!send_frame(kSocket, to_text(tools.answer(question_of(*text))))) return 0;
    } catch (const std::exception& error) {
      if (!send_frame(kSocket, to_text(Answer(Objection{error.what()})))) return 0;
    }
  }
  return 0;
}
