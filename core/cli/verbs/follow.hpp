// Tasks that are followed to their ends: what they print goes to our own output.
#pragma once

#include "cli/client/engine_client.hpp"
#include "cli/parse/command.hpp"
#include "cli/process/process.hpp"
#include "cli/show/listings.hpp"
#include "cli/show/terminal.hpp"
#include "model/index_set.hpp"

#include <boost/json/object.hpp>

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace hpcbatch {

/// What tasks printed cannot be written: nobody reads it any more, or the disk is full.
class OutputClosed : public CommandError {
 public:
  OutputClosed(const std::string& text, bool is_pipe)
      : CommandError(kExitUsage, text), is_pipe_(is_pipe) {}
  bool is_pipe() const { return is_pipe_; }

 private:
  bool is_pipe_;
};

/// To our own standard output or error.  Throws OutputClosed.
void write_out(bool is_error, std::string_view bytes);

struct AskedOutput {
  const LogCommand& command;
  std::string task;
  bool is_one_of_many{false};
};
/// Prints what it has written so far, its standard output first.  Throws CommandError.
void print_task(const AskEngine& ask, const AskedOutput& asked);

/// Survives a restart of the engine.
class OutputFollower {
 public:
  using Clock = std::chrono::steady_clock;
  enum class Why { Ended, Late, Interrupted, OutputClosed };

  virtual ~OutputFollower() = default;
  OutputFollower(const OutputFollower&) = delete;
  OutputFollower& operator=(const OutputFollower&) = delete;

  /// Until all has ended and is printed, or until `until`.  After Interrupted it may be called
  /// again.  Throws CommandError, also where the engine stays away.
  Why follow(std::optional<Clock::time_point> until = {});
  /// Of OutputClosed: why; empty where nobody reads it any more.
  const std::string& trouble() const { return trouble_; }
  /// Says how it ended; the exit code.
  virtual int tell_end() = 0;
  /// What is followed is being cancelled: no word of trouble, no progress.
  void hush() { is_quiet_ = true; }

 protected:
  OutputFollower(EngineClient& client, const Session& session, LogCommand log)
      : engine_(client, session, status_), log_(std::move(log)) {}
  /// Ended or Late.
  virtual Why follow_until(std::optional<Clock::time_point> until) = 0;

  StatusLine status_;
  PatientClient engine_;
  LogCommand log_;  ///< which streams, in which form
  bool is_quiet_{false};

 private:
  std::string trouble_;
};

/// One task: each byte is written once, as soon as it is there.
class StreamedTask final : public OutputFollower {
 public:
  StreamedTask(EngineClient& client, const Session& session, std::string id, LogCommand log = {})
      : OutputFollower(client, session, std::move(log)),
        http_(client.http()),
        session_(session),
        id_(std::move(id)) {}
  int tell_end() override;

 private:
  Why follow_until(std::optional<Clock::time_point> until) override;
  std::chrono::milliseconds patience(std::optional<Clock::time_point> until) const;
  /// One line of the stream; true: the last.
  bool take_line(const std::string& line);
  void show_waiting();
  void tell_waiting(const std::string& state, const std::string& text);
  void reconnect();

  HttpClient& http_;
  const Session& session_;
  std::string id_;
  std::unique_ptr<LineStream> lines_;
  bool is_waiting_{true};  ///< as far as we know; its state is then worth showing
  std::string told_;       ///< why it waits, as it was said last
  std::array<std::uint64_t, 2> written_{};
  std::array<std::uint64_t, 2> to_skip_{};  ///< of what a new stream repeats
  boost::json::object end_;                 ///< the task as it ended
};

/// Many tasks of one submission: what each printed is written when it has ended.
class ManyFollower final : public OutputFollower {
 public:
  struct Options {
    LogCommand log{};
    bool keep_order{false};   ///< of their indices, not of their ends
    bool tells_exits{false};  ///< of each that failed, as it may end all others
    /// After each task that was printed.
    std::function<void(std::uint32_t index, const boost::json::object& task)> printed{};
  };

  ManyFollower(EngineClient& client, const Session& session, Options options)
      : OutputFollower(client, session, options.log), options_(std::move(options)) {}

  /// Before the submit: ends from now on are seen.  `client`: whose tasks they are.
  void begin(const std::string& client);
  /// All tasks of it are to be printed.  Throws CommandError.
  void follow_these(const std::string& id);
  /// Those that have ended are printed at once.
  void take_up_ended();
  /// Those that have ended well by now are not printed; returns them.
  IndexSet leave_out_done();
  int tell_end() override { return view_.end(counts(), {id_}); }

 private:
  Why follow_until(std::optional<Clock::time_point> until) override;
  IndexSet in_state(const char* state);
  void take_ends();
  void has_ended(const IndexSet& indices);
  void tell_trouble(const boost::json::object& event) const;
  void print_all_that_can_be();
  std::optional<std::uint32_t> next_to_print();
  void print(std::uint32_t index);
  void show_progress();
  boost::json::object counts();

  Options options_;
  WaitView view_{status_, false};
  Clock::time_point shown_{};
  std::string id_, feed_, cursor_;
  IndexSet open_;               ///< have not ended, as far as we know
  IndexSet unprinted_;          ///< of all, for those that are printed in their order
  IndexSet skipped_;            ///< had ended well before
  std::deque<IndexSet> ended_;  ///< and are to be printed, in the order of their ends
};

}  // namespace hpcbatch
