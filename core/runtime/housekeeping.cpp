#include "runtime/housekeeping.hpp"

#include "plugin_host/guarded.hpp"
#include "sites/workspace_files.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

namespace hpcbatch {
namespace {

// History is kept so long; then it goes in slices that do not hold up the store's lane for long.
constexpr std::chrono::hours kHistory{24 * 30};
constexpr std::uint32_t kPruneArrays = 100;
constexpr std::chrono::seconds kPruneSoon{1};
constexpr std::chrono::seconds kPruneLater{3600};
constexpr std::chrono::milliseconds kSweepPause{100};

constexpr std::chrono::hours kCleanEvery{24};
constexpr std::size_t kRemovedTogether = 200;

Result<Cleaning> clean_site(Transport& transport, const std::string& workspace,
                            const KeepRules& rules, bool is_trial, Deadline deadline) {
  return guarded("transport", [&]() -> Result<Cleaning> {
    const auto output = transport.run(list_files_of(workspace), deadline);
    if (!output) return output.error();
    auto files = read_listing(*output);
    if (!files) return files.error();
    Cleaning cleaning = decide_cleaning(std::move(*files), rules);
    std::vector<std::string> paths;
    for (std::size_t i = 0; i < cleaning.gone.size() && !is_trial; ++i) {
      paths.push_back(workspace + "/" + cleaning.gone[i].path);
      if (paths.size() < kRemovedTogether && i + 1 < cleaning.gone.size()) continue;
      if (auto removed = remove_files(transport, std::exchange(paths, {}), deadline); !removed)
        return removed.error();
    }
    return cleaning;
  });
}

}  // namespace

Housekeeping::Housekeeping(Dependencies around)
    : dependencies_(std::move(around)), timer_(dependencies_.loop) {}

void Housekeeping::begin() {
  prune_history(kPruneSoon);
  sweep_workspaces();
}

SiteClient* Housekeeping::site(const std::string& name) const {
  const auto at = dependencies_.sites.find(name);
  return at == dependencies_.sites.end() ? nullptr : at->second.get();
}

void Housekeeping::back_up(const std::string& file, std::function<void(Result<void>)> answer) {
  dependencies_.writer.read([file](store::Store& store) { return store.begin_copy(file); },
                            [this, answer = std::move(answer)](const Result<void>& begun) mutable {
                              if (!begun) return answer(begun);
                              copy_on(std::move(answer));
                            });
}

/// In between everything else goes on.
void Housekeeping::copy_on(std::function<void(Result<void>)> answer) {
  dependencies_.writer.read([](store::Store& store) { return store.copy_more(); },
                            [this, answer = std::move(answer)](const Result<bool>& whole) mutable {
                              if (!whole) return answer(whole.error());
                              if (*whole) return answer({});
                              copy_on(std::move(answer));
                            });
}

void Housekeeping::sweep_workspaces() {
  for (const auto& [name, client] : dependencies_.sites) {
    SiteClient& site = *client;
    site.find_left("h" + dependencies_.engine_name, [this, &site](std::vector<AllocationId> found) {
      std::erase_if(found,
                    [&](const AllocationId& id) { return dependencies_.engine.sites().find(id); });
      if (found.empty() || dependencies_.is_stopped()) return;
      std::vector<std::string> names;
      names.reserve(found.size());
      for (const AllocationId& id : found) names.push_back(id.name);
      // Whether one of them still runs, its site may have been away for long, the batch system
      // knows.
      site.poll("h" + dependencies_.engine_name, std::move(names), {},
                [this, &site, found](Result<SiteClient::Listed> listed) {
                  if (listed) sweep_next(site, found, std::move(listed->jobs));
                });
    });
  }
}

/// One after the other, and only while the site has nothing better to do.
void Housekeeping::sweep_next(SiteClient& site, std::vector<AllocationId> found,
                              std::vector<BatchJob> jobs) {
  if (found.empty() || dependencies_.is_stopped() || dependencies_.engine.is_draining()) return;
  if (!site.is_busy()) {
    const AllocationId id = std::move(found.back());
    found.pop_back();
    const auto lives = std::find_if(jobs.begin(), jobs.end(), [&](const BatchJob& job) {
      return job.name == id.name && job.state != BatchState::Ended;
    });
    if (lives != jobs.end()) {
      dependencies_.cancel(CancelAllocation{id, site.site().name, lives->number});
    } else if (!dependencies_.engine.sites().find(id)) {
      spdlog::info("removing what allocation {} has left on {}", id.name, site.site().name);
      dependencies_.forget(ForgetAllocation{id, site.site().name});
    }
  }
  auto again = std::make_shared<asio::steady_timer>(dependencies_.loop, kSweepPause);
  again->async_wait([this, again, &site, found = std::move(found),
                     jobs = std::move(jobs)](const boost::system::error_code& error) mutable {
    if (!error) sweep_next(site, std::move(found), std::move(jobs));
  });
}

void Housekeeping::prune_history(std::chrono::seconds later) {
  timer_.expires_after(later);
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (error || dependencies_.is_stopped()) return;
    dependencies_.writer.read(
        [limit = dependencies_.clock.now() - kHistory](store::Store& store) {
          try {
            return store.prune(limit, kPruneArrays);
          } catch (const sqlite::SqlError& e) {
            // A full disk is no reason to end; what cannot be believed is.
            if (!e.transient()) throw;
            return false;
          }
        },
        [this](bool more) {
          // What results no longer name may go from the workspaces.
          if (!more) clean_daily();
          prune_history(more ? kPruneSoon : kPruneLater);
        });
  });
}

