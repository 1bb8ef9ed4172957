#include "cli/verbs/joblog.hpp"

#include "cli/process/exit.hpp"
#include "cli/show/values.hpp"
#include "cli/verbs/task_output.hpp"
#include "posix/write_all.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <sstream>

#include <fcntl.h>
#include <unistd.h>

namespace hpcbatch {
namespace {

constexpr const char* kHeader =
    "Seq\tHost\tStarttime\tJobRuntime\tSend\tReceive\tExitval\tSignal\tCommand\n";

std::string three_digits(double seconds) {
  char text[64];
  std::snprintf(text, sizeof text, "%.3f", seconds);
  return text;
}

/// Its seventh column.
std::string_view exit_value(std::string_view line) {
  for (int column = 0; column < 6; ++column) line.remove_prefix(line.find('\t') + 1);
  return line.substr(0, line.find('\t'));
}

}  // namespace

std::string joblog_line(std::uint64_t number, const boost::json::object& task) {
  const std::string node = text_at(task, "node");
  const std::string code = text_at(task, "exit_code");
  const std::string signal = text_at(task, "signal");
  std::string line = std::to_string(number) + "\t" + (node.empty() ? "-" : node) + "\t";
  line += three_digits(number_at(task, "started_at")) + "\t" +
          three_digits(number_at(task, "run_s")) + "\t0\t0\t";
  line += (code.empty() ? "-1" : code) + "\t" + (signal.empty() ? "0" : signal) + "\t";
  for (const char c : command_at(task, "command"))
    line += c == '\n' || c == '\t' || c == '\r' ? ' ' : c;
  return line;
}

Joblog::Joblog(const std::string& file)
    : file_(file),
      descriptor_(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_APPEND, 0666)) {
  if (descriptor_ < 0)
    throw CommandError(kExitUsage, "cannot write the joblog " + file + ": " + std::strerror(errno));
}

Joblog::~Joblog() {
  ::close(descriptor_);
}

void Joblog::begin() {
  // A pipe or a device has nothing to forget.
  if (::ftruncate(descriptor_, 0) != 0 && errno != EINVAL)
    throw CommandError(kExitUsage,
                       "cannot write the joblog " + file_ + ": " + std::strerror(errno));
  write(kHeader);
}

std::set<std::uint64_t> Joblog::resume() {
  std::string text;
  char piece[65536];
  off_t at = 0;
  for (ssize_t size = 0; (size = ::pread(descriptor_, piece, sizeof piece, at)) > 0; at += size)
    text.append(piece, static_cast<std::size_t>(size));
  if (text.empty()) write(kHeader);
  // Its last line may have been cut off.
  if (!text.empty() && text.back() != '\n') write("\n");
  std::set<std::uint64_t> numbers;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), number);
    // What failed then may have ended well since.
    const bool ended_well =
        std::count(line.begin(), line.end(), '\t') == 8 && exit_value(line) == "0";
    if (error == std::errc{} && *end == '\t' && ended_well) numbers.insert(number);
  }
  return numbers;
}

void Joblog::add(std::uint64_t number, const boost::json::object& task) {
  write(joblog_line(number, task) + "\n");
}

void Joblog::write(const std::string& text) {
  if (const int error = write_all(descriptor_, text); error != 0)
    throw OutputClosed("cannot write the joblog " + file_ + ": " + std::strerror(error), false);
}

}  // namespace hpcbatch
