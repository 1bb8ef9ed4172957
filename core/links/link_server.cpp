#include "links/link_server.hpp"

#include "posix/socket_path.hpp"
#include "wire/wire.pb.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <boost/asio/ip/address.hpp>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

#include <sys/stat.h>
#include <unistd.h>

namespace hpcbatch {
namespace {

constexpr std::chrono::minutes kBetweenLines{1};

}  // namespace

std::string_view word_of(RejectionReason reason) {
  switch (reason) {
    case RejectionReason::UnknownPilot:
      return "unknown_pilot";
    case RejectionReason::WrongKey:
      return "wrong_key";
    case RejectionReason::WrongHello:
      return "wrong_hello";
    case RejectionReason::WrongVersion:
      return "wrong_version";
    case RejectionReason::NoProof:
      return "no_proof";
    case RejectionReason::TooLong:
      return "too_long";
    case RejectionReason::BrokenFrame:
      return "broken_frame";
    case RejectionReason::BrokenMessage:
      return "broken_message";
    case RejectionReason::TooManyAtATime:
      return "too_many_at_a_time";
    case RejectionReason::Overstepped:
      return "overstepped";
  }
  return "";
}

std::optional<std::string> RejectedPeers::count(RejectionReason reason, const std::string& text,
                                                Time now) {
  Tally& tally = tallies_[static_cast<std::size_t>(reason)];
  ++tally.count;
  if (tally.told && now - *tally.told < kBetweenLines) {
    ++tally.untold;
    return std::nullopt;
  }
  tally.told = now;
  const std::uint64_t untold = std::exchange(tally.untold, 0);
  std::string line = fmt::format("rejected ({}): {}", word_of(reason), text);
  if (untold > 0) line += fmt::format("; so were {} others since the line before", untold);
  return line;
}

std::vector<std::pair<std::string_view, std::uint64_t>> RejectedPeers::counts() const {
  std::vector<std::pair<std::string_view, std::uint64_t>> all;
  for (std::size_t i = 0; i < tallies_.size(); ++i)
    all.emplace_back(word_of(static_cast<RejectionReason>(i)), tallies_[i].count);
  return all;
}

namespace {

using namespace std::chrono_literals;

constexpr std::size_t kMost = 64;
constexpr std::size_t kMostSilentOfAnAddress = 16;
// A proof takes one way there and back behind the hello.
constexpr auto kLongestProof = 1s;

}  // namespace

PlaceForPeer place_for(const std::vector<UnprovenPeer>& unproven_peers, const std::string& address,
                       std::chrono::steady_clock::time_point now) {
  std::map<std::string_view, std::size_t> silent, all;
  for (const UnprovenPeer& one : unproven_peers) {
    ++all[one.address];
    if (!one.names_a_pilot) ++silent[one.address];
  }
  const auto oldest = [&](const auto& may_go, const auto& weight) {
    std::optional<std::size_t> found;
    const auto rank = [&](const UnprovenPeer& one) {
      return std::tuple(weight(one), now - one.since);
    };
    for (std::size_t i = 0; i < unproven_peers.size(); ++i) {
      if (!may_go(unproven_peers[i])) continue;
      if (!found || rank(unproven_peers[i]) > rank(unproven_peers[*found])) found = i;
    }
    return found;
  };
  if (!address.empty() && silent[address] >= kMostSilentOfAnAddress) {
    return {true, oldest(
                      [&](const UnprovenPeer& one) {
                        return !one.names_a_pilot && one.address == address;
                      },
                      [](const UnprovenPeer&) { return 0; })};
  }
  if (unproven_peers.size() < kMost) return {};
  auto goes = oldest([](const UnprovenPeer& one) { return !one.names_a_pilot; },
                     [&](const UnprovenPeer& one) { return silent[one.address]; });
  if (!goes) {
    goes = oldest([&](const UnprovenPeer& one) { return now - one.since > kLongestProof; },
                  [&](const UnprovenPeer& one) { return all[one.address]; });
  }
  return {goes.has_value(), goes};
}

namespace {

using namespace std::chrono_literals;

constexpr auto kUntilSure = 1s;
constexpr auto kEvery = 10s;
// An answer may be lost in a later number, and one by files takes its time.
constexpr auto kWaitsForAnswer = 60s;
constexpr std::size_t kAnswers = 3;
// Less of a change is not worth an event: the backlog covers it.
constexpr Duration kSmall = 10ms;

}  // namespace

std::optional<std::uint64_t> RoundTrip::ask(Moment now) {
  if (asked_at_) {
    const auto pause = is_waiting_               ? kWaitsForAnswer
                       : last_.size() < kAnswers ? kUntilSure
                                                 : kEvery;
    if (now - *asked_at_ < pause) return std::nullopt;
  }
  asked_at_ = now;
  is_waiting_ = true;
  return kOurs | ++asked_;
}

std::optional<Duration> RoundTrip::answered(std::uint64_t number, Moment now) {
  if (!is_waiting_ || number != (kOurs | asked_)) return std::nullopt;
  is_waiting_ = false;
  last_.push_back(std::chrono::duration_cast<Duration>(now - *asked_at_));
  if (last_.size() > kAnswers) last_.pop_front();
  const Duration trip = believed();
  const Duration change = trip > told_ ? trip - told_ : told_ - trip;
  if (change <= std::max(kSmall, told_ / 4)) return std::nullopt;
  told_ = trip;
  return trip;
}

/// The middle one of three, the smaller one of two.
Duration RoundTrip::believed() const {
  std::deque<Duration> sorted = last_;
  std::sort(sorted.begin(), sorted.end());
  return sorted[(sorted.size() - 1) / 2];
}

namespace {

constexpr std::chrono::milliseconds kWhenFull{100};
// A frame that has this much is full; with one more thing in it, it is still far from what a frame
// may have.
constexpr std::size_t kFullFrame = std::size_t{4} << 20;

RejectionReason reason_of(wire::LinkFault fault) {
  switch (fault) {
    case wire::LinkFault::Hello:
      return RejectionReason::WrongHello;
    case wire::LinkFault::Version:
      return RejectionReason::WrongVersion;
    case wire::LinkFault::UnknownPilot:
      return RejectionReason::UnknownPilot;
    case wire::LinkFault::Proof:
      return RejectionReason::WrongKey;
    case wire::LinkFault::Length:
      return RejectionReason::TooLong;
    case wire::LinkFault::Frame:
      break;
  }
  return RejectionReason::BrokenFrame;
}

bool is_tcp(const asio::generic::stream_protocol::endpoint& end) {
  const auto family = end.protocol().family();
  return family == AF_INET || family == AF_INET6;
}

/// Where the peer sits; empty on a socket of this machine.
std::string place_of(const asio::generic::stream_protocol::socket& socket) {
  boost::system::error_code gone;
  const auto end = socket.remote_endpoint(gone);
  if (gone || !is_tcp(end)) return {};
  asio::ip::tcp::endpoint tcp;
  tcp.resize(end.size());
  std::memcpy(tcp.data(), end.data(), end.size());
  return " from " + tcp.address().to_string();
}

}  // namespace

PilotLink::PilotLink(asio::generic::stream_protocol::socket socket, wire::Link link,
                     Patience patience, Message message, Closed closed)
    : socket_(std::move(socket)),
      link_(std::move(link)),
      patience_(patience),
      message_(std::move(message)),
      closed_(std::move(closed)),
      silence_(socket_.get_executor()),
      last_heard_(std::chrono::steady_clock::now()),
      buffer_(std::size_t{64} * 1024),
      from_(place_of(socket_)) {}

PilotLink::~PilotLink() = default;

PilotId PilotLink::pilot() const {
  return {AllocationId{link_.peer().allocation}, link_.peer().rank};
}

void PilotLink::start() {
  watch_silence();
  read();
}

std::chrono::seconds PilotLink::silence_limit() const {
  return link_.established() ? patience_.silence : patience_.handshake;
}

void PilotLink::watch_silence() {
  silence_.expires_at(last_heard_ + silence_limit());
  silence_.async_wait([self = shared_from_this()](const boost::system::error_code& error) {
    if (error || !self->open_) return;
    if (std::chrono::steady_clock::now() - self->last_heard_ >= self->silence_limit()) {
      if (!self->established()) {
        self->refuse(RejectionReason::NoProof,
                     fmt::format("a peer{} did not prove within {} s that it is a pilot",
                                 self->from_, self->silence_limit().count()));
      }
      self->close();
    } else {
      self->watch_silence();
    }
  });
}

void PilotLink::read() {
  socket_.async_read_some(
      asio::buffer(buffer_),
      [self = shared_from_this()](const boost::system::error_code& error, std::size_t bytes) {
        if (!self->open_) return;
        if (error) {
          self->close();
          return;
        }
        self->received(bytes);
        if (self->open_) self->read();
      });
}

void PilotLink::received(std::size_t bytes) {
  if (!is_heard_) return;
  const bool stood = link_.established();
  auto messages = link_.receive({buffer_.data(), bytes});
  if (!messages) {
    if (const auto fault = link_.fault())
      refuse(reason_of(*fault), messages.error().text + (from_.empty() ? "" : "; it came" + from_));
    write();
    close_after_sending();
    return;
  }
  // A peer that dribbles bytes without proving itself does not get more time for it.
  if (link_.established()) last_heard_ = std::chrono::steady_clock::now();
  if (!stood && link_.established()) watch_silence();
  for (const std::string& text : *messages) {
    if (!is_heard_) return;
    wire::ToEngine message;
    if (!message.ParseFromString(text)) {
      refuse(RejectionReason::BrokenMessage,
             fmt::format("pilot {}.{} sent a frame that holds no message", link_.peer().allocation,
                         link_.peer().rank));
      close();
      return;
    }
    message_(shared_from_this(), message);
    if (!open_) return;
  }
  write();
}

UnprovenPeer PilotLink::as_unproven_peer() const {
  return {from_, link_.names_a_pilot(), last_heard_};
}

void PilotLink::give_way() {
  refuse(RejectionReason::TooManyAtATime,
         fmt::format("a peer{} that had not proved yet that it is a pilot, because there were too "
                     "many of them",
                     from_));
  close();
}

void PilotLink::put_out(const std::string& why) {
  refuse(RejectionReason::Overstepped,
         fmt::format("pilot {}{} said what it may not, and is not heard any more: {}",
                     to_string(pilot()), from_, why));
  is_heard_ = false;
  close_after_sending();
}

/// The first reason stays.
void PilotLink::refuse(RejectionReason reason, const std::string& text) {
  if (!refusal_) refusal_ = Refusal{reason, text};
}

wire::ToPilot& PilotLink::outgoing(std::size_t bytes) {
  if (outgoing_ && outgoing_bytes_ + bytes > kFullFrame) seal_outgoing();
  if (!outgoing_) outgoing_ = std::make_unique<wire::ToPilot>();
  outgoing_bytes_ += bytes;
  flush_soon();
  return *outgoing_;
}

void PilotLink::flush_soon() {
  if (std::exchange(flushing_, true)) return;
  asio::post(socket_.get_executor(), [self = shared_from_this()] {
    self->flushing_ = false;
    if (!self->open_ || !self->outgoing_) return;
    self->seal_outgoing();
    self->write();
  });
}

void PilotLink::seal_outgoing() {
  if (open_) link_.send(outgoing_->SerializeAsString());
  outgoing_.reset();
  outgoing_bytes_ = 0;
}

void PilotLink::write() {
  if (writing_ || !open_) return;
  sending_ = link_.take_output();
  if (sending_.empty()) {
    if (closing_ && !outgoing_) close();
    return;
  }
  writing_ = true;
  asio::async_write(
      socket_, asio::buffer(sending_),
      [self = shared_from_this()](const boost::system::error_code& error, std::size_t) {
        self->writing_ = false;
        if (!self->open_) return;
        if (error) {
          self->close();
        } else {
          self->write();
        }
      });
}

void PilotLink::close_after_sending() {
  closing_ = true;
  if (!flushing_) write();
}

void PilotLink::close() {
  if (!std::exchange(open_, false)) return;
  silence_.cancel();
  boost::system::error_code ignored;
  socket_.close(ignored);
  closed_(shared_from_this());
}

LinkServer::LinkServer(asio::io_context& loop, wire::Link::FindKey find_key,
                       PilotLink::Message message, PilotLink::Closed closed, std::size_t most_links)
    : loop_(loop),
      find_key_(std::move(find_key)),
      message_(std::move(message)),
      closed_(std::move(closed)),
      most_links_(most_links) {}

LinkServer::~LinkServer() {
  for (auto& close : close_acceptors_) close();
}

Result<void> LinkServer::listen_unix(const std::string& path) {
  try {
    const SocketPath reachable = socket_path(path);
    if (reachable.error != 0) throw std::runtime_error(std::strerror(reachable.error));
    std::error_code ignored;
    std::filesystem::remove(path, ignored);
    auto acceptor = std::make_shared<asio::local::stream_protocol::acceptor>(loop_);
    acceptor->open();
    const mode_t before = ::umask(0177);
    boost::system::error_code error;
    acceptor->bind(asio::local::stream_protocol::endpoint(reachable.text), error);
    ::umask(before);
    if (error) throw boost::system::system_error(error);
    acceptor->listen();
    accept(std::move(acceptor));
    return {};
  } catch (const std::exception& e) {
    return Error{Error::Kind::Rejected,
                 fmt::format("cannot listen for pilots on {}: {}", path, e.what())};
  }
}

Result<std::uint16_t> LinkServer::listen_tcp(const std::string& address, std::uint16_t port) {
  try {
    const auto ip = asio::ip::make_address(address);
    auto acceptor = std::make_shared<asio::ip::tcp::acceptor>(loop_);
    acceptor->open(ip.is_v6() ? asio::ip::tcp::v6() : asio::ip::tcp::v4());
    // The port of the last start is wanted again, so that pilots find it without reading their file
    // anew.
    acceptor->set_option(asio::ip::tcp::acceptor::reuse_address(true));
    boost::system::error_code error;
    acceptor->bind({ip, port}, error);
    if (error && port != 0)
      acceptor->bind({ip, 0});
    else if (error)
      throw boost::system::system_error(error);
    acceptor->listen();
    const std::uint16_t bound = acceptor->local_endpoint().port();
    accept(std::move(acceptor));
    return bound;
  } catch (const std::exception& e) {
    return Error{
        Error::Kind::Rejected,
        fmt::format("cannot listen for pilots on {}: {}; name another 'interface' for the site",
                    address, e.what())};
  }
}

template <class Acceptor>
void LinkServer::accept(std::shared_ptr<Acceptor> acceptor) {
  close_acceptors_.push_back([acceptor] {
    boost::system::error_code ignored;
    acceptor->close(ignored);
  });
  accept_next(std::move(acceptor));
}

template <class Acceptor>
void LinkServer::accept_next(std::shared_ptr<Acceptor> acceptor) {
  Acceptor& listener = *acceptor;
  listener.async_accept(
      [this, acceptor = std::move(acceptor)](const boost::system::error_code& error, auto socket) {
        if (error == asio::error::operation_aborted || !acceptor->is_open()) return;
        if (!error) {
          adopt(asio::generic::stream_protocol::socket(std::move(socket)), {});
          return accept_next(acceptor);
        }
        // Out of descriptors: the pilot waits at the listener, and asking again at once would only turn
        // in circles.
        auto pause = std::make_shared<asio::steady_timer>(loop_, kWhenFull);
        pause->async_wait([this, acceptor, pause](const boost::system::error_code& stopped) {
          if (!stopped && acceptor->is_open()) accept_next(acceptor);
        });
      });
}

void LinkServer::adopt(asio::generic::stream_protocol::socket socket, Patience patience) {
  if (links_.size() >= most_links_) {
    return count(RejectionReason::TooManyAtATime,
                 fmt::format("a peer{}, because {} others have links already, as many as the limit "
                             "of open files (ulimit -n) leaves room for",
                             place_of(socket), links_.size()));
  }
  if (!make_room(place_of(socket), patience.listener)) {
    return count(RejectionReason::TooManyAtATime,
                 fmt::format("a peer{}, because the others at its listener have all said hello and "
                             "are about to prove that they are pilots",
                             place_of(socket)));
  }
  if (is_tcp(socket.local_endpoint())) {
    const int on = 1;
    ::setsockopt(socket.native_handle(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }
  auto link =
      std::make_shared<PilotLink>(std::move(socket), wire::Link::accepting(find_key_), patience,
                                  message_, [this](const std::shared_ptr<PilotLink>& closed) {
                                    links_.erase(closed);
                                    if (const auto& refusal = closed->refusal())
                                      count(refusal->reason, refusal->text);
                                    closed_(closed);
                                  });
  links_.insert(link);
  link->start();
}

/// Whoever has not proved himself is one of few, gets a few seconds, and learns nothing.
bool LinkServer::make_room(const std::string& from, unsigned listener) {
  std::vector<std::shared_ptr<PilotLink>> links;
  std::vector<UnprovenPeer> unproven_peers;
  for (const auto& link : links_) {
    if (link->established() || link->listener() != listener) continue;
    links.push_back(link);
    unproven_peers.push_back(link->as_unproven_peer());
  }
  const PlaceForPeer place = place_for(unproven_peers, from, std::chrono::steady_clock::now());
  if (place.goes) links[*place.goes]->give_way();
  return place.has_room;
}

void LinkServer::count(RejectionReason reason, const std::string& text) {
  const auto line = rejected_peers_.count(reason, text, std::chrono::steady_clock::now());
  if (line) spdlog::warn("{}", *line);
}

}  // namespace hpcbatch
