// Tasks, submissions, inventory and waits as lines of a table.
#pragma once

#include "cli/parse/command.hpp"
#include "cli/show/table.hpp"
#include "cli/show/values.hpp"
#include "model/index_set.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace hpcbatch {

// Tasks as lines of a table, wherever some are listed.

/// Asks the engine for that target.
using AskEngine = std::function<boost::json::object(const std::string& target)>;

/// Those of a submission that the engine lists where it is asked so: `state=failed`, `printed=1`.
IndexSet indices_where(const AskEngine& ask, const std::string& submission,
                       const std::string& question);
/// `12.3-9` of submission 12; nothing where it is another's.
std::optional<IndexSet> indices_of(const std::string& id, const std::string& submission);

/// Of tasks as `GET /v1/tasks` lists them.
std::vector<ListColumn> task_columns();

/// Makes one line of neighbours that ended alike on different pilots.  Lines come from the highest
/// index down; those that show an item stay as they are.
class TaskLines {
 public:
  void add(const boost::json::object& task);
  /// The last line, too.
  void finish();
  std::size_t size() const { return lines_.size(); }
  Table table() const;

 private:
  boost::json::object last_;  ///< not among the lines yet; empty: none
  std::vector<boost::json::object> lines_;
};

/// A line of GNU parallel's --joblog, without a newline.  `task`: as the engine shows it, ended; times
/// in seconds, of one that never ran 0, and its exit code is -1.
std::string joblog_line(std::uint64_t number, const boost::json::object& task);

// Submissions as lines of a table.

/// Of summaries as `GET /v1/arrays` gives them; `now` in seconds since 1970.  Whose they are is a
/// column where they are not all one's.
Table submission_table(const Objects& submissions, double now);
std::vector<ListColumn> submission_columns(const Objects& submissions, double now);

/// How far it is: `#` ended well, `x` failed or cancelled, `>` running, `.` to come; each that
/// there is has a letter at least.  `counts` by state.
std::string progress_bar(const boost::json::object& counts, std::size_t letters);

// Sites, allocations, pilots, tools and the results of checks as tables.

/// What `GET /v1/WORD` answers: a list under that word, and what people see of each.
struct Listing {
  std::string word;
  std::vector<ListColumn> columns;
};
const Listing& listing_of(InventoryCommand::Kind kind);
Table inventory_table(InventoryCommand::Kind kind, const Objects& things);
/// Of `{"check", "ok", "text"}`.
Table check_table(const boost::json::array& checks);

// How long allocations wait, for people.

/// Of what `GET /v1/waits` answers.  `room`: letters on a line.
std::string waits_text(const boost::json::object& waits, std::optional<std::size_t> room);
/// How good the bounds were.
std::string waits_score_text(const boost::json::object& waits, std::optional<std::size_t> room);

// What runs used, as people read it: at 80 columns, and as CSV.

/// Of an answer of `GET /v1/report`.  `by`: kind, site, client, day.  `room`: letters on a line.
std::string report_text(const boost::json::object& report, const std::string& by,
                        std::optional<std::size_t> room);
/// RFC 4180: a line of titles, then one for each row.
std::string report_csv(const boost::json::object& report, const std::string& by);

/// `1.5`, `120`, `31000`: hours with as many digits as say something.
std::string few_digits(double value);

// What runs used as one page that needs nothing beside it: it can be sent in a mail.

/// HTML with its plots as SVG in it; of two answers of `GET /v1/report`.  No script, nothing that is
/// loaded from elsewhere; whatever names tasks have, it stays text.
std::string report_page(const boost::json::object& by_kind, const boost::json::object& by_day);

}  // namespace hpcbatch
