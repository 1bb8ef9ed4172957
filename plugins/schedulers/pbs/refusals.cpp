#include "submission.hpp"

#include "dialect.hpp"

#include <algorithm>
#include <array>
#include <sstream>
#include <string_view>

namespace hpcbatch::pbs {
namespace {

// Parts of the texts of OpenPBS, Torque and SLURM, in lower case, and the numbers of OpenPBS's
// errors (15000 and more), of which an exit code keeps what is left modulo 256.

// Nobody was reached.
// What the server says to a host or a user that it never takes anything from.
constexpr std::array<std::string_view, 1> kUnwelcome{"access from host not allowed"};
constexpr std::array<std::string_view, 9> kNoContact{
    "cannot connect to",      "could not connect to",     "unable to connect to",
    "connection refused",     "(connect failure)",        "no route to host",
    "network is unreachable", "no permission to connect", "unknown host"};
// The request may have reached the server.
constexpr std::array<std::string_view, 16> kUnclear{"failed to save job",
                                                    "timeout",
                                                    "timed out",
                                                    "end of file",
                                                    "premature end",
                                                    "protocol",
                                                    "communication failure",
                                                    "connection reset",
                                                    "connection lost",
                                                    "broken pipe",
                                                    "transport endpoint",
                                                    "(send failure)",
                                                    "(receive failure)",
                                                    "message receive failure",
                                                    "zero bytes were transmitted",
                                                    "internal server error"};
constexpr std::array<std::string_view, 10> kLimit{
    "maximum number of jobs", "max number of jobs",
    "would exceed queue",     "would exceed complex",
    "would exceed server",    "would exceed limit",
    "per-user limit",         "job violates accounting/qos policy",
    "maxjobcount limit",      "exceeds queue limit on number"};
// A limit of SLURM's on what one batch job asks for is not reached by having many.
constexpr std::array<std::string_view, 2> kPerJob{"perjob", "pernode"};
// "script file:": it had just been written, so a file system is away.
constexpr std::array<std::string_view, 19> kTransient{"script file:",
                                                      "queue is not enabled",
                                                      "queue not enabled",
                                                      "not accepting",
                                                      "shutting down",
                                                      "server is down",
                                                      "no free connections",
                                                      "no server to connect",
                                                      "connection table full",
                                                      "temporarily",
                                                      "try again",
                                                      "floating license",
                                                      "licenses are",
                                                      "license is invalid",
                                                      "rate limit exceeded",
                                                      "authentication credential",
                                                      "cannot allocate memory",
                                                      "no space left on device",
                                                      "input/output error"};

// The numbers of PBSE_PROTOCOL, PBSE_INTERNAL, PBSE_SYSTEM, PBSE_DISPROTO.
constexpr std::array kUnclearCodes{15031, 15011, 15010, 15056};
// PBSE_MAXQUED, PBSE_ENTLIMCT, PBSE_ENTLIMRESC.
constexpr std::array kLimitCodes{15046, 15142, 15143};
// PBSE_QUNOENB, PBSE_NOCONNECTS, PBSE_NOSERVER, PBSE_RESCUNAV, PBSE_SVRDOWN, PBSE_CONNFULL,
// PBSE_TRYAGAIN.
constexpr std::array kTransientCodes{15021, 15033, 15034, 15044, 15060, 15117, 15208};

template <std::size_t N>
bool has_one_of(std::string_view text, const std::array<std::string_view, N>& phrases) {
  return std::any_of(phrases.begin(), phrases.end(), [&](std::string_view phrase) {
    return text.find(phrase) != std::string_view::npos;
  });
}

template <std::size_t N>
bool is_one_of(int exit_code, const std::array<int, N>& numbers) {
  return std::any_of(numbers.begin(), numbers.end(),
                     [&](int number) { return number % 256 == exit_code; });
}

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

template <std::size_t N>
std::string without_lines_of(const std::string& text,
                             const std::array<std::string_view, N>& phrases) {
  std::string kept;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!has_one_of(line, phrases)) kept += line + "\n";
  }
  return kept;
}

Refusal classify(const CommandOutput& output, const std::string& text) {
  // By a signal, or as a shell says it of its child: the request may have been under way.
  constexpr int kSignalled = 128;
  constexpr int kSignals = 24;  // beyond them lie the numbers of PBS
  const int code = output.exit_code;
  const bool was_signalled = code > kSignalled && code < kSignalled + kSignals;
  if (output.timed_out || code <= 0 || was_signalled) return Refusal::Unclear;
  if (text.find("cannot tell which pbs") != std::string::npos) {
    return text.find("not found") == std::string::npos ? Refusal::Transient : Refusal::Permanent;
  }
  // Of a client that tried twice: the first time may have been enough.
  if (has_one_of(without_lines_of(text, kNoContact), kUnclear)) return Refusal::Unclear;
  if (has_one_of(text, kUnwelcome)) return Refusal::Permanent;
  if (has_one_of(text, kNoContact)) return Refusal::Transient;
  if (has_one_of(text, kLimit))
    return has_one_of(text, kPerJob) ? Refusal::Permanent : Refusal::Limit;
  if (has_one_of(text, kTransient)) return Refusal::Transient;
  const bool qsub_spoke =
      text.find("qsub: ") != std::string::npos || text.find("sbatch: ") != std::string::npos;
  if (qsub_spoke && is_one_of(code, kUnclearCodes)) return Refusal::Unclear;
  if (qsub_spoke && is_one_of(code, kLimitCodes)) return Refusal::Limit;
  if (qsub_spoke && is_one_of(code, kTransientCodes)) return Refusal::Transient;
  constexpr int kNotExecutable = 126;  // 126 and 127: a shell's words
  const bool is_absent = code == kNotExecutable || code == kNotExecutable + 1;
  const bool is_usage = text.find("usage: qsub") != std::string::npos;
  // A hook of the site's own speaks with qsub's voice too.
  return qsub_spoke || is_absent || is_usage ? Refusal::Permanent : Refusal::Unclear;
}

/// "1234", "1234.server", "1234.server:15051" of one that listens elsewhere
bool is_number(std::string_view text) {
  const auto end = std::min(text.find_first_not_of("0123456789"), text.size());
  if (end == 0) return false;
  if (end == text.size()) return true;
  constexpr std::string_view kHost =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_:";
  return text[end] == '.' && end + 1 < text.size() &&
         text.find_first_not_of(kHost, end) == std::string_view::npos;
}

}  // namespace

std::variant<std::string, SubmitRefused> read_qsub(const CommandOutput& output) {
  std::vector<std::string> numbers;
  std::istringstream lines(output.standard_output);
  for (std::string line; std::getline(lines, line);) {
    if (is_number(line)) numbers.push_back(line);
  }
  if (!output.timed_out && output.exit_code == 0) {
    // Two numbers: a banner has one in it, and nobody can say which.
    if (numbers.size() == 1) return numbers.front();
    return SubmitRefused{
        Refusal::Unclear,
        "qsub printed no number: " + one_line(output.standard_output + output.standard_error)};
  }
  std::string text = one_line(output.standard_error);
  if (text.empty()) text = one_line(output.standard_output);
  if (output.timed_out) {
    text = "no answer in time" + (text.empty() ? "" : ": " + text);
  } else if (text.empty()) {
    text = "exit " + std::to_string(output.exit_code);
  }
  const std::string said =
      lower(output.standard_error + "\n" + without_echo(output.standard_output));
  // A site's own qsub may submit and then fail.
  return SubmitRefused{numbers.empty() ? classify(output, said) : Refusal::Unclear, text};
}

}  // namespace hpcbatch::pbs
