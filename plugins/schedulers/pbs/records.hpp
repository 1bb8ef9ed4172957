// The long form in which qstat and pbsnodes print: a head for each thing, below it, indented, its
// attributes.
//
// The text and not the JSON of OpenPBS: all dialects have it; OpenPBS 23.06 prints the first batch
// job only where it is asked for several as JSON; and one name of a foreign batch job (007, or a
// byte that is no UTF-8) makes a whole answer in JSON unreadable, where here it is a line.
#pragma once

#include <hpcbatch/text.hpp>

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hpcbatch::pbs {

struct Record {
  std::string head;  ///< "Job Id: 12.server", "Queue: workq", or a node's name
  std::map<std::string, std::string> attributes;

  /// Empty where there is none.
  std::string_view value(const std::string& name) const;
};

/// What a name means that a record has twice.  Of a batch job the first counts: what comes later
/// may be a line of somebody's variable.  Lists of queues and servers (limits, users) are printed
/// entry by entry, each with the name again; they are joined with commas (OpenPBS 23.06).
enum class Repeated : std::uint8_t { FirstCounts, IsAList };

std::vector<Record> read_records(const std::string& text, Repeated repeated);

/// What stands behind "Job Id:" or "Queue:"; empty where the head is none of those.
std::string after(std::string_view head, std::string_view kind);

/// What stands between `by`, without blanks around it; nothing of an empty text.
std::vector<std::string_view> parts_of(std::string_view text, char by);

/// As ctime(3) writes it, taken to be UTC.
std::optional<std::chrono::sys_seconds> read_moment(std::string_view text);

/// Bytes: "24682416kb", "4gb", "100".
std::optional<std::uint64_t> read_size(std::string_view text);

inline std::optional<long> read_number(std::string_view text) {
  return number_in<long>(text);
}

// What a batch job asked for, as its record has it.

/// More is a slip or an attack, and no batch job.
inline constexpr long kMostCpusOfAJob = 10'000'000;
/// Stands for a limit that is none.
inline constexpr std::chrono::seconds kNoLimit = std::chrono::hours{24 * 365};

/// From 0 to the most; 0 where nothing is told.
double bounded(std::optional<long> count);

/// In all; at least one.
double cpus_asked_for(const Record& job);

std::chrono::seconds limit_asked_for(const Record& job);

}  // namespace hpcbatch::pbs
