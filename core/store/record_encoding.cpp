#include "store/record_encoding.hpp"

#include "store/store.pb.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace hpcbatch::store {
namespace {

// Counts are kept in sixteenths: what counts less is gone.
constexpr float kParts = 16;

void put(Spread& message, const records::Sketch& sketch) {
  message.set_zeros(sketch.zeros());
  message.set_lowest(sketch.lowest());
  for (const float count : sketch.counts())
    message.add_counts(static_cast<std::uint32_t>(std::min(count * kParts + 0.5F, 4e9F)));
}

records::Sketch sketch_of(const Spread& message) {
  std::vector<float> counts;
  counts.reserve(static_cast<std::size_t>(message.counts_size()));
  for (const std::uint32_t count : message.counts())
    counts.push_back(static_cast<float>(count) / kParts);
  return records::Sketch::of(message.zeros(), message.lowest(), std::move(counts));
}

}  // namespace

std::string encode(const records::Usage& usage) {
  UsageSums message;
  for (const auto sum : records::kUsageSums) message.add_sum(usage.*sum);
  return message.SerializeAsString();
}

records::Usage decode_usage(std::string_view bytes) {
  records::Usage usage;
  UsageSums message;
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return usage;
  // One that was written by an older program has fewer.
  const int known = std::min(message.sum_size(), static_cast<int>(records::kUsageSums.size()));
  for (int i = 0; i < known; ++i)
    usage.*records::kUsageSums[static_cast<std::size_t>(i)] = message.sum(i);
  return usage;
}

std::string encode(const records::Profile& profile) {
  KindProfile message;
  put(*message.mutable_run(), profile.run);
  put(*message.mutable_memory(), profile.memory);
  put(*message.mutable_cpus(), profile.cpus);
  put(*message.mutable_wait(), profile.wait);
  put(*message.mutable_read_bytes(), profile.read_bytes);
  put(*message.mutable_written_bytes(), profile.written_bytes);
  put(*message.mutable_gpu_busy(), profile.gpu_busy);
  put(*message.mutable_gpu_memory(), profile.gpu_memory);
  put(*message.mutable_staged_in(), profile.staged_in);
  put(*message.mutable_staged_out(), profile.staged_out);
  for (const auto& [device, runs] : profile.on) {
    RunsOn& on = *message.add_on();
    on.set_device(device);
    on.set_mean(runs.mean);
    on.set_variance(runs.variance);
    on.set_count(runs.count);
  }
  message.set_cpus_asked(profile.cpus_asked);
  message.set_gpus_asked(profile.gpus_asked);
  message.set_memory_asked(profile.memory_asked);
  return message.SerializeAsString();
}

records::Profile decode_profile(std::string_view bytes) {
  KindProfile message;
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return {};
  records::Profile profile{sketch_of(message.run()),
                           sketch_of(message.memory()),
                           sketch_of(message.cpus()),
                           sketch_of(message.wait()),
                           sketch_of(message.read_bytes()),
                           sketch_of(message.written_bytes()),
                           sketch_of(message.gpu_busy()),
                           sketch_of(message.gpu_memory()),
                           sketch_of(message.staged_in()),
                           sketch_of(message.staged_out()),
                           {}};
  for (const RunsOn& on : message.on())
    profile.on[on.device()] = {on.mean(), on.variance(), on.count()};
  profile.cpus_asked = message.cpus_asked();
  profile.gpus_asked = message.gpus_asked();
  profile.memory_asked = message.memory_asked();
  return profile;
}

}  // namespace hpcbatch::store
