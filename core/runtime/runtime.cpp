// The loop around the engine: events in, actions done, the timer set; and what clients ask for.
#include "runtime/runtime.hpp"

#include "loop/crash_point.hpp"
#include "sites/attempts.hpp"
#include "sites/machine.hpp"
#include "sites/workspace_memory.hpp"
#include "wire/key.hpp"
#include "wire/relay.hpp"
#include "wire/spool.hpp"
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

// sockaddr_un holds 108 bytes, the last of them zero.
constexpr std::size_t kLongestSocketPath = 100;

// History is kept so long; then it goes in slices that do not hold up the store's lane for long.
constexpr std::chrono::hours kHistory{24 * 30};
constexpr std::uint32_t kPruneArrays = 100;
constexpr std::chrono::seconds kPruneSoon{1};
constexpr std::chrono::seconds kPruneLater{3600};
constexpr std::chrono::milliseconds kSweepPause{100};
constexpr std::chrono::seconds kLookAtAddresses{60};
constexpr std::chrono::seconds kStoreHangs{30};

// A relay may be far away; files are seen when they are seen.
Patience by_relay(unsigned listener) {
  return {.listener = listener, .handshake = std::chrono::seconds(30)};
}
Patience by_spool(unsigned listener) {
  return {.listener = listener,
          .handshake = std::chrono::seconds(120),
          .silence = std::chrono::seconds(300)};
}

std::uint64_t random_seed() {
  std::uint64_t seed = 0;
  randombytes_buf(&seed, sizeof seed);
  return seed;
}

}  // namespace

Runtime::Runtime(asio::io_context& loop, const PluginHost& plugins, Options options,
                 std::function<void(std::string)> stop)
    : loop_(loop),
      plugins_(plugins),
      options_(std::move(options)),
      stop_(std::move(stop)),
      timer_(loop),
      prune_timer_(loop),
      address_timer_(loop) {}

Runtime::~Runtime() = default;

SiteHands* Runtime::site(const std::string& name) {
  const auto at = sites_.find(name);
  return at == sites_.end() ? nullptr : at->second.get();
}

std::string Runtime::way_of(const PilotId& pilot) const {
  const auto at = links_.find(pilot);
  return at == links_.end() ? std::string() : at->second->way;
}

