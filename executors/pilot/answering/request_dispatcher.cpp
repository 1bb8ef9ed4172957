#include "pilot/answering/request_dispatcher.hpp"

#include "pilot/policy/verdict.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace hpcbatch::pilot {
namespace {

using namespace std::chrono_literals;

constexpr unsigned kDeathsOfACulprit = 3;
constexpr unsigned kStartsBeforeGivingUp = 3;
constexpr Duration kPauseOfStarts = 1s;
// Others work: there is no room for one more.
constexpr Duration kLongPauseOfStarts = 30s;
// A worker that goes on with what nobody waits for, and says nothing, is ended.
constexpr Duration kStopsWithin = 10s;
// With signs of life a start may take that many times what it may be silent.
constexpr int kTimesSilentStart = 10;

}  // namespace

RequestDispatcher::RequestDispatcher(DispatchTerms terms, Time now) : terms_(terms) {
  if (terms_.waits_for_devices) {
    was_ready_ = true;
    actions_.emplace_back(Ready{});
  } else {
    begin_worker("", now);
  }
}

void RequestDispatcher::begin_worker(const std::string& devices, Time now) {
  const Worker worker = next_worker_++;
  workers_[worker] = {.devices = devices, .since = now, .begun = now, .batch = {}};
  actions_.emplace_back(StartWorker{worker, devices});
}

void RequestDispatcher::wanted(Request request, const std::string& devices, std::uint64_t memory) {
  requests_[request] = {.devices = devices, .memory = memory, .at = {}};
  waiting_.push_back(request);
}

void RequestDispatcher::cancelled(Request request, Time now) {
  const auto at = requests_.find(request);
  if (at == requests_.end()) return;
  std::erase(waiting_, request);
  if (at->second.at) {
    WorkerState& its = workers_.at(*at->second.at);
    its.is_cancelled = true;
    its.since = now;
    actions_.emplace_back(Cancel{*at->second.at, request});
  }
  requests_.erase(at);
}

void RequestDispatcher::not_started(Worker worker, const std::string& why, Time now) {
  workers_.erase(worker);
  start_failed(why, now);
}

void RequestDispatcher::start_failed(const std::string& why, Time now) {
  // A first start that fails is told at once: whoever waits for it can do without.
  if (!was_ready_ || (++starts_failed_ >= kStartsBeforeGivingUp && workers_.empty())) {
    given_up_ = true;
    for (const Request request : std::exchange(waiting_, {})) {
      actions_.emplace_back(Plain{request, why});
      requests_.erase(request);
    }
    actions_.emplace_back(GiveUp{});
    return;
  }
  not_before_ =
      now + (starts_failed_ < kStartsBeforeGivingUp ? kPauseOfStarts : kLongPauseOfStarts);
}

void RequestDispatcher::lives(Worker worker, Time now) {
  const auto at = workers_.find(worker);
  if (at != workers_.end() && at->second.state == State::Starting) at->second.since = now;
}

void RequestDispatcher::ready(Worker worker, Time now) {
  const auto at = workers_.find(worker);
  if (at == workers_.end() || at->second.state != State::Starting) return;
  at->second.state = State::Ready;
  at->second.since = now;
  starts_failed_ = 0;
  if (!std::exchange(was_ready_, true)) actions_.emplace_back(Ready{});
}

void RequestDispatcher::heard(Worker worker, Time now) {
  const auto at = workers_.find(worker);
  if (at != workers_.end()) at->second.since = now;
}

void RequestDispatcher::answered(Worker worker, Request request, Time now) {
  const auto at = workers_.find(worker);
  if (at == workers_.end() || at->second.batch.erase(request) == 0) return;
  WorkerState& its = at->second;
  requests_.erase(request);
  ++its.served;
  its.since = now;
  if (!its.batch.empty()) return;
  its.state = State::Ready;
  its.is_cancelled = false;
}

void RequestDispatcher::renews(Worker worker, Time now) {
  const auto at = workers_.find(worker);
  if (at == workers_.end()) return;
  const WorkerState its = std::move(at->second);
  workers_.erase(at);
  actions_.emplace_back(EndWorker{worker, "what it has loaded has changed"});
  // It says so before it begins: nothing of them was done.
  for (auto one = its.batch.rbegin(); one != its.batch.rend(); ++one) {
    const auto request = requests_.find(*one);
    if (request == requests_.end()) continue;
    request->second.at.reset();
    waiting_.push_front(*one);
  }
  begin_worker(its.devices, now);
}

void RequestDispatcher::died(Worker worker, const std::string& why, Time now) {
  const auto at = workers_.find(worker);
  if (at == workers_.end()) return;
  const WorkerState its = std::move(at->second);
  workers_.erase(at);
  lost(its, why, now);
}

/// It is gone, or told to go.
void RequestDispatcher::lost(const WorkerState& its, const std::string& why, Time now) {
  if (its.state == State::Starting) return start_failed(why + " before it was ready", now);
  take_back(its.batch, why);
}

void RequestDispatcher::take_back(const std::set<Request>& batch, const std::string& why) {
  const bool was_alone = batch.size() == 1;
  for (auto one = batch.rbegin(); one != batch.rend(); ++one) {
    const auto at = requests_.find(*one);
    if (at == requests_.end()) continue;  // cancelled
    Known& request = at->second;
    request.at.reset();
    request.alone = true;
    if (was_alone && ++request.deaths >= kDeathsOfACulprit) {
      actions_.emplace_back(Fail{*one, "its service died over it " +
                                           std::to_string(kDeathsOfACulprit) + " times: " + why});
      requests_.erase(at);
      continue;
    }
    actions_.emplace_back(Tell{*one, "its service died (" + why + "): it is tried again"});
    waiting_.push_front(*one);
  }
}

