#include "posix/spawn_program.hpp"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <unistd.h>

namespace hpcbatch {
namespace {

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

int spawn_program(const std::vector<std::string>& argv, const SpawnOptions& options, pid_t& pid) {
  posix_spawn_file_actions_t files;
  ::posix_spawn_file_actions_init(&files);
  if (options.input < 0)
    ::posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  else
    ::posix_spawn_file_actions_adddup2(&files, options.input, STDIN_FILENO);
  if (options.output >= 0)
    ::posix_spawn_file_actions_adddup2(&files, options.output, STDOUT_FILENO);
  if (options.error >= 0) ::posix_spawn_file_actions_adddup2(&files, options.error, STDERR_FILENO);
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  sigset_t none;
  ::sigemptyset(&none);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setpgroup(&attributes, 0);
  ::posix_spawnattr_setflags(
      &attributes, static_cast<short>((options.unblocks_signals ? POSIX_SPAWN_SETSIGMASK : 0) |
                                      (options.own_group ? POSIX_SPAWN_SETPGROUP : 0)));
  std::vector<std::string> words = argv;
  std::vector<std::string> lines;
  if (options.environment != nullptr) lines = *options.environment;
  const std::vector<char*> own = pointers_to(lines);
  const int error =
      ::posix_spawnp(&pid, words.front().c_str(), &files, &attributes, pointers_to(words).data(),
                     options.environment != nullptr ? own.data() : environ);
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&files);
  if (error != 0) pid = -1;
  return error;
}

}  // namespace hpcbatch
