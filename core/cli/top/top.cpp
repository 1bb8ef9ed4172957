#include "cli/top/top.hpp"

#include "cli/client/engine_client.hpp"
#include "cli/process/process.hpp"
#include "cli/show/listings.hpp"
#include "cli/show/terminal.hpp"
#include "cli/show/values.hpp"
#include "cli/top/asker.hpp"
#include "cli/top/keys.hpp"
#include "cli/top/picture.hpp"
#include "cli/top/screen.hpp"
#include "cli/top/state.hpp"
#include "model/check.hpp"
#include "posix/files.hpp"

#include <hpcbatch/text.hpp>

#include <boost/json/array.hpp>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

namespace hpcbatch {
namespace {

namespace json = boost::json;

constexpr int kSubmissionsShown = 50;

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

/// Everything shown, as one object with the engine's own keys.
json::object look(EngineClient& client) {
  json::object all;
  all["engine"] = client.get("/v1/engine");
  for (const char* what : {"sites", "allocations", "pilots"}) {
    const json::object answer = client.get(std::string("/v1/") + what);
    all[what] = answer.at(what);
  }
  all["arrays"] =
      client.get("/v1/arrays?per=submit&limit=" + std::to_string(kSubmissionsShown)).at("arrays");
  return all;
}

/// What is not 0, and what everybody looks for.
std::string counts(const json::object& engine, const char* key) {
  const json::object* counts = object_at(engine, key);
  if (counts == nullptr) return "";
  json::object told;
  for (const auto& [state, count] : *counts) {
    const bool is_usual = state != "held" && state != "unknown" && state != "cancelled";
    if (is_usual || number_at(*counts, state) > 0) told[state] = count;
  }
  return value_on_a_line(key, told);
}

/// Of all that there is, each a table below the others.
std::string picture_of(const json::object& all) {
  const json::object& engine = *object_at(all, "engine");
  std::string out = "hpcbatch engine " + text_at(engine, "state") + ", up " +
                    duration_at(engine, "uptime_s") + ", version " + text_at(engine, "version") +
                    "\n";
  if (const std::string message = text_at(engine, "message"); !message.empty())
    out += one_line(message) + "\n";
  out += "tasks   " + counts(engine, "tasks") + "\npilots  " + counts(engine, "pilots") + "\n";
  const std::optional<std::size_t> room = columns_of_output();
  const auto section = [&](const Table& table) {
    if (!table.empty()) out += "\n" + table.text(room);
  };
  using Shown = InventoryCommand::Kind;
  section(inventory_table(Shown::Sites, objects_at(all, "sites")));
  // Those that have ended are history and not the live view's.
  Objects allocations = objects_at(all, "allocations");
  std::erase_if(allocations,
                [](const json::object& one) { return text_at(one, "state") == "ended"; });
  section(inventory_table(Shown::Allocations, allocations));
  section(inventory_table(Shown::Pilots, objects_at(all, "pilots")));
  section(submission_table(objects_at(all, "arrays"), seconds_now()));
  return out;
}

/// SIGWINCH and SIGCONT as something that can be waited for; other threads that are made while it
/// lives do not get them.
class TerminalSignals {
 public:
  TerminalSignals() {
    sigset_t wanted;
    sigemptyset(&wanted);
    sigaddset(&wanted, SIGWINCH);
    sigaddset(&wanted, SIGCONT);
    pthread_sigmask(SIG_BLOCK, &wanted, &before_);
    descriptor_ = Fd(signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK));
  }
  ~TerminalSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  TerminalSignals(const TerminalSignals&) = delete;
  TerminalSignals& operator=(const TerminalSignals&) = delete;

  int descriptor() const { return descriptor_.get(); }
  /// Whether the process went on after a stop.
  bool take() {
    bool went_on = false;
    signalfd_siginfo what{};
    while (::read(descriptor_.get(), &what, sizeof what) == sizeof what)
      went_on = went_on || what.ssi_signo == SIGCONT;
    return went_on;
  }

 private:
  sigset_t before_{};
  Fd descriptor_;
};

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

/// As the user's locale and NO_COLOR (no-color.org) have it.
top::Abilities abilities_of_terminal() {
  std::string locale;
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    if (locale.empty()) locale = variable(name);
  }
  locale = lower_case(locale);
  const bool is_utf8 = locale.find("utf-8") != locale.npos || locale.find("utf8") != locale.npos;
  return {.has_colours = variable("NO_COLOR").empty(), .is_utf8 = is_utf8};
}

