#include "pilot/tasks/slot.hpp"

#include "pilot/base/log_line.hpp"
#include "posix/files.hpp"
#include "wire/encrypted_link.hpp"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/stat.h>

namespace hpcbatch::pilot {
namespace {

// A directory whose last change is said to have been then has not been changed since it was made.
constexpr timespec kUntouched{1, 0};

}  // namespace

void Slot::clean_temporary(Removals& removals) {
  struct stat info {};
  if (::lstat(temporary.c_str(), &info) == 0) {
    if (S_ISDIR(info.st_mode) && info.st_mtim.tv_sec == kUntouched.tv_sec) return;
    const std::string aside = temporary + "." + wire::to_hex(wire::random_key()).substr(0, 12);
    if (::rename(temporary.c_str(), aside.c_str()) == 0) removals.add(aside);
  }
  if (::mkdir(temporary.c_str(), 0700) != 0) {
    log_line("cannot make " + temporary + ": " + std::strerror(errno));
    return;
  }
  const timespec times[2] = {kUntouched, kUntouched};
  ::utimensat(AT_FDCWD, temporary.c_str(), times, AT_SYMLINK_NOFOLLOW);
}

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
