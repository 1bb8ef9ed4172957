// The command line as a process of its own, with a home of its own: started, fed, signalled, and
// what it printed.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <sys/types.h>

namespace hpcbatch::test {

/// A folder that is removed with all that is in it.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

struct CliOptions {
  std::string input;                ///< on a pipe; empty: /dev/null
  std::string input_file;           ///< opened as standard input instead
  bool keep_input_open{false};      ///< a pipe that nobody writes to
  bool is_terminal{false};          ///< standard error (and output and input) is a terminal
  unsigned short terminal_rows{0};  ///< of that terminal; 0: it does not tell
  bool close_output{false};         ///< nobody reads standard output
  std::map<std::string, std::string>
      environment;  ///< besides or instead of PATH, HOME, USER and HPCBATCH_HOME
};

struct CliResult {
  int exit_code{-1};  ///< 128 + n for signal n
  bool is_killed{false};
  std::string out;
  std::string err;  ///< of a terminal: in `out` as well
};

class CliProcess {
 public:
  CliProcess(const std::string& home, const std::vector<std::string>& words,
             const CliOptions& options = {});
  ~CliProcess();
  CliProcess(const CliProcess&) = delete;
  CliProcess& operator=(const CliProcess&) = delete;

  pid_t pid() const { return pid_; }
  void signal(int number) const;
  /// Blocks until that signal makes one of its descriptors readable in place of ending it; throws
  /// after a minute.
  void wait_until_it_reads(int number) const;
  /// To its terminal, as keys.
  void type(const std::string& keys) const;
  /// Blocks until standard output holds that text.
  void wait_for_output(const std::string& text);
  /// Blocks until it has ended.
  CliResult wait();

 private:
  bool read_some();

  pid_t pid_{0};
  int out_{-1};
  int err_{-1};
  int in_{-1};
  CliResult result_;
};

CliResult run_cli(const std::string& home, const std::vector<std::string>& words,
                  const CliOptions& options = {});

}  // namespace hpcbatch::test
