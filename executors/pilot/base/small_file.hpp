// Small texts that the kernel makes when they are read: the files of /proc and /sys.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hpcbatch::pilot {

/// Empty where it cannot be read.
std::string read_small(const std::string& path);
/// The same of a file that is kept open, from its start.
std::string read_again(int fd);
/// False with errno set where the kernel refused.
bool write_small(const std::string& path, std::string_view text);

std::vector<std::string> lines_of(const std::string& path);
/// Separated by blanks or line ends.
std::vector<std::string> words_of(std::string_view text);

}  // namespace hpcbatch::pilot
