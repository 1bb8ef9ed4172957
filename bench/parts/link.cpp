// What goes over a link: messages to bytes and back, and the same encrypted.
#include "wire/encrypted_link.hpp"
#include "wire/wire.pb.h"

#include <benchmark/benchmark.h>

#include <cstdlib>

namespace hpcbatch {
namespace {

wire::ToEngine results_of(std::int64_t count) {
  wire::ToEngine message;
  for (std::int64_t i = 0; i < count; ++i) {
    wire::Result* result = message.add_results();
    result->mutable_attempt()->set_array(1'000);
    result->mutable_attempt()->set_index(static_cast<std::uint32_t>(i));
    result->mutable_attempt()->set_number(1);
    result->mutable_attempt()->set_epoch((std::uint64_t{3} << 40) + static_cast<std::uint64_t>(i));
    result->set_failure("ok");
    result->set_started_us(1'700'000'000'000'000);
    result->set_ended_us(1'700'000'000'100'000);
    result->set_peak_memory(1'700'000);
    result->set_cpu_us(700);
  }
  return message;
}

void results_to_bytes(benchmark::State& state) {
  const wire::ToEngine message = results_of(state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(message.SerializeAsString());
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(results_to_bytes)->Arg(1)->Arg(1'000);

void results_from_bytes(benchmark::State& state) {
  const std::string bytes = results_of(state.range(0)).SerializeAsString();
  for (auto _ : state) {
    wire::ToEngine message;
    if (!message.ParseFromString(bytes)) std::abort();
    benchmark::DoNotOptimize(message);
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(results_from_bytes)->Arg(1)->Arg(1'000);

/// From one end's message to the other's, both ends in one thread.
void link_carries(benchmark::State& state) {
  const wire::PilotName name{"Hb1a2b3c", 0};
  const wire::Key key = wire::random_key();
  wire::Link pilot = wire::Link::connecting(name, key);
  wire::Link engine =
      wire::Link::accepting([&](const wire::PilotName&) { return std::optional(key); });
  const auto carry = [](wire::Link& from, wire::Link& to) {
    if (!from.has_output()) return;
    if (!to.receive(from.take_output())) std::abort();
  };
  while (!pilot.established() || !engine.established()) {
    carry(pilot, engine);
    carry(engine, pilot);
  }
  const std::string message(static_cast<std::size_t>(state.range(0)), 'x');
  for (auto _ : state) {
    pilot.send(message);
    carry(pilot, engine);
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(link_carries)->Arg(64)->Arg(64 << 10)->Arg(4 << 20);

}  // namespace
}  // namespace hpcbatch
