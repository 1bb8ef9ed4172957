#include "runtime/store_watch.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

namespace hpcbatch {
namespace {

constexpr std::chrono::milliseconds kEvery{800};
// Submissions in a row cost one write.
constexpr std::chrono::milliseconds kTogether{50};
constexpr std::chrono::milliseconds kLastWrite{500};

}  // namespace

StoreWatch::StoreWatch(asio::io_context& loop, Writer& writer, std::string engine_name,
                       std::vector<std::string> workspaces)
    : writer_(writer),
      timer_(loop),
      soon_(loop),
      engine_name_(std::move(engine_name)),
      workspaces_(std::move(workspaces)) {}

/// What was given last is written too, but a file system that hangs does not keep the engine from its
/// end.
StoreWatch::~StoreWatch() {
  const auto latest = std::chrono::steady_clock::now() + kLastWrite;
  do {
    write();
    if (!*is_writing_) break;
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
  } while (std::chrono::steady_clock::now() < latest);
  lane_.leave_behind();
}

void StoreWatch::begin() {
  struct Seen {
    std::string missing;
    GivenIds given;
  };
  writer_.look(
      [](store::Store& store) {
        const store::MarkText& known = store.known();
        return Seen{store.missing_part(), {known.highest, known.starts}};
      },
      [this](Seen found) {
        seen(std::move(found.missing), found.given);
        look_again();
      });
}

void StoreWatch::look_again() {
  timer_.expires_after(kEvery);
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error) begin();
  });
}

void StoreWatch::seen(std::string missing, const GivenIds& given) {
  if (missing != missing_ && !missing.empty())
    spdlog::critical(
        "{} was removed, or replaced, under the running engine: nothing new is accepted. What runs "
        "goes on; `hpcbatch backup FILE` saves all that the engine knows",
        missing);
  if (missing.empty() && !missing_.empty()) spdlog::info("{} is back where it was", missing_);
  missing_ = std::move(missing);
  given_ = {std::max(given_.highest, given.highest), std::max(given_.starts, given.starts)};
  write();
}

void StoreWatch::given(std::uint64_t highest) {
  given_.highest = std::max(given_.highest, highest);
  if (std::exchange(writes_soon_, true)) return;
  soon_.expires_after(kTogether);
  soon_.async_wait([this](const boost::system::error_code& error) {
    if (error) return;
    writes_soon_ = false;
    write();
  });
}

void StoreWatch::write() {
  if (given_.starts == 0 || given_ == written_ || is_writing_->exchange(true)) return;
  written_ = given_;
  lane_.run([workspaces = workspaces_, engine = engine_name_, given = given_, busy = is_writing_] {
    for (const std::string& workspace : workspaces) write_given_ids(workspace, engine, given);
    *busy = false;
  });
}

}  // namespace hpcbatch
