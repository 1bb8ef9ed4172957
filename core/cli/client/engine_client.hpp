// The engine as the verbs see it: JSON in, JSON out, and every failure already a sentence with its
// exit code.
#pragma once

#include "cli/client/http_client.hpp"
#include "cli/parse/command.hpp"
#include "cli/process/process.hpp"
#include "cli/show/terminal.hpp"
#include "documents/state_paths.hpp"
#include "model/owner.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hpcbatch {

/// Where an engine of these places may listen, best first.  The state directory always counts: an
/// engine that was started where XDG_RUNTIME_DIR is not set listens there.
std::vector<std::string> sockets_of(const Places& places);

/// One thread.  All calls throw CommandError (exit code 2 where the engine refuses, 3 where it
/// cannot be reached) and InterruptedByUser.
class EngineClient {
 public:
  /// Says on standard error of a request what is waited for where that takes longer than
  /// `kPatience`; not of those that are made to wait.
  EngineClient(const Places& places, int interrupt);

  boost::json::object get(const std::string& target, std::chrono::milliseconds time = kAnswerTime);
  boost::json::object post(const std::string& target, const boost::json::object& body,
                           std::chrono::milliseconds time = kAnswerTime);
  /// The JSON of a successful answer; throws for every other one.  What the engine says of trouble
  /// that its answer comes with goes to standard error, once.
  boost::json::object object_of(const Answer& answer);
  /// What finds an engine again that is gone before it has answered a `get`: whether to ask again.
  void when_lost(std::function<bool()> find_again) { find_again_ = std::move(find_again); }
  /// Whoever shows trouble himself.
  void leave_trouble_out() { told_trouble_ = true; }
  /// For what a verb wants to look at itself.
  HttpClient& http() { return http_; }

  static constexpr std::chrono::milliseconds kAnswerTime{30'000};
  static constexpr std::chrono::seconds kPatience{10};

 private:
  Places places_;
  HttpClient http_;
  std::function<bool()> find_again_;
  bool told_trouble_{false};
};

/// As `EngineClient::object_of`, where it is known that an engine runs or may be started here.
boost::json::object object_of(const Answer& answer);

/// How the engine of this state directory ran that died without a word on this host, and was not
/// started again since.
std::optional<Owner> engine_that_died(const std::string& home);

/// Where an engine lives on this host that nobody listens for: a sentence that says so, and what to
/// do.  It has lost its socket, which it makes again within seconds, or it begins or ends just now.
std::optional<std::string> engine_out_of_reach(const Places& places);

/// Where an engine on another host uses this state directory: a sentence that says so.
std::optional<std::string> engine_elsewhere(const std::string& home);

/// Either of the two.
std::optional<std::string> engine_not_heard(const Places& places);

/// What every verb is given: where things lie, and how the user interrupts.
struct Session {
  Places places;
  Interrupt& interrupt;

  EngineClient client() const { return EngineClient(places, interrupt.descriptor()); }
};

// An engine that dies under a verb that waits for it: there may be nobody else who starts it again.

/// How long a verb that waits goes on while the engine is away: one that is restarted, or that dies
/// and is started again and again, is waited for.
class EngineAbsence {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::minutes kPatience{10};
  /// A restart is shorter, and nobody need hear of it.
  static constexpr std::chrono::seconds kQuiet{5};

  explicit EngineAbsence(Clock::time_point now) : seen_(now) {}

  /// It answered, or took a connection.
  void seen(Clock::time_point now) {
    seen_ = now;
    told_ = false;
  }
  bool is_too_long(Clock::time_point now) const { return now - seen_ >= kPatience; }
  /// True once for each time that it is away.
  bool is_to_be_told(Clock::time_point now) {
    if (told_ || now - seen_ < kQuiet) return false;
    return told_ = true;
  }

 private:
  Clock::time_point seen_;
  bool told_{false};
};

/// An engine that has too much to do says so with this status, and may do it later.
constexpr int kBusyStatus = 503;

class EngineRevival {
 public:
  using Clock = std::chrono::steady_clock;
  /// Whoever watches over it (systemd.service(5), Restart=) has started it again by then.
  static constexpr std::chrono::seconds kOthers{3};
  static constexpr std::chrono::seconds kLongestPause{60};

  EngineRevival(const Session& session, StatusLine& status) : session_(session), status_(status) {}

  /// `answer` is that of a try to connect.  Starts an engine where the last one died (one that was
  /// stopped stays stopped), as that one ran, where none has come for some seconds; says so on
  /// standard error, or once why it cannot.  Throws InterruptedByUser.
  void tried(EngineClient& client, const Answer& answer);

 private:
  void start(EngineClient& client);

  const Session& session_;
  StatusLine& status_;
  std::optional<Clock::time_point> dead_since_;
  Clock::time_point next_{};
  std::chrono::seconds pause_{5};
  bool told_{false};
};

// Questions to an engine that may go away and come back meanwhile.

class PatientClient {
 public:
  PatientClient(EngineClient& client, const Session& session, StatusLine& status)
      : client_(client),
        session_(session),
        status_(status),
        away_(EngineAbsence::Clock::now()),
        revival_(session, status) {}

