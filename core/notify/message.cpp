#include "notify/message.hpp"

#include "documents/texts.hpp"
#include "model/quantities.hpp"

#include <fmt/format.h>
#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>

#include <algorithm>
#include <array>
#include <chrono>

namespace hpcbatch {
namespace {

namespace json = boost::json;

constexpr std::size_t kMostShown = 50, kLongestName = 60, kLongestMessage = 500;

double since_1970(Time time) {
  return std::chrono::duration<double>(time.time_since_epoch()).count();
}

std::string id_of(const store::SubmissionEnd& one) {
  return one.first == one.last ? fmt::format("{}", one.first.value)
                               : fmt::format("{}-{}", one.first.value, one.last.value);
}

const char* state_of(const store::Totals& totals) {
  if (totals.failed != 0) return "failed";
  return totals.cancelled != 0 ? "cancelled" : "done";
}

std::uint64_t all_of(const store::Totals& totals) {
  return totals.done + totals.failed + totals.cancelled;
}

store::Totals sum_of(const std::vector<store::SubmissionEnd>& ended) {
  store::Totals sum;
  for (const store::SubmissionEnd& one : ended) {
    sum.done += one.totals.done;
    sum.failed += one.totals.failed;
    sum.cancelled += one.totals.cancelled;
  }
  return sum;
}

std::string counts_in_words(const store::Totals& totals) {
  std::string text = "of " + show_count(all_of(totals), "task");
  const std::array<std::pair<const char*, std::uint64_t>, 3> counts{
      {{"done", totals.done}, {"failed", totals.failed}, {"cancelled", totals.cancelled}}};
  const char* before = " ";
  for (const auto& [word, count] : counts) {
    if (count == 0) continue;
    text += fmt::format("{}{} {}", before, count, word);
    before = ", ";
  }
  return text;
}

std::string name_of(const store::SubmissionEnd& one) {
  return one.name.empty() ? "" : " (" + show_text(one.name, kLongestName) + ")";
}

std::string failure_in_words(const store::FirstFailure& failure) {
  const Outcome& outcome = failure.row.outcome;
  std::string text = fmt::format("{}: {}", to_string(failure.task), to_string(outcome.failure));
  if (outcome.failure == Failure::ToolFailed)
    text += fmt::format(", exit code {}", outcome.exit_code);
  if (outcome.signal != 0) text += fmt::format(", signal {}", outcome.signal);
  if (!failure.row.node.empty()) text += " on " + show_text(failure.row.node);
  if (!outcome.message.empty()) text += ": " + show_text(outcome.message, kLongestMessage);
  return text;
}

json::object failure_json(const store::FirstFailure& failure) {
  const Outcome& outcome = failure.row.outcome;
  json::object object{{"id", to_string(failure.task)},
                      {"failure", std::string(to_string(outcome.failure))}};
  if (outcome.failure == Failure::ToolFailed) object["exit_code"] = outcome.exit_code;
  if (outcome.signal != 0) object["signal"] = outcome.signal;
  if (!failure.row.node.empty()) object["node"] = valid_utf8(failure.row.node);
  if (!outcome.message.empty()) object["message"] = valid_utf8(outcome.message);
  return object;
}

/// Between quotation marks in a file of options that curl reads (curl(1), --config).
std::string for_curl(std::string_view name, std::string_view value) {
  std::string line = fmt::format("{} = \"", name);
  for (const char c : value) {
    if (c == '"' || c == '\\') line += '\\';
    line += c;
  }
  return line + "\"\n";
}

/// A header holds ASCII alone (RFC 5322, 2.2).
std::string for_header(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return c < ' ' || c > '~'; }, '?');
  return text;
}

Parcel mail(const NotifyTarget& target, const std::vector<store::SubmissionEnd>& ended) {
  // The address is among what is read, since some take none as an argument.
  return {{"sendmail", "-oi", "-t"},
          {},
          fmt::format("To: {}\nSubject: hpcbatch: {}\nAuto-Submitted: auto-generated\n"
                      "MIME-Version: 1.0\nContent-Type: text/plain; charset=utf-8\n"
                      "Content-Transfer-Encoding: 8bit\n\n{}",
                      target.to, for_header(subject_of(ended)), text_of(ended)),
          {}};
}

