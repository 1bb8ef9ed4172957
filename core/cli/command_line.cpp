#include "cli/command_line.hpp"

#include "cli/parse/parse.hpp"
#include "cli/process/process.hpp"
#include "cli/show/terminal.hpp"
#include "cli/split/split_tasks.hpp"
#include "cli/top/top.hpp"
#include "cli/verbs/verbs.hpp"
#include "documents/view.hpp"
#include "model/check.hpp"

#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include <unistd.h>

namespace hpcbatch {
namespace {

template <class Verb>
int in_session(const Verb& verb) {
  const auto places = find_places(own_environment());
  if (!places) throw CommandError(kExitUsage, places.error().text);
  Interrupt interrupt;
  try {
    return perform(verb, {*places, interrupt});
  } catch (const InterruptedByUser&) {
    // Taken off: it would end us once it is let through again.
    const int number = interrupt.take();
    return number == 0 ? kExitInterrupted : 128 + number;
  }
}

int show(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  return kExitDone;
}

int do_command(const Command& command, const Mains& mains) {
  return match(
      command, [](const ShowText& shown) { return show(shown.text); },
      [&](const ShowVersion&) { return show(mains.version()); },
      // The engine has signals of its own.
      [&](const EngineOptions& options) { return mains.engine(options); },
      [&](const FsckOptions& options) { return mains.fsck(options); },
      [&](const SitesAddOptions& options) { return mains.sites_add(options); },
      [](const auto& verb) { return in_session(verb); });
}

int complain(const std::string& text, int exit_code) {
  std::fflush(stdout);
  say(text);
  return exit_code;
}

}  // namespace

int run_command_line(int argc, char** argv, const Mains& mains) {
  const std::vector<std::string> words(argv + (argc > 0 ? 1 : 0), argv + argc);
  const bool is_run = !words.empty() && words[0] == "run";
  const bool asks_for_help = words.size() > 1 && (words[1] == "--help" || words[1] == "-h");
  if (!words.empty() && words[0] == "node-run" && !asks_for_help) become_node_run(words);
  try {
    const int exit_code = do_command(parse_command(words), mains);
    // What an earlier piece met is only remembered.
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
      return complain("cannot write to standard output", kExitUsage);
    return exit_code;
  } catch (const CommandError& error) {
    return complain(error.what(), is_run ? kExitOwnFailure : error.exit_code());
  } catch (const DocumentError& error) {
    return complain(error.what(), is_run ? kExitOwnFailure : kExitUsage);
  } catch (const std::exception& error) {
    return complain(std::string("internal error: ") + error.what(),
                    is_run ? kExitOwnFailure : kExitUsage);
  }
}

}  // namespace hpcbatch
