#include "notify/notices.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <variant>

#include <pwd.h>
#include <unistd.h>

namespace hpcbatch {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kMostAtOnce = 1000;
constexpr auto kLongest = 60s;
/// Nobody wants more mails than that.
constexpr auto kBetweenMails = 60s;
constexpr auto kFirstPause = 60s, kLongestPause = 3600s;
/// With the pauses between them: most of a day.
constexpr std::uint32_t kMostTries = 24;

std::chrono::seconds pause_after(std::uint32_t failures) {
  return std::min<std::chrono::seconds>(kLongestPause,
                                        kFirstPause * (1U << std::min(failures - 1, 6U)));
}

std::string name_of_user() {
  const passwd* entry = ::getpwuid(::geteuid());
  return entry ? entry->pw_name : std::to_string(::geteuid());
}

}  // namespace

Notices::Notices(Runtime& runtime) : runtime_(runtime), own_mailbox_(name_of_user()) {
  runtime_.on_ended([this](ArrayId array) { ended(array); });
  runtime_.on_notice([this](const store::Notice& notice) { add(notice); });
}

Notices::~Notices() {
  for (auto& [target, carrier] : carriers_)
    if (carrier.delivery) carrier.delivery->leave();
}

void Notices::begin() {
  runtime_.read([](store::Store& store) { return store.notices(); },
                [this](const std::vector<store::Notice>& notices) {
                  for (const store::Notice& notice : notices) add(notice);
                });
}

bool Notices::is_quiet() const {
  return std::all_of(carriers_.begin(), carriers_.end(), [](const auto& one) {
    return one.second.waiting.empty() && !one.second.is_busy;
  });
}

void Notices::add(const store::Notice& notice) {
  if (has_ended(notice)) return carry(notice);
  open_.emplace(notice.first, notice);
}

bool Notices::has_ended(const store::Notice& notice) const {
  const auto& live = runtime_.engine().tasks().arrays();
  const auto at = live.lower_bound(notice.first);
  return at == live.end() || at->first > notice.last;
}

void Notices::ended(ArrayId array) {
  // Submissions do not overlap: that which began last below it is the only one that can hold it.
  auto at = open_.upper_bound(array);
  if (at == open_.begin()) return;
  const auto [begin, end] = open_.equal_range(std::prev(at)->first);
  if (array > begin->second.last || !has_ended(begin->second)) return;
  const std::vector<std::pair<ArrayId, store::Notice>> all(begin, end);
  open_.erase(begin, end);
  for (const auto& [first, notice] : all) carry(notice);
}

void Notices::carry(const store::Notice& notice) {
  const auto [at, is_new] = carriers_.try_emplace(notice.target, runtime_.loop());
  if (is_new) {
    const auto parsed = parse_notify_target(notice.target);
    // What an engine before this one has taken is known to it.
    if (const auto* target = std::get_if<NotifyTarget>(&parsed)) at->second.target = *target;
    if (at->second.target.kind == NotifyTarget::Kind::Mail && at->second.target.to.empty())
      at->second.target.to = own_mailbox_;
  }
  at->second.waiting.push_back(notice);
  go(notice.target);
}

void Notices::go(const std::string& target) {
  const auto at = carriers_.find(target);
  if (at == carriers_.end() || at->second.is_busy || at->second.is_paused) return;
  Carrier& carrier = at->second;
  if (carrier.waiting.empty()) {
    carriers_.erase(at);
    return;
  }
  carrier.is_busy = true;
  Batch batch;
  while (!carrier.waiting.empty() && batch.size() < kMostAtOnce) {
    batch.push_back(std::move(carrier.waiting.front()));
    carrier.waiting.pop_front();
  }
  runtime_.read(
      [batch](store::Store& store) {
        std::vector<std::optional<store::SubmissionEnd>> ends;
        for (const store::Notice& notice : batch)
          ends.push_back(store.history().end_of(notice.first, notice.last));
        return ends;
      },
      [this, target, batch](const std::vector<std::optional<store::SubmissionEnd>>& ends) {
        send(target, batch, ends);
      });
}

void Notices::send(const std::string& target, const Batch& batch,
                   const std::vector<std::optional<store::SubmissionEnd>>& ends) {
  Carrier& carrier = carriers_.at(target);
  std::vector<store::SubmissionEnd> told;
  for (const auto& end : ends)
    // One that was forgotten after its time is told to nobody.
    if (end && (!carrier.target.only_failed || end->totals.failed != 0)) told.push_back(*end);
  if (told.empty() || carrier.target.kind == NotifyTarget::Kind::Nobody)
    return sent(target, batch, std::nullopt);
  carrier.delivery = std::make_shared<Delivery>(runtime_.loop());
  carrier.delivery->start(
      parcel_for(carrier.target, told), kLongest,
      [this, target, batch](const std::optional<std::string>& why) { sent(target, batch, why); });
}

void Notices::sent(const std::string& target, const Batch& batch,
                   const std::optional<std::string>& why) {
  Carrier& carrier = carriers_.at(target);
  const bool was_carried = carrier.delivery != nullptr;
  carrier.delivery.reset();
  carrier.is_busy = false;
  if (!why) {
    carrier.failures = 0;
    forget(batch, was_carried ? show_target(carrier.target) : "");
    const bool is_mail = carrier.target.kind == NotifyTarget::Kind::Mail;
    return pause(target, was_carried && is_mail ? kBetweenMails : 0s);
  }
  if (++carrier.failures >= kMostTries) {
    spdlog::error("cannot tell {} of the end of {}: {}; given up after {} tries",
                  show_target(carrier.target), batch.front().first.value, *why, kMostTries);
    carrier.failures = 0;
    forget(batch, "");
    return pause(target, 0s);
  }
  spdlog::warn("cannot tell {} of the end of {}: {}; trying again in {} s",
               show_target(carrier.target), batch.front().first.value, *why,
               pause_after(carrier.failures).count());
  carrier.waiting.insert(carrier.waiting.begin(), batch.begin(), batch.end());
  pause(target, pause_after(carrier.failures));
}

void Notices::pause(const std::string& target, std::chrono::seconds time) {
  Carrier& carrier = carriers_.at(target);
  if (time == 0s) return go(target);
  carrier.is_paused = true;
  carrier.timer.expires_after(time);
  carrier.timer.async_wait([this, target](const boost::system::error_code& error) {
    if (error) return;
    carriers_.at(target).is_paused = false;
    go(target);
  });
}

void Notices::forget(const Batch& batch, const std::string& told) {
  runtime_.read(
      [batch](store::Store& store) {
        store.forget(batch);
        return true;
      },
      [told, first = batch.front().first](bool) {
        if (!told.empty()) spdlog::info("told {} of the end of {}", told, first.value);
      });
}

}  // namespace hpcbatch
