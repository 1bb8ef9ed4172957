#include "staging/site_files.hpp"

#include "model/quantities.hpp"
#include "posix/doubling_pause.hpp"
#include "staging/site_files_body.hpp"
#include "wire/file_store.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <set>
#include <utility>

namespace hpcbatch {
namespace {

using namespace std::chrono_literals;

constexpr auto kFilesGrace = 10s;
constexpr std::chrono::milliseconds kFirstStageInPause{2000};
constexpr std::chrono::milliseconds kLongestStageInPause{60'000};
// A file system that answers nothing for so long is given up; hashing itself ends after a slice.
constexpr auto kHashLimit = 60s;
constexpr auto kHashSlice = 2s;
constexpr std::size_t kMostHashed = 4096;
constexpr auto kOldest = std::chrono::hours{24 * 30};
constexpr auto kLookAtAges = 1h;

}  // namespace

// --- the interface ------------------------------------------------------------------------------------

SiteFiles::SiteFiles(asio::io_context& loop, const PluginHost& plugins, const Site& site,
                     const PilotProgram& program)
    : SiteFiles(
          loop,
          [&plugins, name = site.transport, config = site.transport_config] {
            return plugins.transport(name, config);
          },
          site, program) {}

SiteFiles::SiteFiles(asio::io_context& loop, MakeTransport make_transport, const Site& site,
                     const PilotProgram& program)
    : body_(std::make_shared<Body>(loop, std::move(make_transport), site, program)) {
  body_->begin();
}

SiteFiles::~SiteFiles() = default;

void SiteFiles::stage_in(std::vector<Wanted> wanted, std::function<void(StageInResults)> answer) {
  body_->stage_in(std::move(wanted), std::move(answer));
}
std::optional<std::string> SiteFiles::place_of(const StageOwner& owner,
                                               const std::string& path) const {
  return body_->place_of(owner, path);
}
void SiteFiles::let_go(const StageOwner& owner) {
  body_->let_go(owner);
}
void SiteFiles::keep_all(bool all) {
  body_->keep_all(all);
}
void SiteFiles::forget_there(const std::string& place) {
  body_->forget_there(place);
}
void SiteFiles::take(std::vector<Taken> taken,
                     std::function<void(std::vector<std::optional<StageError>>)> answer) {
  body_->take(std::move(taken), std::move(answer));
}
void SiteFiles::drop(const std::vector<std::string>& there) {
  body_->drop(there);
}
SiteFiles::Figures SiteFiles::figures() const {
  return body_->figures();
}

// --- what is asked -------------------------------------------------------------------------------

SiteFiles::Body::Body(asio::io_context& loop, MakeTransport make_transport, Site site,
                      PilotProgram program)
    : loop_(loop),
      make_transport_(std::move(make_transport)),
      site_(std::move(site)),
      program_(std::move(program)),
      files_(site_.name, site_.store_limit),
      drops_(loop),
      age_timer_(loop),
      hashing_(loop, kFilesGrace),
      exchanging_(loop, kFilesGrace, [this] { return renew(exchanging_.tools); }),
      copying_(loop, kFilesGrace, [this] { return renew(copying_.tools); }) {}

void SiteFiles::Body::stage_in(std::vector<Wanted> wanted,
                               std::function<void(StageInResults)> answer) {
  std::map<StageOwner, std::vector<std::string>> by_owner;
  for (Wanted& one : wanted) {
    auto& paths = by_owner[one.owner];
    paths.insert(paths.end(), std::make_move_iterator(one.paths.begin()),
                 std::make_move_iterator(one.paths.end()));
  }
  if (by_owner.empty()) return;
  const std::uint64_t ticket = ++stage_ins_.last_ticket;
  stage_ins_.by_ticket[ticket] = {std::move(answer), by_owner.size()};
  for (const auto& [owner, paths] : by_owner) files_.want(owner, paths, ticket);
  wake();
}

void SiteFiles::Body::let_go(const StageOwner& owner) {
  files_.let_go(owner);
  wake();
}

void SiteFiles::Body::keep_all(bool all) {
  files_.keep_all(all);
  wake();
}

void SiteFiles::Body::forget_there(const std::string& place) {
  if (const std::string key = wire::key_of_place(relative(place)); !key.empty()) files_.missed(key);
}

std::optional<std::string> SiteFiles::Body::place_of(const StageOwner& owner,
                                                     const std::string& path) const {
  const auto key = files_.key_of(owner, path);
  if (!key) return std::nullopt;
  return there(wire::place_of_key(*key));
}

void SiteFiles::Body::take(std::vector<Taken> taken,
                           std::function<void(std::vector<std::optional<StageError>>)> answer) {
  auto request = std::make_shared<TakeRequest>();
  request->results.resize(taken.size());
  request->open = taken.size();
  request->answer = std::move(answer);
  if (taken.empty()) takes_.done.push_back(request);
  for (std::size_t at = 0; at < taken.size(); ++at) {
    TakeItem item{request, at, relative(taken[at].there), std::move(taken[at].here)};
    if (item.there.empty()) {
      finish(item, StageError{false, Failure::StageOutFailed,
                              fmt::format("cannot take {}: it is not below {} on {}",
                                          taken[at].there, site_.workspace, site_.name)});
    } else {
      takes_.waiting.push_back(std::move(item));
    }
  }
  wake();
}

void SiteFiles::Body::drop(const std::vector<std::string>& there) {
  for (const std::string& path : there) {
    std::string below = relative(path);
    if (wire::may_be_dropped(below)) {
      drops_.waiting.push_back(std::move(below));
    } else {
      spdlog::warn("the files of {}: {} is not removed: it is not below files or out of {}",
                   site_.name, path, site_.workspace);
    }
  }
  wake();
}

std::string SiteFiles::Figures::copy_in_words() const {
  if (!copy) return "";
  std::string text =
      fmt::format("{} is on its way {} the site, {} of {}", copy->path,
                  copy->is_sent ? "to" : "from", show_size(copy->moved), show_size(copy->size));
  const double seconds = std::chrono::duration<double>(copy->since).count();
  const auto moved = static_cast<double>(copy->moved - std::min(copy->moved, copy->begun_at));
  if (moved > 0 && seconds >= 1) {
    const double rate = moved / seconds;
    const std::chrono::duration<double> left(static_cast<double>(copy->size - copy->moved) / rate);
    text += fmt::format(", {} a second, about {} left", show_size(static_cast<std::uint64_t>(rate)),
                        show_duration(std::chrono::ceil<std::chrono::seconds>(left)));
  }
  if (const std::size_t behind = copy->is_sent ? to_send : to_take; behind > 0)
    text += fmt::format("; {} {} behind it", show_count(behind, "file"),
                        behind == 1 ? "waits" : "wait");
  return text;
}

SiteFiles::Figures SiteFiles::Body::figures() const {
  Figures figures = figures_;
  figures.store_files = files_.stored().files;
  figures.store_bytes = files_.stored().bytes;
  figures.to_send = files_.to_send() + copies_.unread.size();
  figures.to_take = takes_.waiting.size() + takes_.large.size();
  if (const auto& now = copies_.now; now && copying_.tools) {
    const CopyMeter& meter = copying_.tools->meter;
    figures.copy = {now->path,      now->is_sent, now->size,
                    meter.begun_at, meter.at,     std::chrono::steady_clock::now() - now->since};
  }
  return figures;
}

// --- turns ---------------------------------------------------------------------------------------

void SiteFiles::Body::wake() {
  if (std::exchange(is_woken_, true)) return;
  asio::post(loop_, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->turn();
  });
}

void SiteFiles::Body::turn() {
  is_woken_ = false;
  hash_more();
  exchange();
  copy();
  tell();
}

void SiteFiles::Body::tell() {
  std::map<std::uint64_t, StageInResults> by_ticket;
  for (StagedFiles::Decided& one : files_.take_decided())
    by_ticket[one.ticket].emplace_back(one.owner, std::move(one.error));
  std::vector<std::function<void()>> answers;
  for (auto& [ticket, staged] : by_ticket) {
    const auto at = stage_ins_.by_ticket.find(ticket);
    if (at == stage_ins_.by_ticket.end()) continue;
    at->second.owners -= std::min(at->second.owners, staged.size());
    answers.push_back([answer = at->second.answer, told = std::move(staged)] { answer(told); });
    if (at->second.owners == 0) stage_ins_.by_ticket.erase(at);
  }
  for (const auto& request : std::exchange(takes_.done, {}))
    answers.push_back([request] { request->answer(std::move(request->results)); });
  for (const auto& answer : answers) answer();
}

void SiteFiles::Body::finish(const TakeItem& item, std::optional<StageError> result) {
  item.request->results[item.place] = std::move(result);
  if (--item.request->open == 0) takes_.done.push_back(item.request);
}

void SiteFiles::Body::hash_more() {
  if (hashing_.is_busy) return;
  auto paths =
      std::make_shared<const std::vector<std::string>>(files_.take_unidentified(kMostHashed));
  if (paths->empty()) return;
  hashing_.is_busy = true;
  auto progress = std::make_shared<HashProgress>(paths->size());
  auto begin = [this, paths, progress]() -> CallLane::Work {
    return [hasher = hashing_.hasher, paths, read = copies_.read, progress](Deadline) {
      hasher->hash(*paths, read, kHashSlice, *progress);
    };
  };
  hashing_.calls.call(kHashLimit, std::move(begin), [this, paths, progress](bool given_up) {
    hashed(*paths, *progress, given_up);
  });
}

void SiteFiles::Body::hashed(const std::vector<std::string>& paths, const HashProgress& progress,
                             bool given_up) {
  hashing_.is_busy = false;
  const auto files = progress.files();
  for (std::size_t at = paths.size(); at-- > 0;) {
    std::optional<HashAnswer> answer = files[at].answer;
    if (!answer && given_up && files[at].stage == HashProgress::Stage::Begun) {
      answer = StageError{true, Failure::StageInFailed,
                          fmt::format("cannot read the input {}: its file system did not answer "
                                      "for {} seconds",
                                      paths[at], kHashLimit.count())};
    }
    if (const auto* unread = answer ? std::get_if<FileState>(&*answer) : nullptr) {
      copies_.unread.push_back({"", paths[at], *unread});
      // What lies there is to be known.
      wants_exchange_ = wants_exchange_ || figures_.exchanges == 0;
      continue;
    }
    if (answer) copies_.read.erase(paths[at]);
    files_.identified(paths[at], answer, clock_.now());
  }
  wake();
}

void SiteFiles::Body::pause(Pause& pause) {
  pause.is_on = true;
  pause.timer.expires_after(
      doubling_pause(kFirstStageInPause, kLongestStageInPause, pause.failures++));
  pause.timer.async_wait([weak = weak_from_this(), &pause](const boost::system::error_code& error) {
    const auto self = weak.lock();
    if (error || !self) return;
    pause.is_on = false;
    self->wake();
  });
}

void SiteFiles::Body::look_at_ages() {
  age_timer_.expires_after(kLookAtAges);
  age_timer_.async_wait([weak = weak_from_this()](const boost::system::error_code& error) {
    const auto self = weak.lock();
    if (error || !self) return;
    self->files_.drop_unused_since(self->clock_.now() - kOldest);
    self->wake();
    self->look_at_ages();
  });
}

bool SiteFiles::Body::renew(std::shared_ptr<FileTools>& tools) {
  auto transport = make_transport_();
  if (!transport) {
    trouble(transport.error().text);
    return false;
  }
  tools = std::make_shared<FileTools>();
  tools->transport = std::move(*transport);
  return true;
}

/// Once, until it is another one.
void SiteFiles::Body::trouble(const std::string& text) {
  if (figures_.trouble != text) spdlog::warn("the files of {}: {}", site_.name, text);
  figures_.trouble = text;
}

std::string SiteFiles::Body::relative(const std::string& path) const {
  if (!path.starts_with(site_.workspace + "/")) return {};
  std::string below = path.substr(site_.workspace.size() + 1);
  return wire::is_plain_path(below) ? below : std::string();
}

std::string SiteFiles::Body::full_disk(const wire::FilesReport::Done& done) const {
  const bool is_quota = done.trouble() == static_cast<std::uint32_t>(wire::FileTrouble::Quota);
  return fmt::format("{} on {}: {}: {}; make room there, or lower 'store' of the site",
                     is_quota ? "quota exceeded" : "disk full", site_.name, site_.workspace,
                     done.text());
}

// SiteFiles' large files, each by itself on a stream of their own.

namespace {

using namespace std::chrono_literals;

constexpr unsigned kMostTries = 5;

/// What was cut off by it goes on in the next try.
std::chrono::milliseconds limit_for(std::uint64_t size) {
  // A site may say any size.
  return std::min<std::chrono::milliseconds>(300s + std::chrono::seconds(size >> 22), 30 * 24h);
}

}  // namespace

void SiteFiles::Body::copy() {
  if (copying_.is_busy || copying_.pause.is_on || wants_exchange_) return;
  copies_.fetches_next = !copies_.fetches_next;
  if (copies_.fetches_next ? copy_here() || copy_there() : copy_there() || copy_here())
    copying_.is_busy = true;
}

void SiteFiles::Body::begin_copy(const std::string& path, bool is_sent, std::uint64_t size) {
  copying_.tools->meter.begin(0);
  copies_.now = {path, is_sent, size, std::chrono::steady_clock::now()};
}

void SiteFiles::Body::read_first(const std::string& path) {
  copies_.read.insert(path);
  files_.identified(path, std::nullopt, clock_.now());
}

/// One that was not read, where nothing speaks against it, or one whose key is known.
std::optional<StagedFiles::Sending> SiteFiles::Body::next_large() {
  while (!copies_.unread.empty() && listing_.is_complete) {
    StagedFiles::Sending file = std::move(copies_.unread.front());
    copies_.unread.pop_front();
    if (file.state.size <= free_bytes_ && files_.may_go_unread(file.path, file.state.size))
      return file;
    read_first(file.path);
    wake();
  }
  return files_.take_large();
}

bool SiteFiles::Body::copy_there() {
  if (figures_.exchanges == 0) return false;
  auto file = next_large();
  if (!file) return false;
  // Of one that was cut off a part is there already, and what is missing may well have room.
  if (file->state.size > free_bytes_ && !copies_.tries.contains(file->path)) {
    wire::FilesReport::Done full;
    full.set_trouble(static_cast<std::uint32_t>(wire::FileTrouble::DiskFull));
    full.set_text(
        fmt::format("{} bytes wanted, {} bytes free there", file->state.size, free_bytes_));
    files_.no_room(file->key, full_disk(full));
    // What is free now is known after it.
    wants_exchange_ = true;
    wake();
    return false;
  }
  if (!copying_.tools && !renew(copying_.tools)) {
    file->key.empty() ? copies_.unread.push_front(*file) : files_.not_sent(file->key);
    copy_failed(figures_.trouble);
    return false;
  }
  begin_copy(file->path, true, file->state.size);
  auto sent = std::make_shared<LargeSent>();
  auto begin = [this, sent, file = *file]() -> CallLane::Work {
    return [sent, file, tools = copying_.tools, program = program_,
            workspace = site_.workspace](Deadline deadline) {
      *sent = send_large(*tools, program, workspace, file, deadline);
    };
  };
  copying_.calls.call(limit_for(file->state.size), std::move(begin),
                      [this, sent, file = *file](bool given_up) {
                        copied_there(file, given_up ? LargeSent{} : *sent);
                      });
  return true;
}

void SiteFiles::Body::arrived(const StagedFiles::Sending& file, const LargeSent& sent) {
  figures_.bytes_sent += file.state.size;
  ++figures_.files_sent;
  if (!sent.hash) return files_.sent(file.key, clock_.now());
  const HashedFile read{file.state, *sent.hash};
  hashing_.hasher->remember(file.path, read);
  files_.arrived(wire::store_key(*sent.hash, wire::stored_name(file.path)), file.state,
                 clock_.now());
  files_.identified(file.path, read, clock_.now());
}

void SiteFiles::Body::copied_there(const StagedFiles::Sending& file, const LargeSent& sent) {
  copying_.is_busy = false;
  copies_.now.reset();
  wake();
  const bool is_unread = file.key.empty();
  const std::string received = wire::incoming_folder_of_key(received_mark(file));
  if (sent.is_changed) {
    copies_.tries.erase(file.path);
    drops_.waiting.push_back(received);
    return is_unread ? read_first(file.path) : files_.changed(file);
  }
  const auto trouble = static_cast<wire::FileTrouble>(sent.done.trouble());
  if (sent.result && trouble == wire::FileTrouble::None) {
    copying_.pause.failures = 0;
    copies_.trouble.clear();
    copies_.tries.erase(file.path);
    return arrived(file, sent);
  }
  const std::string text = sent.result ? sent.done.text() : sent.result.error().text;
  // A site that cannot be reached at all is waited for by exchanges.
  wants_exchange_ = true;
  const auto refuse = [&](const std::string& why) {
    copies_.tries.erase(file.path);
    drops_.waiting.push_back(received);
    const StageError error{true, Failure::StageInFailed, why};
    if (is_unread) return files_.identified(file.path, error, clock_.now());
    files_.refused(file.key, error);
  };
  if (trouble == wire::FileTrouble::DiskFull || trouble == wire::FileTrouble::Quota) {
    // What has arrived of it takes room.
    drops_.waiting.push_back(received);
    return is_unread ? read_first(file.path) : files_.no_room(file.key, full_disk(sent.done));
  }
  if (trouble == wire::FileTrouble::Refused)
    return refuse(fmt::format("cannot bring {} to {}: {}", file.path, site_.name, text));
  if (++copies_.tries[file.path] >= kMostTries)
    return refuse(fmt::format("cannot bring {} to {}, {} times: {}", file.path, site_.name,
                              kMostTries, text));
  if (is_unread) {
    copies_.unread.push_front(file);
  } else {
    files_.not_sent(file.key);
  }
  copy_failed(text);
}

bool SiteFiles::Body::copy_here() {
  if (takes_.large.empty()) return false;
  if (!copying_.tools && !renew(copying_.tools)) {
    copy_failed(figures_.trouble);
    return false;
  }
  auto fetch = std::make_shared<Fetch>(std::move(takes_.large.front()));
  takes_.large.pop_front();
  begin_copy(fetch->file.here, false, fetch->file.size);
  auto fetched = std::make_shared<LargeFetched>();
  auto begin = [this, fetched, file = fetch->file]() -> CallLane::Work {
    return [fetched, file, tools = copying_.tools, program = program_,
            workspace = site_.workspace](Deadline deadline) {
      *fetched = fetch_large(*tools, program, workspace, file, deadline);
    };
  };
  copying_.calls.call(limit_for(fetch->file.size), std::move(begin),
                      [this, fetched, fetch](bool given_up) {
                        copied_here(std::move(*fetch), given_up ? LargeFetched{} : *fetched);
                      });
  return true;
}

void SiteFiles::Body::copied_here(Fetch fetch, const LargeFetched& fetched) {
  copying_.is_busy = false;
  copies_.now.reset();
  wake();
  if (fetched.error) return finish(fetch.item, fetched.error);
  if (fetched.result) {
    copying_.pause.failures = 0;
    copies_.trouble.clear();
    figures_.bytes_taken += fetch.file.size;
    ++figures_.files_taken;
    return finish(fetch.item, std::nullopt);
  }
  wants_exchange_ = true;
  const std::string& text = fetched.result.error().text;
  if (++fetch.item.tries >= kMostTries)
    return finish(fetch.item,
                  StageError{true, Failure::StageOutFailed,
                             fmt::format("cannot take {} from {}, {} times: {}", fetch.file.there,
                                         site_.name, kMostTries, text)});
  // It may be gone or another one by now: its size is asked for again.
  takes_.waiting.push_back(std::move(fetch.item));
  copy_failed(text);
}

void SiteFiles::Body::copy_failed(const std::string& why) {
  if (copies_.trouble != why) spdlog::warn("the files of {}: {}", site_.name, why);
  copies_.trouble = why;
  pause(copying_.pause);
}

}  // namespace hpcbatch
