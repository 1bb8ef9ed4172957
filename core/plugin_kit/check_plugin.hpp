// `hpcbatch plugin check`: holds a plugin against the contract of its kind, in a process of its own.
#pragma once

#include <filesystem>
#include <string>

namespace hpcbatch::plugin_kit {

struct CheckAsked {
  std::filesystem::path file;
  std::string config;       ///< text: of a tool its file, of others what a site says of it
  std::string config_file;  ///< where that stands
  std::string directory;    ///< where a transport may write; empty: a new one in TMPDIR
};

/// Prints a line for each promise, and what is wrong in words; returns the exit code.
int check_plugin(const CheckAsked& asked);

}  // namespace hpcbatch::plugin_kit
