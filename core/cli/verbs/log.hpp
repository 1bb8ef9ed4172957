#pragma once

#include "cli/parse/command.hpp"
#include "cli/process/exit.hpp"
#include "cli/show/listings.hpp"

#include <boost/json/object.hpp>

#include <string>
#include <string_view>

namespace hpcbatch {

// What one task printed, as the engine hands it out.

/// What tasks printed cannot be written: nobody reads it any more, or the disk is full.
class OutputClosed : public CommandError {
 public:
  OutputClosed(const std::string& text, bool is_pipe)
      : CommandError(kExitUsage, text), is_pipe_(is_pipe) {}
  bool is_pipe() const { return is_pipe_; }

 private:
  bool is_pipe_;
};

/// To our own standard output or error.  Throws OutputClosed.
void write_out(bool is_error, std::string_view bytes);

/// The bytes of a piece of output; throws CommandError.
std::string bytes_of(const boost::json::object& piece);

struct AskedOutput {
  const LogCommand& command;
  std::string task;
  bool is_one_of_many{false};
};
/// Prints what it has written so far, its standard output first.  Throws CommandError.
void print_task(const AskEngine& ask, const AskedOutput& asked);

}  // namespace hpcbatch
