#include "links/spool_links.hpp"

#include "posix/doubling_pause.hpp"
#include "wire/relay.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <set>
#include <utility>

namespace hpcbatch {
namespace {

using namespace std::chrono_literals;

constexpr auto kSpoolExchangeLimit = 120s;
constexpr auto kSpoolGrace = 10s;
constexpr auto kShortestPause = 50ms;
constexpr auto kLongestSpoolPause = 3000ms;
constexpr auto kLongestSpoolPauseAlone = 15'000ms;
constexpr std::chrono::milliseconds kPauseInTrouble{2000};
constexpr std::chrono::milliseconds kLongestPauseInTrouble{60'000};
// New connections of one exchange: each is unproven until it has proved who it is, and has two
// descriptors.
constexpr unsigned kMostBegun = 32;
// Of one exchange, in each direction.
constexpr std::size_t kMostSpoolBytes = std::size_t{16} << 20;
constexpr std::size_t kWindow = std::size_t{4} << 20;

}  // namespace

SpoolLinks::SpoolLinks(asio::io_context& loop, const PluginHost& plugins, const Site& site,
                       const PilotProgram& program, std::string prefix, Connected connected)
    : loop_(loop),
      plugins_(plugins),
      site_(site),
      program_(program),
      prefix_(std::move(prefix)),
      connected_(std::move(connected)),
      calls_(loop, kSpoolGrace, [this] { return new_tools(); }),
      timer_(loop) {}

SpoolLinks::~SpoolLinks() {
  *lives_ = false;
  for (auto& [name, connection] : connections_) {
    if (connection.tunnel) connection.tunnel->close();
  }
}

bool SpoolLinks::new_tools() {
  auto transport = plugins_.transport(site_.transport, site_.transport_config);
  if (!transport) {
    tell(transport.error().text);
    return false;
  }
  tools_ = std::make_shared<ExchangeTools>();
  tools_->transport = std::move(*transport);
  return true;
}

void SpoolLinks::tell(const std::string& trouble) {
  if (trouble_ != trouble) spdlog::warn("the spool of {}: {}", site_.name, trouble);
  trouble_ = trouble;
}

void SpoolLinks::want(bool wanted) {
  if (wanted == wanted_) return;
  wanted_ = wanted;
  if (wanted) {
    look_after(kShortestPause);
  } else if (connections_.empty()) {
    timer_.cancel();
  }
}

void SpoolLinks::look_after(std::chrono::milliseconds pause) {
  pause_ = pause;
  timer_.expires_after(pause);
  timer_.async_wait([this, lives = lives_](const boost::system::error_code& error) {
    if (!error && *lives) exchange();
  });
}

/// The engine has something to say: what else it says in this turn goes along.
void SpoolLinks::wake() {
  if (is_exchanging_ || failures_ > 0) {
    has_more_ = true;
  } else if (pause_ > kShortestPause) {
    look_after(kShortestPause);
  }
}

// --- one exchange ------------------------------------------------------------------------------

wire::SpoolOrder SpoolLinks::order() {
  wire::SpoolOrder order;
  order.set_prefix(prefix_);
  order.set_most_bytes(kMostSpoolBytes);
  std::size_t bytes = 0;
  const auto put = [&](const wire::SpoolPiece& piece) {
    bytes += piece.data().size();
    *order.add_pieces() = piece;
  };
  for (auto& [name, connection] : connections_) {
    // Those of an exchange that did not come back are said again: the same number is the same
    // piece.
    for (const wire::SpoolPiece& piece : connection.on_their_way) put(piece);
    while (!connection.unsaid.empty() && bytes < kMostSpoolBytes &&
           connection.waiting + connection.on_their_way.size() < wire::kPiecesUnderWay) {
      wire::SpoolPiece piece;
      piece.set_connection(name);
      piece.set_number(++connection.said);
      piece.set_data(connection.unsaid.substr(0, wire::kLargestPiece));
      connection.unsaid.erase(0, piece.data().size());
      put(piece);
      connection.on_their_way.push_back(std::move(piece));
    }
    if (connection.heard > 0) {
      wire::SpoolPiece* taken = order.add_taken();
      taken->set_connection(name);
      taken->set_number(connection.heard);
    }
    if (connection.is_closed && connection.unsaid.empty()) order.add_closed(name);
  }
  return order;
}

void SpoolLinks::exchange() {
  if (is_exchanging_) return;
  if (!wanted_ && connections_.empty()) return;
  if (!tools_ && !new_tools()) return look_after(kPauseInTrouble);
  is_exchanging_ = true;
  has_more_ = false;
  auto report = std::make_shared<Result<wire::SpoolReport>>(
      Error{Error::Kind::Transient, "the exchange did not come back in time"});
  auto begin = [this, report, order = order().SerializeAsString()]() -> CallLane::Work {
    return [report, order, tools = tools_, program = program_,
            workspace = site_.workspace](Deadline deadline) {
      *report = parsed_report<wire::SpoolReport>(
          run_exchange(*tools, program, "spool", workspace, order, deadline));
    };
  };
  const auto began = std::chrono::steady_clock::now();
  calls_.call(kSpoolExchangeLimit, std::move(begin), [this, report, began](bool given_up) {
    const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(
        std::chrono::steady_clock::now() - began);
    answered(given_up ? Result<wire::SpoolReport>(
                            Error{Error::Kind::Transient, "the exchange did not come back in time"})
                      : *report,
             took);
  });
}

void SpoolLinks::answered(const Result<wire::SpoolReport>& report, std::chrono::milliseconds took) {
  is_exchanging_ = false;
  if (!report) {
    tell(report.error().text);
    return look_after(doubling_pause(kPauseInTrouble, kLongestPauseInTrouble, failures_++));
  }
  failures_ = 0;
  if (report->trouble().empty()) {
    trouble_.clear();
  } else {
    tell(report->trouble());
  }
  const bool is_busy = heard(*report) || has_more_;
  if (!wanted_ && connections_.empty()) return;
  const auto longest = connections_.empty() ? kLongestSpoolPauseAlone : kLongestSpoolPause;
  const auto next =
      is_busy ? kShortestPause
              : std::clamp<std::chrono::milliseconds>(pause_ * 3 / 2, kShortestPause, longest);
  // A site far away is not asked without end.
  look_after(std::max(next, took));
}

bool SpoolLinks::heard(const wire::SpoolReport& report) {
  if (!std::exchange(has_heard_, true)) begin_anew(report);
  bool any = false;
  unsigned begun = 0;
  for (const wire::SpoolPiece& piece : report.pieces()) {
    const std::string& name = piece.connection();
    const auto at = connections_.find(name);
    if (at == connections_.end() && piece.number() != 1) {
      // Its beginning was heard by an engine before this one: the pilot begins anew.
      connections_[name].is_closed = any = true;
    } else if (at == connections_.end()) {
      if (begun < kMostBegun && begin(name)) {
        ++begun;
        any = true;
        hear(connections_.at(name), piece);
      }
    } else if (piece.number() == at->second.heard + 1) {
      any = true;
      hear(at->second, piece);
    }
  }
  std::map<std::string, const wire::SpoolReport::Connection*> there;
  for (const auto& one : report.connections()) there[one.name()] = &one;
  for (auto at = connections_.begin(); at != connections_.end();) {
    const auto shown = there.find(at->first);
    if (shown == there.end()) {
      // The pilot, or what forgets its allocation, has removed it; or it is marked as closed.
      if (at->second.tunnel) at->second.tunnel->close();
      at = connections_.erase(at);
      continue;
    }
    any = passed_on(at->second, *shown->second) || any;
    ++at;
  }
  return any;
}

/// A pilot that was heard by an engine before this one may say nothing for minutes: it is told now
/// to begin anew, and one that has only just begun bears that.
void SpoolLinks::begin_anew(const wire::SpoolReport& first) {
  std::set<std::string> beginning;
  for (const wire::SpoolPiece& piece : first.pieces()) {
    if (piece.number() == 1) beginning.insert(piece.connection());
  }
  for (const auto& one : first.connections()) {
    if (!beginning.contains(one.name())) connections_[one.name()].is_closed = true;
  }
  if (!connections_.empty()) has_more_ = true;
}

void SpoolLinks::hear(Connection& from, const wire::SpoolPiece& piece) {
  from.heard = piece.number();
  if (from.tunnel) from.tunnel->hear(piece.data());
}

/// What the site says of the pieces for one pilot.
bool SpoolLinks::passed_on(Connection& to, const wire::SpoolReport::Connection& shown) {
  bool any = false;
  while (!to.on_their_way.empty() && to.on_their_way.front().number() <= shown.put()) {
    to.not_allowed_yet += to.on_their_way.front().data().size();
    to.on_their_way.pop_front();
    any = true;
  }
  to.waiting = shown.waiting();
  if (to.waiting < wire::kPiecesUnderWay && to.tunnel && to.not_allowed_yet > 0)
    to.tunnel->may_say(std::exchange(to.not_allowed_yet, 0));
  return any;
}

/// False where there is no room for it now: its first piece is heard later.
bool SpoolLinks::begin(const std::string& name) {
  const auto said = [this, name](const std::string& bytes) {
    connections_[name].unsaid += bytes;
    wake();
  };
  const auto closed = [this, name] {
    Connection& one = connections_[name];
    one.tunnel.reset();
    one.is_closed = true;
    wake();
  };
  auto tunnel = Tunnel::make(loop_, {.said = said, .taken = [](std::size_t) {}, .closed = closed});
  if (!tunnel) return false;
  tunnel->may_say(kWindow);
  Connection& made = connections_[name];
  made.tunnel = tunnel;
  connected_(tunnel->take_far_end());
  return true;
}

}  // namespace hpcbatch
