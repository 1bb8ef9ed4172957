#include "loop/writer.hpp"

#include <algorithm>

namespace hpcbatch {
namespace {

using namespace std::chrono_literals;

constexpr auto kTryAgain = 500ms;

}  // namespace

Writer::Writer(asio::io_context& loop, std::unique_ptr<store::Store> store,
               std::function<void(std::string)> fatal,
               std::function<void(std::optional<std::string>)> trouble)
    : loop_(loop),
      store_(std::move(store)),
      fatal_(std::move(fatal)),
      trouble_(std::move(trouble)),
      company_(loop),
      again_(loop),
      totals_(store_->totals()) {}

void Writer::add(store::Write write) {
  order_.add(std::move(write));
  look();
}

void Writer::after_written(std::function<void(store::Store&)> on_lane, Then then, bool on_disk) {
  order_.after_written(std::move(on_lane), std::move(then), on_disk);
  look();
}

void Writer::after_durable(Then then, bool haste) {
  order_.after_durable(std::move(then), haste);
  look();
}

void Writer::look() {
  switch (order_.due()) {
    case Order::Due::Never:
      return;
    case Order::Due::Now:
      return hurry();
    case Order::Due::Soon:
      break;
  }
  if (waiting_for_company_ || shipping_soon_) return;
  waiting_for_company_ = true;
  company_.expires_after(Order::kCompany);
  company_.async_wait([this](const boost::system::error_code& error) {
    if (error) return;
    waiting_for_company_ = false;
    hurry();
  });
}

void Writer::hurry() {
  // Behind what the loop has in hand, so that all of it goes into one commit.
  if (std::exchange(shipping_soon_, true)) return;
  asio::post(loop_, [this] {
    shipping_soon_ = false;
    ship();
  });
}

void Writer::ship() {
  if (order_.due() == Order::Due::Never) return;
  if (waiting_for_company_) {
    waiting_for_company_ = false;
    company_.cancel();
  }
  auto taken = std::make_shared<Work>(Work{order_.take()});
  busy_since_ = std::chrono::steady_clock::now();
  lane_.run([this, taken] { work(taken); });
}

std::chrono::steady_clock::duration Writer::busy_for() const {
  return busy_since_ ? std::chrono::steady_clock::now() - *busy_since_
                     : std::chrono::steady_clock::duration{};
}

void Writer::work(const std::shared_ptr<Work>& work) {
  Order::Batch& batch = work->batch;
  const bool two_steps = batch.in_two_steps();
  if (!work->is_written) {
    if (batch.needs_commit() && !commit(work, batch.writes, batch.needs_disk() && !two_steps))
      return;
    try {
      for (auto& [on_lane, then] : batch.written) {
        if (on_lane) on_lane(*store_);
      }
    } catch (const std::exception& e) {
      return cannot_read(e);
    }
    work->is_written = true;
    tell_written(work);
  }
  if (two_steps && !commit(work, {}, true)) return;
  asio::post(loop_, [this, work] {
    unstuck();
    for (const double time : work->commits) commit_times_.add(time);
    busy_since_.reset();
    order_.done();
    for (Then& then : work->batch.durable) then();
    look();
  });
}

void Writer::tell_written(const std::shared_ptr<Work>& work) {
  asio::post(loop_, [this, work, totals = store_->totals(), happened = store_->happened()] {
    totals_ = totals;
    happened_ = happened;
    for (auto& [on_lane, then] : work->batch.written) then();
  });
}

/// False: it was not done, and somebody has been told.
bool Writer::commit(const std::shared_ptr<Work>& work, const std::vector<store::Write>& writes,
                    bool durable) {
  const auto begin = std::chrono::steady_clock::now();
  const Result<void> done = store_->commit(writes, durable);
  if (done) {
    work->commits.push_back(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    return true;
  }
  if (done.error().kind == Error::Kind::Rejected) {
    fail(done.error().text);
  } else {
    asio::post(loop_, [this, work, text = done.error().text] { stuck(work, text); });
  }
  return false;
}

/// On the lane.
void Writer::cannot_read(const std::exception& error) {
  const auto* of_store = dynamic_cast<const sqlite::SqlError*>(&error);
  if (of_store && of_store->damaged()) store_->note_damage(error.what());
  fail(error.what());
}

void Writer::fail(const std::string& why) {
  asio::post(loop_, [this, why] { fatal_(why); });
}

void Writer::stuck(const std::shared_ptr<Work>& work, const std::string& why) {
  busy_since_.reset();
  if (!std::exchange(is_stuck_, true)) {
    for (const auto& waiting : std::exchange(looks_, {})) {
      if (const auto look = waiting.lock()) look_at_once(look);
    }
  }
  trouble_(why);
  again_.expires_after(kTryAgain);
  again_.async_wait([this, work](const boost::system::error_code& error) {
    if (error) return;
    busy_since_ = std::chrono::steady_clock::now();
    lane_.run([this, work] { this->work(work); });
  });
}

void Writer::unstuck() {
  if (std::exchange(is_stuck_, false)) trouble_(std::nullopt);
}

void Writer::add(const std::shared_ptr<Look>& look) {
  if (is_stuck_) return look_at_once(look);
  if (looks_.size() >= looks_kept_) {
    std::erase_if(looks_, [](const std::weak_ptr<Look>& one) { return one.expired(); });
    looks_kept_ = std::max<std::size_t>(64, 2 * looks_.size());
  }
  looks_.push_back(look);
  after_written(
      [look](store::Store& store) {
        if (!std::exchange(look->begun, true)) look->on_lane(store);
      },
      [look] {
        if (!std::exchange(look->told, true)) look->then();
      });
}

/// Its turn may come as well: whoever is first on the lane reads.
void Writer::look_at_once(const std::shared_ptr<Look>& look) {
  lane_.run([this, look] {
    try {
      if (!std::exchange(look->begun, true)) look->on_lane(*store_);
    } catch (const std::exception& e) {
      return cannot_read(e);
    }
    asio::post(loop_, [look] {
      if (!std::exchange(look->told, true)) look->then();
    });
  });
}

}  // namespace hpcbatch
