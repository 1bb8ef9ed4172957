#include "posix/programs.hpp"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace hpcbatch {
namespace {

bool is_open(int descriptor) {
  return ::fcntl(descriptor, F_GETFD) >= 0;
}

TEST(CloseFrom, LeavesWhatIsBelowAndNothingElse) {
  // In a child: the test program has descriptors of its own.
  const pid_t child = ::fork();
  if (child == 0) {
    const int below = ::fcntl(0, F_DUPFD, 40);
    const int at = ::fcntl(0, F_DUPFD, below + 1);
    const int above = ::fcntl(0, F_DUPFD, 900);
    if (!is_open(at) || !is_open(above)) ::_exit(2);
    close_from(at);
    ::_exit(is_open(below) && !is_open(at) && !is_open(above) ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

}  // namespace
}  // namespace hpcbatch
