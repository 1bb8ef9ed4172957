#include "pilot/tasks/metrics.hpp"

#include "posix/fd.hpp"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

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
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!file) return errno == ENOENT ? Metrics{} : left_out(std::strerror(errno));
  struct stat info {};
  if (::fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode)) return left_out("it is no file");
  if (static_cast<std::uint64_t>(info.st_size) > kMost)
    return left_out("it has " + std::to_string(info.st_size) + " bytes, more than 64 KB");
  std::string text(kMost + 1, '\0');
  std::size_t size = 0;
  while (size < text.size()) {
    const ssize_t count = ::read(file.get(), text.data() + size, text.size() - size);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return left_out(std::strerror(errno));
    if (count == 0) break;
    size += static_cast<std::size_t>(count);
  }
  if (size > kMost) return left_out("it has more than 64 KB");
  text.resize(size);
  const std::size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string::npos) return {};
  if (text[begin] != '{') return left_out("it is no JSON object");
  return {text.substr(begin, text.find_last_not_of(kBlanks) + 1 - begin), ""};
}

}  // namespace hpcbatch::pilot
