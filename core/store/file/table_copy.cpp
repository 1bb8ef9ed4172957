#include "store/file/table_copy.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <vector>

namespace hpcbatch::store {
namespace {

using Key = std::vector<std::int64_t>;

// Looks at a part of a table: a bad page costs two for each of its rows; more is a table of which
// nothing but holes is left.
constexpr int kMostLooks = 200'000;
// So many in a row that found nothing: of a table whose first page is bad nothing is found ever.
constexpr int kMostInVain = 20'000;
constexpr std::uint64_t kRowsBetweenWords = 50'000;
// Below all that is counted.
constexpr std::int64_t kBelow = -1;
// Above it, and near enough that distances are numbers too.
constexpr std::int64_t kAbove = std::numeric_limits<std::int64_t>::max() - 2;

/// The columns by which its rows lie in their order; none: those of another kind than numbers.
const std::vector<std::string>& order_of(const std::string& table) {
  static const std::map<std::string, std::vector<std::string>> orders{
      {"meta", {}},
      {"environments", {"id"}},
      {"arrays", {"id"}},
      {"dependencies", {"on_array", "array"}},
      {"items", {"array", "item"}},
      {"attempts", {"array", "item", "attempt", "epoch"}},
      {"results", {"sequence"}},
      {"leases", {"array", "first"}},
      {"allocations", {"rowid"}},
      {"needs_before", {"array", "until", "leased"}},
      {"submitted_within", {"array"}},
      {"numbered", {"array"}},
      {"notices", {"first"}},
      {"metrics", {"array", "item"}},
      {"readers", {"array"}},
      {"allocation_terms", {}},
      {"usage", {"day"}},
      {"profiles", {}}};
  return orders.at(table);
}

/// Of those whose rows lie by a text.
const char* text_order_of(const std::string& table) {
  if (table == "meta") return "key";
  return table == "profiles" ? "kind" : "name";
}

/// A store that was just made knows these better.
const char* without(const std::string& table) {
  return table == "meta" ? "key<>CAST('version' AS BLOB)" : "1";
}

using Said = std::function<void(const std::string&, std::uint64_t, std::uint64_t)>;

enum class Way : std::uint8_t { Up, Down };

class TableCopy {
 public:
  TableCopy(sqlite::Connection& from, sqlite::Connection& to, std::string table, const Said& said)
      : from_(from), to_(to), table_(std::move(table)), order_(order_of(table_)), said_(said) {}

  bool run() {
    if (order_.empty()) {
      const Scan up = scan({}, kBelow, kAbove, Way::Up);
      if (!up.whole) scan({}, kBelow, kAbove, Way::Down);
      return up.whole;
    }
    return part({}, kBelow, kAbove);
  }

 private:
  struct Scan {
    bool whole{false};
    std::optional<std::int64_t> last;  ///< of the column that is not fixed
  };

  /// The rows that begin with `fixed`, and whose next column lies between `low` and `high`: from
  /// both ends up to what cannot be read, then what lies between in halves.
  bool part(const Key& fixed, std::int64_t low, std::int64_t high) {
    const Scan up = scan(fixed, low, high, Way::Up);
    if (up.whole) return true;
    if (looks_ >= kMostLooks || in_vain_ >= kMostInVain) return false;
    const Scan down = scan(fixed, low, high, Way::Down);
    const std::int64_t from = up.last.value_or(low), to = down.last.value_or(high);
    if (up.last) within(fixed, from);
    if (down.last && to != from) within(fixed, to);
    if (to - from == 2) {
      within(fixed, from + 1);
    } else if (to - from > 2) {
      const std::int64_t middle = from + (to - from + 1) / 2;
      part(fixed, from, middle);
      part(fixed, middle - 1, to);
    }
    return false;
  }
  /// Of what has that number in the next column there may be more, by the columns behind.
  void within(Key fixed, std::int64_t number) {
    fixed.push_back(number);
    if (fixed.size() < order_.size()) part(fixed, kBelow, kAbove);
  }

