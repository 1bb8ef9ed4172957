// What comes over a link before and behind its handshake: nobody without the key gets in, and nothing that was changed on its way
// comes out.
#include "fuzz/harness.hpp"
#include "wire/encrypted_link.hpp"

#include <algorithm>
#include <optional>
#include <vector>

namespace hpcbatch::fuzz {
namespace {

const wire::PilotName kPilot{"Hb1a2b3c", 3};

/// In two pieces, as a network may cut it.
bool deliver(wire::Link& to, std::string_view bytes, std::size_t cut,
             std::vector<std::string>& messages) {
  cut = std::min(cut, bytes.size());
  for (const std::string_view piece : {bytes.substr(0, cut), bytes.substr(cut)}) {
    auto got = to.receive(piece);
    check(got.has_value() != to.fault().has_value(), "a link that is dropped says why");
    if (!got) return false;
    messages.insert(messages.end(), got->begin(), got->end());
  }
  return true;
}

void from_a_stranger(std::string_view bytes, std::size_t cut) {
  const wire::Key key{};
  std::vector<std::string> messages;
  wire::Link engine = wire::Link::accepting([&](const wire::PilotName& name) {
    return name == kPilot ? std::optional(key) : std::nullopt;
  });
  deliver(engine, bytes, cut, messages);
  wire::Link pilot = wire::Link::connecting(kPilot, key);
  pilot.take_output();
  deliver(pilot, bytes, cut, messages);
  check(!engine.established() && !pilot.established(), "nobody gets in without the key");
  check(messages.empty(), "nothing comes from a stranger");
}

/// The input says which bytes change of what a pilot with the key has sent.
void changed_on_its_way(std::string_view changes, std::size_t cut) {
  const wire::Key key{};
  wire::Link pilot = wire::Link::connecting(kPilot, key);
  wire::Link engine =
      wire::Link::accepting([&](const wire::PilotName&) { return std::optional(key); });
  const std::vector<std::string> sent{"register", "", std::string(300, 'x')};
  std::vector<std::string> got, none;
  deliver(engine, pilot.take_output(), 0, got);
  deliver(pilot, engine.take_output(), 0, none);
  deliver(engine, pilot.take_output(), 0, got);
  deliver(pilot, engine.take_output(), 0, none);
  check(engine.established() && pilot.established(), "whoever has the key gets in");
  for (const std::string& message : sent) pilot.send(message);
  std::string bytes = pilot.take_output();
  for (std::size_t at = 0; at < changes.size(); ++at)
    bytes[at % bytes.size()] = static_cast<char>(bytes[at % bytes.size()] ^ changes[at]);
  const bool is_whole = deliver(engine, bytes, cut, got);
  check(got.size() <= sent.size() && std::equal(got.begin(), got.end(), sent.begin()),
        "what comes out is what was sent");
  check(!is_whole || got.size() == sent.size() || !changes.empty(), "all that was sent comes out");
}

}  // namespace
}  // namespace hpcbatch::fuzz

HPCBATCH_HARNESS(link, bytes) {
  Input input(bytes);
  const std::size_t which = input.number();
  const std::size_t cut = input.number() * 2;
  if (which % 2 == 0)
    from_a_stranger(input.rest(), cut);
  else
    changed_on_its_way(input.rest(), cut);
}
