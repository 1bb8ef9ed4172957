// This pilot's own log pack: records are gathered and written together, at the end of each round of
// the loop.
#pragma once

#include "fd.hpp"
#include "wire/log_pack.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace hpcbatch::pilot {

class PackFile {
 public:
  /// `name` is relative to `workspace`; the file is made when the first record is written.
  PackFile(std::string workspace, std::string name);

  const std::string& name() const { return name_; }

  /// Returns the record's place + 1; 0 where nothing can be written any more.
  std::uint64_t append(const wire::LogRecord& record, std::string_view bytes);
  /// What was not written is lost, and said once.
  void flush();
  /// Bytes of a record, written or not.
  std::string read(std::uint64_t place, std::size_t length);

 private:
  bool open();

  std::string workspace_;
  std::string name_;
  Fd fd_;
  std::uint64_t written_{0};
  std::string gathered_;
  bool broken_{false};
};

}  // namespace hpcbatch::pilot