/// Between the terminal, the engine and what is known.
class LiveView {
 public:
  using Clock = std::chrono::steady_clock;

  LiveView(const Session& session, const json::object& engine)
      : session_(session),
        abilities_(abilities_of_terminal()),
        asker_(sockets_of(session.places)),
        screen_(abilities_) {
    state_.now = seconds_now();
    top::on_reply(state_, {{top::About::Engine, "/v1/engine"}, engine});
  }

  void run() {
    while (!state_.is_over) {
      state_.now = seconds_now();
      const TerminalSize size = terminal_size(STDOUT_FILENO).value_or(TerminalSize{});
      state_.rows = size.rows;
      state_.columns = size.columns;
      if (std::exchange(state_.is_suspended, false)) screen_.suspend();
      if (std::exchange(state_.is_redrawn, false)) screen_.forget();
      ask();
      if (!screen_.is_writing()) screen_.draw(top::picture(state_, abilities_));
      wait();
    }
  }

 private:
  void ask() {
    if (asker_.is_busy()) return;
    const Clock::time_point now = Clock::now();
    if (was_busy_) ended_ = now;
    was_busy_ = false;
    std::vector<top::Question> questions = top::questions_of(state_);
    const std::chrono::duration<double> took = ended_ - asked_, since = now - ended_;
    const bool is_due = since.count() >= top::pause_of(state_, took.count());
    if (!state_.order && !is_due && top::are_alike(questions, questions_)) return;
    questions_ = questions;
    asked_ = now;
    was_busy_ = true;
    asker_.ask(std::move(questions), std::exchange(state_.order, std::nullopt));
  }

  /// For keys, answers, signals, room in the terminal, or the time.
  void wait() {
    constexpr int kAmidKey = 50, kEvery = 250;
    pollfd waits[] = {{session_.interrupt.descriptor(), POLLIN, 0},
                      {screen_.input(), POLLIN, 0},
                      {asker_.descriptor(), POLLIN, 0},
                      {signals_.descriptor(), POLLIN, 0},
                      {screen_.is_writing() ? screen_.output() : -1, POLLOUT, 0}};
    const int count = ::poll(waits, std::size(waits), keys_.is_amid() ? kAmidKey : kEvery);
    if (count < 0) return;
    if (waits[0].revents != 0) throw InterruptedByUser{};
    if (waits[1].revents != 0)
      read_keys();
    else if (count == 0)
      obey(keys_.pause());
    for (top::Heard& heard : asker_.take()) hear(std::move(heard));
    if (signals_.take()) screen_.enter();
    if (waits[4].revents != 0 && !screen_.write_on()) state_.is_over = true;
  }

  void read_keys() {
    char bytes[4096];
    const ssize_t size = ::read(STDIN_FILENO, bytes, sizeof bytes);
    if (size < 0 && (errno == EINTR || errno == EAGAIN)) return;
    // The terminal is gone.
    if (size <= 0)
      state_.is_over = true;
    else
      obey(keys_.read({bytes, static_cast<std::size_t>(size)}));
  }

  void obey(const std::vector<top::Key>& keys) {
    for (const top::Key& key : keys) top::on_key(state_, key);
  }

  void hear(top::Heard heard) {
    match(
        std::move(heard), [&](top::Reply reply) { top::on_reply(state_, std::move(reply)); },
        [&](const top::Done& done) {
          if (done.answer)
            top::on_done(state_, done.order, *done.answer);
          else
            top::on_refused(state_, done.trouble);
        });
  }

  const Session& session_;
  TerminalSignals signals_;
  top::Abilities abilities_;
  top::State state_;
  top::KeyReader keys_;
  top::Asker asker_;
  top::Screen screen_;
  std::vector<top::Question> questions_;
  Clock::time_point asked_{}, ended_{};
  bool was_busy_{false};
};

}  // namespace

int perform(const TopCommand& command, const Session& session) {
  EngineClient client = session.client();
  find_engine(client, session.places, session.interrupt);
  client.leave_trouble_out();  // it is on the picture
  if (command.json) {
    print_json(look(client));
    return kExitDone;
  }
  // A terminal that cannot move its cursor gets what a pipe gets.
  if (command.once || ::isatty(STDOUT_FILENO) == 0 || variable("TERM") == "dumb") {
    print(picture_of(look(client)));
    return kExitDone;
  }
  // What is wrong from the first belongs on the plain screen.
  LiveView(session, client.get("/v1/engine")).run();
  return kExitDone;
}

}  // namespace hpcbatch
