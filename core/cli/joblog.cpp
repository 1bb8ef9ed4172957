#include "cli/joblog.hpp"

#include "cli/descriptor.hpp"
#include "cli/exit.hpp"
#include "cli/values.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include <fcntl.h>
#include <sys/stat.h>
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

}  // namespace

std::string joblog_line(std::uint64_t number, const boost::json::object& task) {
  const std::string node = text_at(task, "node");
  const std::string code = text_at(task, "exit_code");
  const std::string signal = text_at(task, "signal");
  std::string line = std::to_string(number) + "\t" + (node.empty() ? "-" : node) + "\t";
  line += three_digits(number_at(task, "started_at")) + "\t" +
          three_digits(number_at(task, "run_s")) + "\t0\t0\t";
  line += (code.empty() ? "-1" : code) + "\t" + (signal.empty() ? "0" : signal) + "\t";
  for (const char c : command_at(task, "command")) line += c == '\n' || c == '\t' ? ' ' : c;
  return line;
}

Joblog::Joblog(const std::string& file, bool goes_on)
    : file_(file),
      descriptor_(::open(file.c_str(),
                         O_WRONLY | O_CREAT | O_CLOEXEC | O_APPEND | (goes_on ? 0 : O_TRUNC),
                         0666)) {
  if (descriptor_ < 0)
    throw CommandError(kExitUsage, "cannot write the joblog " + file + ": " + std::strerror(errno));
  struct stat facts {};
  if (::fstat(descriptor_, &facts) != 0 || !S_ISREG(facts.st_mode) || facts.st_size == 0)
    write(kHeader);
}

Joblog::~Joblog() {
  ::close(descriptor_);
}

void Joblog::add(std::uint64_t number, const boost::json::object& task) {
  write(joblog_line(number, task) + "\n");
}

void Joblog::write(const std::string& text) {
  if (const int error = write_all(descriptor_, text); error != 0)
    throw CommandError(kExitUsage,
                       "cannot write the joblog " + file_ + ": " + std::strerror(error));
}

}  // namespace hpcbatch
