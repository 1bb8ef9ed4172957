// What a pilot says once it has proved its key, what it leaves in its outbox, and what an engine tells it.
#include "links/pilot_messages.hpp"
#include "fuzz/harness.hpp"
#include "model/check.hpp"
#include "pilot/policy/decide.hpp"

namespace hpcbatch::fuzz {
namespace {

std::size_t items_in(const Event& event) {
  return std::visit(
      [](const auto& it) -> std::size_t {
        using Kind = std::decay_t<decltype(it)>;
        if constexpr (std::is_same_v<Kind, AttemptsStarted> ||
                      std::is_same_v<Kind, AttemptsReturned>)
          return it.attempts.size();
        else if constexpr (std::is_same_v<Kind, AttemptsEnded>)
          return it.ends.size();
        else if constexpr (std::is_same_v<Kind, ServicesWarm>)
          return it.services.size() + it.starting.size();
        else if constexpr (std::is_same_v<Kind, WorkspaceSeen>)
          return it.ended.size();
        else if constexpr (std::is_same_v<Kind, GpusSeen>)
          return it.gpus.size() + it.capacity.entries().size();
        else
          return 0;
      },
      event);
}

void to_engine(std::string_view bytes) {
  wire::ToEngine message;
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return;
  const PilotId pilot{AllocationId{"habcde123456789"}, 2};
  const auto beyond = beyond_limits(pilot, message);
  check(!beyond || !beyond->empty(), "what is beyond the limits is said");
  if (beyond) return;
  check(claims_of(pilot, message).attempts.size() <= bytes.size(), "no more claims than bytes");
  const Time now = from_microseconds(1'000'000);
  if (message.has_registration()) {
    const PilotRegistered event = registration_of(pilot, message);
    check(event.held.size() + event.gpus.size() + event.capacity.entries().size() <= bytes.size(),
          "a registration has no more in it than bytes");
    check(event.pilot == pilot, "a pilot is who its link says");
  }
  std::size_t items = 0;
  for (const Event& event : events_of(pilot, message, now)) items += items_in(event);
  check(items <= bytes.size(), "events have no more in them than the message had bytes");
}

void to_pilot(std::string_view bytes) {
  wire::ToPilot message;
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return;
  for (const wire::Start& start : message.start()) pilot::leased_by(start);
}

}  // namespace
}  // namespace hpcbatch::fuzz

HPCBATCH_HARNESS(pilot_messages, bytes) {
  Input input(bytes);
  const std::size_t which = input.number() % 3;
  if (which == 0) to_engine(input.rest());
  if (which == 1) to_pilot(input.rest());
  if (which == 2) {
    const auto ends = results_of_outbox(AllocationId{"habcde123456789"},
                                        {std::string(input.rest())}, from_microseconds(1'000'000));
    check(ends.size() <= 1, "a result is one");
  }
}
