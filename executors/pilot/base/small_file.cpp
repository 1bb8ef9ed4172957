#include "pilot/base/small_file.hpp"

#include "posix/fd.hpp"

#include <fcntl.h>
#include <algorithm>
#include <cerrno>

namespace hpcbatch::pilot {

std::string read_again(int fd) {
  std::string text;
  char step[4096];
  for (;;) {
    const ssize_t got = ::pread(fd, step, sizeof step, static_cast<off_t>(text.size()));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return text;
    text.append(step, static_cast<std::size_t>(got));
  }
}

std::string read_small(const std::string& path) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return {};
  return read_again(fd.get());
}

bool write_small(const std::string& path, std::string_view text) {
  const Fd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!fd) return false;
  return ::write(fd.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

std::vector<std::string> lines_of(const std::string& path) {
  const std::string text = read_small(path);
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  for (std::size_t at = 0; (at = text.find_first_not_of(" \n", at)) != std::string_view::npos;) {
    const std::size_t end = std::min(text.find_first_of(" \n", at), text.size());
    words.emplace_back(text.substr(at, end - at));
    at = end;
  }
  return words;
}

}  // namespace hpcbatch::pilot
