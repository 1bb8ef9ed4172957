#include "daemon/programs.hpp"

#include "cli/process/process.hpp"
#include "cli/show/table.hpp"
#include "cli/show/terminal.hpp"
#include "documents/state_paths.hpp"
#include "links/recipe.hpp"
#include "store/owner.hpp"
#include "store/salvage.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>

#include <sys/stat.h>

namespace hpcbatch {
namespace {

namespace json = boost::json;

std::string folder_for_copies() {
  const char* named = std::getenv("TMPDIR");
  return named != nullptr && *named == '/' ? named : "/tmp";
}

/// While we look no engine may begin to write; one that runs is told of.
std::optional<store::OwnerLock> keep_engines_out(const std::string& file) {
  const std::filesystem::path path(file);
  if (path.filename() != "store.db" || !std::filesystem::exists(path.parent_path() / "engine.lock"))
    return std::nullopt;
  auto taken = store::OwnerLock::take(path.parent_path().string());
  if (const auto* refused = std::get_if<store::NotOwner>(&taken)) {
    throw CommandError(kExitUsage, refused->text +
                                       "; stop it first, or look at a copy: `hpcbatch backup FILE` "
                                       "and `hpcbatch fsck FILE`");
  }
  return std::move(std::get<store::OwnerLock>(taken));
}

json::object to_json(const store::StoreReport& report, const FsckOptions& options) {
  json::array faults;
  for (const std::string& fault : report.faults) faults.emplace_back(one_line(fault));
  json::object rows;
  for (const auto& [table, count] : report.rows) rows[table] = count;
  json::object object{{"store", options.store},
                      {"ok", report.is_good()},
                      {"faults", std::move(faults)},
                      {"mended", report.mended},
                      {"rows", std::move(rows)}};
  if (!options.salvage.empty()) object["salvaged"] = options.salvage;
  return object;
}

std::string to_text(const store::StoreReport& report, const FsckOptions& options) {
  std::string text;
  for (const std::string& fault : report.faults) text += one_line(fault) + "\n";
  for (const auto& [table, count] : report.rows) {
    if (count != 0) text += fmt::format("{} rows of {}\n", count, table);
  }
  if (!options.salvage.empty()) {
    return text + fmt::format(
                      "what could be read is in {}; to use it, remove store.db and store.db-wal "
                      "in the state directory and copy it to store.db\n",
                      options.salvage);
  }
  return text + (report.is_good() ? options.store + " is good\n"
                                  : options.store +
                                        " is damaged; `hpcbatch fsck --salvage NEWFILE` writes "
                                        "what can be read to a new file\n");
}

/// A large store takes minutes: on a terminal a line that changes, else one now and then.
store::SalvageSaid progress() {
  using Clock = std::chrono::steady_clock;
  const auto status = std::make_shared<StatusLine>();
  const auto every = std::chrono::seconds{status->is_visible() ? 1 : 10};
  return [status, every, next = Clock::now() + every, progress = Progress()](
             const std::string& what, std::uint64_t done, std::uint64_t of) mutable {
    const Clock::time_point now = Clock::now();
    if (now < next) return;
    next = now + every;
    const std::string text =
        progress.line(what, static_cast<double>(done), static_cast<double>(of), now);
    if (status->is_visible())
      status->show(text);
    else
      std::fprintf(stderr, "hpcbatch: %s\n", text.c_str());
  };
}

}  // namespace

int run_fsck(const FsckOptions& asked) {
  // What we make holds others' secrets.
  ::umask(077);
  FsckOptions options = asked;
  if (options.store.empty()) {
    const auto places = find_places(own_environment());
    if (!places) throw CommandError(kExitUsage, places.error().text);
    options.store = places->home + "/store.db";
  }
  const auto lock = keep_engines_out(options.store);
  const auto report = options.salvage.empty()
                          ? store::look_through(options.store, folder_for_copies(), progress())
                          : store::salvage(options.store, options.salvage, needs_items, progress());
  if (!report) throw CommandError(kExitUsage, report.error().text);
  const std::string text =
      options.json ? json::serialize(to_json(*report, options)) + "\n" : to_text(*report, options);
  std::fwrite(text.data(), 1, text.size(), stdout);
  return report->is_good() || !options.salvage.empty() ? kExitDone : kExitTaskFailed;
}

}  // namespace hpcbatch
