// Files that engine and pilots leave for each other: pieces of a spool, the pilot's file, outboxes, logs.
#include "fuzz/harness.hpp"
#include "wire/log_pack.hpp"
#include "wire/outbox.hpp"
#include "wire/pilot_file.hpp"
#include "wire/relay.hpp"
#include "wire/wire.pb.h"

namespace hpcbatch::fuzz {
namespace {

void spool(std::string_view bytes) {
  for (const std::uint64_t number : {std::uint64_t{1}, std::uint64_t{7}}) {
    if (const auto piece = wire::opened_piece(number, bytes))
      check(wire::sealed_piece(number, *piece) == bytes, "a piece is what was sealed");
  }
  if (const auto message = wire::opened_exchange(bytes))
    check(message->size() <= bytes.size(), "an exchange has no more than its bytes");
  if (const std::uint64_t number = wire::piece_number(bytes); number != 0)
    check(wire::piece_name(number) == bytes, "a piece has one name");
}

void pilot_file(std::string_view bytes) {
  if (const auto file = wire::parse_pilot_file(bytes, "file")) {
    const auto again = wire::parse_pilot_file(to_text(*file), "again");
    check(again.has_value() && *again == *file, "a pilot's file survives being written");
  }
}

void outbox(std::string_view bytes) {
  if (const auto outbox = wire::decode_outbox(bytes)) {
    check(outbox->results.size() <= bytes.size(), "no more results than bytes");
    check(wire::encode(*outbox) == bytes, "an outbox is what was written");
  }
}

void log(std::string_view bytes, std::uint64_t last) {
  const wire::ReadAt read = [&](std::uint64_t offset,
                                std::size_t length) -> hpcbatch::Result<std::string> {
    if (offset >= bytes.size()) return std::string();
    return std::string(bytes.substr(offset, length));
  };
  wire::Attempt attempt;
  attempt.set_array(1);
  attempt.set_number(1);
  attempt.set_epoch(1);
  if (const auto pieces = wire::log_pieces(read, attempt, 1, last))
    check(pieces->size() * wire::kLogHeaderSize <= bytes.size(),
          "no more records than there is room for");
  if (const auto text = wire::read_log(read, attempt, 1, last, 0, 1000))
    check(text->size() <= 1000, "no more of a log than was asked for");
}

}  // namespace
}  // namespace hpcbatch::fuzz

HPCBATCH_HARNESS(wire_files, bytes) {
  Input input(bytes);
  const std::size_t which = input.number() % 4;
  if (which == 0) spool(input.rest());
  if (which == 1) pilot_file(input.rest());
  if (which == 2) outbox(input.rest());
  if (which == 3) {
    const std::size_t last = input.number() * 256 + input.number();
    log(input.rest(), last);
  }
}
