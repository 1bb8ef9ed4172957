#include "foresight/learned/past_text.hpp"

#include <algorithm>
#include <charconv>
#include <stdexcept>

namespace hpcbatch::foresight {
namespace {

constexpr std::size_t kFields = 9;

std::string word(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c == '\t' || c == '\n'; }, '?');
  return text;
}

std::string moment(const std::optional<std::chrono::seconds>& moment) {
  return moment ? std::to_string(moment->count()) : "-";
}

template <class Number>
Number number_of(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    throw std::invalid_argument("a line is no batch job: '" + std::string(text) + "' is no number");
  return value;
}

std::optional<std::chrono::seconds> moment_of(std::string_view text) {
  if (text == "-") return std::nullopt;
  return std::chrono::seconds{number_of<std::int64_t>(text)};
}

std::vector<std::string_view> fields_of(std::string_view line) {
  std::vector<std::string_view> fields;
  for (;;) {
    const auto end = std::min(line.find('\t'), line.size());
    fields.push_back(line.substr(0, end));
    if (end == line.size()) return fields;
    line.remove_prefix(end + 1);
  }
}

}  // namespace

std::string past_text(const std::vector<PastJob>& jobs) {
  std::string text;
  for (const PastJob& job : jobs) {
    text += word(job.partition) + '\t' + word(job.user) + '\t' + std::to_string(job.cpus) + '\t' +
            std::to_string(job.gpus) + '\t' + std::to_string(job.limit.count()) + '\t' +
            std::to_string(job.submitted.count()) + '\t' + std::to_string(job.eligible.count()) +
            '\t' + moment(job.started) + '\t' + moment(job.ended) + '\n';
  }
  return text;
}

std::vector<PastJob> past_jobs(std::string_view text) {
  std::vector<PastJob> jobs;
  while (!text.empty()) {
    const auto end = text.find('\n');
    const auto fields = fields_of(text.substr(0, end));
    if (end == std::string_view::npos || fields.size() != kFields)
      throw std::invalid_argument("a line is no batch job: it has " +
                                  std::to_string(fields.size()) + " fields, not 9");
    jobs.push_back({.partition = std::string(fields[0]),
                    .user = std::string(fields[1]),
                    .cpus = number_of<double>(fields[2]),
                    .gpus = number_of<double>(fields[3]),
                    .limit = std::chrono::seconds{number_of<std::int64_t>(fields[4])},
                    .submitted = std::chrono::seconds{number_of<std::int64_t>(fields[5])},
                    .eligible = std::chrono::seconds{number_of<std::int64_t>(fields[6])},
                    .started = moment_of(fields[7]),
                    .ended = moment_of(fields[8])});
    text.remove_prefix(end + 1);
  }
  return jobs;
}

}  // namespace hpcbatch::foresight
