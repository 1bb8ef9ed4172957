// Columns of a store, its log and its mark, as a disk may give them back.
#include "fuzz/harness.hpp"
#include "store/encoding.hpp"
#include "store/file/mark.hpp"

#include <optional>
#include <stdexcept>

namespace hpcbatch::fuzz {
namespace {

/// Damage is told by an exception; what is read is the same when it was written again.
template <class Decode>
void survives(Decode decode, const std::string& text) {
  std::string again;
  try {
    again = store::encode(decode(text));
  } catch (const std::exception&) {
    return;
  }
  check(store::encode(decode(again)) == again, "a value survives being kept");
}

void files(std::string_view bytes) {
  const store::LogState state = store::state_of_log(bytes);
  check(state.sums.size() + state.behind <= bytes.size() / store::kFrameHeader + 1,
        "no more frames than there is room for");
  if (const auto mark = store::parse_mark(bytes))
    check(store::to_text(*mark) == bytes, "a mark is what was written");
  store::FoundFiles found{.has_database = true, .first_page = std::string(bytes.substr(0, 4096))};
  found.log = state;
  found.has_mark = true;
  store::damage_of(found);
}

}  // namespace
}  // namespace hpcbatch::fuzz

HPCBATCH_HARNESS(store_values, bytes) {
  Input input(bytes);
  const std::size_t which = input.number() % 7;
  const std::string text(input.rest());
  if (which == 0) survives([](const std::string& it) { return store::decode_needs(it); }, text);
  if (which == 1) survives([](const std::string& it) { return store::decode_after(it); }, text);
  if (which == 2) survives([](const std::string& it) { return store::decode_indices(it); }, text);
  if (which == 3) survives([](const std::string& it) { return store::decode_usage(it); }, text);
  if (which == 4) survives([](const std::string& it) { return store::decode_profile(it); }, text);
  if (which == 5) files(text);
  if (which == 6) {
    if (const auto keep = store::decode_keep("keep:cluster/gpu", text)) store::encode(*keep);
  }
}
