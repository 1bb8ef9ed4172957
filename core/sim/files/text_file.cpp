#include "sim/files/text_file.hpp"

#include <zlib.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <stdexcept>

#include <fcntl.h>
#include <unistd.h>

namespace hpcbatch::sim {

std::string text_of_file(const std::string& file) {
  const int descriptor =
      file == "-" ? ::dup(STDIN_FILENO) : ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0)
    throw std::invalid_argument("cannot read " + file + ": " + std::strerror(errno));
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> in(::gzdopen(descriptor, "rb"), ::gzclose);
  if (!in) throw std::invalid_argument("cannot read " + file + ": no memory");
  std::string text;
  std::array<char, 1U << 16U> part;  // NOLINT(cppcoreguidelines-pro-type-member-init)
  for (;;) {
    const int count = ::gzread(in.get(), part.data(), part.size());
    if (count > 0) text.append(part.data(), static_cast<std::size_t>(count));
    if (count > 0) continue;
    int error = Z_OK;
    const char* why = ::gzerror(in.get(), &error);
    if (error == Z_ERRNO) why = std::strerror(errno);
    // A file that was cut in the middle ends without an error of its own.
    if (error == Z_BUF_ERROR) why = "it is cut off";
    if (error != Z_OK && error != Z_STREAM_END)
      throw std::invalid_argument("cannot read " + file + ": " + why);
    return text;
  }
}

}  // namespace hpcbatch::sim
