#include "runtime/writer.hpp"

#include <thread>

namespace hpcbatch {
namespace {

using namespace std::chrono_literals;

constexpr auto kCompany = 20ms;
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
  gathering_.writes.push_back(std::move(write));
  wait_for_company();
}

void Writer::after_written(std::function<void(store::Store&)> on_lane, Then then) {
  gathering_.written.emplace_back(std::move(on_lane), std::move(then));
  hurry();
}

void Writer::after_durable(Then then, bool haste) {
  gathering_.durable.push_back(std::move(then));
  gathering_.haste = gathering_.haste || haste;
  if (haste) {
    hurry();
  } else {
    wait_for_company();
  }
}

void Writer::wait_for_company() {
  if (waiting_for_company_ || busy_ || shipping_soon_) return;
  waiting_for_company_ = true;
  company_.expires_after(kCompany);
  company_.async_wait([this](const boost::system::error_code& error) {
    if (error) return;
    waiting_for_company_ = false;
    hurry();
  });
}

void Writer::hurry() {
  // Behind what the loop has in hand, so that all of it goes into one commit.
  if (busy_ || shipping_soon_) return;
  shipping_soon_ = true;
  asio::post(loop_, [this] {
    shipping_soon_ = false;
    ship();
  });
}

void Writer::ship() {
  if (busy_ || gathering_.empty()) return;
  if (waiting_for_company_) {
    waiting_for_company_ = false;
    company_.cancel();
  }
  busy_ = true;
  auto batch = std::make_shared<Batch>(std::exchange(gathering_, {}));
  lane_.run([this, batch] { work(batch); });
}

void Writer::work(const std::shared_ptr<Batch>& batch) {
  // Leases and reads do not wait for the disk; whoever waits for the disk gets a commit of his own
  // behind them.
  const bool two_steps = !batch->written.empty() && !batch->durable.empty();
  const bool durable = !batch->durable.empty();
  if (!batch->writes.empty() || durable) {
    if (!commit(batch->writes, durable && !two_steps)) return;
  }
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
    busy_ = false;
    for (Then& then : batch->durable) then();
    if (gathering_.haste || !gathering_.written.empty()) {
      ship();
    } else if (!gathering_.empty()) {
      wait_for_company();
    }
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
