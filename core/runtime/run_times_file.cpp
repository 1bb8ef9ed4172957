#include "runtime/run_times_file.hpp"

#include "posix/replace_file.hpp"

#include <deque>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

#include <fcntl.h>

namespace hpcbatch {
namespace {

using Ended = foresight::QueueWatch::Ended;

// More teach nothing: of a kind the newest count (run_times.cpp).
constexpr std::size_t kMostKept = 5000;

/// Names come from others: what ends a field or a line is left out.
std::string field(const std::string& text) {
  std::string kept;
  for (const char c : text)
    if (c != '\t' && c != '\n' && c != '\r') kept += c;
  return kept;
}

std::string line_of(const Ended& ended) {
  std::ostringstream line;
  line << ended.limit << '\t' << ended.ran << '\t' << ended.cpus << '\t' << field(ended.user)
       << '\t' << field(ended.name) << '\n';
  return line.str();
}

/// False where it is none, as one that was cut.
bool read_line(const std::string& line, Ended& ended) {
  std::istringstream in(line);
  in >> ended.limit >> ended.ran >> ended.cpus;
  return in && in.get() == '\t' && std::getline(in, ended.user, '\t') && ended.limit > 0 &&
         ended.ran > 0 && ended.cpus > 0 && (std::getline(in, ended.name) || in.eof());
}

}  // namespace

void RunTimesFile::load_into(foresight::QueueWatch& watch) {
  if (std::exchange(is_loaded_, true)) return;
  std::ifstream in(path_, std::ios::binary);
  std::deque<Ended> all;
  for (std::string line; std::getline(in, line); ++lines_) {
    Ended ended;
    if (!read_line(line, ended)) continue;
    all.push_back(std::move(ended));
    if (all.size() > kMostKept) all.pop_front();
  }
  for (const Ended& ended : all) watch.learn(ended);
  if (lines_ < 2 * kMostKept) return;
  std::string text;
  for (const Ended& ended : all) text += line_of(ended);
  if (replace_file(AT_FDCWD, path_, text, {.sync = false}) == 0) lines_ = all.size();
}

void RunTimesFile::add(const std::vector<Ended>& ended) {
  if (ended.empty()) return;
  std::error_code ignored;
  std::filesystem::create_directories(std::filesystem::path(path_).parent_path(), ignored);
  std::string text;
  for (const Ended& one : ended) text += line_of(one);
  std::ofstream(path_, std::ios::binary | std::ios::app) << text;
  lines_ += ended.size();
}

}  // namespace hpcbatch
