#include "web/gate.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <stdexcept>
#include <system_error>

#include <sys/random.h>

namespace hpcbatch::web {
namespace {

using Kind = Decision::Kind;

constexpr std::string_view kCookie = "hpcbatch-web-";
constexpr std::string_view kMetrics = "/metrics";
constexpr std::string_view kBearer = "Bearer ";  // RFC 6750, 2.1
constexpr std::array<std::string_view, 6> kFiles{"/app.js",   "/views.js",  "/style.css",
                                                 "/uplot.js", "/uplot.css", "/icon.svg"};
/// What the page asks the engine.  The rest of the API is not for it: stopping, submitting, files.
constexpr std::array<std::string_view, 9> kSeen{
    "engine", "tasks", "arrays", "sites", "allocations", "pilots", "waits", "report", "dropboxes"};
constexpr std::array<std::string_view, 4> kTaskChanges{"tasks/cancel", "tasks/hold",
                                                       "tasks/release", "tasks/retry"};

Decision refused(int status, std::string text) {
  return {Kind::Refuse, status, std::move(text)};
}

/// Takes as long for any two texts of one length: time must not tell how much of a guess is right.
bool is_same(std::string_view a, std::string_view b) {
  if (a.size() != b.size() || a.empty()) return false;
  unsigned difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    difference |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]);
  return difference == 0;
}

/// The name without the port: behind `ssh -L` the port is another.  A name that merely leads to this
/// machine is none of these, so that nobody's page becomes ours by what its name leads to.
bool is_this_machine(std::string_view host) {
  const auto end =
      host.starts_with('[') ? host.find(']') + 1 : std::min(host.find(':'), host.size());
  const std::string_view name = host.substr(0, end);
  const std::string_view port = host.substr(end);
  const bool has_good_port = port.empty() || (port.starts_with(':') &&
                                              port.find_first_not_of("0123456789", 1) == port.npos);
  return has_good_port && (name == "127.0.0.1" || name == "localhost" || name == "[::1]");
}

bool is_plain(std::string_view target) {
  constexpr std::string_view kOthers = "-._~%/?&=:@,+*!";
  return target.find("..") == target.npos && target.find("//") == target.npos &&
         std::all_of(target.begin(), target.end(), [&](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  kOthers.find(c) != kOthers.npos;
         });
}

/// The rules below compare paths as they were sent, and the engine decodes them: no part may be
/// empty, and no letter, digit, `-`, `.` or `_` written as %XX (RFC 3986, 2.3).
bool has_one_spelling(std::string_view path) {
  if (path.size() > 1 && path.ends_with('/')) return false;
  for (auto at = path.find('%'); at != path.npos; at = path.find('%', at + 1)) {
    unsigned code = 0;
    const char* const begin = path.data() + at + 1;
    const char* const end = begin + std::min<std::size_t>(2, path.size() - at - 1);
    if (const auto [stop, error] = std::from_chars(begin, end, code, 16);
        error != std::errc{} || stop != begin + 2)
      return false;
    const char c = static_cast<char>(code);
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
        c == '.' || c == '_')
      return false;
  }
  return true;
}

bool is_seen(std::string_view path) {
  const std::string_view first = path.substr(0, path.find('/'));
  return std::find(kSeen.begin(), kSeen.end(), first) != kSeen.end() &&
         !path.ends_with("/past-jobs");
}

bool is_change(std::string_view path) {
  if (std::find(kTaskChanges.begin(), kTaskChanges.end(), path) != kTaskChanges.end()) return true;
  if (!path.starts_with("sites/")) return false;
  path.remove_prefix(6);
  const auto slash = path.find('/');
  return slash != 0 && slash != path.npos && path.substr(slash) == "/resume";
}

Decision looked_at(std::string_view path, std::string_view target) {
  if (path == "/") return {Kind::File, 200, "/index.html"};
  if (std::find(kFiles.begin(), kFiles.end(), path) != kFiles.end())
    return {Kind::File, 200, std::string(path)};
  if (path == kMetrics) return {Kind::Engine, 200, "/v1/metrics"};
  if (path == "/live") return {Kind::Live, 200, ""};
  if (path.starts_with("/api/") && is_seen(path.substr(5)))
    return {Kind::Engine, 200, "/v1/" + std::string(target.substr(5))};
  return refused(404, "there is nothing here");
}

}  // namespace

Decision Gate::admit(std::string_view token) {
  if (!is_same(token, token_))
    return refused(
        403,
        "this link was used already, or belongs to another page; `hpcbatch web` prints a new one");
  token_.clear();
  return {Kind::Admit, 303, std::string(kCookie) + session_.substr(0, 8) + "=" + session_};
}

bool Gate::knows(std::string_view cookies) const {
  const std::string name = std::string(kCookie) + session_.substr(0, 8) + "=";
  while (!cookies.empty()) {
    const auto end = std::min(cookies.find(';'), cookies.size());
    std::string_view one = cookies.substr(0, end);
    one.remove_prefix(std::min(one.find_first_not_of(' '), one.size()));
    if (one.starts_with(name) && is_same(one.substr(name.size()), session_)) return true;
    cookies.remove_prefix(std::min(end + 1, cookies.size()));
  }
  return false;
}

Decision Gate::decide(const Asked& asked) {
  if (door_ == Door::Loopback) {
    if (!is_this_machine(asked.host))
      return refused(421, "this page is at 127.0.0.1 and localhost only");
    if (!asked.origin.empty() && asked.origin != "http://" + asked.host)
      return refused(403, "a page of another origin asked");
  }
  if (!is_plain(asked.target)) return refused(400, "this is no address of the page");
  const std::string_view target = asked.target;
  if (asked.method == "GET" && target.starts_with("/?token=")) return admit(target.substr(8));
  if (asked.method == "GET" && target == kMetrics && asked.authorization.starts_with(kBearer)) {
    if (is_same(std::string_view(asked.authorization).substr(kBearer.size()), metrics_token_))
      return looked_at(target, target);
    return refused(401, "this is not the token of the file that `--metrics-token` named");
  }
  if (door_ == Door::Loopback && !knows(asked.cookies))
    return refused(
        403,
        "open the link that `hpcbatch web` has printed; if it was used, run `hpcbatch web` again");
  const std::string_view path = target.substr(0, target.find('?'));
  if (!has_one_spelling(path)) return refused(400, "this is no address of the page");
  if (asked.method == "GET") return looked_at(path, target);
  if (asked.method != "POST") return refused(405, "only GET and POST are known here");
  if (asked.mark.empty()) return refused(403, "this was not asked by the page");
  if (!path.starts_with("/api/") || !is_change(path.substr(5)))
    return refused(404, "there is nothing here");
  if (!may_change_) return refused(403, "this page only looks (--view)");
  return {Kind::Engine, 200, "/v1/" + std::string(target.substr(5))};
}

std::string secret() {
  constexpr std::string_view kLetters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz012345";
  std::array<unsigned char, 64> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    throw std::runtime_error("cannot draw a secret: getrandom failed");
  std::string text;
  // 58 letters: of 256 values those below 232 are shared out evenly.
  for (const unsigned char byte : bytes)
    if (byte < 232) text += kLetters[byte % kLetters.size()];
  return text.size() < 44 ? secret() : text.substr(0, 44);
}

}  // namespace hpcbatch::web
