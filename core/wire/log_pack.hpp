// The captured output of all tasks of one pilot in one append-only file: records of some bytes of
// one stream of one attempt, each naming the place of the record before it of that stream.  Whoever
// knows the last record reaches all by walking back.  docs/formats.md has the bytes.
#pragma once

#include "wire/encrypted_link.hpp"

#include "hpcbatch/result.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace hpcbatch::wire {

class Attempt;

constexpr std::size_t kLogHeaderSize = 72;
constexpr std::size_t kLargestLogRecord = std::size_t{1} << 20;

/// One record without its bytes.
struct LogRecord {
  std::uint64_t array{};
  std::uint32_t index{};
  std::uint32_t number{};
  std::uint64_t epoch{};
  std::uint32_t stream{};    // 1 stdout, 2 stderr
  std::uint32_t length{};    // of its bytes
  std::uint64_t offset{};    // of its first byte in its stream
  std::uint64_t previous{};  // place of the record before it of this stream + 1; 0: it is the first
  friend bool operator==(const LogRecord&, const LogRecord&) = default;
};

/// "logs/NAME.RANK.INCARNATION.log", relative to the workspace; the incarnation in 16 hexadecimal
/// digits.
std::string log_file_name(const PilotName& pilot, std::uint64_t incarnation);

/// Adds the record to `out`.  `record.length` is set from `bytes`, which has at most
/// kLargestLogRecord.
void append_log_record(std::string& out, LogRecord record, std::string_view bytes);

/// Reads up to `length` bytes at `offset`; fewer only at the end of the file.
using ReadAt =
    std::function<hpcbatch::Result<std::string>(std::uint64_t offset, std::size_t length)>;

/// Where some bytes of a stream lie in the file.
struct LogPiece {
  std::uint64_t offset{};  // in the stream
  std::uint64_t place{};   // in the file
  std::uint32_t length{};
};

/// The pieces of one stream in order, from the one that holds `from` on.  `last` as in LogPlace:
/// place + 1; 0 gives none. An error where a record on the way is damaged or is not of this attempt
/// and stream.
hpcbatch::Result<std::vector<LogPiece>> log_pieces(const ReadAt& read, const Attempt& attempt,
                                                   std::uint32_t stream, std::uint64_t last,
                                                   std::uint64_t from = 0);

/// Up to `limit` bytes of one stream from its offset `from` on.
hpcbatch::Result<std::string> read_log(const ReadAt& read, const Attempt& attempt,
                                       std::uint32_t stream, std::uint64_t last, std::uint64_t from,
                                       std::size_t limit);

}  // namespace hpcbatch::wire
