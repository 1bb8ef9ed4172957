#include "store/hold_back.hpp"

#include "store/encoding.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace hpcbatch::store {
namespace {

constexpr std::size_t kNamed = 20;

std::vector<std::int64_t> without_environment(sqlite::Connection& saved) {
  std::vector<std::int64_t> ids;
  sqlite::Statement rows = saved.query(
      "SELECT id FROM arrays WHERE environment<>0 AND environment NOT IN "
      "(SELECT id FROM environments)");
  while (rows.step()) ids.push_back(rows.number(0));
  return ids;
}

std::vector<std::int64_t> without_items(sqlite::Connection& saved, const HasItems& has_items) {
  std::vector<std::int64_t> ids;
  sqlite::Statement arrays = saved.query("SELECT id,indices,recipe FROM arrays");
  while (arrays.step()) {
    if (!has_items(arrays.text(2))) continue;
    sqlite::Statement items = saved.query("SELECT count(*) FROM items WHERE array=?");
    items.bind(arrays.number(0)).step();
    if (static_cast<std::uint64_t>(items.number(0)) < decode_indices(arrays.bytes(1)).size())
      ids.push_back(arrays.number(0));
  }
  return ids;
}

void leave_out(sqlite::Connection& saved, const std::vector<std::int64_t>& ids, const char* what,
               StoreReport& report) {
  if (ids.empty()) return;
  std::string named;
  for (std::size_t i = 0; i < ids.size() && i < kNamed; ++i)
    named += fmt::format("{}{}", i == 0 ? "" : ", ", ids[i]);
  if (ids.size() > kNamed) named += fmt::format(" and {} more", ids.size() - kNamed);
  report.faults.push_back(
      fmt::format("left out, because {} cannot be read: {}; submit again", what, named));
  for (const std::int64_t id : ids) saved.query("DELETE FROM arrays WHERE id=?").run(id);
}

std::uint64_t number_of(sqlite::Connection& saved, const char* query) {
  sqlite::Statement row = saved.query(query);
  return row.step() ? static_cast<std::uint64_t>(row.number(0)) : 0;
}

std::uint64_t highest_pruned(sqlite::Connection& saved) {
  return number_of(saved,
                   "SELECT CAST(CAST(value AS TEXT) AS INTEGER) FROM meta WHERE "
                   "key=CAST('pruned_array' AS BLOB)");
}

std::uint64_t highest_named(sqlite::Connection& saved) {
  std::uint64_t highest = highest_pruned(saved);
  for (const char* query : {"SELECT max(id) FROM arrays", "SELECT max(array) FROM results",
                            "SELECT max(array) FROM items", "SELECT max(array) FROM attempts",
                            "SELECT max(array) FROM leases", "SELECT max(array) FROM dependencies",
                            "SELECT max(on_array) FROM dependencies"})
    highest = std::max(highest, number_of(saved, query));
  return highest;
}

/// Also of those that lay on a bad page.  No number of theirs is given again.
void forget_what_is_gone(sqlite::Connection& saved) {
  saved.query("INSERT OR REPLACE INTO meta VALUES(CAST('pruned_array' AS BLOB),?)")
      .run(std::to_string(highest_named(saved)));
  for (const char* table : {"items", "attempts", "leases", "dependencies"})
    saved.execute(fmt::format("DELETE FROM {} WHERE array NOT IN (SELECT id FROM arrays)", table));
  saved.execute(
      "WITH used AS (SELECT environment, count(*) AS arrays FROM arrays GROUP BY environment) "
      "UPDATE environments SET arrays=coalesce((SELECT used.arrays FROM used WHERE "
      "used.environment=environments.id),0)");
}

}  // namespace

void name_missing(sqlite::Connection& saved, std::uint64_t highest, StoreReport& report) {
  highest = std::max(highest, highest_named(saved));
  std::string named;
  std::uint64_t ranges = 0, next = highest_pruned(saved) + 1;
  const auto gap = [&](std::uint64_t last) {
    if (next > last || ++ranges > kNamed) return;
    named += fmt::format("{}{}{}", ranges == 1 ? "" : ", ", next,
                         next == last ? "" : fmt::format("-{}", last));
  };
  sqlite::Statement rows = saved.query("SELECT id FROM arrays WHERE id>=? ORDER BY id");
  rows.bind(next);
  while (rows.step()) {
    const auto id = static_cast<std::uint64_t>(rows.number(0));
    gap(id - 1);
    next = id + 1;
  }
  gap(highest);
  if (ranges == 0) return;
  if (ranges > kNamed) named += fmt::format(" and {} more ranges", ranges - kNamed);
  report.faults.push_back("these submissions are missing: " + named);
}

void hold_back(sqlite::Connection& saved, const HasItems& has_items, StoreReport& report) {
  leave_out(saved, without_environment(saved), "their environment", report);
  leave_out(saved, without_items(saved, has_items), "the texts of their tasks", report);
  forget_what_is_gone(saved);
  saved.execute("UPDATE arrays SET held=indices WHERE ended=0");
  sqlite::Statement held = saved.query("SELECT count(*) FROM arrays WHERE ended=0");
  held.step();
  if (held.number(0) == 0) return;
  report.faults.push_back(fmt::format(
      "{} arrays that had not ended are held: results of theirs, or what they wait for, may be "
      "missing. Look at them with `hpcbatch list`; `hpcbatch release` lets them run",
      held.number(0)));
}

}  // namespace hpcbatch::store
