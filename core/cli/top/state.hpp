// What `top` knows and shows, and what becomes of it when a key is pressed or the engine answers.  Pure.
#pragma once

#include "cli/parse/command.hpp"
#include "cli/top/keys.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include <array>
#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <vector>

namespace hpcbatch::top {

enum class Pane : unsigned char { Submissions, Tasks, Pilots, Waits };
inline constexpr std::size_t kPanes = 4;

enum class About : unsigned char { Engine, List, Explained, Shown, Output };

/// A GET whose answer is shown.
struct Question {
  About about{About::Engine};
  std::string target;
  bool operator==(const Question&) const = default;
};

struct Reply {
  Question question;
  std::optional<boost::json::object> value{};
  std::string trouble{};  ///< where there is none
  bool is_lost{false};    ///< no engine answered
};

/// A change that the user is asked about, and then is made.
struct Order {
  ChangeCommand::Change change{ChangeCommand::Change::Cancel};
  std::string words;  ///< `cancel 12 (sweep)`
  boost::json::object body;
};

/// A page of rows, as long as the engine is asked for at once.
struct ListView {
  std::string filter;  ///< as typed
  std::string within;  ///< a submission's tasks, `12.3-9` or `12-14`: nothing else; empty: all
  std::vector<std::string> befores;  ///< where this page and those before it begin, but the first
  std::string next{};                ///< where the next page begins; empty: there is none
  std::string selected{};            ///< the id
  std::size_t row{0};                ///< where that was last, among the rows that are shown
  std::size_t first{0};              ///< the row that is on top
  std::string sort{};                ///< a column's key; empty: as the engine lists them
  bool is_descending{true};
  boost::json::array rows{};
  std::string target{};  ///< that `rows` answers
  std::string trouble{};
};

/// A look into one thing.
struct LookView {
  Pane pane{Pane::Tasks};
  std::string id;
  bool has_output{false};  ///< it is one task
  bool shows_output{false};
  bool is_stderr{false};
  boost::json::object explained{}, shown{};
  std::string trouble{};
  std::string output{};  ///< the last of it
  std::string offset{"0"};
  std::string file{};  ///< where it goes instead
  bool is_whole{false};
  bool is_behind{false};  ///< there is more than came at once
  std::size_t first{0};   ///< the line that is on top
  bool follows{true};     ///< the end of the output stays in view
};

struct Sample {
  double time{0};  ///< seconds since 1970
  double running{0}, ended{0};
};

struct State {
  Pane pane{Pane::Submissions};
  std::array<ListView, kPanes> lists{};
  std::optional<LookView> look{};
  bool is_help{false};
  std::size_t help_first{0};
  std::optional<std::string> typed{};  ///< the filter while it is typed
  std::optional<Order> asked{};
  std::optional<Order> order{};  ///< to be made; whoever makes it takes it away
  std::string message{};
  double message_at{0};
  boost::json::object engine{};
  std::optional<double> lost_at{};  ///< since when no engine answers
  std::string trouble{};
  std::deque<Sample> samples{};
  std::size_t rows{24}, columns{80};
  double now{0};
  bool is_over{false};
  bool is_suspended{false}, is_redrawn{false};  ///< asked for; whoever does it takes it away

  ListView& list() { return lists.at(static_cast<std::size_t>(pane)); }
  const ListView& list() const { return lists.at(static_cast<std::size_t>(pane)); }
};

void on_key(State& state, const Key& key);
/// What is not asked for any more is left.
void on_reply(State& state, Reply reply);
/// `answer`: of the engine to an order.
void on_done(State& state, const Order& order, const boost::json::object& answer);
void on_refused(State& state, const std::string& trouble);

/// What has to be known for what is shown.
std::vector<Question> questions_of(const State& state);
/// Whether that asks for the same thing, though of output for what came since.
bool are_alike(const std::vector<Question>& a, const std::vector<Question>& b);
/// Seconds until they are asked again, where the answers took that long.
double pause_of(const State& state, double took);

/// Tasks that ended a second, over the last ten seconds.
double rate_of(const State& state);

}  // namespace hpcbatch::top
