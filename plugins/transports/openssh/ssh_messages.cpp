#include "ssh_messages.hpp"

#include "../common/login_errors.hpp"

#include <algorithm>
#include <array>
#include <string_view>

namespace hpcbatch {
namespace {

namespace words = login_errors;

/// What follows `before`, up to one of `ends`.
std::string after(const std::string& text, std::string_view before, std::string_view ends) {
  const auto at = text.find(before);
  if (at == std::string::npos) return {};
  const auto from = at + before.size();
  return text.substr(from, text.find_first_of(ends, from) - from);
}

std::string fingerprint_in(const std::string& text) {
  const std::string hash = after(text, "SHA256:", " \r\n.");
  return hash.empty() ? "" : "SHA256:" + hash;
}

/// What follows the line in which `at` is.
std::string after_line(const std::string& text, std::size_t at) {
  const auto end = text.find('\n', at);
  const auto next = end == std::string::npos ? end : text.find_first_not_of("\r\n", end);
  return next == std::string::npos ? "" : text.substr(next);
}

std::string last_line(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  return text.substr(text.rfind('\n') + 1);
}

}  // namespace

bool line_was_lost(const std::string& said) {
  static constexpr std::array kLost{"Connection to ", "closed by remote host", "Broken pipe",
                                    "reset by peer", "Timeout, server"};
  const std::string last = last_line(said);
  return std::any_of(kLost.begin(), kLost.end(),
                     [&](const char* text) { return last.find(text) != std::string::npos; });
}

namespace {

/// Where a host on the way is what failed.
std::optional<Error> jump_error(const std::string& target, const std::string& said) {
  const auto says = [&](const char* text) { return said.find(text) != std::string::npos; };
  if (says("stdio forwarding failed"))
    return words::not_through_jump(target, after(said, "open failed: ", "\r\n"));
  // A command on the way (ProxyCommand, ProxyJump) has no peer with an address, and what it says is
  // not heard where the connection is kept.
  if (says("UNKNOWN port 65535")) return words::not_through_jump(target, {});
  return std::nullopt;
}

}  // namespace

Error program_error(const WhoAndHow& who, const std::string& said) {
  const auto says = [&](const char* text) { return said.find(text) != std::string::npos; };
  const std::string& target = who.target;
  if (says("REVOKED HOST KEY"))
    return words::revoked_host_key(target, fingerprint_in(said), after(said, "key file ", ":"));
  if (says("HOST IDENTIFICATION HAS CHANGED")) {
    // The line before names a file too, to which the new key is to be added.
    const auto offending = said.find("Offending");
    std::string file =
        after(said.substr(offending == std::string::npos ? 0 : offending), "key in ", "\r\n");
    return words::changed_host_key(target, fingerprint_in(said), file.substr(0, file.rfind(':')));
  }
  if (says("host key is known for") || says("Host key verification failed"))
    return words::unknown_host_key(target, fingerprint_in(said),
                                   who.by_hand + " (it shows the fingerprint and asks)");
  if (says("UNPROTECTED PRIVATE KEY FILE")) return words::key_too_open(after(said, " for '", "'"));
  // Then ssh tries a login of its own, and what follows is about that.
  constexpr std::string_view kFull = "Session open refused by peer";
  if (const auto full = said.find(kFull); full != std::string::npos) {
    const std::string rest = after_line(said, full);
    return rest.empty()
               ? words::channel_refused(target, std::string(kFull))
               : words::shared_is_full(target, std::string(kFull), program_error(who, rest));
  }
  if (auto jump = jump_error(target, said)) return *jump;
  if (says("open failed")) return words::channel_refused(target, last_line(said));
  if (says("Permission denied (") || says("Too many authentication failures")) {
    const std::string offered = after(said, "Permission denied (", ")");
    const std::string remedy =
        "look at 'user' and 'identity', or open the connection at a terminal: " + who.open_master;
    const bool asks = offered.find("keyboard-interactive") != std::string::npos ||
                      offered.find("password") != std::string::npos;
    if (asks) return words::needs_person(target, offered, remedy);
    return words::not_let_in(target, "the keys and agent that ssh knows of", offered, remedy);
  }
  if (says("Could not resolve hostname")) return words::name_not_known(target, {});
  if (says("Connection refused")) return words::refused(target);
  if (says("timed out")) return words::timed_out(target, "while connecting");
  if (says("No route to host") || says("Network is unreachable"))
    return words::no_route(target, {});
  if (says("Connection closed by") || says("Connection reset by") ||
      says("kex_exchange_identification"))
    return words::closed_by_server(target, last_line(said));
  Error error = words::other(target, last_line(said));
  static constexpr std::array kOursToMend{"Bad configuration option", "bad configuration option",
                                          "Bad owner or permissions", "Can't open user config",
                                          "unknown option",           "command-line line"};
  if (std::any_of(kOursToMend.begin(), kOursToMend.end(), says)) error.kind = Error::Kind::Rejected;
  return error;
}

}  // namespace hpcbatch
