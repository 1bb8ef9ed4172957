// What ranks of a step read and print, as far as srun stands between: labels, and one input for all.
#pragma once

#include "posix/files.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <poll.h>

namespace hpcbatch::slurm_commands {

/// Both ends of a pipe, closed in programs that are started.  Throws CommandFailed.
std::pair<Fd, Fd> make_pipe();

/// Lines of the ranks, each with its number before it.
class LabelledLines {
 public:
  explicit LabelledLines(unsigned ranks);
  /// The end that a rank writes to; its lines go to `to`.
  Fd add(unsigned rank, int to);
  void add_to(std::vector<pollfd>& waits) const;
  /// What `poll` found, in the order of add_to.
  void pass_on(const pollfd* found);
  bool any() const { return !streams_.empty(); }

 private:
  struct Stream {
    unsigned rank{0};
    int to{1};
    Fd from;
    std::string begun;  ///< a line that has not ended
  };
  void write_lines(Stream& stream, std::string_view text, bool is_end) const;

  std::size_t width_;
  std::vector<Stream> streams_;
};

/// What srun reads, to each rank.
class SharedInput {
 public:
  /// The end that a rank reads.
  Fd add();
  void add_to(std::vector<pollfd>& waits) const;
  void pass_on(const pollfd* found);

 private:
  struct Sink {
    Fd to;
    std::string left;
  };
  bool has_left() const;
  bool reads() const { return !is_over_ && !sinks_.empty() && !has_left(); }
  void write_left();

  std::vector<Sink> sinks_;
  bool is_over_{false};
};

}  // namespace hpcbatch::slurm_commands
