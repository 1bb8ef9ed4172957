#include "trial.hpp"

#include "world.hpp"

#include <sys/wait.h>
#include <unistd.h>
#include <cctype>
#include <cstdlib>
#include <stdexcept>

namespace hpcbatch::clockwork {
namespace {

std::string read_all(int fd) {
  std::string text;
  char room[4096];
  for (ssize_t got = 0; (got = ::read(fd, room, sizeof room)) > 0;)
    text.append(room, static_cast<std::size_t>(got));
  return text;
}

}  // namespace

std::string kind_of(const std::string& wrong) {
  std::string kind;
  for (const char c : wrong.substr(0, wrong.find('\n'))) {
    if (std::isdigit(static_cast<unsigned char>(c)) != 0) continue;
    kind += c;
  }
  // Names of allocations are drawn.
  for (std::size_t at = 0; (at = kind.find('h', at)) != std::string::npos;) {
    const bool starts_word = at == 0 || kind[at - 1] == ' ';
    const std::size_t end = kind.find_first_of(" .,;:/)", at);
    if (starts_word && kind.compare(at, 6, "habcde") == 0) {
      kind.erase(at, end == std::string::npos ? end : end - at);
    } else {
      ++at;
    }
  }
  return kind.substr(0, 60);
}

Verdict run_here(const Scenario& scenario, Tally& tally) {
  World world(scenario);
  world.run();
  tally.add(world.tally());
  return {world.wrong(), world.fingerprint()};
}

Verdict run_apart(const Scenario& scenario) {
  int ends[2];
  if (::pipe(ends) != 0) throw std::runtime_error("cannot make a pipe for a trial");
  const pid_t child = ::fork();
  if (child < 0) throw std::runtime_error("cannot fork for a trial");
  if (child == 0) {
    ::close(ends[0]);
    ::dup2(ends[1], STDERR_FILENO);
    ::alarm(120);
    Tally tally;
    const Verdict verdict = run_here(scenario, tally);
    [[maybe_unused]] const auto written =
        ::write(STDERR_FILENO, verdict.wrong.data(), verdict.wrong.size());
    ::_exit(verdict.is_clean() ? 0 : 1);
  }
  ::close(ends[1]);
  Verdict verdict{read_all(ends[0])};
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  if (WIFSIGNALED(status) && verdict.wrong.empty())
    verdict.wrong = "it was ended by signal " + std::to_string(WTERMSIG(status));
  return verdict;
}

}  // namespace hpcbatch::clockwork
