#include "staging/whole_file.hpp"

#include "posix/replace_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

namespace hpcbatch {
namespace {

namespace fs = std::filesystem;

StageError cannot(const std::string& path, int error) {
  const bool may_pass = error == ENOSPC || error == EDQUOT || error == EIO || error == ESTALE ||
                        error == ETIMEDOUT || error == EMFILE || error == ENFILE || error == ENOMEM;
  return {may_pass, Failure::StageOutFailed,
          fmt::format("cannot write {} on this machine: {}", path, std::strerror(error))};
}

}  // namespace

std::optional<StageError> make_folder_of(const std::string& path) {
  std::error_code error;
  fs::create_directories(fs::path(path).parent_path(), error);
  if (error) return cannot(path, error.value());
  return std::nullopt;
}

std::optional<StageError> write_whole_file(const std::string& path, std::string_view bytes,
                                           std::uint32_t mode) {
  if (auto no_folder = make_folder_of(path)) return no_folder;
  const Replacement how{.mode = static_cast<mode_t>(mode), .against_umask = true, .hidden = true};
  const int error = replace_file(AT_FDCWD, path, bytes, how);
  if (error != 0) return cannot(path, error);
  return std::nullopt;
}

}  // namespace hpcbatch
