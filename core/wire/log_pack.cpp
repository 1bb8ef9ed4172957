#include "wire/log_pack.hpp"

#include "wire/checksum.hpp"
#include "wire/wire.pb.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <optional>

namespace hpcbatch::wire {
namespace {

// A record: the four letters, the checksum of all behind it, then the fields below in this order,
// then its bytes.
constexpr std::string_view kRecordMagic = "HBLR";
constexpr std::size_t kSumAt = 4;
constexpr std::size_t kFieldsAt = 8;

struct Fields {
  std::uint64_t array;
  std::uint64_t epoch;
  std::uint64_t offset;
  std::uint64_t previous;
  std::uint32_t index;
  std::uint32_t number;
  std::uint32_t stream;
  std::uint32_t length;
  std::uint64_t zero[2];  // room for what comes later
};
static_assert(kFieldsAt + sizeof(Fields) == kLogHeaderSize);

std::optional<LogRecord> header_of(std::string_view bytes) {
  if (bytes.size() < kLogHeaderSize || !bytes.starts_with(kRecordMagic)) return std::nullopt;
  Fields f;
  std::memcpy(&f, bytes.data() + kFieldsAt, sizeof f);
  if (f.length > kLargestLogRecord) return std::nullopt;
  return LogRecord{f.array, f.index, f.number, f.epoch, f.stream, f.length, f.offset, f.previous};
}

bool is_sound(std::string_view record) {
  std::uint32_t sum = 0;
  std::memcpy(&sum, record.data() + kSumAt, sizeof sum);
  return crc32(record.substr(kFieldsAt)) == sum;
}

Error damaged(std::uint64_t place, const char* why) {
  return Error{Error::Kind::Rejected,
               "the log is damaged at byte " + std::to_string(place) + ": " + why};
}

}  // namespace

std::string log_file_name(const PilotName& pilot, std::uint64_t incarnation) {
  char digits[20];
  std::snprintf(digits, sizeof digits, "%016" PRIx64, incarnation);
  return "logs/" + pilot.allocation + "." + std::to_string(pilot.rank) + "." + digits + ".log";
}

void append_log_record(std::string& out, LogRecord record, std::string_view bytes) {
  record.length = static_cast<std::uint32_t>(bytes.size());
  const Fields f{record.array,  record.epoch,  record.offset, record.previous, record.index,
                 record.number, record.stream, record.length, {0, 0}};
  const std::size_t at = out.size();
  out.append(kRecordMagic);
  out.append(4, '\0');
  out.append(reinterpret_cast<const char*>(&f), sizeof f);
  out.append(bytes);
  const std::uint32_t sum = crc32(std::string_view(out).substr(at + kFieldsAt));
  std::memcpy(out.data() + at + kSumAt, &sum, sizeof sum);
}

hpcbatch::Result<std::vector<LogPiece>> log_pieces(const ReadAt& read, const Attempt& attempt,
                                                   std::uint32_t stream, std::uint64_t last,
                                                   std::uint64_t from) {
  std::vector<LogPiece> pieces;
  std::uint64_t end = UINT64_MAX;
  while (last != 0) {
    const std::uint64_t place = last - 1;
    const auto bytes = read(place, kLogHeaderSize);
    if (!bytes) return bytes.error();
    const auto record = header_of(*bytes);
    if (!record) return damaged(place, "no record begins there");
    if (record->array != attempt.array() || record->index != attempt.index() ||
        record->number != attempt.number() || record->epoch != attempt.epoch() ||
        record->stream != stream) {
      return damaged(place, "the record there belongs to another task");
    }
    const std::uint64_t record_end = record->offset + record->length;
    // Strictly backwards in both, so that no damage makes this go round for ever.
    if (record->previous > place || record_end > end)
      return damaged(place, "its chain does not lead backwards");
    if (record_end <= from) break;
    pieces.push_back({record->offset, place, record->length});
    end = record->offset;
    last = record->previous;
  }
  std::reverse(pieces.begin(), pieces.end());
  return pieces;
}

hpcbatch::Result<std::string> read_log(const ReadAt& read, const Attempt& attempt,
                                       std::uint32_t stream, std::uint64_t last, std::uint64_t from,
                                       std::size_t limit) {
  const auto pieces = log_pieces(read, attempt, stream, last, from);
  if (!pieces) return pieces.error();
  std::string text;
  for (const LogPiece& piece : *pieces) {
    if (text.size() >= limit) break;
    const auto record = read(piece.place, kLogHeaderSize + piece.length);
    if (!record) return record.error();
    if (record->size() < kLogHeaderSize + piece.length)
      return damaged(piece.place, "the file ends inside a record");
    if (!is_sound(*record)) return damaged(piece.place, "the checksum is wrong");
    const std::uint64_t wanted = from + text.size();
    const std::size_t skip =
        wanted > piece.offset ? static_cast<std::size_t>(wanted - piece.offset) : 0;
    text.append(*record, kLogHeaderSize + skip, limit - text.size());
  }
  return text;
}

}  // namespace hpcbatch::wire