  /// From then on nothing is waited for.
  void give_up_at(EngineAbsence::Clock::time_point time) { give_up_ = time; }

  /// Asks again for as long as an engine is waited for, and starts one that has died; each question
  /// is one that may be asked twice.  Throws as EngineClient does.
  boost::json::object get(const std::string& target,
                          std::chrono::milliseconds time = EngineClient::kAnswerTime);
  boost::json::object post(const std::string& target, const std::string& body,
                           std::chrono::milliseconds time = EngineClient::kAnswerTime);
  /// Connects anew, where the connection broke under something else than a question.  Throws
  /// CommandError with `lost` where the engine stays away.
  void reconnect(const std::string& lost);

 private:
  bool is_over(EngineAbsence::Clock::time_point now) const {
    return (give_up_ && now >= *give_up_) || away_.is_too_long(now);
  }
  Answer try_again(EngineAbsence::Clock::time_point now);
  boost::json::object ask(const char* method, const std::string& target, const std::string& body,
                          std::chrono::milliseconds time);

  EngineClient& client_;
  const Session& session_;
  StatusLine& status_;
  EngineAbsence away_;
  EngineRevival revival_;
  std::optional<EngineAbsence::Clock::time_point> give_up_;
};

// Hands a submit to the engine such that it happens once, whatever becomes of engine and connection
// meanwhile.

/// Starts the engine if none runs.  `request` must have a key: where the answer is lost, the same
/// is sent again.
std::vector<std::string> submit_safely(EngineClient& client, const Session& session,
                                       const boost::json::object& request);

// The end of tasks where a verb itself is being ended.

/// Whether the engine was told.  On a connection of its own, which is not to be interrupted by what
/// led here.
bool cancel_now(const Places& places, const boost::json::array& ids,
                std::chrono::milliseconds time);

// Submissions by other words than their ids.

/// The ids that words of the command line stand for.  `last` is what this user has submitted last
/// from a shell, of a file of tasks all of them, `last.3` a task of the newest; `12-15` is each of
/// these; an id is itself; `name`: all that this user has submitted so.  Each once.  Throws
/// CommandError where there is none.
std::vector<std::string> resolve_ids(EngineClient& client, const std::vector<std::string>& words,
                                     const std::string& name);

/// Of `12.1-3` each task; of all else itself.
std::vector<std::string> one_by_one(const std::vector<std::string>& ids);

/// The same for what tasks that are to be submitted wait for.  `connect` is called before the
/// engine is asked, which most need not be.
void resolve_waits(EngineClient& client, boost::json::array& tasks,
                   const std::function<void()>& connect);

// Starts the user's engine as a process of its own, for the verbs that need one and find none.

enum class Lifetime { UntilStopped, UntilIdle };

/// Connects `client`, starting an engine first where none runs.  Of two callers at once both end up
/// with the same engine.  Throws CommandError: 2 where the configuration is wrong, 3 where no
/// engine can be had (it may run on another host).  Returns whether this call started it.  Where
/// nothing else is said, with the configuration of one that died, and for as long as that was to
/// run.
bool connect_or_start(EngineClient& client, const Places& places, const Interrupt& interrupt,
                      Lifetime lifetime, const std::optional<std::string>& config = {});

/// Connects `client` to an engine that runs.  Where one lives that has lost its socket, waits for it
/// for some seconds, and says on standard error that it does; what came of the last try otherwise.
/// Throws InterruptedByUser.
Answer connect_to_running(EngineClient& client, const Places& places, const Interrupt& interrupt);

/// Throws CommandError (2) with the engine's sentence where it would not take that configuration.
void check_configuration(const std::optional<std::string>& config);

/// For verbs that look at what there is, or change it: the same, and again where the engine has died
/// before it has answered a `get`.  Says on standard error where an engine was started, because its
/// work goes on then.
void find_engine(EngineClient& client, const Places& places, const Interrupt& interrupt);

// What became of submissions: their exit codes, and of a list of items those that ended well and are
// not run again.

/// The task runs only what `--skip-done` leaves of its items, where that is said; how many were left
/// out is told on standard error.  False: nothing is left to run.  Throws CommandError where there
/// is no such submission, and where it has no items.
bool leave_out_done(EngineClient& client, const ManyOptions& many, boost::json::object& task);

/// How a process of the task's end, as the engine tells of it, ends itself.
int exit_code_of(const boost::json::object& task);
/// The highest of a submission's, as sbatch(1), --wait, has it.  Throws CommandError.
int highest_exit_code(EngineClient& client, const std::string& submission);

// A site's GPUs, tried on demand: a task to each shape that has some, and what the pilots that came
// for them found.

/// `site` as the API has it.  Rows of `check` (shape, node and GPU), `ok` and `text`; of a shape for
/// which no pilot came in `time` one that says why.  Throws CommandError where no shape has GPUs.
boost::json::array try_gpus(EngineClient& client, const Session& session,
                            const boost::json::object& site, std::chrono::milliseconds time,
                            StatusLine& status);

}  // namespace hpcbatch
