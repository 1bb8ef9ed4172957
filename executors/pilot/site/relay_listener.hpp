// Where a relay listens for pilots, and the file in the workspace that says so.
#pragma once

#include "posix/fd.hpp"

#include "hpcbatch/result.hpp"

#include <functional>
#include <string>
#include <vector>

namespace hpcbatch::pilot {

class RelayListener {
 public:
  /// Listens on `address`, in numbers, or where it is empty on each address of this node that other
  /// nodes may reach: the private ones where there are any, else all but loopback.  The port of the
  /// relay before is taken again where it is free.
  static Result<RelayListener> open(const std::string& workspace, const std::string& address);

  RelayListener(RelayListener&&) = default;
  RelayListener& operator=(RelayListener&&) = delete;
  /// The file goes, unless it is another relay's by now.
  ~RelayListener();

  /// As it stands in the file: a line for each address.
  const std::string& text() const { return text_; }
  /// Another relay that ended late, or somebody who tidied up, may have removed it.
  void keep_file() const;
  const std::vector<Fd>& listeners() const { return listeners_; }

 private:
  RelayListener(std::string file, std::vector<Fd> listeners, std::string text);

  std::string file_;
  std::vector<Fd> listeners_;
  std::string text_;
};

}  // namespace hpcbatch::pilot
