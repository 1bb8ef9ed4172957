// SiteFiles' exchanges: what goes into one, and what comes of it.
#include "staging/site_files_body.hpp"
#include "wire/file_store.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace hpcbatch {
namespace {

using namespace std::chrono_literals;

constexpr auto kExchangeLimit = 240s;
// The program there begins nothing more after that.
constexpr std::chrono::milliseconds kWorkLimit{90'000};
constexpr auto kDropsWait = 5s;
constexpr std::uint64_t kLeastBytes = std::uint64_t{256} << 10;
constexpr std::size_t kMostFiles = 1000;
// More than are under way: the next is made while they are.
constexpr std::size_t kMostFlights = 6;
constexpr std::size_t kMostQuestions = 20'000;
constexpr std::uint32_t kMostListed = 20'000;

using wire::FileTrouble;

FileTrouble trouble_of(const wire::FilesReport::Done& done) {
  return static_cast<FileTrouble>(done.trouble());
}

template <class Item>
void put_back(std::deque<Item>& queue, std::vector<Item>& items, std::size_t from) {
  from = std::min(from, items.size());
  queue.insert(queue.begin(),
               std::make_move_iterator(items.begin() + static_cast<std::ptrdiff_t>(from)),
               std::make_move_iterator(items.end()));
}

std::size_t heard_of(int answers, std::size_t asked) {
  return std::min(static_cast<std::size_t>(answers), asked);
}

}  // namespace

SiteFiles::Body::Flight SiteFiles::Body::load() {
  Flight flight;
  flight.questions = files_.take_questions(kMostQuestions);
  flight.small = files_.take_small(most_bytes_, kMostFiles);
  const auto takes = static_cast<std::ptrdiff_t>(std::min(takes_.waiting.size(), kMostFiles));
  flight.takes.assign(takes_.waiting.begin(), takes_.waiting.begin() + takes);
  takes_.waiting.erase(takes_.waiting.begin(), takes_.waiting.begin() + takes);
  flight.lists = !listing_.is_complete && std::none_of(flights_.begin(), flights_.end(),
                                                       [](const Flight& one) { return one.lists; });
  // Last: room for what is sent may have been made by dropping.
  flight.stale = files_.take_drops();
  flight.drops = std::exchange(drops_.waiting, {});
  return flight;
}

/// What is to be removed waits a little for company.
bool SiteFiles::Body::is_worth_an_exchange(const Flight& flight) {
  if ((wants_exchange_ && flights_.empty()) || (listing_.goes_on && flight.lists) ||
      !flight.questions.empty() || !flight.small.empty() || !flight.takes.empty())
    return true;
  if (flight.drops.empty() && flight.stale.empty()) return false;
  if (drops_.wait_for_company) return false;
  drops_.wait_for_company = true;
  drops_.company.expires_after(kDropsWait);
  drops_.company.async_wait([weak = weak_from_this()](const boost::system::error_code& error) {
    const auto self = weak.lock();
    if (error || !self) return;
    self->drops_.wait_for_company = false;
    if (self->drops_.waiting.empty() && !self->files_.has_drops()) return;
    self->wants_exchange_ = true;
    self->wake();
  });
  return false;
}

ExchangePlan SiteFiles::Body::plan(const Flight& flight) const {
  ExchangePlan plan;
  wire::FilesOrder& order = plan.order;
  for (const auto* drops : {&flight.stale, &flight.drops}) {
    for (const std::string& path : *drops) order.add_drop(path);
  }
  for (const StagedFiles::Question& question : flight.questions) {
    wire::FilesOrder::Known* have = order.add_have();
    have->set_key(question.key);
    have->set_size(question.size);
    have->set_executable(question.executable);
  }
  for (const TakeItem& item : flight.takes) {
    order.add_take(item.there);
    plan.take_to.push_back(item.here);
  }
  if (flight.lists) {
    order.set_list_most(kMostListed);
    order.set_list_after(listing_.after);
  }
  order.set_largest_taken(kLargeFile - 1);
  order.set_most_bytes(most_bytes_);
  order.set_limit_ms(static_cast<std::uint64_t>(kWorkLimit.count()));
  plan.small = flight.small;
  return plan;
}

void SiteFiles::Body::unload(Flight flight) {
  files_.not_dropped(std::move(flight.stale));
  drops_.waiting.insert(drops_.waiting.end(), flight.drops.begin(), flight.drops.end());
  for (const auto& question : flight.questions) files_.not_told(question.key);
  for (const auto& file : flight.small) files_.not_sent(file.key);
  put_back(takes_.waiting, flight.takes, 0);
}

/// Answers come on the lane, and are heard on the loop.
std::shared_ptr<ExchangeQueue> SiteFiles::Body::new_queue() {
  return std::make_shared<ExchangeQueue>(
      [&loop = loop_, weak = weak_from_this()](const std::shared_ptr<FileExchange>& exchange) {
        asio::post(loop, [weak, exchange] {
          if (const auto self = weak.lock()) self->answered(exchange);
        });
      });
}

void SiteFiles::Body::exchange() {
  if (exchanging_.pause.is_on) return;
  files_.drop_unused_since(clock_.now() - std::chrono::hours{24 * 30});
  while (flights_.size() < kMostFlights) {
    Flight flight = load();
    if (!is_worth_an_exchange(flight)) {
      unload(std::move(flight));
      break;
    }
    flight.exchange = std::make_shared<FileExchange>();
    flight.exchange->plan = plan(flight);
    queue_->add(flight.exchange);
    flights_.push_back(std::move(flight));
  }
  if (flights_.empty() || exchanging_.is_busy) return;
  if (!exchanging_.tools && !renew(exchanging_.tools)) return exchanges_ended(figures_.trouble);
  exchanging_.is_busy = true;
  auto result = std::make_shared<Result<void>>(
      Error{Error::Kind::Transient, "the exchange did not come back in time"});
  auto begin = [this, result]() -> CallLane::Work {
    return [result, tools = exchanging_.tools, program = program_, queue = queue_,
            workspace = site_.workspace](Deadline deadline) {
      *result = exchange_files(*tools, program, workspace, *queue, deadline);
    };
  };
  exchanging_.calls.call(kExchangeLimit, std::move(begin), [this, result](bool given_up) {
    exchanging_.is_busy = false;
    if (given_up || !*result)
      return exchanges_ended(given_up ? "the exchange did not come back in time"
                                      : result->error().text);
    wake();
  });
}

void SiteFiles::Body::answered(const std::shared_ptr<FileExchange>& exchange) {
  // Of a lane that was left behind nothing is heard.
  if (flights_.empty() || flights_.front().exchange != exchange) return;
  Flight flight = std::move(flights_.front());
  flights_.pop_front();
  exchanged(std::move(flight), exchange->outcome);
}

void SiteFiles::Body::exchanges_ended(const std::string& why) {
  queue_->close();
  queue_ = new_queue();
  // The first of them is to be the first again.
  for (; !flights_.empty(); flights_.pop_back()) unload(std::move(flights_.back()));
  // On a slow way less at a time comes through.
  most_bytes_ = std::max(kLeastBytes, most_bytes_ / 4);
  trouble(why);
  pause(exchanging_.pause);
  wake();
}

void SiteFiles::Body::exchanged(Flight flight, const ExchangeOutcome& outcome) {
  ++figures_.exchanges;
  figures_.trouble.clear();
  exchanging_.pause.failures = 0;
  wants_exchange_ = false;
  most_bytes_ = std::min(kMostExchanged, most_bytes_ * 2);
  const wire::FilesReport& report = outcome.report;
  free_bytes_ = report.free_bytes();
  if (flight.lists) read_list(report);
  const std::size_t of_stale = flight.stale.size();
  const std::size_t dropped = heard_of(report.drop_size(), of_stale + flight.drops.size());
  for (std::size_t at = 0; at < dropped; ++at) {
    const auto& done = report.drop(static_cast<int>(at));
    if (trouble_of(done) != FileTrouble::None && trouble_of(done) != FileTrouble::Absent)
      spdlog::warn("the files of {}: {}", site_.name, done.text());
  }
  flight.stale.erase(flight.stale.begin(), flight.stale.begin() + static_cast<std::ptrdiff_t>(
                                                                      std::min(dropped, of_stale)));
  flight.drops.erase(flight.drops.begin(),
                     flight.drops.begin() +
                         static_cast<std::ptrdiff_t>(dropped > of_stale ? dropped - of_stale : 0));
  files_.not_dropped(std::move(flight.stale));
  drops_.waiting.insert(drops_.waiting.end(), flight.drops.begin(), flight.drops.end());
  read_store_answers(flight, outcome);
  read_takes(flight, outcome);
  wake();
}

void SiteFiles::Body::read_list(const wire::FilesReport& report) {
  for (const auto& entry : report.entries()) {
    if (!wire::is_store_key(entry.key())) continue;
    files_.listed(entry.key(), entry.size(), entry.executable(),
                  clock_.now() - std::chrono::seconds(entry.unused_s()));
    listing_.after = entry.key();
  }
  listing_.is_complete = report.list_ended() || report.entries().empty();
  listing_.goes_on = !listing_.is_complete;
  if (listing_.is_complete) files_.list_is_complete();
}

void SiteFiles::Body::read_store_answers(Flight& flight, const ExchangeOutcome& outcome) {
  const wire::FilesReport& report = outcome.report;
  const std::size_t told = heard_of(report.have_size(), flight.questions.size());
  for (std::size_t at = 0; at < flight.questions.size(); ++at) {
    const std::string& key = flight.questions[at].key;
    if (at >= told) {
      files_.not_told(key);
      continue;
    }
    const auto& done = report.have(static_cast<int>(at));
    const FileTrouble trouble = trouble_of(done);
    if (trouble == FileTrouble::None || trouble == FileTrouble::Absent) {
      files_.told(key, trouble == FileTrouble::None, clock_.now());
    } else {
      files_.refused(key,
                     {true, Failure::StageInFailed,
                      fmt::format("the store of {} is of no use: {}", site_.name, done.text())});
    }
  }
  for (const std::size_t at : outcome.changed) files_.changed(flight.small[at]);
  const std::size_t put = heard_of(report.put_size(), outcome.put.size());
  for (std::size_t at = 0; at < outcome.put.size(); ++at) {
    const StagedFiles::Sending& file = flight.small[outcome.put[at]];
    if (at < put) {
      stored(file, report.put(static_cast<int>(at)));
    } else {
      files_.not_sent(file.key);
    }
  }
}

void SiteFiles::Body::stored(const StagedFiles::Sending& file,
                             const wire::FilesReport::Done& done) {
  switch (trouble_of(done)) {
    case FileTrouble::None:
      figures_.bytes_sent += file.state.size;
      ++figures_.files_sent;
      return files_.sent(file.key, clock_.now());
    case FileTrouble::Absent:
      // What was put aside is gone: once more.
      return files_.not_sent(file.key);
    case FileTrouble::DiskFull:
    case FileTrouble::Quota:
      return files_.no_room(file.key, full_disk(done));
    case FileTrouble::Refused:
    case FileTrouble::Other:
      break;
  }
  files_.refused(file.key,
                 {true, Failure::StageInFailed,
                  fmt::format("cannot bring {} to {}: {}", file.path, site_.name, done.text())});
}

void SiteFiles::Body::read_takes(Flight& flight, const ExchangeOutcome& outcome) {
  const wire::FilesReport& report = outcome.report;
  const std::size_t taken = heard_of(report.take_size(), flight.takes.size());
  for (std::size_t at = 0; at < taken; ++at) {
    TakeItem& item = flight.takes[at];
    const auto& took = report.take(static_cast<int>(at));
    if (!outcome.taken[at] && took.too_large()) {
      LargeFetch file{item.there, item.here, took.size(), took.mode() & 0777, took.modified_ns()};
      takes_.large.push_back({std::move(item), std::move(file)});
      continue;
    }
    if (!outcome.taken[at]) {
      figures_.bytes_taken += took.size();
      ++figures_.files_taken;
    }
    finish(item, outcome.taken[at]);
  }
  put_back(takes_.waiting, flight.takes, taken);
}

}  // namespace hpcbatch
