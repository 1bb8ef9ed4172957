// An attacker's pilot in each kind of message: what names an attempt is asked of the engine before
// anything is done, what is too much or of no form is put out, what cannot have been measured is
// not believed.  The kinds are read from wire.proto: one that is new and has no row here fails.
#include "links/pilot_messages.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <map>
#include <regex>
#include <set>
#include <string>

namespace hpcbatch {
namespace {

const PilotId kPilot{AllocationId{"habcde123456789"}, 2};
const std::string kLog = "logs/habcde123456789.2.00000000000000aa.log";
const std::string kTooLong(limits::kText + 1, 'x');

void put(wire::Attempt* attempt) {
  attempt->set_array(7);
  attempt->set_index(3);
  attempt->set_number(1);
  attempt->set_epoch(99);
}

using Change = std::function<void(wire::ToEngine&)>;

/// By the field of ToEngine: says something of an attempt.
const std::map<std::string, Change> kSpeaksOfAttempt{
    {"registration",
     [](wire::ToEngine& m) {
       wire::Held* held = m.mutable_registration()->add_held();
       put(held->mutable_attempt());
       held->set_state(2);
     }},
    {"started", [](wire::ToEngine& m) { put(m.add_started()); }},
    {"results", [](wire::ToEngine& m) { put(m.add_results()->mutable_attempt()); }},
    {"returned", [](wire::ToEngine& m) { put(m.add_returned()); }},
    {"chunks",
     [](wire::ToEngine& m) {
       put(m.add_chunks()->mutable_attempt());
       m.mutable_chunks(0)->set_end(true);
     }},
    {"input_wanted", [](wire::ToEngine& m) { put(m.add_input_wanted()->mutable_attempt()); }},
    {"workspace", [](wire::ToEngine& m) { put(m.mutable_workspace()->add_ended()); }},
};
/// Those that speak of the pilot alone.
const std::set<std::string> kSpeaksOfItself{"leaving", "leaving_reason", "heartbeat", "warm",
                                            "gpus"};

wire::Result& result_in(wire::ToEngine& m) {
  wire::Result* result = m.add_results();
  put(result->mutable_attempt());
  return *result;
}
wire::Gpu& gpu_in(wire::ToEngine& m) {
  return *m.mutable_gpus()->add_gpus();
}
template <class Add>
void many(int count, Add add) {
  for (int i = 0; i < count; ++i) add();
}

/// By MESSAGE.FIELD, of each text, list and part: more of it than any pilot says, or in no form
/// that one has.
const std::map<std::string, Change> kTooMuch{
    {"Attempt", [](wire::ToEngine& m) { m.add_started()->set_array(1); }},  // of no number
    {"Register.version", [](auto& m) { m.mutable_registration()->set_version(kTooLong); }},
    {"Register.node", [](auto& m) { m.mutable_registration()->set_node(kTooLong); }},
    {"Register.capacity",
     [](auto& m) {
       many(200'000, [&, i = 0]() mutable {
         wire::Amount* amount = m.mutable_registration()->add_capacity();
         amount->set_name(std::to_string(i++));
         amount->set_value(1);
       });
     }},
    {"Register.held",
     [](auto& m) {
       wire::Held* held = m.mutable_registration()->add_held();
       put(held->mutable_attempt());
       held->set_state(9);
     }},
    {"Register.batch_number",
     [](auto& m) { m.mutable_registration()->set_batch_number(kTooLong); }},
    {"Register.link", [](auto& m) { m.mutable_registration()->set_link(kTooLong); }},
    {"Register.refusals", [](auto& m) { m.mutable_registration()->add_refusals(kTooLong); }},
    {"Register.gpus", [](auto& m) { many(2000, [&] { m.mutable_registration()->add_gpus(); }); }},
    {"Result.failure", [](auto& m) { result_in(m).set_failure(kTooLong); }},
    {"Result.log", [](auto& m) { result_in(m).mutable_log()->set_last_out(UINT64_MAX); }},
    {"Result.cpus",
     [](auto& m) {
       wire::Result& result = result_in(m);
       many(1'000'000, [&, i = 0U]() mutable { result.add_cpus(i += 2); });
     }},
    {"Result.published",
     [](auto& m) {
       wire::Result& result = result_in(m);
       many(100'000, [&, i = 0U]() mutable { result.add_published(i++); });
     }},
    {"LogPlace.file",
     [](auto& m) { result_in(m).mutable_log()->set_file("logs/../../secret.log"); }},
    {"Chunk.stream",
     [](auto& m) {
       put(m.add_chunks()->mutable_attempt());
       m.mutable_chunks(0)->set_stream(3);
     }},
    {"InputWanted.offset",
     [](auto& m) {
       put(m.add_input_wanted()->mutable_attempt());
       m.mutable_input_wanted(0)->set_offset(UINT64_MAX);
     }},
    {"Warm.services", [](auto& m) { many(5000, [&] { m.mutable_warm()->add_services("s"); }); }},
    {"Warm.starting", [](auto& m) { m.mutable_warm()->add_starting(kTooLong); }},
    {"Workspace.trouble", [](auto& m) { m.mutable_workspace()->set_trouble(kTooLong); }},
    {"Workspace.ended", [](auto& m) { m.mutable_workspace()->add_ended(); }},
    {"Gpus.gpus", [](auto& m) { many(2000, [&] { gpu_in(m); }); }},
    {"Gpus.capacity",
     [](auto& m) { many(300, [&] { m.mutable_gpus()->add_capacity()->set_name("x"); }); }},
    {"Gpu.uuid", [](auto& m) { gpu_in(m).set_uuid(kTooLong); }},
    {"Gpu.name", [](auto& m) { gpu_in(m).set_name(kTooLong); }},
    {"Gpu.capability", [](auto& m) { gpu_in(m).set_capability(kTooLong); }},
    {"Gpu.driver", [](auto& m) { gpu_in(m).set_driver(kTooLong); }},
    {"Gpu.trouble", [](auto& m) { gpu_in(m).set_trouble(kTooLong); }},
    {"Amount.name",
     [](auto& m) { m.mutable_gpus()->add_capacity()->set_name(std::string(300, 'x')); }},
    {"Amount.value", [](auto& m) { m.mutable_gpus()->add_capacity()->set_value(-1); }},
    {"ToEngine.started", [](auto& m) { m.add_started(); }},
    {"ToEngine.results", [](auto& m) { m.add_results(); }},
    {"ToEngine.returned", [](auto& m) { m.add_returned(); }},
    {"ToEngine.chunks", [](auto& m) { m.add_chunks(); }},
    {"ToEngine.input_wanted", [](auto& m) { m.add_input_wanted(); }},
    {"ToEngine.leaving_reason", [](auto& m) { m.set_leaving_reason(kTooLong); }},
};
/// What tasks may have had a hand in is no proof against the pilot: it is cut, or left out.  The
/// output itself has the bound of a frame.
const std::set<std::string> kBroughtToSense{"Result.message", "Result.metrics",
                                            "Result.missing_file", "Chunk.data"};

struct Field {
  bool repeated{false};
  std::string type, name;
};

std::map<std::string, std::vector<Field>> messages_of_the_wire() {
  std::ifstream in(HPCBATCH_WIRE_PROTO);
  const std::regex begins(R"(^message (\w+) \{)");
  const std::regex field(R"(^  (repeated |optional )?(\w+) (\w+) = \d+;)");
  std::map<std::string, std::vector<Field>> messages;
  std::string current;
  for (std::string line; std::getline(in, line);) {
    std::smatch found;
    if (std::regex_search(line, found, begins)) current = found[1];
    if (std::regex_search(line, found, field))
      messages[current].push_back({found[1] == "repeated ", found[2], found[3]});
  }
  return messages;
}

TEST(PilotLimits, EachKindOfMessageIsJudged) {
  const auto messages = messages_of_the_wire();
  ASSERT_TRUE(messages.contains("ToEngine"));
  for (const Field& field : messages.at("ToEngine")) {
    EXPECT_EQ(kSpeaksOfAttempt.contains(field.name) + kSpeaksOfItself.contains(field.name), 1)
        << field.name << " of ToEngine is new: does it name an attempt that is to be the pilot's?";
  }
}

TEST(PilotLimits, EachAttemptThatIsNamedIsAskedOf) {
  for (const auto& [field, speak] : kSpeaksOfAttempt) {
    wire::ToEngine message;
    speak(message);
    EXPECT_FALSE(beyond_limits(kPilot, message)) << field;
    const PilotClaims claims = claims_of(kPilot, message);
    EXPECT_EQ(claims.pilot, kPilot);
    ASSERT_EQ(claims.attempts.size(), 1U) << field;
    EXPECT_EQ(claims.attempts[0].attempt, (AttemptId{{ArrayId{7}, 3}, 1, 99})) << field;
  }
  wire::ToEngine message;
  message.mutable_gpus()->add_capacity()->set_name("cpus");
  message.mutable_gpus()->mutable_capacity(0)->set_value(70'000);
  EXPECT_EQ(claims_of(kPilot, message).capacity->get("cpus"), Amount::of(7));
  message.mutable_registration()->set_time_left_ms(5);
  EXPECT_EQ(claims_of(kPilot, message).node->time_left, Duration{5000});
}

TEST(PilotLimits, EachTextAndListHasABound) {
  const auto messages = messages_of_the_wire();
  std::set<std::string> todo{"ToEngine"}, seen;
  while (!todo.empty()) {
    const std::string name = *todo.begin();
    todo.erase(name);
    if (!seen.insert(name).second || name == "Attempt") continue;
    for (const Field& field : messages.at(name)) {
      const std::string key = name + "." + field.name;
      if (messages.contains(field.type)) todo.insert(field.type);
      if (!field.repeated && field.type != "string" && field.type != "bytes") continue;
      EXPECT_EQ(kTooMuch.contains(key) + kBroughtToSense.contains(key), 1)
          << key << " is new: what is the most of it that a pilot says?";
    }
  }
  for (const auto& [key, say] : kTooMuch) {
    wire::ToEngine message;
    say(message);
    EXPECT_TRUE(beyond_limits(kPilot, message)) << key;
  }
}

TEST(PilotLimits, WhatAPilotSaysIsWithinThem) {
  wire::ToEngine message;
  wire::Register& registration = *message.mutable_registration();
  registration.set_node("node1.cluster");
  registration.add_capacity()->set_name("cpus");
  registration.set_time_left_ms(-1);
  wire::Result& result = result_in(message);
  result.mutable_log()->set_file(kLog);
  for (unsigned cpu = 8192; cpu-- > 0;) result.add_cpus(cpu);
  result.set_exit_code(-1);
  EXPECT_EQ(beyond_limits(kPilot, message), std::nullopt);
  const auto events = events_of(kPilot, message, Time{});
  EXPECT_EQ(std::get<AttemptsEnded>(events.at(0)).ends.at(0).outcome.cpus, "0-8191");
}

TEST(PilotLimits, AnothersLogIsNotItsOwn) {
  wire::ToEngine message;
  result_in(message);
  wire::LogPlace& log = *message.mutable_results(0)->mutable_log();
  for (const std::string file :
       {"logs/habcde123456789.20.00000000000000aa.log", "logs/habcde000000000.2.aa.log",
        "/etc/passwd", "logs/habcde123456789.2./../x.log", "outbox/habcde123456789.2.log", ".."}) {
    log.set_file(file);
    EXPECT_TRUE(beyond_limits(kPilot, message)) << file;
    EXPECT_TRUE(
        results_of_outbox(kPilot.allocation, {message.results(0).SerializeAsString()}, Time{})
            .empty() ||
        file.starts_with("logs/habcde123456789.20."))
        << file;
  }
  log.set_file(kLog);
  EXPECT_EQ(
      results_of_outbox(kPilot.allocation, {message.results(0).SerializeAsString()}, Time{}).size(),
      1U);
}

TEST(PilotLimits, WhatCannotHaveBeenMeasuredIsNotBelieved) {
  const Time now = from_microseconds(1'700'000'000'000'000);
  Outcome outcome;
  outcome.started = now - Duration{5'000'000};
  outcome.ended = now - Duration{1'000'000};
  outcome.peak_memory = 1U << 30;
  outcome.exit_code = 3;
  EXPECT_EQ(sensible(outcome, now).started, outcome.started);
  EXPECT_EQ(sensible(outcome, now).ended, outcome.ended);
  EXPECT_EQ(sensible(outcome, now).peak_memory, 1U << 30);
  EXPECT_EQ(sensible(outcome, now).exit_code, 3);

  const std::int64_t anything[] = {INT64_MIN, -1, 0, 1, 1'000'000'000'000'000'000, INT64_MAX};
  for (const std::int64_t started : anything) {
    for (const std::int64_t ended : anything) {
      outcome.started = from_microseconds(started);
      outcome.ended = from_microseconds(ended);
      const Outcome seen = sensible(outcome, now);
      EXPECT_EQ(seen.ended, now) << started << " to " << ended;
      if (seen.started) {
        EXPECT_LE(*seen.started, seen.ended);
        EXPECT_LE(seen.ended - *seen.started, std::chrono::hours{24 * 400});
      }
    }
  }
  // A node whose clock is a day ahead: its run is as long as it was.
  outcome.started = now + std::chrono::hours{24};
  outcome.ended = *outcome.started + std::chrono::seconds{10};
  EXPECT_EQ(sensible(outcome, now).ended, now);
  EXPECT_EQ(sensible(outcome, now).started, now - std::chrono::seconds{10});

  outcome.peak_memory = outcome.read_bytes = outcome.written_bytes = UINT64_MAX;
  outcome.cpu_time = Duration{-1};
  outcome.gpu = GpuUse{4'000'000'000U, UINT64_MAX, UINT64_MAX};
  outcome.exit_code = 1'000'000;
  outcome.signal = -7;
  outcome.message.assign(10'000'000, 'x');
  outcome.metrics.assign(10'000'000, 'x');
  const Outcome seen = sensible(outcome, now);
  EXPECT_EQ(seen.peak_memory + seen.read_bytes + seen.written_bytes, 0U);
  EXPECT_EQ(seen.cpu_time, Duration{});
  EXPECT_EQ(*seen.gpu, (GpuUse{100, 0, 0}));
  EXPECT_EQ(seen.exit_code, -1);
  EXPECT_EQ(seen.signal, 0);
  EXPECT_EQ(seen.message.size(), limits::kText);
  EXPECT_TRUE(seen.metrics.empty());
}

}  // namespace
}  // namespace hpcbatch
