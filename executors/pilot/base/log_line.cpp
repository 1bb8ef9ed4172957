#include "pilot/base/log_line.hpp"

#include <unistd.h>
#include <ctime>

namespace hpcbatch::pilot {
namespace {

std::string& name() {
  static std::string text = "hpcbatch-pilot";
  return text;
}

}  // namespace

void set_log_name(std::string_view text) {
  name() = text;
}

void log_line(std::string_view text) {
  // UTC: the local zone's rules are files that a node need not have.
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  tm parts{};
  ::gmtime_r(&now.tv_sec, &parts);
  char stamp[40];
  const std::size_t length = std::strftime(stamp, sizeof stamp, "%Y-%m-%dT%H:%M:%SZ ", &parts);
  std::string line(stamp, length);
  line += name();
  line += ": ";
  line += text;
  line += '\n';
  // A full or closed log is no reason to stop working.
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
}

std::string shown(std::string_view text) {
  constexpr std::size_t kMost = 200;
  std::string out;
  for (const char c : text.substr(0, kMost)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7F) {
      constexpr char kDigits[] = "0123456789abcdef";
      out += "\\x";
      out += kDigits[byte >> 4];
      out += kDigits[byte & 15];
    } else {
      out += c;
    }
  }
  if (text.size() > kMost) out += "...";
  return out;
}

}  // namespace hpcbatch::pilot