/// What its requests were granted is theirs to use, by whichever process.
std::uint64_t RequestDispatcher::bound_of(const WorkerState& its) const {
  std::uint64_t granted = 0;
  for (const Request request : its.batch) {
    if (const auto at = requests_.find(request); at != requests_.end())
      granted += at->second.memory;
  }
  return std::max(terms_.memory, granted);
}

void RequestDispatcher::uses(Worker worker, std::uint64_t memory, Time now) {
  const auto at = workers_.find(worker);
  if (at == workers_.end() || terms_.memory == 0) return;
  const std::uint64_t bound = bound_of(at->second);
  if (memory <= bound) return;
  if (at->second.state == State::Ready) {
    at->second.is_too_large = true;
    return;
  }
  const std::string why =
      "it used " + in_words(memory) + ", more than the " + in_words(bound) + " that it may";
  actions_.emplace_back(EndWorker{worker, why});
  died(worker, why, now);
}

Time RequestDispatcher::deadline_of(const WorkerState& its) const {
  return std::min(its.since + terms_.start, its.begun + kTimesSilentStart * terms_.start);
}

void RequestDispatcher::watch(Worker worker, WorkerState& its, Time now,
                              std::vector<Worker>& over) {
  std::string why;
  if (its.state == State::Starting && terms_.start > Duration{} && now >= deadline_of(its)) {
    why = "it was not ready in time";
  } else if (its.state == State::Working && its.is_cancelled && now >= its.since + kStopsWithin) {
    why = "it does not stop what nobody waits for";
  } else if (its.state == State::Ready) {
    const bool is_used_up = terms_.requests != 0 && its.served >= terms_.requests;
    const bool is_idle = waiting_.empty() && terms_.idle > Duration{} &&
                         now >= its.since + terms_.idle && workers_.size() - over.size() > 1;
    if (is_used_up || its.is_too_large) why = "it is renewed";
    if (is_idle) why = "nobody wants it";
  }
  if (why.empty()) return;
  actions_.emplace_back(EndWorker{worker, why});
  over.push_back(worker);
}

void RequestDispatcher::hand_over(Worker worker, WorkerState& its, Time now) {
  std::vector<Request> batch;
  for (const Request request : waiting_) {
    const Known& known = requests_.at(request);
    if (known.devices != its.devices) continue;
    if (known.alone && !batch.empty()) continue;
    batch.push_back(request);
    if (known.alone || batch.size() >= std::max<std::size_t>(terms_.batch, 1)) break;
  }
  if (batch.empty()) return;
  for (const Request request : batch) {
    std::erase(waiting_, request);
    requests_.at(request).at = worker;
  }
  its.batch = {batch.begin(), batch.end()};
  its.state = State::Working;
  its.since = now;
  its.is_cancelled = false;
  actions_.emplace_back(HandOver{worker, std::move(batch)});
}

/// Workers for what waits, of which those that start take some.
void RequestDispatcher::staff(Time now) {
  if (not_before_ && now < *not_before_) return;
  not_before_.reset();
  const std::size_t batch = std::max<std::size_t>(terms_.batch, 1);
  std::map<std::string, std::size_t> waiting, there, starting;
  for (const Request request : waiting_) ++waiting[requests_.at(request).devices];
  for (const auto& [worker, its] : workers_) {
    ++there[its.devices];
    if (its.state == State::Starting) starting[its.devices] += batch;
  }
  for (const auto& [devices, count] : waiting) {
    for (std::size_t taken = starting[devices]; taken < count; taken += batch) {
      if (terms_.instances != 0 && there[devices] >= terms_.instances) break;
      ++there[devices];
      begin_worker(devices, now);
    }
  }
}

std::vector<RequestDispatcher::Action> RequestDispatcher::decide(Time now) {
  if (given_up_) return std::exchange(actions_, {});
  std::vector<Worker> over;
  for (auto& [worker, its] : workers_) watch(worker, its, now, over);
  for (const Worker worker : over) {
    const WorkerState its = std::move(workers_.at(worker));
    workers_.erase(worker);
    lost(its, "it was ended", now);
    if (given_up_) return std::exchange(actions_, {});
  }
  for (auto& [worker, its] : workers_) {
    if (its.state == State::Ready) hand_over(worker, its, now);
  }
  staff(now);
  return std::exchange(actions_, {});
}

std::optional<Time> RequestDispatcher::next() const {
  if (!actions_.empty()) return Time{};
  std::optional<Time> earliest;
  const auto consider = [&earliest](Time time) {
    if (!earliest || time < *earliest) earliest = time;
  };
  if (not_before_ && !waiting_.empty()) consider(*not_before_);
  for (const auto& [worker, its] : workers_) {
    if (its.state == State::Starting && terms_.start > Duration{}) consider(deadline_of(its));
    if (its.state == State::Working && its.is_cancelled) consider(its.since + kStopsWithin);
    if (its.state == State::Ready && terms_.idle > Duration{} && workers_.size() > 1)
      consider(its.since + terms_.idle);
  }
  return earliest;
}

}  // namespace hpcbatch::pilot
