#include "pilot/site/standard_streams.hpp"

#include <unistd.h>
#include <array>
#include <cerrno>
#include <cstring>

namespace hpcbatch::pilot {

Result<std::string> read_all(int from) {
  std::string text;
  std::array<char, 65536> room;
  while (true) {
    const ssize_t got = ::read(from, room.data(), room.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Error{Error::Kind::Transient, std::strerror(errno)};
    if (got == 0) return text;
    text.append(room.data(), static_cast<std::size_t>(got));
  }
}

}  // namespace hpcbatch::pilot
