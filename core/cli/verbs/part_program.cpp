#include "cli/verbs/verbs.hpp"

#include "cli/process/process.hpp"
#include "cli/verbs/doctor.hpp"

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include <unistd.h>

namespace hpcbatch {

void become_part(const std::string& name, std::vector<std::string> words,
                 const Interrupt& interrupt) {
  const std::string program = (std::filesystem::path(own_program()).parent_path() / name).string();
  words.insert(words.begin(), name);
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  // What is blocked stays so in the program that comes after us.
  interrupt.let_through();
  ::execv(program.c_str(), arguments.data());
  throw CommandError(kExitUsage, "cannot run " + program + ": " + std::strerror(errno) +
                                     "; build or install hpcbatch completely");
}

// `web`: hands over to the program that serves the page.

int perform(const WebCommand& command, const Session& session) {
  const boost::json::object asked{{"port", command.port},
                                  {"view", command.view},
                                  {"stay", command.stay},
                                  {"socket", command.socket},
                                  {"metrics_token", command.metrics_token},
                                  {"json", command.json}};
  become_part("hpcbatch-web", {boost::json::serialize(asked)}, session.interrupt);
}

// `plugin`: hands over to the program for those who write plugins.

int perform(const PluginCommand& command, const Session& session) {
  const boost::json::object asked{{"verb", command.verb}, {"kind", command.kind},
                                  {"name", command.name}, {"directory", command.directory},
                                  {"file", command.file}, {"config", command.config},
                                  {"json", command.json}};
  become_part("hpcbatch-plugin", {boost::json::serialize(asked)}, session.interrupt);
}

}  // namespace hpcbatch