Parcel command(const NotifyTarget& target, const std::vector<store::SubmissionEnd>& ended) {
  std::vector<std::string> ids;
  ids.reserve(ended.size());
  for (const store::SubmissionEnd& one : ended) ids.push_back(id_of(one));
  const store::Totals sum = sum_of(ended);
  return {{target.to},
          {"HPCBATCH_NOTICE=" + subject_of(ended),
           fmt::format("HPCBATCH_NOTICE_IDS={}", fmt::join(ids, " ")),
           fmt::format("HPCBATCH_NOTICE_STATE={}", state_of(sum)),
           fmt::format("HPCBATCH_NOTICE_DONE={}", sum.done),
           fmt::format("HPCBATCH_NOTICE_FAILED={}", sum.failed),
           fmt::format("HPCBATCH_NOTICE_CANCELLED={}", sum.cancelled)},
          json::serialize(to_json(ended)) + "\n",
          {}};
}

/// Its address may hold a secret, and so is no argument, which every user of the machine can read.
Parcel webhook(const NotifyTarget& target, const std::vector<store::SubmissionEnd>& ended) {
  const bool is_https = target.to.starts_with("https:");
  return {{"curl", "--config", "/dev/fd/3"},
          {},
          json::serialize(to_json(ended)),
          for_curl("url", target.to) + for_curl("header", "Content-Type: application/json") +
              for_curl("user-agent", "hpcbatch") + for_curl("data-binary", "@-") +
              for_curl("output", "/dev/null") + for_curl("proto", is_https ? "=https" : "=http") +
              "max-time = 30\nmax-redirs = 0\ngloboff\nfail\nsilent\nshow-error\n"};
}

}  // namespace

std::string subject_of(const std::vector<store::SubmissionEnd>& ended) {
  const store::Totals sum = sum_of(ended);
  const std::string which = ended.size() == 1 ? id_of(ended.front()) + name_of(ended.front())
                                              : fmt::format("{} submissions", ended.size());
  if (sum.failed == 0) return fmt::format("{} {}: {}", which, state_of(sum), counts_in_words(sum));
  return fmt::format("{} failed: {} of {} failed", which, sum.failed,
                     show_count(all_of(sum), "task"));
}

std::string text_of(const std::vector<store::SubmissionEnd>& ended) {
  std::string text;
  for (std::size_t i = 0; i < std::min(ended.size(), kMostShown); ++i) {
    const store::SubmissionEnd& one = ended[i];
    text += fmt::format("{}{} {}: {}\n", id_of(one), name_of(one), state_of(one.totals),
                        counts_in_words(one.totals));
    if (one.first_failure)
      text += fmt::format("  first failure: {}\n  see: hpcbatch explain {}\n",
                          failure_in_words(*one.first_failure), to_string(one.first_failure->task));
  }
  if (ended.size() > kMostShown)
    text += fmt::format("and {} more; see: hpcbatch list\n", ended.size() - kMostShown);
  return text;
}

json::object to_json(const std::vector<store::SubmissionEnd>& ended) {
  json::array submissions;
  for (const store::SubmissionEnd& one : ended) {
    json::object object{{"id", id_of(one)},
                        {"state", state_of(one.totals)},
                        {"total", all_of(one.totals)},
                        {"counts", json::object{{"done", one.totals.done},
                                                {"failed", one.totals.failed},
                                                {"cancelled", one.totals.cancelled}}},
                        {"client", valid_utf8(one.client)},
                        {"submitted_at", since_1970(one.submitted)},
                        {"ended_at", since_1970(one.ended)}};
    if (!one.name.empty()) object["name"] = valid_utf8(one.name);
    if (one.first_failure) object["first_failure"] = failure_json(*one.first_failure);
    submissions.push_back(std::move(object));
  }
  return {{"text", "hpcbatch: " + subject_of(ended)}, {"submissions", std::move(submissions)}};
}

Parcel parcel_for(const NotifyTarget& target, const std::vector<store::SubmissionEnd>& ended) {
  switch (target.kind) {
    case NotifyTarget::Kind::Mail:
      return mail(target, ended);
    case NotifyTarget::Kind::Program:
      return command(target, ended);
    case NotifyTarget::Kind::Webhook:
      return webhook(target, ended);
    case NotifyTarget::Kind::Nobody:
      break;
  }
  return {};
}

}  // namespace hpcbatch
