#include "pilot/workspace_watch.hpp"

#include "pilot/base/log_line.hpp"
#include "wire/whole_file.hpp"

#include <unistd.h>
#include <chrono>

namespace hpcbatch::pilot {
namespace {

constexpr Duration kTryAgain = std::chrono::seconds{1};
constexpr Duration kHopelessAfter = std::chrono::minutes{10};
// What fails again so soon after a small file could be written has not been well in between.
constexpr Duration kRelapse = std::chrono::minutes{1};
constexpr std::size_t kBlock = 4096;

}  // namespace

std::string check_writing(const std::string& folder, const std::string& pilot) {
  const std::string path = folder + "/." + pilot + ".check";
  const auto written = wire::replace_file(path, std::string(kBlock, '.'), wire::Readers::OwnerOnly);
  ::unlink(path.c_str());
  return written ? std::string() : written.error().text;
}

void WorkspaceWatch::failed(std::string why, Time now) {
  if (trouble_.empty()) {
    log_line("the workspace is in trouble: " + why);
    if (!well_since_ || now > *well_since_ + kRelapse) failing_since_ = now;
  }
  trouble_ = std::move(why);
  look_at_ = now + kTryAgain;
}

bool WorkspaceWatch::is_hopeless(Time now) const {
  return !trouble_.empty() && now >= failing_since_ + kHopelessAfter;
}

void WorkspaceWatch::tick(Time now) {
  if (!look_at_ || now < *look_at_) return;
  std::string why = check_writing(workspace_ + "/work", pilot_);
  if (!why.empty()) return failed(std::move(why), now);
  log_line("the workspace can be written again");
  trouble_.clear();
  well_since_ = now;
  look_at_.reset();
}

}  // namespace hpcbatch::pilot
