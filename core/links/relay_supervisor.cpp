#include "links/relay_supervisor.hpp"

#include "plugin_host/guarded.hpp"
#include "posix/doubling_pause.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <random>
#include <thread>
#include <utility>

#include <unistd.h>

namespace hpcbatch {
namespace {

using namespace std::chrono_literals;

constexpr auto kStartLimit = 120s;
constexpr auto kRelayGrace = 10s;
constexpr auto kFirstRelayPause = 1000ms;
constexpr auto kLongestRelayPause = 60'000ms;
// One that stood so long has nothing to do with the failures before it.
constexpr auto kStood = 60s;

/// Between half and one and a half: sites count logins.
std::chrono::milliseconds pause_after(unsigned failures) {
  const auto pause = doubling_pause(kFirstRelayPause, kLongestRelayPause, failures);
  static std::minstd_rand random{std::random_device{}()};
  return std::chrono::milliseconds(std::uniform_int_distribution<std::int64_t>(
      pause.count() / 2, pause.count() * 3 / 2)(random));
}

/// Saying goodbye to a site may take its time.
void let_go(std::shared_ptr<Transport> transport) {
  if (transport)
    std::thread([transport = std::move(transport)]() mutable { transport.reset(); }).detach();
}

std::string one_line(const std::string& addresses) {
  std::string text;
  for (const char c : addresses.substr(0, addresses.find_last_not_of('\n') + 1))
    text += c == '\n' ? ',' : c;
  return text;
}

}  // namespace

RelaySupervisor::RelaySupervisor(asio::io_context& loop, const PluginHost& plugins,
                                 const Site& site, const PilotProgram& program, Connected connected)
    : loop_(loop),
      plugins_(plugins),
      site_(site),
      program_(program),
      connected_(std::move(connected)),
      again_(loop) {}

RelaySupervisor::~RelaySupervisor() {
  stop();
}

void RelaySupervisor::want(bool wanted) {
  if (wanted == wanted_) return;
  wanted_ = wanted;
  if (wanted) {
    // Sites count logins: those that failed are not forgotten because there was nothing to do.
    if (std::chrono::steady_clock::now() < not_before_) return start_at(not_before_);
    start();
  } else {
    stop();
  }
}

void RelaySupervisor::stop() {
  again_.cancel();
  if (back_) {
    const std::lock_guard lock(back_->mutex);
    back_->supervisor = nullptr;
  }
  back_.reset();
  if (stream_) stream_->close();
  stream_.reset();
  up_since_.reset();
  let_go(std::exchange(transport_, nullptr));
  if (lane_) lane_->leave_behind();
  lane_.reset();
}

void RelaySupervisor::start() {
  again_.expires_after(kStartLimit + kRelayGrace);
  again_.async_wait([this](const boost::system::error_code& error) {
    if (!error) failed("its start did not come back in time");
  });
  CommandLine command{.argv = {program_.path_in(site_.workspace), "relay", site_.workspace},
                      .environment = {},
                      .input = {}};
  if (!site_.relay_interface.empty()) command.argv.push_back(site_.relay_interface);
  auto made = plugins_.transport(site_.transport, site_.transport_config);
  if (!made) return failed(made.error().text);
  back_ = std::make_shared<Back>();
  back_->supervisor = this;
  lane_ = std::make_unique<Lane>();
  lane_->run([back = back_, program = program_, workspace = site_.workspace, command,
              transport = std::shared_ptr<Transport>(std::move(*made))]() mutable {
    const Deadline deadline = std::chrono::steady_clock::now() + kStartLimit;
    auto stream = guarded("transport", [&]() -> Result<int> {
      if (auto delivered = program.deliver(*transport, workspace, deadline); !delivered)
        return delivered.error();
      return transport->open(command, deadline);
    });
    {
      const std::lock_guard lock(back->mutex);
      if (!back->supervisor) {
        if (stream) ::close(*stream);
        return;
      }
      // A transport says its goodbye here, which may take its time, never on the loop.
      asio::post(back->supervisor->loop_,
                 [back, stream, kept = stream ? transport : nullptr]() mutable {
                   if (back->supervisor) return back->supervisor->opened(stream, std::move(kept));
                   if (stream) ::close(*stream);
                   let_go(std::move(kept));
                 });
    }
  });
}

void RelaySupervisor::opened(const Result<int>& stream, std::shared_ptr<Transport> transport) {
  again_.cancel();
  if (!stream) return failed(stream.error().text);
  transport_ = std::move(transport);
  stream_ = std::make_shared<RelayStream>(
      loop_, *stream,
      RelayStream::Callbacks{.listening =
                                 [this](const std::string& addresses) {
                                   up_since_ = std::chrono::steady_clock::now();
                                   spdlog::info("the relay of {} listens: {}", site_.name,
                                                one_line(addresses));
                                 },
                             .connected = connected_,
                             .ended = [this](const std::string& why) { failed(why); }});
  stream_->start();
}

void RelaySupervisor::failed(const std::string& why) {
  const bool stood = up_since_ && std::chrono::steady_clock::now() - *up_since_ >= kStood;
  stop();
  failures_ = stood ? 0 : failures_ + 1;
  const auto pause = pause_after(failures_ == 0 ? 0 : failures_ - 1);
  spdlog::warn("the relay of {}: {}; it is started again in {:.1f} s", site_.name, why,
               static_cast<double>(pause.count()) / 1000);
  not_before_ = std::chrono::steady_clock::now() + pause;
  start_at(not_before_);
}

void RelaySupervisor::start_at(std::chrono::steady_clock::time_point time) {
  again_.expires_at(time);
  again_.async_wait([this](const boost::system::error_code& error) {
    if (!error && wanted_) start();
  });
}

}  // namespace hpcbatch
