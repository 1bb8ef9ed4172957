// Files of this machine that are sent or received.
#pragma once

#include "process.hpp"

#include "hpcbatch/transport.hpp"

#include <string>
#include <string_view>

#include <sys/stat.h>

namespace hpcbatch {

/// A regular file that is read while nobody else may change it.
class SourceFile {
 public:
  static Result<SourceFile> open(const std::string& path);

  std::uint64_t size() const { return static_cast<std::uint64_t>(facts_.st_size); }
  /// Up to `length` bytes; fewer at the end.
  Result<std::string> read(std::uint64_t offset, std::size_t length) const;
  Result<void> unchanged() const;
  /// What tells it from another file, and from itself once it has been changed.
  std::string mark() const;

 private:
  SourceFile(std::string path, Fd file, const struct stat& facts)
      : path_(std::move(path)), file_(std::move(file)), facts_(facts) {}
  std::string path_;
  Fd file_;
  struct stat facts_;
};

/// A file that is written under another name in the destination's directory, which the next try
/// finds again.
class TargetFile {
 public:
  /// `mark` says what is expected in it.
  static Result<TargetFile> open(const Copy& file, const std::string& mark);

  std::uint64_t size() const { return size_; }
  /// From here on it is written.
  Result<void> cut(std::uint64_t size);
  Result<void> append(std::string_view bytes);
  Result<std::string> read(std::uint64_t offset, std::size_t length) const;
  Result<void> publish();
  void discard() const;

 private:
  TargetFile(Copy copy, std::string aside, Fd file, std::uint64_t size)
      : copy_(std::move(copy)), aside_(std::move(aside)), file_(std::move(file)), size_(size) {}
  Copy copy_;
  std::string aside_;
  Fd file_;
  std::uint64_t size_;
  std::uint64_t on_its_way_{0};  // to the disk
};

}  // namespace hpcbatch
