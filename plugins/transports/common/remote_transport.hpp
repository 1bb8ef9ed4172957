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
  Result<void> put(const std::vector<Copy>& files, Deadline deadline) override;
  Result<void> put_text(const std::vector<FileText>& files, Deadline deadline) override;
  Result<void> get(const std::vector<Copy>& files, Deadline deadline) override;
  Result<std::string> read(const std::string& path, std::uint64_t offset, std::uint64_t length,
                           Deadline deadline) override;
  Result<std::vector<std::string>> list(const std::string& directory, Deadline deadline) override;
  Result<void> remove(const std::vector<std::string>& paths, Deadline deadline) override;
  Result<ByteStream> open(const CommandLine& command, Deadline deadline) override;
  void pump(int) override {}

 private:
  struct Answer {
    int exit_code{-1};
    std::string standard_output;
    std::string standard_error;
  };
  Result<Answer> ask(const std::string& what, const std::string& body, Deadline deadline);
  Result<Environment> environment_of(const CommandLine& command, Deadline deadline);
  Result<void> learn_environment(Deadline deadline);
  void kill(int group, Deadline deadline);

  std::unique_ptr<Login> login_;
  Environment configured_;
  Environment learned_;
  std::uint64_t learned_at_{0};
};

}  // namespace hpcbatch
