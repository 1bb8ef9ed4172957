// The program `hpcbatch`: the command line, which runs the engine where it is asked to.
#include "cli/command_line.hpp"
#include "daemon/programs.hpp"
#include "daemon/version_text.hpp"
#include "dropbox_host/serve_box.hpp"

#include <cerrno>

#include <fcntl.h>

namespace {

/// Whoever closed standard input or output left its number to the next file that we open, a socket
/// or the store.
void fill_closed_streams() {
  for (const int stream : {0, 1, 2}) {
    if (::fcntl(stream, F_GETFD) == -1 && errno == EBADF && ::open("/dev/null", O_RDWR) != stream)
      return;
  }
}

}  // namespace

int main(int argc, char** argv) {
  fill_closed_streams();
  if (argc > 1 && argv[1] == hpcbatch::kServeBox) return hpcbatch::serve_box();
  return hpcbatch::run_command_line(
      argc, argv,
      {hpcbatch::run_engine, hpcbatch::run_fsck, hpcbatch::run_sites_add, hpcbatch::version_text});
}
