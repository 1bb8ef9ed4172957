#include "login.hpp"

#include <algorithm>

namespace hpcbatch::login_errors {
namespace {

Error transient(const std::string& text) {
  return {Error::Kind::Transient, text};
}
Error rejected(const std::string& text) {
  return {Error::Kind::Rejected, text};
}
std::string in_brackets(const std::string& text) {
  return text.empty() ? "" : " (" + text + ")";
}

}  // namespace

Error unknown_host_key(const std::string& target, const std::string& fingerprint,
                       const std::string& remedy) {
  return rejected("cannot log in to " + target + ": its host key" +
                  (fingerprint.empty() ? "" : " " + fingerprint) +
                  " is not known; compare the fingerprint with what the site publishes, and if it "
                  "is the same, run: " +
                  remedy);
}

Error changed_host_key(const std::string& target, const std::string& fingerprint,
                       const std::string& file) {
  return rejected(
      "REFUSED to log in to " + target + ": its HOST KEY HAS CHANGED" +
      (fingerprint.empty() ? "" : " to " + fingerprint) +
      ", so somebody may be listening in its place; nothing is sent there until a person "
      "has asked the site and removed the old key from " +
      (file.empty() ? "the file of known hosts" : file));
}

Error revoked_host_key(const std::string& target, const std::string& fingerprint,
                       const std::string& file) {
  return rejected("REFUSED to log in to " + target + ": its HOST KEY IS REVOKED" +
                  in_brackets(fingerprint) + " by a line of " +
                  (file.empty() ? "the file of known hosts" : file) +
                  ", so whoever answers there may have stolen it; nothing is sent there until the "
                  "site has a new key");
}

Error not_let_in(const std::string& target, const std::string& tried, const std::string& offered,
                 const std::string& remedy) {
  return rejected("cannot log in to " + target + ": the server took none of what was tried" +
                  in_brackets(tried) + (offered.empty() ? "" : "; it offers " + offered) + "; " +
                  remedy);
}

Error needs_person(const std::string& target, const std::string& offered,
                   const std::string& remedy) {
  return rejected("cannot log in to " + target + ": the server wants a person to answer" +
                  in_brackets(offered) + "; " + remedy);
}

Error key_too_open(const std::string& file) {
  return rejected("refused to use the key " + file +
                  ": others than its owner may read it; run: chmod 600 " + file);
}

Error name_not_known(const std::string& target, const std::string& why) {
  return transient("cannot log in to " + target + ": the name of the host is not known" +
                   in_brackets(why) + "; look at 'host' and at this machine's network");
}

Error refused(const std::string& target) {
  return transient("cannot log in to " + target +
                   ": connection refused; no ssh server listens there, look at 'host' and 'port'");
}

Error timed_out(const std::string& target, const std::string& while_doing) {
  return transient("cannot log in to " + target + ": timed out " + while_doing +
                   "; the host is down, overloaded or behind a firewall");
}

Error no_route(const std::string& target, const std::string& why) {
  return transient("cannot log in to " + target + ": no route to it" + in_brackets(why) +
                   "; look at the network and whether a VPN is needed");
}

Error closed_by_server(const std::string& target, const std::string& why) {
  return transient("cannot log in to " + target + ": the server closed the connection" +
                   in_brackets(why) + "; there may be too many logins at once");
}

Error channel_refused(const std::string& target, const std::string& why) {
  return transient("cannot run a command on " + target +
                   ": the server refused the first channel of a new login" + in_brackets(why) +
                   "; ask the site whether it lets you run commands there at all (MaxSessions, "
                   "ForceCommand)");
}

Error shared_is_full(const std::string& target, const std::string& why, const Error& own) {
  return {own.kind,
          "cannot run a command on " + target +
              ": the server refused another channel of the shared connection" + in_brackets(why) +
              "; its MaxSessions may be reached; and a login of its own failed: " + own.text};
}

Error not_through_jump(const std::string& target, const std::string& why) {
  return transient("cannot log in to " + target + ": the host on the way there could not connect" +
                   in_brackets(why) + "; look at 'host', 'port' and ProxyJump");
}

Error lost(const std::string& target, const std::string& why) {
  return transient("the connection to " + target + " was lost" + in_brackets(why) +
                   "; the next call logs in again");
}

Error other(const std::string& target, const std::string& why) {
  return transient("cannot log in to " + target + ": " +
                   (why.empty() ? "ssh did not say why" : why));
}

}  // namespace hpcbatch::login_errors

namespace hpcbatch {

void BackOff::failed(const Error& error, Clock::time_point now) {
  constexpr unsigned kMostDoublings = 10;
  constexpr double kLongest = 60;
  constexpr double kLongestRefused = 600;
  const double longest = std::min(error.kind == Error::Kind::Rejected ? kLongestRefused : kLongest,
                                  static_cast<double>(1u << std::min(failures_, kMostDoublings)));
  // Many that failed together are not to come again together.
  const double pause = std::max(1.0, longest * std::uniform_real_distribution<>(0.6, 1.0)(random_));
  ++failures_;
  until_ = now + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(pause));
  reason_ = error.text;
}

std::optional<Error> BackOff::pause(Clock::time_point now) const {
  if (failures_ == 0 || now >= until_) return std::nullopt;
  const auto left = std::chrono::ceil<std::chrono::seconds>(until_ - now).count();
  return Error{Error::Kind::Transient, reason_ + " (login " + std::to_string(failures_) +
                                           " that failed; the next is tried in " +
                                           std::to_string(left) + " s)"};
}

}  // namespace hpcbatch
