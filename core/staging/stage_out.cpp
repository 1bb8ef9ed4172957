#include "staging/stage_out.hpp"

#include "links/recipe.hpp"
#include "posix/doubling_pause.hpp"
#include "posix/files.hpp"
#include "staging/site_view.hpp"
#include "wire/outputs.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include <fcntl.h>

namespace hpcbatch {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::milliseconds kFirstFetchPause{2000};
constexpr std::chrono::milliseconds kLongestFetchPause{60'000};
constexpr const char* kStopped = "cancelled by user while its outputs were fetched";
constexpr unsigned kLateFiles = 6;  // tries, two minutes

/// What a person can mend while the outputs wait on the site.
bool may_pass(const std::string& why) {
  for (const int error : {ENOSPC, EDQUOT, ESTALE, EIO}) {
    if (why.find(std::strerror(error)) != std::string::npos) return true;
  }
  return false;
}

}  // namespace

StageOut::StageOut(asio::io_context& loop, Writer& writer, std::string folder, IsCurrent is_current,
                   Then then, Delayed delayed)
    : loop_(loop),
      writer_(writer),
      folder_(std::move(folder)),
      is_current_(std::move(is_current)),
      then_(std::move(then)),
      delayed_(std::move(delayed)) {
  // What an engine that was killed had under way is fetched again.
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
  for (auto& lane : lanes_) lane = std::make_unique<Lane>();
}

StageOut::~StageOut() {
  *lives_ = false;
}

std::string StageOut::folder_of(const Under& under) const {
  const AttemptId& attempt = under.end.attempt;
  return fmt::format("{}/{}-{}.{}-{:x}", folder_, to_string(under.pilot), attempt.task.array.value,
                     attempt.task.index, attempt.epoch);
}

void StageOut::add(const Site& site, SiteFiles& files, const PilotId& pilot, AttemptEnd end) {
  const AttemptId attempt = end.attempt;
  if (under_way_.contains(attempt)) return;
  under_way_.emplace(
      attempt,
      Under{.site = &site, .files = &files, .pilot = pilot, .end = std::move(end), .outputs = {}});
  writer_.read(
      [attempt](store::Store& store) {
        wire::Start start;
        if (const auto recipe = store.history().recipe(attempt.task.array)) {
          start = start_from_bytes(recipe->bytes);
          fill(start, filled_in(recipe->bytes), attempt.task,
               [&] { return store.history().item(attempt.task); });
        }
        return start;
      },
      [this, lives = lives_, attempt](const wire::Start& recipe) {
        if (!*lives) return;
        const auto at = under_way_.find(attempt);
        if (at == under_way_.end()) return;
        at->second.outputs = outputs_to_fetch(recipe, at->second.end.published);
        fetch(attempt);
      });
}

std::vector<AttemptId> StageOut::of(const AllocationId& allocation) const {
  std::vector<AttemptId> all;
  for (const auto& [attempt, under] : under_way_) {
    if (under.pilot.allocation == allocation) all.push_back(attempt);
  }
  return all;
}

void StageOut::stop(const AttemptId& attempt) {
  asio::post(loop_, [this, lives = lives_, attempt] {
    if (!*lives) return;
    const auto at = under_way_.find(attempt);
    if (at == under_way_.end()) return;
    at->second.is_stopped = true;
    if (!at->second.is_published) done(attempt, Failure::Cancelled, kStopped);
  });
}

void StageOut::clear(const std::string& folder) {
  next_lane().run([folder] {
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
  });
}

void StageOut::fetch(const AttemptId& attempt) {
  const Under& under = under_way_.at(attempt);
  const std::string here = folder_of(under);
  std::error_code error;
  std::filesystem::create_directories(here, error);
  if (error) return again(attempt, fmt::format("cannot make {}: {}", here, error.message()));
  std::vector<SiteFiles::Taken> taken;
  const std::string there = folder_of_outputs(*under.site, under.pilot, attempt);
  for (const wire::Output& output : under.outputs)
    taken.push_back({there + "/" + output.staged(), here + "/" + output.staged()});
  under.files->take(std::move(taken), [this, lives = lives_, attempt, here](const auto& errors) {
    if (*lives) fetched(attempt, here, errors);
  });
}

void StageOut::fetched(const AttemptId& attempt, const std::string& folder,
                       const std::vector<std::optional<StageError>>& errors) {
  const auto at = under_way_.find(attempt);
  if (at == under_way_.end()) return clear(folder);
  for (std::size_t i = 0; i < errors.size(); ++i) {
    if (!errors[i]) continue;
    // A shared file system shows on one node late what was written on another.
    const bool may_come =
        errors[i]->failure == Failure::OutputMissing && at->second.failures < kLateFiles;
    if (errors[i]->can_be_tried_again || may_come) return again(attempt, errors[i]->text);
    return done(attempt, errors[i]->failure, errors[i]->text);
  }
  publish(attempt);
}

void StageOut::publish(const AttemptId& attempt) {
  // Another attempt may have its turn by now: then the engine only has to hear of this one.
  if (!is_current_(attempt)) return done(attempt, Failure::Ok, "");
  Under& under = under_way_.at(attempt);
  under.is_published = true;
  next_lane().run([this, &loop = loop_, lives = lives_, attempt, folder = folder_of(under),
                   outputs = under.outputs] {
    auto refusal = wire::publish_outputs(folder, outputs);
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
    asio::post(loop, [this, lives, attempt, refusal = std::move(refusal)] {
      if (!*lives) return;
      if (refusal && may_pass(refusal->message)) return again(attempt, refusal->message);
      done(attempt, refusal ? refusal->failure : Failure::Ok, refusal ? refusal->message : "");
    });
  });
}

void StageOut::again(const AttemptId& attempt, const std::string& why) {
  Under& under = under_way_.at(attempt);
  under.is_published = false;
  if (under.is_stopped) return done(attempt, Failure::Cancelled, kStopped);
  const auto pause = doubling_pause(kFirstFetchPause, kLongestFetchPause, under.failures++);
  spdlog::warn("cannot stage out the outputs of {} from {}: {}; trying again in {} s",
               to_string(attempt.task), under.site->name, why, pause.count() / 1000);
  delayed_(attempt, why);
  auto timer = std::make_shared<asio::steady_timer>(loop_, pause);
  timer->async_wait([this, lives = lives_, attempt, timer](const boost::system::error_code& error) {
    if (!error && *lives && under_way_.contains(attempt)) fetch(attempt);
  });
}

void StageOut::done(const AttemptId& attempt, Failure failure, std::string message) {
  auto node = under_way_.extract(attempt);
  if (node.empty()) return;
  Under under = std::move(node.mapped());
  if (!under.is_published) clear(folder_of(under));
  Outcome& outcome = under.end.outcome;
  if (failure != Failure::Ok && outcome.failure == Failure::Ok) {
    outcome.failure = failure;
    outcome.message = std::move(message);
  } else if (failure != Failure::Ok) {
    outcome.message += (outcome.message.empty() ? "" : "; ") + message;
  }
  left_[attempt] = {under.files, under.pilot.allocation,
                    folder_of_outputs(*under.site, under.pilot, attempt)};
  under.end.stage_out = false;
  then_(under.pilot, std::move(under.end));
}

void StageOut::forget_all(const AllocationId& allocation) {
  std::erase_if(left_, [&](const auto& one) { return one.second.allocation == allocation; });
}

void StageOut::forget(const AttemptId& attempt) {
  const auto node = left_.extract(attempt);
  if (!node.empty()) node.mapped().files->drop({node.mapped().folder});
}

namespace {

namespace fs = std::filesystem;

StageError cannot(const std::string& path, int error) {
  const bool may_pass = error == ENOSPC || error == EDQUOT || error == EIO || error == ESTALE ||
                        error == ETIMEDOUT || error == EMFILE || error == ENFILE || error == ENOMEM;
  return {may_pass, Failure::StageOutFailed,
          fmt::format("cannot write {} on this machine: {}", path, std::strerror(error))};
}

}  // namespace

std::optional<StageError> make_folder_of(const std::string& path) {
  std::error_code error;
  fs::create_directories(fs::path(path).parent_path(), error);
  if (error) return cannot(path, error.value());
  return std::nullopt;
}

std::optional<StageError> write_whole_file(const std::string& path, std::string_view bytes,
                                           std::uint32_t mode) {
  if (auto no_folder = make_folder_of(path)) return no_folder;
  // It is synced where it is published.
  const Replacement how{
      .mode = static_cast<mode_t>(mode), .against_umask = true, .hidden = true, .sync = false};
  const int error = replace_file(AT_FDCWD, path, bytes, how);
  if (error != 0) return cannot(path, error);
  return std::nullopt;
}

}  // namespace hpcbatch
