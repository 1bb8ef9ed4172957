#include "runtime/writer.hpp"

#include <thread>

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
      company_(loop) {}

Writer::~Writer() {
  ending_ = true;
}

void Writer::add(store::Write write) {
  order_.add(std::move(write));
  look();
}

void Writer::after_written(std::function<void(store::Store&)> on_lane, Then then) {
  order_.after_written(std::move(on_lane), std::move(then));
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
  auto batch = std::make_shared<Order::Batch>(order_.take());
  lane_.run([this, batch] { work(batch); });
}

void Writer::work(const std::shared_ptr<Order::Batch>& batch) {
  const bool two_steps = batch->in_two_steps();
  if (batch->needs_commit() && !commit(batch->writes, batch->needs_disk() && !two_steps)) return;
  try {
    for (auto& [on_lane, then] : batch->written) {
      if (on_lane) on_lane(*store_);
    }
  } catch (const std::exception& e) {
    asio::post(loop_, [this, text = std::string(e.what())] { fatal_(text); });
    return;
  }
  asio::post(loop_, [batch] {
    for (auto& [on_lane, then] : batch->written) then();
  });
  if (two_steps && !commit({}, true)) return;
  asio::post(loop_, [this, batch] {
    order_.done();
    for (Then& then : batch->durable) then();
    look();
  });
}

bool Writer::commit(const std::vector<store::Write>& writes, bool durable) {
  bool told = false;
  while (true) {
    const Result<void> done = store_->commit(writes, durable);
    if (done) {
      if (told) asio::post(loop_, [this] { trouble_(std::nullopt); });
      return true;
    }
    if (done.error().kind == Error::Kind::Rejected || ending_) {
      asio::post(loop_, [this, text = done.error().text] { fatal_(text); });
      return false;
    }
    if (!std::exchange(told, true))
      asio::post(loop_, [this, text = done.error().text] { trouble_(text); });
    std::this_thread::sleep_for(kTryAgain);
  }
}

}  // namespace hpcbatch
