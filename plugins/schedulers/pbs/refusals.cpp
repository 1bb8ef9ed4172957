#include "submission.hpp"

#include "../common/submit_answer.hpp"
#include "dialect.hpp"

#include <algorithm>
#include <array>
#include <sstream>
#include <string_view>

namespace hpcbatch::pbs {
namespace {

using submit_answer::has_one_of;
using submit_answer::kSignalled;
using submit_answer::lower_case;

// Parts of the texts of OpenPBS, Torque and SLURM, in lower case, and the numbers of OpenPBS's
// errors (15000 and more), of which an exit code keeps what is left modulo 256.

// What the server says to a host or a user that it never takes anything from.
constexpr std::array<std::string_view, 1> kUnwelcome{"access from host not allowed"};
// Nobody was reached.
constexpr std::array<std::string_view, 9> kNoContact{
    "cannot connect to",      "could not connect to",     "unable to connect to",
    "connection refused",     "(connect failure)",        "no route to host",
    "network is unreachable", "no permission to connect", "unknown host"};
// The request may have reached the server.
constexpr std::array<std::string_view, 8> kUnclear{
    "failed to save job",    "timeout",         "end of file",          "premature end", "protocol",
    "communication failure", "connection lost", "internal server error"};
constexpr std::array<std::string_view, 8> kLimit{
    "maximum number of jobs", "max number of jobs",           "would exceed queue",
    "would exceed complex",   "would exceed server",          "would exceed limit",
    "per-user limit",         "exceeds queue limit on number"};
// "script file:": it had just been written, so a file system is away.
constexpr std::array<std::string_view, 13> kTransient{
    "script file:",          "queue is not enabled", "queue not enabled",   "not accepting",
    "shutting down",         "server is down",       "no free connections", "no server to connect",
    "connection table full", "temporarily",          "floating license",    "licenses are",
    "license is invalid"};

// The numbers of PBSE_PROTOCOL, PBSE_INTERNAL, PBSE_SYSTEM, PBSE_DISPROTO.
constexpr std::array kUnclearCodes{15031, 15011, 15010, 15056};
// PBSE_MAXQUED, PBSE_ENTLIMCT, PBSE_ENTLIMRESC.
constexpr std::array kLimitCodes{15046, 15142, 15143};
// PBSE_QUNOENB, PBSE_NOCONNECTS, PBSE_NOSERVER, PBSE_RESCUNAV, PBSE_SVRDOWN, PBSE_CONNFULL,
// PBSE_TRYAGAIN.
constexpr std::array kTransientCodes{15021, 15033, 15034, 15044, 15060, 15117, 15208};

template <std::size_t N>
bool is_one_of(int exit_code, const std::array<int, N>& numbers) {
  return std::any_of(numbers.begin(), numbers.end(),
                     [&](int number) { return number % 256 == exit_code; });
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

Refusal classify(const CommandOutput& output) {
  const std::string text =
      lower_case(output.standard_error + "\n" + without_echo(output.standard_output));
  constexpr int kSignals = 24;  // beyond them lie the numbers of PBS
  const int code = output.exit_code;
  const bool was_signalled = code > kSignalled && code < kSignalled + kSignals;
  if (output.timed_out || code <= 0 || was_signalled) return Refusal::Unclear;
  if (text.find("cannot tell which pbs") != std::string::npos) {
    return text.find("not found") == std::string::npos ? Refusal::Transient : Refusal::Permanent;
  }
  // Of a client that tried twice: the first time may have been enough.
  const std::string answered = without_lines_of(text, kNoContact);
  if (has_one_of(answered, kUnclear) || has_one_of(answered, submit_answer::kUnclear))
    return Refusal::Unclear;
  if (has_one_of(text, kUnwelcome)) return Refusal::Permanent;
  if (has_one_of(text, kNoContact)) return Refusal::Transient;
  if (has_one_of(text, kLimit) || has_one_of(text, submit_answer::kLimit))
    return has_one_of(text, submit_answer::kPerJob) ? Refusal::Permanent : Refusal::Limit;
  if (has_one_of(text, kTransient) || has_one_of(text, submit_answer::kPassing))
    return Refusal::Transient;
  const bool qsub_spoke =
      text.find("qsub: ") != std::string::npos || text.find("sbatch: ") != std::string::npos;
  if (qsub_spoke && is_one_of(code, kUnclearCodes)) return Refusal::Unclear;
  if (qsub_spoke && is_one_of(code, kLimitCodes)) return Refusal::Limit;
  if (qsub_spoke && is_one_of(code, kTransientCodes)) return Refusal::Transient;
  const bool is_usage = text.find("usage: qsub") != std::string::npos;
  // A hook of the site's own speaks with qsub's voice too.
  return qsub_spoke || submit_answer::is_absent(code) || is_usage ? Refusal::Permanent
                                                                  : Refusal::Unclear;
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

std::optional<std::string> number_in(const std::string& line) {
  return is_number(line) ? std::optional(line) : std::nullopt;
}

}  // namespace

std::variant<std::string, SubmitRefused> read_qsub(const CommandOutput& output) {
  return submit_answer::read(
      output,
      {.program = "qsub", .number_in = number_in, .one_line = one_line, .classify = classify});
}

}  // namespace hpcbatch::pbs
