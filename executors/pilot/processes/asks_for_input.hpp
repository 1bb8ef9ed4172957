// Whether a task waits for its standard input.  Until one does, nothing is read for it from whoever
// submitted it: the rest of a list in `while read`, what the next command is to have.
#pragma once

#include <sys/types.h>

namespace hpcbatch::pilot {

/// Whether `root` or a process below it has the pipe with that inode open and waits, by /proc: in
/// read(2), or in poll(2) and its kin, where it may be for the pipe.  A process whose wait the
/// kernel does not name counts as one that reads.
bool asks_for_input(pid_t root, ino_t pipe);

}  // namespace hpcbatch::pilot
