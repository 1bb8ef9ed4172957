// Values of the model as text in columns of the store.
#pragma once

#include "model/site.hpp"
#include "model/task.hpp"
#include "records/usage.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hpcbatch::store {

std::string encode(const Needs& needs);
Needs decode_needs(const std::string& text);
/// What an array waits for, and its course, as they stand together in one column.
struct After {
  std::vector<Dependency> dependencies;
  Rare<Course> course;
  friend bool operator==(const After&, const After&) = default;
};
std::string encode(const std::vector<Dependency>& dependencies, const Course& course);
inline std::string encode(const After& after) {
  return encode(after.dependencies, after.course.get());
}
After decode_after(const std::string& text);
/// What of an allocation its row has no column for.
std::string encode_terms(const Allocation& allocation);
void decode_terms(std::string_view bytes, Allocation& allocation);
std::string encode(const IndexSet& set);
IndexSet decode_indices(std::string_view text);

// Among what is known of the store by name (`meta`), from kFirstKeep on and before kBehindKeeps.
inline constexpr std::string_view kFirstKeep = "keep:", kBehindKeeps = "keep;";
std::string key_of_keep(const Keep& keep);
std::string encode(const Keep& keep);
/// Nothing of a damaged one: it holds nobody's work.
std::optional<Keep> decode_keep(const std::string& key, const std::string& text);

// Records of runs as bytes in columns of the store.

std::string encode(const records::Usage& usage);
/// What cannot be read counts as nothing.
records::Usage decode_usage(std::string_view bytes);

std::string encode(const records::Profile& profile);
/// What cannot be read is learned anew.
records::Profile decode_profile(std::string_view bytes);

}  // namespace hpcbatch::store
