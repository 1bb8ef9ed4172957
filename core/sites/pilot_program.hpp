// The pilot program and its place on a site, and of the helper that looks at GPUs: delivered once for
// each content, so that the file of a pilot that runs is never replaced.
#pragma once

#include "hpcbatch/result.hpp"
#include "hpcbatch/transport.hpp"
#include "posix/files.hpp"

#include <memory>
#include <mutex>
#include <string>

namespace hpcbatch {

/// Copies know of each other: several lanes of one site do not deliver at once.
class PilotProgram {
 public:
  /// `file`: the program on this machine; `memory`: a file of the engine's in which the file system
  /// of the site's workspace is remembered, empty: nowhere; `gpu_helper`: that program, empty: none;
  /// `trust_group`: whose members may write the workspace, empty: nobody's.
  explicit PilotProgram(std::string file, std::string memory = {}, std::string gpu_helper = {},
                        std::string trust_group = {});

  /// Where it lies in a site's workspace.
  std::string path_in(const std::string& workspace) const;
  /// The same of the helper; empty: there is none.
  std::string gpu_helper_in(const std::string& workspace) const;
  /// Puts them there, unless they are there already; not into a workspace that the guard of trusted
  /// paths refuses, and not where that was mounted before.
  Result<void> deliver(Transport& transport, const std::string& workspace, Deadline deadline) const;

 private:
  std::string file_;
  std::string memory_;
  std::string name_;
  std::string gpu_helper_;
  std::string gpu_helper_name_;
  std::string trust_group_;
  struct Delivering {
    std::timed_mutex turn;
    std::string said;  ///< of the workspace, and not to be said at each look
  };
  std::shared_ptr<Delivering> delivering_{std::make_shared<Delivering>()};
};

// One exchange with the pilot program on a site: an order goes in on its standard input, a report
// comes back on its standard output.  All of it blocks.

/// A transport of its own and what is known of the site by it.
struct ExchangeTools {
  std::shared_ptr<Transport> transport;
  bool program_is_there{false};
};

/// The words of `what` in the program, "spool FOLDER" or "files FOLDER".
struct ExchangeCommand {
  std::string program;  ///< its path there
  std::string what;
  std::string folder;
};

/// `order` and what comes back: serialized messages.
Result<std::string> run_exchange(Transport& transport, const ExchangeCommand& command,
                                 const std::string& order, Deadline deadline);

/// The same with the workspace, where the program is put first unless it is known to be there.
Result<std::string> run_exchange(ExchangeTools& tools, const PilotProgram& program,
                                 const std::string& what, const std::string& workspace,
                                 const std::string& order, Deadline deadline);

/// A stream to it, which the caller owns, instead.
Result<Fd> open_exchange(ExchangeTools& tools, const PilotProgram& program, const std::string& what,
                         const std::string& workspace, Deadline deadline);

template <class Report>
Result<Report> parsed_report(const Result<std::string>& bytes) {
  if (!bytes) return bytes.error();
  Report report;
  if (!report.ParseFromString(*bytes))
    return Error{Error::Kind::Transient, "the exchange's answer cannot be read"};
  return report;
}

}  // namespace hpcbatch
