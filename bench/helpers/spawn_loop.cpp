// What a machine can do without any of us: so many processes of one program, so many at a time,
// started with posix_spawn and nothing around it.  Prints the seconds that this took.
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

struct Plan {
  const char* files{};  ///< a folder: each process gets a file of its own for either stream there
  long count{};
  long at_a_time{};
  char** command{};
};

bool start(const Plan& plan, long number) {
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  if (plan.files != nullptr) {
    for (const int stream : {STDOUT_FILENO, STDERR_FILENO}) {
      const std::string path =
          std::string(plan.files) + "/" + std::to_string(number) + "." + std::to_string(stream);
      ::posix_spawn_file_actions_addopen(&actions, stream, path.c_str(),
                                         O_WRONLY | O_CREAT | O_TRUNC, 0600);
    }
  }
  pid_t pid = 0;
  const int error = ::posix_spawnp(&pid, plan.command[0], &actions, nullptr, plan.command, environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (error != 0) std::fprintf(stderr, "%s: %s\n", plan.command[0], std::strerror(error));
  return error == 0;
}

}  // namespace

int main(int argc, char** argv) {
  Plan plan;
  int at = 1;
  if (argc > 2 && std::strcmp(argv[1], "--files") == 0) {
    plan.files = argv[2];
    at = 3;
  }
  if (argc < at + 3) {
    std::fputs("usage: spawn_loop [--files FOLDER] COUNT AT_A_TIME PROGRAM [ARGUMENT...]\n",
               stderr);
    return 2;
  }
  plan.count = std::atol(argv[at]);
  plan.at_a_time = std::atol(argv[at + 1]);
  plan.command = argv + at + 2;
  const auto begin = std::chrono::steady_clock::now();
  long started = 0;
  for (long ended = 0; ended < plan.count;) {
    if (started < plan.count && started - ended < plan.at_a_time) {
      if (!start(plan, started)) return 1;
      ++started;
      continue;
    }
    int status = 0;
    if (::waitpid(-1, &status, 0) < 0 || status != 0) {
      std::fprintf(stderr, "%s did not succeed\n", plan.command[0]);
      return 1;
    }
    ++ended;
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  std::printf("%.6f\n", took.count());
}
