#include "staging/site_files.hpp"

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

SiteFiles::Figures SiteFiles::Body::figures() const {
  Figures figures = figures_;
  figures.store_files = files_.stored().files;
  figures.store_bytes = files_.stored().bytes;
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
    return [hasher = hashing_.hasher, paths, progress](Deadline) {
      hasher->hash(*paths, kHashSlice, *progress);
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

bool SiteFiles::Body::renew(std::shared_ptr<ExchangeTools>& tools) {
  auto transport = make_transport_();
  if (!transport) {
    trouble(transport.error().text);
    return false;
  }
  tools = std::make_shared<ExchangeTools>();
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

}  // namespace hpcbatch