Result<void> Runtime::open_sites() {
  for (Site& site : options_.sites) {
    auto hands =
        std::make_unique<SiteHands>(loop_, plugins_, site,
                                    programs_
                                        .try_emplace(site.name, options_.pilot_program,
                                                     workspace_memory(options_.home, site.name))
                                        .first->second);
    if (auto opened = hands->open(); !opened) return opened;
    site = hands->site();
    sites_.emplace(site.name, std::move(hands));
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
  try {
    secret_ = store->secret();
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
  writer_ = std::make_unique<Writer>(
      loop_, std::move(store),
      [this](const std::string& text) { stop_("the store failed: " + text); },
      [this](std::optional<std::string> trouble) {
        if (trouble && !store_trouble_)
          spdlog::error("the store cannot be written: {}; nothing new is accepted until it can",
                        *trouble);
        if (!trouble) spdlog::info("the store can be written again");
        store_trouble_ = std::move(trouble);
      });
  rows.check_beside([this](const std::string& damage) {
    asio::post(loop_, [this, damage] { store_is_damaged(damage); });
  });
  if (auto listening = listen(); !listening) return listening;
  for (const Site& site : options_.sites) open_ways(site);
  open_files(snapshot);
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
  renew_pilot_files();
  keep_ways();
  keep_addresses();
  feed(TimePassed{});
  prune_history(kPruneSoon);
  sweep_workspaces();
  return {};
}

std::optional<std::string> Runtime::store_refuses() const {
  const std::string store = options_.home + "/store.db";
  if (!store_damage_.empty())
    return fmt::format("the store {} is damaged: {}; the engine ends", store, store_damage_);
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
  if (!store_damage_.empty() || stopped_) return;
  store_damage_ = what;
  spdlog::critical("the store is damaged: {}; nothing new is accepted, and the engine ends", what);
  read(
      [what](store::Store& store) {
        store.note_damage(what);
        return true;
      },
      [](bool) {});
  stop(StopAsked::Mode::Leave);
}

void Runtime::back_up(const std::string& file, std::function<void(Result<void>)> answer) {
  read([file](store::Store& store) { return store.begin_copy(file); },
       [this, answer = std::move(answer)](const Result<void>& begun) mutable {
         if (!begun) return answer(begun);
         copy_on(std::move(answer));
       });
}

/// In between everything else goes on.
void Runtime::copy_on(std::function<void(Result<void>)> answer) {
  read([](store::Store& store) { return store.copy_more(); },
       [this, answer = std::move(answer)](const Result<bool>& whole) mutable {
         if (!whole) return answer(whole.error());
         if (*whole) return answer({});
         copy_on(std::move(answer));
       });
}

Result<void> Runtime::listen() {
  server_ = std::make_unique<LinkServer>(
      loop_, [this](const wire::PilotName& pilot) { return key_of(pilot); },
      [this](const auto& link, const wire::ToEngine& message) { received(link, message); },
      [this](const auto& link) { closed(link); }, options_.most_links);
  pilots_socket_ = options_.home + "/pilots";
  if (pilots_socket_.size() > kLongestSocketPath) {
    std::string directory = "/tmp/hpcbatch-XXXXXX";
    if (!::mkdtemp(directory.data()))
      return Error{Error::Kind::Rejected, "cannot make a directory for the pilots' socket in /tmp"};
    pilots_socket_ = directory + "/pilots";
  }
  if (auto listening = server_->listen_unix(pilots_socket_); !listening) return listening;

  direct_addresses_ =
      std::make_unique<DirectAddresses>(options_.home + "/ports", outward_addresses,
                                        [this](const std::string& address, std::uint16_t port) {
                                          return server_->listen_tcp(address, port);
                                        });
  direct_addresses_->look(options_.sites);
  return {};
}

void Runtime::keep_addresses() {
  address_timer_.expires_after(kLookAtAddresses);
  address_timer_.async_wait([this](const boost::system::error_code& error) {
    if (error || stopped_) return;
    if (direct_addresses_->look(options_.sites)) renew_pilot_files();
    keep_addresses();
  });
}

std::optional<wire::Key> Runtime::key_of(const wire::PilotName& pilot) const {
  if (!engine_) return std::nullopt;
  const AllocationEntry* entry = engine_->sites().find(AllocationId{pilot.allocation});
  if (!entry) return std::nullopt;
  wire::Key allocation{};
  crypto_generichash(allocation.data(), allocation.size(),
                     reinterpret_cast<const unsigned char*>(pilot.allocation.data()),
                     pilot.allocation.size(),
                     reinterpret_cast<const unsigned char*>(secret_.data()), secret_.size());
  return wire::pilot_key(allocation, pilot.rank);
}

wire::PilotFile Runtime::pilot_file(const AllocationId& id, const Site& site,
                                    const Shape& shape) const {
  wire::PilotFile file{.allocation = id.name, .site = site.name};
  crypto_generichash(file.key.data(), file.key.size(),
                     reinterpret_cast<const unsigned char*>(id.name.data()), id.name.size(),
                     reinterpret_cast<const unsigned char*>(secret_.data()), secret_.size());
  for (const LinkKind way : link_ways(site)) {
    using Kind = wire::Address::Kind;
    if (way == LinkKind::Unix) file.addresses.push_back({Kind::Unix, pilots_socket_, 0});
    if (way == LinkKind::Relay)
      file.addresses.push_back({Kind::Relay, wire::relay_file(site.workspace), 0});
    if (way == LinkKind::Spool)
      file.addresses.push_back({Kind::Spool, wire::spool_folder(site.workspace), 0});
    if (way == LinkKind::Direct) {
      for (wire::Address& address : direct_addresses_->of(site))
        file.addresses.push_back(std::move(address));
    }
  }
  file.workspace = site.workspace;
  file.scratch = site.scratch;
  if (history_) file.history = history_->folder();
  const Resources capacity = usable(shape);
  for (const auto& [name, amount] : capacity.entries())
    file.capacity.emplace_back(name, amount.ticks);
  const auto milliseconds = [](Duration d) {
    return std::chrono::duration_cast<std::chrono::milliseconds>(d);
  };
  file.walltime = milliseconds(shape.walltime);
  file.margin = milliseconds(end_margin(shape.walltime));
  file.idle = milliseconds(site.idle_after);
  return file;
}

void Runtime::open_ways(const Site& site) {
  const PilotProgram& program = programs_.at(site.name);
  if (has_way(site, LinkKind::Relay)) {
    relays_[site.name] = std::make_unique<RelayKeeper>(
        loop_, plugins_, site, program, [this, listener = ++listeners_](auto socket) {
          server_->adopt(std::move(socket), by_relay(listener));
        });
  }
  if (has_way(site, LinkKind::Spool)) {
    spools_[site.name] =
        std::make_unique<SpoolKeeper>(loop_, plugins_, site, program, "h" + engine_name_,
                                      [this, listener = ++listeners_](auto socket) {
                                        server_->adopt(std::move(socket), by_spool(listener));
                                      });
  }
}

void Runtime::keep_ways() {
  if (relays_.empty() && spools_.empty()) return;
  std::set<std::string> busy;
  for (const auto& [id, entry] : engine_->sites().allocations()) {
    if (entry.facts.state != AllocationState::Ended) busy.insert(entry.facts.site);
  }
  for (const auto& [name, relay] : relays_) relay->want(busy.contains(name));
  for (const auto& [name, spool] : spools_) spool->want(busy.contains(name));
}

void Runtime::renew_pilot_files() {
  for (const auto& [id, entry] : engine_->sites().allocations()) {
    SiteHands* hands = site(entry.facts.site);
    const Shape* shape = engine_->sites().shape_of(id);
    if (hands && shape && entry.facts.state != AllocationState::Ended) {
      hands->renew_pilot_file(id, pilot_file(id, hands->site(), *shape));
    }
  }
}

void Runtime::feed(const Event& event) {
  if (stopped_) return;
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

void Runtime::sweep_workspaces() {
  for (const auto& [name, hands] : sites_) {
    SiteHands& site = *hands;
    site.find_left("h" + engine_name_, [this, &site](std::vector<AllocationId> found) {
      std::erase_if(found, [&](const AllocationId& id) { return engine_->sites().find(id); });
      if (found.empty() || stopped_) return;
      std::vector<std::string> names;
      names.reserve(found.size());
      for (const AllocationId& id : found) names.push_back(id.name);
      // Whether one of them still runs, its site may have been away for long, the batch system
      // knows.
      site.poll("h" + engine_name_, std::move(names), {},
                [this, &site, found](Result<SiteHands::Listed> listed) {
                  if (listed) sweep_next(site, found, std::move(listed->jobs));
                });
    });
  }
}

/// One after the other, and only while the site has nothing better to do.
void Runtime::sweep_next(SiteHands& site, std::vector<AllocationId> found,
                         std::vector<BatchJob> jobs) {
  if (found.empty() || stopped_ || engine_->is_draining()) return;
  if (!site.is_busy()) {
    const AllocationId id = std::move(found.back());
    found.pop_back();
    const auto lives = std::find_if(jobs.begin(), jobs.end(), [&](const BatchJob& job) {
      return job.name == id.name && job.state != BatchState::Ended;
    });
    if (lives != jobs.end()) {
      perform(CancelAllocation{id, site.site().name, lives->number});
    } else if (!engine_->sites().find(id)) {
      spdlog::info("removing what allocation {} has left on {}", id.name, site.site().name);
      perform(ForgetAllocation{id, site.site().name});
    }
  }
  auto again = std::make_shared<asio::steady_timer>(loop_, kSweepPause);
  again->async_wait([this, again, &site, found = std::move(found),
                     jobs = std::move(jobs)](const boost::system::error_code& error) mutable {
    if (!error) sweep_next(site, std::move(found), std::move(jobs));
  });
}

void Runtime::prune_history(std::chrono::seconds later) {
  prune_timer_.expires_after(later);
  prune_timer_.async_wait([this](const boost::system::error_code& error) {
    if (error || stopped_) return;
    read(
        [limit = now() - kHistory](store::Store& store) {
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

std::vector<ArrayId> Runtime::unheld_dependencies(const std::vector<NewArray>& arrays) const {
  std::vector<ArrayId> unheld;
  for (const NewArray& array : arrays) {
    for (const Dependency& dependency : array.after) {
      if (dependency.sibling == 0 && !engine_->tasks().find(dependency.array))
        unheld.push_back(dependency.array);
    }
  }
  return unheld;
}

void Runtime::submit(Submission submission, SubmitAnswer answer) {
  crash_point("submit-received");
  const auto trouble = store_refuses();
  if (trouble || stopped_ || engine_->is_draining()) {
    answer(SubmitRefusal{
        trouble ? *trouble + "; nothing was submitted"
                : "the engine is being stopped; submit again when it has been started anew",
        false, true});
    return;
  }
  for (const auto& recipe : submission.recipes) {
    if (auto refusal = refusal_of_size(recipe))
      return answer(SubmitRefusal{"cannot queue the task: " + *refusal});
  }
  const RequestId request = new_request();
  submit_answers_[request.value] = std::move(answer);
  submissions_[request.value] = std::move(submission);
  feed_submission(request, {});
}

void Runtime::feed_submission(RequestId request, std::vector<EndedArray> ended) {
  Submission& submission = submissions_.at(request.value);
  std::vector<ArrayId> missing = unheld_dependencies(submission.arrays);
  std::set<ArrayId> known;
  for (const EndedArray& array : ended) known.insert(array.id);
  std::erase_if(missing, [&](ArrayId id) { return known.contains(id); });
  // What ended is looked up; what ends while we look is looked up in another round.  An id that is
  // nowhere is the engine's to refuse, by then with every fact there is.
  const bool looked_up =
      !ended.empty() && missing.size() == unheld_dependencies(submission.arrays).size();
  if (!missing.empty() && !looked_up) {
    read(
        [missing](store::Store& store) {
          std::vector<EndedArray> found;
          found.reserve(missing.size());
          for (const ArrayId id : missing)
            found.push_back(store.ended(id).value_or(EndedArray{id, {}, {}}));
          return found;
        },
        [this, request, ended](std::vector<EndedArray> found) mutable {
          ended.insert(ended.end(), found.begin(), found.end());
          feed_submission(request, std::move(ended));
        });
    return;
  }
  std::erase_if(ended, [](const EndedArray& e) { return e.ok.empty() && e.not_ok.empty(); });
  if (!stopped_) {
    TasksSubmitted event{request,
                         submission.client,
                         submission.key,
                         submission.content,
                         std::move(submission.arrays),
                         std::move(ended)};
    // What it holds has gone into the actions: they are noted as of an event without it.
    perform_all(TasksSubmitted{}, engine_->on(std::move(event), now()));
  }
  submissions_.erase(request.value);
}

void Runtime::cancel(std::vector<Selection> tasks, CountAnswer answer) {
  const RequestId request = new_request();
  count_answers_[request.value] = std::move(answer);
  feed(CancelAsked{request, std::move(tasks)});
}

void Runtime::hold(std::vector<Selection> tasks, bool hold, CountAnswer answer) {
  const RequestId request = new_request();
  count_answers_[request.value] = std::move(answer);
  feed(HoldAsked{request, std::move(tasks), hold});
}

void Runtime::retry(Retry asked, CountAnswer answer) {
  read([asked](store::Store& store) { return store.revivable(asked.tasks, asked.failed_only); },
       [this, asked, answer = std::move(answer)](store::Revivable found) mutable {
         // What ended while we looked has other results than those that were read: once more.
         const bool is_over = std::any_of(found.live.begin(), found.live.end(),
                                          [&](ArrayId id) { return !engine_->tasks().find(id); });
         if (is_over) return retry(std::move(asked), std::move(answer));
         const auto is_asked_for = [&](ArrayId id) {
           return std::any_of(asked.tasks.begin(), asked.tasks.end(),
                              [&](const Selection& one) { return one.array == id; });
         };
         for (RevivedArray& revived : found.arrays) {
           if (!asked.change.any() || !is_asked_for(revived.id)) continue;
           revived.array.needs = changed(std::move(revived.array.needs), asked.change);
           revived.has_new_needs = true;
         }
         const RequestId request = new_request();
         count_answers_[request.value] = std::move(answer);
         feed(RetryAsked{request, std::move(found.arrays), std::move(found.ended)});
       });
}

void Runtime::stop(StopAsked::Mode mode) {
  // Whoever ends all wants nothing to stay; an engine that is started again finds them otherwise.
  if (mode == StopAsked::Mode::Now) keeps_connections_ = false;
  feed(StopAsked{mode});
}

FollowerId Runtime::follow(Follower follower) {
  const TaskId task = follower.task;
  const FollowerId id = followers_.add(std::move(follower));
  if (const Lease* lease = engine_->pilots().lease(task)) ask_for_output(*lease);
  return id;
}

void Runtime::unfollow(FollowerId id) {
  const Follower* follower = followers_.find(id);
  if (!follower) return;
  const TaskId task = follower->task;
  followers_.remove(id);
  const Lease* lease = engine_->pilots().lease(task);
  if (!lease || followers_.any(task)) return;
  tell_pilot(lease->pilot, [attempt = lease->attempt](wire::ToPilot& message) {
    wire::Follow* follow = message.add_follow();
    to_wire(attempt, follow->mutable_attempt());
    follow->set_stop(true);
  });
}

void Runtime::ask_for_output(const Lease& lease) {
  tell_pilot(lease.pilot, [this, attempt = lease.attempt](wire::ToPilot& message) {
    wire::Follow* follow = message.add_follow();
    to_wire(attempt, follow->mutable_attempt());
    follow->set_out_offset(followers_.seen(attempt, 1));
    follow->set_err_offset(followers_.seen(attempt, 2));
  });
}

void Runtime::input(TaskId task, InputQueue::Piece piece) {
  if (!engine_->state_of(task)) {
    piece.then(false);
    return;
  }
  inputs_.push(task, std::move(piece));
  send_input(task);
}

}  // namespace hpcbatch
