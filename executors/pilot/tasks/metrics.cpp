#include "pilot/tasks/metrics.hpp"

#include "posix/regular_file.hpp"

#include <cerrno>

namespace hpcbatch::pilot {
namespace {

constexpr std::size_t kMost = std::size_t{64} << 10;
constexpr const char* kBlanks = " \t\r\n";

Metrics left_out(const std::string& why) {
  return {"", "what it wrote to HPCBATCH_METRICS is left out: " + why};
}

}  // namespace

std::string metrics_file(const std::string& temporary) {
  return temporary + "/hpcbatch-metrics.json";
}

Metrics read_metrics(const std::string& temporary) {
  const std::string path = metrics_file(temporary);
  const auto [text, facts, error] = read_regular(AT_FDCWD, path, kMost);
  if (error == ENOENT) return {};
  if (error == EFBIG) return left_out("it has more than 64 KB");
  if (error != 0) return left_out(why_not_regular(error));
  const std::size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string::npos) return {};
  if (text[begin] != '{') return left_out("it is no JSON object");
  return {text.substr(begin, text.find_last_not_of(kBlanks) + 1 - begin), ""};
}

}  // namespace hpcbatch::pilot
