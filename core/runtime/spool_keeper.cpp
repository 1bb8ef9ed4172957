#include "runtime/spool_keeper.hpp"

#include "plugin_host/guarded.hpp"
#include "wire/spool.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

namespace hpcbatch {
namespace {

using namespace std::chrono_literals;

constexpr auto kExchangeLimit = 120s;
constexpr auto kGrace = 10s;
constexpr auto kShortestPause = 50ms;
constexpr auto kLongestPause = 3000ms;
constexpr auto kLongestPauseAlone = 15'000ms;
constexpr auto kPauseInTrouble = 10'000ms;
// Of one exchange, in each direction.
constexpr std::size_t kMostBytes = std::size_t{16} << 20;
constexpr std::size_t kWindow = std::size_t{4} << 20;

}  // namespace

SpoolKeeper::SpoolKeeper(asio::io_context& loop, const PluginHost& plugins, const Site& site,
                         const PilotProgram& program, std::string prefix, Connected connected)
    : loop_(loop),
      plugins_(plugins),
      site_(site),
      program_(program),
      prefix_(std::move(prefix)),
      connected_(std::move(connected)),
      calls_(loop, kGrace, [this] { return new_tools(); }),
      timer_(loop) {}

SpoolKeeper::~SpoolKeeper() {
  *lives_ = false;
  for (auto& [name, connection] : connections_) {
    if (connection.carried) connection.carried->close();
  }
}

bool SpoolKeeper::new_tools() {
  auto transport = plugins_.transport(site_.transport, site_.transport_config);
  if (!transport) {
    state_ = transport.error().text;
    return false;
  }
  tools_ = std::make_shared<Tools>();
  tools_->transport = std::move(*transport);
  return true;
}

void SpoolKeeper::want(bool wanted) {
  if (wanted == wanted_) return;
  wanted_ = wanted;
  if (wanted) {
    state_ = "is looked at";
    look_after(kShortestPause);
  } else if (connections_.empty()) {
    state_ = "is not wanted";
    timer_.cancel();
  }
}

void SpoolKeeper::look_after(std::chrono::milliseconds pause) {
  pause_ = pause;
  timer_.expires_after(pause);
  timer_.async_wait([this, lives = lives_](const boost::system::error_code& error) {
    if (!error && *lives) exchange();
  });
}

/// The engine has something to say: what else it says in this turn goes along.
void SpoolKeeper::wake() {
  if (is_exchanging_) {
    has_more_ = true;
  } else if (pause_ > kShortestPause) {
    look_after(kShortestPause);
  }
}

// --- one exchange ------------------------------------------------------------------------------

wire::SpoolOrder SpoolKeeper::order() {
  wire::SpoolOrder order;
  order.set_prefix(prefix_);
  order.set_most_bytes(kMostBytes);
  std::size_t bytes = 0;
  for (auto& [name, connection] : connections_) {
    while (!connection.unsaid.empty() && connection.on_their_way.size() < wire::kPiecesUnderWay &&
           bytes < kMostBytes) {
      wire::SpoolPiece piece;
      piece.set_connection(name);
      piece.set_number(++connection.said);
      piece.set_data(connection.unsaid.substr(0, wire::kLargestPiece));
      connection.unsaid.erase(0, piece.data().size());
      bytes += piece.data().size();
      connection.on_their_way.push_back(std::move(piece));
    }
    // Those of an exchange that did not come back are said again: the same number is the same
    // piece.
    for (const wire::SpoolPiece& piece : connection.on_their_way) *order.add_pieces() = piece;
    if (connection.heard > 0) {
      wire::SpoolPiece* taken = order.add_taken();
      taken->set_connection(name);
      taken->set_number(connection.heard);
    }
    if (connection.is_closed && connection.unsaid.empty()) order.add_closed(name);
  }
  return order;
}

void SpoolKeeper::exchange() {
  if (is_exchanging_) return;
  if (!wanted_ && connections_.empty()) return;
  if (!tools_ && !new_tools()) return look_after(kPauseInTrouble);
  is_exchanging_ = true;
  has_more_ = false;
  auto report = std::make_shared<Result<wire::SpoolReport>>(
      Error{Error::Kind::Transient, "the exchange did not come back in time"});
  auto begin = [this, report,
                input = wire::sealed_exchange(order().SerializeAsString())]() -> CallLane::Work {
    return [report, input, tools = tools_, program = program_,
            workspace = site_.workspace](Deadline deadline) {
      *report = guarded("transport", [&]() -> Result<wire::SpoolReport> {
        if (!tools->program_is_there) {
          if (auto delivered = program.deliver(*tools->transport, workspace, deadline); !delivered)
            return delivered.error();
          tools->program_is_there = true;
        }
        const auto output =
            tools->transport->run({.argv = {program.path_in(workspace), "spool", workspace},
                                   .environment = {},
                                   .input = input},
                                  deadline);
        if (!output) return output.error();
        if (output->timed_out)
          return Error{Error::Kind::Transient, "the exchange did not end in time"};
        if (output->exit_code != 0) {
          tools->program_is_there = false;
          return Error{
              Error::Kind::Transient,
              fmt::format("the exchange failed (exit {}): {}", output->exit_code,
                          output->standard_error.substr(0, output->standard_error.find('\n')))};
        }
        const auto text = wire::opened_exchange(output->standard_output);
        wire::SpoolReport answer;
        if (!text || !answer.ParseFromString(*text))
          return Error{Error::Kind::Transient, "the exchange's answer cannot be read" +
                                                   (text ? "" : ": " + text.error().text)};
        return answer;
      });
    };
  };
  calls_.call(kExchangeLimit, std::move(begin), [this, report](bool given_up) {
    answered(given_up ? Result<wire::SpoolReport>(
                            Error{Error::Kind::Transient, "the exchange did not come back in time"})
                      : *report);
  });
}

void SpoolKeeper::answered(const Result<wire::SpoolReport>& report) {
  is_exchanging_ = false;
  if (!report) {
    if (state_ != report.error().text)
      spdlog::warn("the spool of {}: {}", site_.name, report.error().text);
    state_ = report.error().text;
    return look_after(kPauseInTrouble);
  }
  state_ = wanted_ ? "is looked at" : "is not wanted";
  const bool said = std::any_of(connections_.begin(), connections_.end(),
                                [](const auto& one) { return !one.second.on_their_way.empty(); });
  heard(*report);
  const auto longest =
      connections_.empty() && site_.link == LinkKind::Auto ? kLongestPauseAlone : kLongestPause;
  const bool is_busy = said || has_more_ || report->pieces_size() > 0;
  if (!wanted_ && connections_.empty()) return;
  look_after(is_busy
                 ? kShortestPause
                 : std::clamp<std::chrono::milliseconds>(pause_ * 3 / 2, kShortestPause, longest));
}

void SpoolKeeper::heard(const wire::SpoolReport& report) {
  for (auto& [name, connection] : connections_) {
    for (const wire::SpoolPiece& piece : connection.on_their_way)
      connection.not_allowed_yet += piece.data().size();
    connection.on_their_way.clear();
  }
  std::map<std::string, std::uint64_t> there;
  for (const auto& one : report.connections()) there[one.name()] = one.waiting();
  for (const wire::SpoolPiece& piece : report.pieces()) {
    if (!there.contains(piece.connection())) continue;
    if (!connections_.contains(piece.connection()) && piece.number() != 1) {
      // Its beginning was heard by an engine before this one: the pilot begins anew.
      connections_[piece.connection()].is_closed = true;
      continue;
    }
    Connection& from = connection(piece.connection());
    if (piece.number() != from.heard + 1) continue;
    from.heard = piece.number();
    if (from.carried) from.carried->hear(piece.data());
  }
  for (auto at = connections_.begin(); at != connections_.end();) {
    Connection& one = at->second;
    const auto waiting = there.find(at->first);
    if (waiting == there.end()) {
      // The pilot, or what forgets its allocation, has removed it; or it is marked as closed.
      if (one.carried) one.carried->close();
      at = connections_.erase(at);
      continue;
    }
    if (waiting->second < wire::kPiecesUnderWay && one.carried && one.not_allowed_yet > 0)
      one.carried->may_say(std::exchange(one.not_allowed_yet, 0));
    ++at;
  }
}

SpoolKeeper::Connection& SpoolKeeper::connection(const std::string& name) {
  const auto [at, is_new] = connections_.try_emplace(name);
  Connection& made = at->second;
  if (!is_new) return made;
  made.carried = std::make_shared<Carried>(
      loop_, Carried::Callbacks{.said =
                                    [this, name](std::string bytes) {
                                      connections_[name].unsaid += bytes;
                                      wake();
                                    },
                                .taken = [](std::size_t) {},
                                .closed =
                                    [this, name] {
                                      Connection& one = connections_[name];
                                      one.carried.reset();
                                      one.is_closed = true;
                                      wake();
                                    }});
  made.carried->may_say(kWindow);
  connected_(made.carried->take_far_end());
  return made;
}

}  // namespace hpcbatch
