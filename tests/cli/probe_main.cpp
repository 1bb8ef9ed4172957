// The command line as a program of its own.  Its engine is a fake one that does what PROBE_ENGINE
// says; with none it takes a real lock and runs each task by printing "hi".
#include "cli/command_line.hpp"
#include "cli/process/process.hpp"
#include "documents/state_paths.hpp"
#include "fake_engine.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include <fcntl.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/file.h>
#include <unistd.h>

namespace hpcbatch {
namespace {

void say(const EngineOptions& options, std::string_view text) {
  if (options.ready_descriptor >= 0 &&
      ::write(options.ready_descriptor, text.data(), text.size()) < 0)
    std::abort();
}

void answer(const test::FakeRequest& request, test::FakeConnection& connection, sem_t& stop,
            const std::string& config) {
  if (request.method == "POST" && request.target == "/v1/tasks") {
    connection.answer(200, R"({"ids": ["1"]})");
  } else if (request.target.starts_with("/v1/tasks/1/log")) {
    connection.begin_chunks();
    connection.chunk(R"({"stream": "stdout", "base64": "aGkK"})"
                     "\n");
    connection.chunk(
        R"({"end": {"id": "1", "state": "failed", "failure": "tool_failed", "exit_code": 3}})"
        "\n");
    connection.end_chunks();
  } else if (request.target == "/v1/engine/stop") {
    connection.answer(200, "{}");
    ::sem_post(&stop);
  } else if (request.target == "/v1/engine") {
    connection.answer(200, R"({"pid": )" + std::to_string(::getpid()) +
                               R"(, "socket": "there", "version": "1", "config": ")" + config +
                               R"("})");
  } else if (request.target == "/v1/engine/stay") {
    std::ofstream(find_places(own_environment())->home + "/starts", std::ios::app) << "stays\n";
    connection.answer(200, R"({"stays": true})");
  } else {
    connection.answer(404, R"({"error": "no such thing"})");
  }
}

int run_engine(const EngineOptions& options) {
  ::signal(SIGPIPE, SIG_IGN);
  const char* wanted = std::getenv("PROBE_ENGINE");
  const std::string_view what = wanted == nullptr ? "" : wanted;
  if (what == "wrong configuration") {
    say(options, "config.yaml:3: unknown key 'sheduler'; did you mean 'scheduler'?\n");
    return 2;
  }
  if (what == "elsewhere") {
    say(options, "the engine runs on host login2 (process 17)");
    return kEngineElsewhere;
  }
  if (what == "dies") return 9;
  if (options.check_config) return 0;

  const Places places = *find_places(own_environment());
  const int lock = ::open((places.home + "/lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (::flock(lock, LOCK_EX | LOCK_NB) != 0) return kEngineAlreadyRuns;
  std::ofstream(places.home + "/starts", std::ios::app)
      << (options.started_by_client ? "idle" : "stay") << " " << options.config.value_or("-")
      << "\n";
  std::filesystem::remove(places.socket);
  sem_t stop;
  ::sem_init(&stop, 0, 0);
  test::FakeEngine engine(places.socket, [&](const auto& request, auto& connection) {
    answer(request, connection, stop, options.config.value_or(""));
  });
  say(options, std::string(1, kEngineReady));
  if (options.ready_descriptor >= 0) ::close(options.ready_descriptor);
  while (::sem_wait(&stop) != 0) {
  }
  return 0;
}

}  // namespace
}  // namespace hpcbatch

int main(int argc, char** argv) {
  return hpcbatch::run_command_line(
      argc, argv,
      {hpcbatch::run_engine, [](const hpcbatch::FsckOptions&) { return 0; },
       [](const hpcbatch::SitesAddOptions&) { return 0; },
       [] { return std::string("hpcbatch\n"); }});
}
