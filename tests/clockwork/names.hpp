// What the simulation calls the engine's events and actions, and a pilot's actions, by their index.
#pragma once

#include "model/action.hpp"
#include "model/event.hpp"
#include "pilot/policy/decide.hpp"

#include <array>
#include <string_view>
#include <variant>

namespace hpcbatch::clockwork {

inline constexpr std::array<std::string_view, std::variant_size_v<Event>> kEvents{
    "event submit",          "event reader heard",   "event cancel",      "event hold",
    "event requeue",         "event update",         "event retry",       "event keep",
    "event resume",          "event stop",           "event registered",  "event disconnected",
    "event overstepped",     "event started",        "event ended",       "event stage out pending",
    "event returned",        "event input given",    "event warm",        "event link measured",
    "event leaving",         "event accepted",       "event refused",     "event polled",
    "event poll failed",     "event queue foreseen", "event outbox read", "event staged in",
    "event outputs delayed", "event workspace seen", "event gpus seen",   "event time passed"};
inline constexpr std::array<std::string_view, std::variant_size_v<Action>> kActions{
    "action save arrays",     "action save hold",         "action save terms",
    "action save leases",     "action drop leases",       "action save cancelled",
    "action save permitted",  "action save failed",       "action save result",
    "action save results",    "action save array end",    "action save revived",
    "action save allocation", "action save keep",         "action save reader",
    "action answer submit",   "action answer refused",    "action answer count",
    "action tell ended",      "action send leases",       "action recall leases",
    "action kill attempt",    "action acknowledge",       "action permit publish",
    "action welcome pilot",   "action confirm pilot",     "action end pilot",
    "action stay pilot",      "action fence pilot",       "action stage in",
    "action open allocation", "action cancel allocation", "action poll site",
    "action look at queue",   "action read outbox",       "action forget allocation",
    "action engine idle"};
static_assert(!kEvents.back().empty() && !kActions.back().empty(), "a name is missing");
inline constexpr std::array<std::string_view, std::variant_size_v<pilot::Action>> kPilotActions{
    "pilot launch",      "pilot return",       "pilot signal", "pilot stop",
    "pilot publish",     "pilot discard",      "pilot fail",   "pilot forget",
    "pilot say leaving", "pilot write outbox", "pilot exit"};

}  // namespace hpcbatch::clockwork
