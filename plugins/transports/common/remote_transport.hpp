// A transport over any way to log in: each call is one command there, whose script comes by its
// standard input.
#pragma once

#include "login.hpp"
#include "process.hpp"

#include <memory>

namespace hpcbatch {

class RemoteTransport : public Transport {
 public:
  /// `environment` is added to what commands get there.
  RemoteTransport(std::unique_ptr<Login> login, Environment environment)
      : login_(std::move(login)), configured_(std::move(environment)) {}

  Result<CommandOutput> run(const CommandLine& command, Deadline deadline) override;
  Result<int> open(const CommandLine& command, Deadline deadline) override;

 private:
  Result<Environment> environment_of(const CommandLine& command, Deadline deadline);
  Result<void> learn_environment(Deadline deadline);
  void kill(int group, Deadline deadline);

  std::unique_ptr<Login> login_;
  Environment configured_;
  Environment learned_;
  std::uint64_t learned_at_{0};
};

}  // namespace hpcbatch