  Scan scan(const Key& fixed, std::int64_t low, std::int64_t high, Way way) {
    ++looks_;
    ++in_vain_;
    Scan done;
    try {
      learn_columns();
      sqlite::Statement rows = from_.query(select(fixed.size(), way));
      bind(rows, fixed, low, high);
      while (rows.step()) {
        add(rows);
        if (!order_.empty()) done.last = rows.number(0);
      }
      done.whole = true;
    } catch (const sqlite::SqlError& e) {
      if (!e.damaged()) throw;
    }
    return done;
  }
  static void bind(sqlite::Statement& rows, const Key& fixed, std::int64_t low, std::int64_t high) {
    Key all = fixed;
    all.resize(3);  // a statement that knows fewer places takes fewer
    rows.bind(low, high, all[0], all[1], all[2]);
  }
  /// The column that is not fixed comes first, for the scan itself.
  const char* select(std::size_t fixed, Way way) {
    std::string& text = selects_[{fixed, way}];
    if (!text.empty()) return text.c_str();
    const std::string down = way == Way::Down ? " DESC" : "";
    if (order_.empty()) {
      text = fmt::format("SELECT 0,* FROM {} WHERE ?1<?2 AND {} ORDER BY {}{}", table_,
                         without(table_), theirs(text_order_of(table_)), down);
      return text.c_str();
    }
    text =
        fmt::format("SELECT {0},* FROM {1} WHERE {0}>?1 AND {0}<?2", theirs(order_[fixed]), table_);
    for (std::size_t i = 0; i < fixed; ++i)
      text += fmt::format(" AND {}=?{}", theirs(order_[i]), i + 3);
    text += " ORDER BY ";
    for (std::size_t i = fixed; i < order_.size(); ++i)
      text += (i > fixed ? "," : "") + theirs(order_[i]) + down;
    return text.c_str();
  }
  /// A column whose name is damaged stands for the one that is missed.
  void learn_columns() {
    if (!ours_.empty()) return;
    theirs_ = columns_of(from_, table_);
    std::vector<std::string> names = theirs_;
    const std::vector<std::string> made = columns_of(to_, table_), missed = not_among(made, names);
    auto next = missed.begin();
    for (std::string& name : names) {
      if (std::find(made.begin(), made.end(), name) == made.end() && next != missed.end())
        name = *next++;
    }
    ours_ = std::move(names);
  }
  /// What it is called there.
  const std::string& theirs(const std::string& column) const {
    const auto found = std::find(ours_.begin(), ours_.end(), column);
    return found == ours_.end() ? column : theirs_[static_cast<std::size_t>(found - ours_.begin())];
  }
  void add(const sqlite::Statement& row) {
    if (insert_.empty()) {
      insert_ =
          fmt::format("INSERT OR REPLACE INTO {}({}) VALUES({})", table_, fmt::join(ours_, ","),
                      fmt::join(std::vector<const char*>(ours_.size(), "?"), ","));
    }
    to_.query(insert_.c_str()).run_with(row, 1);
    in_vain_ = 0;
    if (++rows_ % kRowsBetweenWords == 0 && said_) said_("rows of " + table_, rows_, 0);
  }

  sqlite::Connection& from_;
  sqlite::Connection& to_;
  std::string table_;
  const std::vector<std::string>& order_;
  std::vector<std::string> theirs_, ours_;  ///< the columns, in the order that they have there
  std::string insert_;
  std::map<std::pair<std::size_t, Way>, std::string> selects_;
  const Said& said_;
  int looks_{0}, in_vain_{0};
  std::uint64_t rows_{0};
};

}  // namespace

std::vector<std::string> columns_of(sqlite::Connection& db, const std::string& table) {
  const sqlite::Statement all = db.query(fmt::format("SELECT * FROM {} LIMIT 0", table).c_str());
  std::vector<std::string> names;
  names.reserve(static_cast<std::size_t>(all.columns()));
  for (int i = 0; i < all.columns(); ++i) names.push_back(all.name(i));
  return names;
}

std::vector<std::string> not_among(const std::vector<std::string>& ours,
                                   const std::vector<std::string>& theirs) {
  std::vector<std::string> rest;
  std::copy_if(ours.begin(), ours.end(), std::back_inserter(rest), [&](const std::string& name) {
    return std::find(theirs.begin(), theirs.end(), name) == theirs.end();
  });
  return rest;
}

bool copy_rows(sqlite::Connection& from, sqlite::Connection& to, const std::string& table,
               const Said& said) {
  return TableCopy(from, to, table, said).run();
}

}  // namespace hpcbatch::store
