// Forgets what ended long ago.
#include "store/store.hpp"

#include <algorithm>

namespace hpcbatch::store {
namespace {

// What a commit may take away, so that leases and results need not wait for long behind it.
constexpr std::uint64_t kPrunedAtOnce = 50'000;

}  // namespace

bool Store::prune(Time limit, std::uint32_t arrays) {
  sqlite::Transaction transaction(db_);
  Totals left = totals_;
  std::vector<ArrayId> old;
  {
    sqlite::Statement rows =
        db_.query("SELECT id FROM arrays WHERE ended<>0 AND ended<? ORDER BY ended LIMIT ?");
    rows.bind(to_microseconds(limit), arrays);
    while (rows.step()) old.push_back(ArrayId{static_cast<std::uint64_t>(rows.number(0))});
  }
  std::uint64_t pruned = std::stoull(meta("pruned"));
  const std::string highest = meta("pruned_array");
  std::uint64_t pruned_array = highest.empty() ? 0 : std::stoull(highest);
  std::uint64_t rows = 0;
  std::size_t taken = 0;
  for (const ArrayId id : old) {
    if (rows > kPrunedAtOnce) break;
    ++taken;
    const Totals gone = history_.totals(id);
    rows += gone.done + gone.failed + gone.cancelled;
    left.done -= gone.done;
    left.failed -= gone.failed;
    left.cancelled -= gone.cancelled;
    pruned_array = std::max(pruned_array, id.value);
    {
      sqlite::Statement last = db_.query("SELECT max(sequence) FROM results WHERE array=?");
      last.bind(id.value).step();
      pruned = std::max(pruned, static_cast<std::uint64_t>(last.number(0)));
    }
    for (const char* statement :
         {"DELETE FROM results WHERE array=?", "DELETE FROM attempts WHERE array=?",
          "DELETE FROM readers WHERE array=?", "DELETE FROM needs_before WHERE array=?",
          "DELETE FROM metrics WHERE array=?", "DELETE FROM submitted_within WHERE array=?",
          "DELETE FROM items WHERE array=?", "DELETE FROM dependencies WHERE array=?",
          // NOLINTNEXTLINE(bugprone-suspicious-missing-comma)
          "UPDATE environments SET arrays=arrays-1 "
          "WHERE id=(SELECT environment FROM arrays WHERE id=?)",
          "DELETE FROM arrays WHERE id=?"}) {
      db_.query(statement).run(id.value);
    }
  }
  const bool more = taken == arrays || taken != old.size();
  if (!more) {
    db_.query("DELETE FROM environments WHERE arrays=0").run();
    db_.query("DELETE FROM allocations WHERE ended<>0 AND ended<?").run(to_microseconds(limit));
  }
  set_meta("pruned", std::to_string(pruned));
  set_meta("pruned_array", std::to_string(pruned_array));
  transaction.commit();
  note_commit(false);
  totals_ = left;
  (void)shorten_log();  // should it fail, the next commit will try and tell
  return more;
}

}  // namespace hpcbatch::store
