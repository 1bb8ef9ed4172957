#include "campaign.hpp"

#include "trial.hpp"

#include <fmt/format.h>

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <charconv>
#include <csignal>
#include <stdexcept>
#include <vector>

namespace hpcbatch::clockwork {
namespace {

struct Worker {
  pid_t process{0};
  int said{-1};
  std::string unread;
  std::uint64_t seed{0};
};

void say(int fd, const std::string& text) {
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t count = ::write(fd, text.data() + done, text.size() - done);
    if (count <= 0) ::_exit(3);
    done += static_cast<std::size_t>(count);
  }
}

/// Lines: `b SEED` (begins), `c SEED` (clean), `t COUNT NAME`; whatever is no such line is what it
/// printed before it died.
[[noreturn]] void work(const Campaign& campaign, unsigned number, int fd) {
  ::dup2(fd, STDERR_FILENO);
  Tally tally;
  for (std::uint64_t i = number; i < campaign.seeds; i += campaign.workers) {
    if (campaign.until && std::chrono::steady_clock::now() >= *campaign.until) break;
    const std::uint64_t seed = campaign.first + i;
    say(fd, fmt::format("b {}\n", seed));
    const Verdict verdict = run_here(draw_scenario(seed, campaign.tasks), tally);
    if (!verdict.is_clean()) {
      say(fd, verdict.wrong + "\n");
      ::_exit(1);
    }
    say(fd, fmt::format("c {}\n", seed));
  }
  for (const auto& [what, times] : tally.counts()) say(fd, fmt::format("t {} {}\n", times, what));
  ::_exit(0);
}

Worker start(const Campaign& campaign, unsigned number) {
  int ends[2];
  if (::pipe(ends) != 0) throw std::runtime_error("cannot make a pipe for a worker");
  const pid_t process = ::fork();
  if (process < 0) throw std::runtime_error("cannot fork a worker");
  if (process == 0) {
    ::close(ends[0]);
    work(campaign, number, ends[1]);
  }
  ::close(ends[1]);
  return {process, ends[0]};
}

/// Takes the whole lines out of what a worker said.
void listen(Worker& worker, Outcomes& outcomes, std::string& rest) {
  for (std::size_t end = 0; (end = worker.unread.find('\n')) != std::string::npos;) {
    const std::string line = worker.unread.substr(0, end);
    worker.unread.erase(0, end + 1);
    std::uint64_t number = 0;
    const bool reads = line.size() > 2 && line[1] == ' ';
    const auto read = reads ? std::from_chars(line.data() + 2, line.data() + line.size(), number)
                            : std::from_chars_result{line.data(), std::errc::invalid_argument};
    if (reads && read.ec == std::errc{} && line[0] == 'b') {
      worker.seed = number;
    } else if (reads && read.ec == std::errc{} && line[0] == 'c') {
      ++outcomes.clean;
    } else if (reads && read.ec == std::errc{} && line[0] == 't') {
      outcomes.tally.count(read.ptr + 1, number);
    } else {
      rest += line + "\n";
    }
  }
}

}  // namespace

Outcomes run(const Campaign& campaign, const std::function<void(std::uint64_t)>& progress) {
  Outcomes outcomes;
  std::vector<Worker> workers;
  for (unsigned i = 0; i < campaign.workers; ++i) workers.push_back(start(campaign, i));
  std::vector<std::string> rests(workers.size());
  while (std::any_of(workers.begin(), workers.end(), [](const Worker& w) { return w.said >= 0; })) {
    std::vector<pollfd> fds;
    for (const Worker& worker : workers) fds.push_back({worker.said, POLLIN, 0});
    ::poll(fds.data(), fds.size(), -1);
    for (std::size_t i = 0; i < workers.size(); ++i) {
      if (fds[i].revents == 0) continue;
      Worker& worker = workers[i];
      char room[65536];
      const ssize_t got = ::read(worker.said, room, sizeof room);
      if (got > 0) {
        worker.unread.append(room, static_cast<std::size_t>(got));
        listen(worker, outcomes, rests[i]);
        continue;
      }
      ::close(worker.said);
      worker.said = -1;
      int status = 0;
      ::waitpid(worker.process, &status, 0);
      worker.process = 0;
      if (status == 0) continue;
      if (rests[i].empty()) rests[i] = fmt::format("it ended with status {}", status);
      if (!outcomes.finding) outcomes.finding = Finding{worker.seed, rests[i]};
      for (const Worker& other : workers) {
        if (other.process > 0) ::kill(other.process, SIGKILL);
      }
    }
    if (outcomes.finding) {
      for (Worker& other : workers) {
        if (other.process <= 0) continue;
        ::waitpid(other.process, nullptr, 0);
        ::close(other.said);
        other.said = -1;
      }
      break;
    }
    progress(outcomes.clean);
  }
  return outcomes;
}

}  // namespace hpcbatch::clockwork
