// A login by the user's own program ssh, whose first call opens a connection that all others share.
#pragma once

#include "../common/login.hpp"
#include "../common/process.hpp"
#include "hpcbatch/result.hpp"

#include <optional>
#include <string>
#include <vector>

namespace hpcbatch {

// What the program ssh says when it fails, in the words of all our transports.  Pure.

struct WhoAndHow {
  std::string target;       ///< USER@HOST or HOST
  std::string by_hand;      ///< logs in once, at a terminal
  std::string open_master;  ///< opens the connection that is then shared, at a terminal
};
Error program_error(const WhoAndHow& who, const std::string& standard_error);

/// Whether ssh's last word is that a connection which stood has gone.
bool line_was_lost(const std::string& said);

struct ProgramSettings {
  std::vector<std::string> argv;  ///< up to and with the host
  Environment environment;
  WhoAndHow who;
  std::string control_directory;
  std::string control_socket;
};

class ProgramLogin final : public Login {
 public:
  explicit ProgramLogin(ProgramSettings settings) : settings_(std::move(settings)) {}
  ~ProgramLogin() override;

  Result<Ending> exec(const std::string& text, Exchange& exchange, Deadline deadline) override;
  Result<int> open(const std::string& text, const std::string& input, const std::string& line,
                   Deadline deadline) override;
  /// The shared one, where a call has opened it.
  void end_connection(Deadline deadline);
  std::uint64_t number() const override { return 1; }
  const std::string& name() const override { return settings_.who.target; }

 private:
  CommandLine command(const std::string& text) const;
  void choose_cipher(Deadline deadline);
  /// Why ssh is not started now.
  std::optional<Error> obstacle();
  Error failed(const std::string& standard_error);
  bool is_connected() const;
  std::string mark_of_ours() const;
  void note_ours(bool was_connected);
  void reap();

  ProgramSettings settings_;
  BackOff back_off_;
  bool has_chosen_{false};    // a cipher
  bool needs_person_{false};  // as the last login that failed said
  std::vector<pid_t> talking_;
};

// Where the control socket of a login lies: a private directory, and a name that every object for
// the same login finds again.

/// Below $XDG_RUNTIME_DIR, else /tmp.
std::string default_control_directory();
/// Makes it, or checks that it is ours alone.  Throws std::runtime_error with what is wrong.
void check_control_directory(const std::string& directory);
/// Named after `identity`.  Throws std::runtime_error where the path is too long.
std::string control_socket(const std::string& directory, const std::string& identity);

}  // namespace hpcbatch
