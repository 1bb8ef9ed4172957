// Serves the page to browsers of this machine, and their questions to the engine.
#pragma once

#include "posix/files.hpp"
#include "web/gate.hpp"
#include "web/watcher.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hpcbatch::web {

// The files of the page, which are in this program.

struct PageFile {
  std::string_view name;  ///< with its slash
  std::string_view type;
  std::string_view content;
};

/// Null where there is none of that name.
const PageFile* page_file(std::string_view name);

struct Listening {
  Fd descriptor;
  std::uint16_t port{0};  ///< of loopback; 0 of a Unix socket
};

/// On 127.0.0.1; 0: a port that is free.  Throws std::runtime_error with a sentence.
Listening listen_on_loopback(std::uint16_t port);
/// A Unix socket of mode 0600; one that is there and answers is left, and refused with a sentence.
Listening listen_on_socket(const std::string& path);

/// Until `interrupt` is readable.  A thread for each connection, at most `kMostConnections`: who comes
/// beside them is told so and hung up on.
void serve_pages(const Fd& listener, Gate& gate, Watcher& watcher,
                 const std::vector<std::string>& engine, int interrupt);

inline constexpr int kMostConnections = 128;

}  // namespace hpcbatch::web