KeepRules Housekeeping::keep_rules(const Site& site, const std::vector<std::string>& pilots) const {
  KeepRules rules;
  rules.prefix = "h" + dependencies_.engine_name;
  const PilotProgram& program = dependencies_.programs.at(site.name);
  for (const std::string& path :
       {program.path_in(site.workspace), program.gpu_helper_in(site.workspace)}) {
    if (!path.empty()) rules.programs.insert(path.substr(site.workspace.size() + 1));
  }
  rules.keep_for = site.keep_for;
  rules.keep_limit = site.keep_limit;
  for (const std::string& pilot : pilots) rules.needed.insert(pilot.substr(0, pilot.find('.')));
  for (const auto& [id, entry] : dependencies_.engine.sites().allocations()) {
    rules.needed.insert(id.name);
    rules.has_live = rules.has_live || entry.facts.site == site.name;
  }
  return rules;
}

void Housekeeping::clean(const std::string& name, bool is_trial,
                         std::function<void(Result<Cleaning>)> answer) {
  dependencies_.writer.read(
      [](store::Store& store) { return store.history().pilots_of_results(); },
      [this, name, is_trial, answer = std::move(answer)](const std::vector<std::string>& pilots) {
        SiteClient* client = site(name);
        if (!client || dependencies_.is_stopped()) return;
        auto result =
            std::make_shared<Result<Cleaning>>(Error{Error::Kind::Transient, "no answer"});
        client->with_transport(
            [result, is_trial, workspace = client->site().workspace,
             rules = keep_rules(client->site(), pilots)](Transport& transport, Deadline deadline) {
              *result = clean_site(transport, workspace, rules, is_trial, deadline);
            },
            [result, answer](bool given_up) {
              if (given_up)
                answer(Error{Error::Kind::Transient, "the workspace did not answer in time"});
              else
                answer(std::move(*result));
            });
      });
}

void Housekeeping::clean_daily() {
  const auto now = std::chrono::steady_clock::now();
  if (cleaned_ && now < *cleaned_ + kCleanEvery) return;
  cleaned_ = now;
  for (const auto& site : dependencies_.sites) {
    const std::string& name = site.first;
    clean(name, false, [name](const Result<Cleaning>& cleaning) {
      if (!cleaning) {
        spdlog::warn("cannot clean the workspace of {}: {}", name, cleaning.error().text);
      } else if (!cleaning->gone.empty()) {
        spdlog::info("{} old files, {} MB, were removed from the workspace of {}",
                     cleaning->gone.size(), cleaning->gone_bytes >> 20, name);
      }
    });
  }
}

namespace {

constexpr std::chrono::milliseconds kEvery{800};
// Submissions in a row cost one write.
constexpr std::chrono::milliseconds kTogether{50};
constexpr std::chrono::milliseconds kLastWrite{500};

}  // namespace

StoreWatch::StoreWatch(asio::io_context& loop, Writer& writer, std::string engine_name,
                       std::vector<std::string> workspaces)
    : writer_(writer),
      timer_(loop),
      soon_(loop),
      engine_name_(std::move(engine_name)),
      workspaces_(std::move(workspaces)) {}

/// What was given last is written too, but a file system that hangs does not keep the engine from its
/// end.
StoreWatch::~StoreWatch() {
  const auto latest = std::chrono::steady_clock::now() + kLastWrite;
  do {
    write();
    if (!*is_writing_) break;
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
  } while (std::chrono::steady_clock::now() < latest);
  lane_.leave_behind();
}

void StoreWatch::begin() {
  struct Seen {
    std::string missing;
    GivenIds given;
  };
  writer_.look(
      [](store::Store& store) {
        const store::MarkText& known = store.known();
        return Seen{store.missing_part(), {known.highest, known.starts}};
      },
      [this](Seen found) {
        seen(std::move(found.missing), found.given);
        look_again();
      });
}

void StoreWatch::look_again() {
  timer_.expires_after(kEvery);
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error) begin();
  });
}

void StoreWatch::seen(std::string missing, const GivenIds& given) {
  if (missing != missing_ && !missing.empty())
    spdlog::critical(
        "{} was removed, or replaced, under the running engine: nothing new is accepted. What runs "
        "goes on; `hpcbatch backup FILE` saves all that the engine knows",
        missing);
  if (missing.empty() && !missing_.empty()) spdlog::info("{} is back where it was", missing_);
  missing_ = std::move(missing);
  given_ = {std::max(given_.highest, given.highest), std::max(given_.starts, given.starts)};
  write();
}

void StoreWatch::given(std::uint64_t highest) {
  given_.highest = std::max(given_.highest, highest);
  if (std::exchange(writes_soon_, true)) return;
  soon_.expires_after(kTogether);
  soon_.async_wait([this](const boost::system::error_code& error) {
    if (error) return;
    writes_soon_ = false;
    write();
  });
}

void StoreWatch::write() {
  if (given_.starts == 0 || given_ == written_ || is_writing_->exchange(true)) return;
  written_ = given_;
  lane_.run([workspaces = workspaces_, engine = engine_name_, given = given_, busy = is_writing_] {
    for (const std::string& workspace : workspaces) write_given_ids(workspace, engine, given);
    *busy = false;
  });
}

}  // namespace hpcbatch
