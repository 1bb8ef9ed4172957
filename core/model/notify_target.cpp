#include "model/notify_target.hpp"

#include <algorithm>

namespace hpcbatch {
namespace {

constexpr std::string_view kFailed = "failed:", kMail = "mail:", kCommand = "command:",
                           kHttps = "https://", kHttp = "http://";

/// No more than a header of a mail and a line of curl's can hold as it stands.
constexpr std::size_t kLongestTarget = 2000, kLongestAddress = 254;

bool is_letter_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool are_all(std::string_view text, std::string_view others) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [&](char c) {
    return is_letter_or_digit(c) || others.find(c) != others.npos;
  });
}

/// One mailbox, of this machine or elsewhere: neither a list nor a header more.
bool is_address(std::string_view text) {
  const auto at = text.find('@');
  const std::string_view name = text.substr(0, at);
  const bool has_good_name = are_all(name, "._%+=-") && name.front() != '-';
  return text.size() <= kLongestAddress && has_good_name &&
         (at == text.npos || are_all(text.substr(at + 1), ".-"));
}

std::string_view host_of(std::string_view url) {
  url.remove_prefix(std::min(url.find("://") + 3, url.size()));
  url = url.substr(0, url.find_first_of("/?#"));
  return url.substr(url.rfind('@') + 1);
}

bool is_this_machine(std::string_view host) {
  const std::string_view name = host.substr(0, host.rfind(':'));
  return host.starts_with("[::1]") || name == "localhost" || name == "127.0.0.1";
}

bool is_url(std::string_view text) {
  const auto is_plain = [](char c) { return c > ' ' && c < 127 && c != '"' && c != '\\'; };
  return std::all_of(text.begin(), text.end(), is_plain) && !host_of(text).empty() &&
         (text.starts_with(kHttps) || is_this_machine(host_of(text)));
}

std::string quoted(std::string_view text) {
  return "'" + std::string(text.substr(0, 200)) + "'";
}

}  // namespace

std::variant<NotifyTarget, std::string> parse_notify_target(std::string_view text) {
  using Kind = NotifyTarget::Kind;
  const std::string_view whole = text;
  NotifyTarget target;
  if (text == "none") return target;
  if (text.size() > kLongestTarget) return quoted(text) + "... is too long";
  target.only_failed = text.starts_with(kFailed);
  if (target.only_failed) text.remove_prefix(kFailed.size());
  if (text.starts_with(kMail)) {
    target.kind = Kind::Mail;
    target.to = text.substr(kMail.size());
    if (target.to.empty() || is_address(target.to)) return target;
    return quoted(whole) + " names no mail address; write for example mail:me@example.org";
  }
  if (text.starts_with(kCommand)) {
    target.kind = Kind::Program;
    target.to = text.substr(kCommand.size());
    if (target.to.starts_with('/') && target.to.find('\0') == target.to.npos) return target;
    return quoted(whole) +
           " must name a program by its absolute path, without arguments, as "
           "command:/home/me/told.sh";
  }
  if (text.starts_with(kHttps) || text.starts_with(kHttp)) {
    target.kind = Kind::Webhook;
    target.to = text;
    if (is_url(text)) return target;
    return quoted(whole) +
           " is no address of a webhook; write https://HOST/PATH (http:// only for "
           "localhost)";
  }
  return quoted(whole) +
         " says nobody to tell; write mail:ADDRESS, command:/PROGRAM, https://HOST/PATH, each with "
         "failed: before it or without, or none";
}

std::string show_target(const NotifyTarget& target) {
  switch (target.kind) {
    case NotifyTarget::Kind::Mail:
      return std::string(kMail) + target.to;
    case NotifyTarget::Kind::Program:
      return std::string(kCommand) + target.to;
    case NotifyTarget::Kind::Webhook:
      return "the webhook of " + std::string(host_of(target.to));
    case NotifyTarget::Kind::Nobody:
      break;
  }
  return "none";
}

}  // namespace hpcbatch
