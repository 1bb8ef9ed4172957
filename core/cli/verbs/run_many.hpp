// `run` of many tasks: what each prints when it has ended.
#pragma once

#include "cli/client/engine_client.hpp"
#include "cli/parse/command.hpp"
#include "cli/show/terminal.hpp"
#include "model/index_set.hpp"

#include <boost/json/object.hpp>

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace hpcbatch {

/// 0 where all have succeeded, 1 where not, 128 + n where signal n cancelled them.  Throws
/// CommandError.
int run_many(const RunCommand& command, const Session& session);

// Follows many tasks of one submission to their ends: what each printed is written when it has
// ended.

class ManyFollower {
 public:
  struct Options {
    LogCommand log{};         ///< which streams, in which form
    bool keep_order{false};   ///< of their indices, not of their ends
    bool tells_exits{false};  ///< of each that failed, as it may end all others
    /// After each task that was printed.
    std::function<void(std::uint32_t index, const boost::json::object& task)> printed{};
  };
  enum class Why { Ended, Interrupted, OutputClosed };

  ManyFollower(EngineClient& client, const Session& session, Options options)
      : engine_(client, session, status_), options_(std::move(options)) {}

  /// Before the submit: ends from now on are seen.  `client`: whose tasks they are.
  void begin(const std::string& client);
  /// All tasks of it are to be printed.  Throws CommandError.
  void follow_these(const std::string& id);
  /// Those that have ended are printed at once.
  void take_up_ended();
  /// Those that have ended well by now are not printed; returns them.
  IndexSet leave_out_done();

  /// Until all have ended and are printed.  After Interrupted it may be called again, `until` then
  /// says how long.  Throws CommandError.
  Why follow(std::optional<std::chrono::steady_clock::time_point> until = {});
  /// Of OutputClosed: why; empty where nobody reads it any more.
  const std::string& trouble() const { return trouble_; }
  /// What the last line says of the whole; the exit code.
  int tell_end() { return view_.end(counts(), {id_}); }
  void hush() { is_quiet_ = true; }

 private:
  using Clock = std::chrono::steady_clock;

  IndexSet in_state(const char* state);
  void take_ends();
  void has_ended(const IndexSet& indices);
  void tell_trouble(const boost::json::object& event) const;
  void print_all_that_can_be();
  std::optional<std::uint32_t> next_to_print();
  void print(std::uint32_t index);
  void show_progress();
  boost::json::object counts();

  StatusLine status_;
  PatientClient engine_;
  Options options_;
  WaitView view_{status_, false};
  Clock::time_point shown_{};
  std::string id_, feed_, cursor_;
  IndexSet open_;               ///< have not ended, as far as we know
  IndexSet unprinted_;          ///< of all, for those that are printed in their order
  IndexSet skipped_;            ///< had ended well before
  std::deque<IndexSet> ended_;  ///< and are to be printed, in the order of their ends
  std::string trouble_;
  bool is_quiet_{false};  ///< they are being cancelled: no word of trouble, no progress
};

// A file with a line for each task that has ended, as GNU parallel's --joblog.

/// `task`: as the engine shows it, ended.  Without a newline; times in seconds, of a task that
/// never ran 0, and its exit code is -1.
std::string joblog_line(std::uint64_t number, const boost::json::object& task);

class Joblog {
 public:
  /// Opens it and changes nothing yet.  Throws CommandError.
  explicit Joblog(const std::string& file);
  ~Joblog();
  Joblog(const Joblog&) = delete;
  Joblog& operator=(const Joblog&) = delete;

  /// A new one, in place of what was there.
  void begin();
  /// Goes on with what is there; returns the numbers that it has.
  std::set<std::uint64_t> resume();
  /// Each line is there as soon as this returns.  Throws OutputClosed.
  void add(std::uint64_t number, const boost::json::object& task);

 private:
  void write(const std::string& text);

  std::string file_;
  int descriptor_;
};

}  // namespace hpcbatch
