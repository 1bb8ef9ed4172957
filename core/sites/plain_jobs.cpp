#include "sites/plain_jobs.hpp"

#include "documents/text_check.hpp"
#include "wire/encrypted_link.hpp"

#include "hpcbatch/answer_bounds.hpp"

#include <algorithm>
#include <cctype>
#include <string_view>

namespace hpcbatch {
namespace {

constexpr std::size_t kLongestReason = 500;
constexpr std::size_t kLongestNumber = 64;

bool is_allocation_name(std::string_view name) {
  return !name.empty() && name.size() <= wire::kLongestAllocationName &&
         std::all_of(name.begin(), name.end(),
                     [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; });
}

/// Also of a list that could not be taken apart.
bool is_node_name(std::string_view name) {
  return !name.empty() && name.size() <= kLongestNodeName &&
         std::all_of(name.begin(), name.end(), [](char c) { return c > ' ' && c < 0x7f; });
}

}  // namespace

std::vector<BatchJob> plain_jobs(std::vector<BatchJob> jobs) {
  std::erase_if(jobs, [](const BatchJob& job) { return !is_allocation_name(job.name); });
  for (BatchJob& job : jobs) {
    job.number = show_text(job.number, kLongestNumber);
    job.reason = show_text(job.reason, kLongestReason);
    std::erase_if(job.nodes, [](const std::string& name) { return !is_node_name(name); });
  }
  return jobs;
}

}  // namespace hpcbatch
