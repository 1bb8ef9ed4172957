// The loop around the engine: events in, actions done, the timer set; and what clients ask for.
#include "runtime/runtime.hpp"

#include "loop/crash_point.hpp"
#include "sites/log_reader.hpp"
#include "sites/workspace_memory.hpp"
#include "wire/wire.pb.h"

#include <fmt/format.h>
#include <sodium.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include <sys/stat.h>
#include <unistd.h>

namespace hpcbatch {
namespace {

constexpr std::chrono::seconds kStoreHangs{30};

std::uint64_t random_seed() {
  std::uint64_t seed = 0;
  randombytes_buf(&seed, sizeof seed);
  return seed;
}

/// Lies beside the pilot program; goes where GPUs are.
std::string gpu_helper_for(const Site& site, const std::string& pilot_program) {
  const bool has_gpus = std::any_of(site.shapes.begin(), site.shapes.end(), [](const Shape& shape) {
    return shape.capacity.gpus() != Amount{};
  });
  const std::string helper =
      (std::filesystem::path(pilot_program).parent_path() / "hpcbatch-gpu").string();
  return has_gpus && ::access(helper.c_str(), X_OK) == 0 ? helper : std::string();
}

}  // namespace

Runtime::Runtime(asio::io_context& loop, const PluginHost& plugins, Options options,
                 WhenEnding when)
    : loop_(loop),
      plugins_(plugins),
      options_(std::move(options)),
      end_{.when = std::move(when)},
      timer_(loop) {}

Runtime::~Runtime() = default;

SiteClient* Runtime::site(const std::string& name) {
  const auto at = sites_.find(name);
  return at == sites_.end() ? nullptr : at->second.get();
}

std::string Runtime::site_of(const PilotId& pilot) const {
  const AllocationEntry* entry = engine_->sites().find(pilot.allocation);
  return entry ? entry->facts.site : std::string();
}

Result<void> Runtime::open_sites() {
  for (Site& site : options_.sites) {
    auto client = std::make_unique<SiteClient>(
        loop_, plugins_, site,
        programs_
            .try_emplace(site.name, options_.pilot_program,
                         workspace_memory(options_.home, site.name),
                         gpu_helper_for(site, options_.pilot_program), site.trust_group)
            .first->second);
    if (auto opened = client->open(); !opened) return opened;
    site = client->site();
    sites_.emplace(site.name, std::move(client));
  }
  return {};
}

Result<void> Runtime::open(std::unique_ptr<store::Store> store) {
  if (sodium_init() < 0)
    return Error{Error::Kind::Rejected, "libsodium finds no source of random bytes"};
  if (auto opened = open_sites(); !opened) return opened;
  const auto unreadable = [&](store::Store& unread, const std::exception& e) {
    unread.note_damage(e.what());
    return Error{Error::Kind::Rejected,
                 fmt::format("cannot read the store in {}: {}; `hpcbatch fsck` says what can be "
                             "read, `hpcbatch fsck --salvage NEWFILE` writes it to a new file",
                             options_.home, e.what())};
  };
  Snapshot snapshot;
  std::string secret;
  try {
    secret = store->secret();
    raise_given_ids(*store);
    snapshot = store->begin();
  } catch (const sqlite::SqlError& e) {
    if (!e.transient()) return unreadable(*store, e);
    return Error{Error::Kind::Rejected,
                 fmt::format("cannot use the store in {}: {}", options_.home, e.what())};
  } catch (const std::exception& e) {
    return unreadable(*store, e);
  }
  engine_name_ = snapshot.engine_name;
  // This thread's until the writer is asked for something.
  store::Store& rows = *store;
  make_writer(std::move(store));
  make_staging();
  staging_->open(snapshot, options_.sites);
  make_requests();
  make_links();
  if (auto listening = listen(std::move(secret)); !listening) return listening;
  history_ = EngineHistory::open(*writer_, snapshot, options_.sites);
  try {
    LiveArrays live_arrays = rows.live_arrays();
    if (history_) live_arrays = history_->noting(std::move(live_arrays));
    engine_ = std::make_unique<Engine>(options_.sites, snapshot, live_arrays, random_seed(), now());
  } catch (const std::exception& e) {
    return unreadable(rows, e);
  }
  if (history_) history_->add(noted_restored(snapshot));
  spdlog::info("engine start {}: {} arrays alive, {} leases, {} allocations", snapshot.engine_start,
               engine_->tasks().arrays().size(), snapshot.leases.size(),
               snapshot.allocations.size());
  listeners_->begin();
  feed(TimePassed{});
  make_housekeeping();
  housekeeping_->begin();
  learning_->begin();
  store_watch_ = std::make_unique<StoreWatch>(loop_, *writer_, engine_name_, workspaces_here());
  store_watch_->begin();
  if (std::any_of(options_.sites.begin(), options_.sites.end(),
                  [](const Site& site) { return site.estimate != EstimateMode::Off; }))
    learning_->want_estimates([] {});
  look_through_store();
  return {};
}

std::vector<std::string> Runtime::workspaces_here() const {
  std::vector<std::string> workspaces;
  for (const Site& site : options_.sites) {
    if (site.transport == "shared_fs") workspaces.push_back(site.workspace);
  }
  return workspaces;
}

/// A home that was put back from a backup: what it gave since lies in the workspaces, and pilots of
/// that time may still run.
void Runtime::raise_given_ids(store::Store& store) const {
  GivenIds since;
  for (const std::string& workspace : workspaces_here()) {
    const GivenIds given = read_given_ids(workspace, store.name());
    since.highest = std::max(since.highest, given.highest);
    since.starts = std::max(since.starts, given.starts);
  }
  if (!store.were_given(since.highest, since.starts)) return;
  spdlog::warn(
      "this store is older than what its workspaces have seen: ids up to {} and {} starts were "
      "given "
      "before it was put back, and are not given again; tasks of that time are not known here",
      since.highest, since.starts);
}

/// Behind the start, which would share the processor and the disk with it.
void Runtime::look_through_store() {
  look(
      [this](store::Store& store) {
        store.check_beside([this](const std::string& damage) {
          asio::post(loop_, [this, damage] { store_is_damaged(damage); });
        });
        return true;
      },
      [](bool) {});
}

std::optional<std::string> Runtime::store_refuses() const {
  const std::string store = options_.home + "/store.db";
  if (!end_.damage.empty())
    return fmt::format("the store {} is damaged: {}; the engine ends", store, end_.damage);
  if (store_watch_ && !store_watch_->missing().empty())
    return fmt::format(
        "{} was removed, or replaced, under the running engine, so that what is accepted now would "
        "be "
        "lost. Save what it knows with `hpcbatch backup FILE`, then `hpcbatch engine stop` and put "
        "FILE back as {}",
        store_watch_->missing(), store);
  if (store_trouble_)
    return fmt::format("the store {} cannot be written: {}", store, *store_trouble_);
  return std::nullopt;
}

std::optional<std::string> Runtime::store_trouble() const {
  if (auto refuses = store_refuses()) return refuses;
  const auto busy = writer_->busy_for();
  if (busy < kStoreHangs) return std::nullopt;
  return fmt::format(
      "the store {}/store.db has been busy with one thing for {} s; its file system "
      "may hang",
      options_.home, std::chrono::duration_cast<std::chrono::seconds>(busy).count());
}

/// What was answered stays; nothing more is promised on a ground like that.
void Runtime::store_is_damaged(const std::string& what) {
  if (!end_.damage.empty() || end_.hears_nothing) return;
  end_.damage = what;
  spdlog::critical("the store is damaged: {}; nothing new is accepted, and the engine ends", what);
  read(
      [what](store::Store& store) {
        store.note_damage(what);
        return true;
      },
      [](bool) {});
  stop(StopAsked::Mode::Leave);
}

Result<void> Runtime::listen(std::string secret) {
  listeners_ = std::make_unique<PilotListeners>(PilotListeners::Dependencies{
      .loop = loop_,
      .plugins = plugins_,
      .engine = engine_,
      .sites = sites_,
      .programs = programs_,
      .configured = options_.sites,
      .home = options_.home,
      .engine_name = engine_name_,
      .secret = std::move(secret),
      .most_links = options_.most_links,
      .history_folder = [this] { return history_ ? history_->folder() : std::string(); },
      .is_stopped = [this] { return end_.hears_nothing; },
      .received = [this](const auto& link,
                         const auto& message) { links_->received(link, message); },
      .closed = [this](const auto& link) { links_->closed(link); }});
  return listeners_->open();
}

void Runtime::make_writer(std::unique_ptr<store::Store> store) {
  store->records().begin_learning(kind_of_array, [] {
    return std::chrono::time_point_cast<Duration>(std::chrono::system_clock::now());
  });
  writer_ = std::make_unique<Writer>(
      loop_, std::move(store),
      [this](const std::string& text) { end_.when.ended("the store failed: " + text); },
      [this](std::optional<std::string> trouble) {
        if (trouble && !store_trouble_)
          spdlog::error("the store cannot be written: {}; nothing new is accepted until it can",
                        *trouble);
        if (!trouble) spdlog::info("the store can be written again");
        store_trouble_ = std::move(trouble);
      });
}

void Runtime::make_staging() {
  staging_ = std::make_unique<StagingOfTasks>(
      StagingOfTasks::Dependencies{.loop = loop_,
                                   .plugins = plugins_,
                                   .writer = *writer_,
                                   .engine = engine_,
                                   .sites = sites_,
                                   .programs = programs_,
                                   .home = options_.home,
                                   .feed = [this](const Event& event) { feed(event); }});
}

void Runtime::make_housekeeping() {
  housekeeping_ = std::make_unique<Housekeeping>(Housekeeping::Dependencies{
      .loop = loop_,
      .writer = *writer_,
      .engine = *engine_,
      .sites = sites_,
      .programs = programs_,
      .engine_name = engine_name_,
      .clock = clock_,
      .is_stopped = [this] { return end_.hears_nothing; },
      .cancel = [this](const CancelAllocation& action) { perform(action); },
      .forget = [this](const ForgetAllocation& action) { perform(action); }});
  learning_ = std::make_unique<Learning>(Learning::Dependencies{
      .loop = loop_, .writer = *writer_, .is_stopped = [this] { return end_.hears_nothing; }});
}

void Runtime::make_requests() {
  requests_ = std::make_unique<ClientRequests>(ClientRequests::Dependencies{
      .writer = *writer_,
      .engine = engine_,
      .after = [this](WaitsFor what, Writer::Then then) { after(what, std::move(then)); },
      .feed = [this](const Event& event) { feed(event); },
      // What it holds goes into the actions: they are noted as of an event without it.
      .feed_submit =
          [this](TasksSubmitted event) {
            perform_all(TasksSubmitted{}, engine_->on(std::move(event), now()));
          },
      .refuses = [this] { return store_refuses(); },
      .is_stopped = [this] { return end_.hears_nothing; },
      .given = [this](std::uint64_t highest) { store_watch_->given(highest); }});
}

/// What goes to pilots and comes from them; the listeners come later.
void Runtime::make_links() {
  links_ = std::make_unique<PilotLinks>(PilotLinks::Dependencies{
      .engine = engine_,
      .clock = clock_,
      .after = [this](WaitsFor what, Writer::Then then) { after(what, std::move(then)); },
      .feed = [this](const Event& event) { feed(event); },
      .feed_ends = [this](AttemptsEnded event) { staging_->feed_ends(std::move(event)); }});
  queue_watching_ = std::make_unique<QueueWatching>(loop_, plugins_, options_.home);
  lease_sender_ = std::make_unique<LeaseSender>(LeaseSender::Dependencies{
      .writer = *writer_,
      .engine = engine_,
      .sites = sites_,
      .staging = *staging_,
      .links = *links_,
      .site_of = [this](const PilotId& pilot) { return site_of(pilot); }});
}

void Runtime::feed(const Event& event) {
  if (end_.hears_nothing) return;
  perform_all(event, engine_->on(event, now()));
}

void Runtime::perform_all(const Event& event, Actions actions) {
  for (Action& action : actions) {
    std::vector<Noted> noted;
    if (history_) {
      history_->add(noted_before(event, action));
      noted = noted_after(action);
    }
    std::visit([this](auto& a) { perform(std::move(a)); }, action);
    if (history_) history_->add(std::move(noted));
  }
  arm_timer();
}

void Runtime::arm_timer() {
  const auto wake = engine_->next_wake();
  if (wake == timer_at_) return;
  timer_at_ = wake;
  if (!wake) {
    timer_.cancel();
    return;
  }
  timer_.expires_at(clock_.steady(*wake));
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (error) return;
    timer_at_.reset();
    feed(TimePassed{});
  });
}

bool Runtime::stop(StopAsked::Mode mode) {
  if (mode == StopAsked::Mode::Leave)
    end_.leaves = true;
  else if (end_.leaves)
    return false;
  // Whoever ends all wants nothing to stay; an engine that is started again finds them otherwise.
  if (mode == StopAsked::Mode::Now) end_.keeps_connections = false;
  feed(StopAsked{mode});
  return true;
}

}  // namespace hpcbatch
