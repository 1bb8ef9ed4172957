#include "records.hpp"

#include <hpcbatch/batch_time.hpp>

#include <algorithm>
#include <ctime>
#include <iomanip>
#include <locale>
#include <sstream>
#include <string_view>

namespace hpcbatch::pbs {
namespace {

constexpr std::string_view kBlank = " \t\r";

std::string_view without_blanks_before(std::string_view text) {
  return text.substr(std::min(text.find_first_not_of(kBlank), text.size()));
}

bool is_name(std::string_view text) {
  return !text.empty() && text.find_first_not_of(
                              "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"
                              "[]") == std::string_view::npos;
}

class Reader {
 public:
  explicit Reader(Repeated repeated) : repeated_(repeated) {}

  void take(std::string_view line) {
    const auto depth = std::min(line.find_first_not_of(kBlank), line.size());
    if (depth == line.size()) return;
    if (depth == 0) return begin(line);
    if (records_.empty()) return;
    // All attributes of a record stand below each other. OpenPBS and Torque continue a long one in
    // a line with another indentation, which is that of SLURM's attributes.
    if (indent_.empty()) indent_ = line.substr(0, depth);
    const auto equals = line.find(" = ", depth);
    if (line.substr(0, depth) == indent_ && equals != std::string_view::npos &&
        is_name(line.substr(depth, equals - depth))) {
      attribute(std::string(line.substr(depth, equals - depth)), line.substr(equals + 3));
    } else if (current_ != nullptr && line.substr(0, depth) != indent_) {
      *current_ += line.substr(1);  // after the tab, a blank is part of the value
    }
  }

  std::vector<Record> records() && { return std::move(records_); }

 private:
  void begin(std::string_view line) {
    records_.push_back(Record{.head = std::string(line), .attributes = {}});
    indent_.clear();
    current_ = nullptr;
  }

  void attribute(std::string name, std::string_view value) {
    const auto [place, is_new] =
        records_.back().attributes.try_emplace(std::move(name), without_blanks_before(value));
    current_ = is_new || repeated_ == Repeated::IsAList ? &place->second : nullptr;
    if (!is_new && current_) *current_ += "," + std::string(without_blanks_before(value));
  }

  Repeated repeated_;
  std::vector<Record> records_;
  std::string indent_;
  std::string* current_{nullptr};
};

/// "2:ppn=4+n7:ppn=2", as Torque keeps it.
double cpus_of_nodes(std::string_view spec) {
  double cpus = 0;
  for (const std::string_view group : parts_of(spec, '+')) {
    const auto words = parts_of(group, ':');
    double of_one = 1;
    for (const std::string_view word : words) {
      if (word.starts_with("ppn=")) of_one = bounded(read_number(word.substr(4)));
    }
    // Else it is one node by its name.
    const auto count = words.empty() ? std::nullopt : read_number(words.front());
    cpus += of_one * bounded(count.value_or(1));
  }
  return std::min(cpus, static_cast<double>(kMostCpusOfAJob));
}

}  // namespace

std::string_view Record::value(const std::string& name) const {
  const auto found = attributes.find(name);
  return found == attributes.end() ? std::string_view() : std::string_view(found->second);
}

std::vector<Record> read_records(const std::string& text, Repeated repeated) {
  Reader reader(repeated);
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) reader.take(line);
  return std::move(reader).records();
}

std::string after(std::string_view head, std::string_view kind) {
  if (!head.starts_with(kind)) return {};
  return std::string(without_blanks_before(head.substr(kind.size())));
}

std::vector<std::string_view> parts_of(std::string_view text, char by) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const auto end = std::min(text.find(by), text.size());
    std::string_view part = without_blanks_before(text.substr(0, end));
    part = part.substr(0, part.find_last_not_of(kBlank) + 1);
    parts.push_back(part);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

std::optional<std::chrono::sys_seconds> read_moment(std::string_view text) {
  std::istringstream stream{std::string(text)};
  stream.imbue(std::locale::classic());
  std::tm moment{};
  stream >> std::get_time(&moment, "%a %b %d %H:%M:%S %Y");
  if (stream.fail()) return std::nullopt;
  return std::chrono::sys_seconds(std::chrono::seconds(::timegm(&moment)));
}

std::optional<std::uint64_t> read_size(std::string_view text) {
  const auto digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const auto number = read_number(text.substr(0, digits));
  if (!number) return std::nullopt;
  const auto bytes = static_cast<std::uint64_t>(*number);
  constexpr std::string_view kUnits = "kmgtp";
  if (digits == text.size()) return bytes;
  const auto unit = kUnits.find(static_cast<char>(text[digits] | 0x20));
  return unit == std::string_view::npos ? bytes : bytes << (10 * (unit + 1));
}

double bounded(std::optional<long> count) {
  return static_cast<double>(std::clamp(count.value_or(0), 0L, kMostCpusOfAJob));
}

/// OpenPBS has the sum of all chunks in ncpus; Torque leaves it at one where nodes are asked for.
double cpus_asked_for(const Record& job) {
  const double cpus = std::max({bounded(read_number(job.value("Resource_List.ncpus"))),
                                bounded(read_number(job.value("Resource_List.procs"))),
                                cpus_of_nodes(job.value("Resource_List.nodes"))});
  return std::max({cpus, bounded(read_number(job.value("Resource_List.nodect"))), 1.0});
}

std::chrono::seconds limit_asked_for(const Record& job) {
  return std::min(kNoLimit, pbs_time(job.value("Resource_List.walltime")).value_or(kNoLimit));
}

}  // namespace hpcbatch::pbs
