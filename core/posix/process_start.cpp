#include "posix/process_start.hpp"

#include "posix/fd.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <array>
#include <ctime>
#include <sstream>

namespace hpcbatch {
namespace {

std::string read_start_of(const std::string& file) {
  const Fd opened(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  std::array<char, 4096> text{};
  const ssize_t size = opened ? ::read(opened.get(), text.data(), text.size()) : -1;
  return size <= 0 ? "" : std::string(text.data(), static_cast<std::size_t>(size));
}

}  // namespace

std::optional<ProcessFacts> facts_of_process(int process) {
  const std::string stat = read_start_of("/proc/" + std::to_string(process) + "/stat");
  // The name stands in brackets and may hold anything, brackets too.
  const auto name_end = stat.rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream fields(stat.substr(name_end + 1));
  ProcessFacts facts;
  std::string ignored;
  fields >> facts.state >> facts.parent >> ignored >> facts.session;
  constexpr int kFieldsBetween = 15;
  for (int i = 0; i < kFieldsBetween; ++i) fields >> ignored;
  if (!(fields >> facts.start)) return std::nullopt;
  return facts;
}

long long start_of_process(int process) {
  const auto facts = facts_of_process(process);
  return !facts || facts->state == 'Z' || facts->state == 'X' ? 0 : facts->start;
}

bool is_running(int process, long long start, const std::string& boot) {
  return boot == boot_id() && start != 0 && start_of_process(process) == start;
}

long long time_of_start(long long ticks) {
  std::istringstream uptime(read_start_of("/proc/uptime"));
  double seconds = 0;
  const long hertz = ::sysconf(_SC_CLK_TCK);
  if (!(uptime >> seconds) || hertz <= 0) return 0;
  return std::time(nullptr) - static_cast<long long>(seconds) + ticks / hertz;
}

std::string boot_id() {
  std::string text = read_start_of("/proc/sys/kernel/random/boot_id");
  if (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

}  // namespace hpcbatch
