// What a process of ours in the container leaves behind about the task's program, so that its end
// is known as exactly as that of a program outside of one.
#pragma once

#include <string>

namespace hpcbatch::pilot {

struct ContainerReport {
  enum class Said { Nothing, Begun, CannotRun, Exited, Signalled };
  Said said{Said::Nothing};
  int value{0};  // errno, exit code or signal
};

struct ContainerEnd {
  std::string runtime;  // its name
  bool reports{false};  // else only the runtime's exit code is known
  ContainerReport report;
};

/// Always as long, so that the end finds room where the begin had it.
std::string to_text(const ContainerReport& report);
ContainerReport container_report(const std::string& text);

}  // namespace hpcbatch::pilot
