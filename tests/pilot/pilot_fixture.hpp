// A real pilot and a small engine that talks to it from within the test: what the engine would see,
// the test waits for.
#pragma once

#include "pilot/policy/attempt.hpp"
#include "posix/files.hpp"
#include "wire/encrypted_link.hpp"
#include "wire/pilot_file.hpp"
#include "wire/wire.pb.h"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace hpcbatch::pilot {

using namespace std::chrono_literals;

class PilotTest : public testing::Test {
 protected:
  PilotTest();
  ~PilotTest() override;

  /// Listens, writes the pilot file, starts the pilot and takes its link.
  void start(const std::map<std::string, std::string>& environment = {});
  void listen();
  void start_process(const std::map<std::string, std::string>& environment = {});
  /// Takes the next link and answers its registration.
  void welcome();
  /// As an engine that was killed: link and socket are gone.
  void engine_dies();

  static wire::Start task(unsigned n, const std::vector<std::string>& argv);
  static wire::Start shell(unsigned n, const std::string& script) {
    return task(n, {"/bin/sh", "-c", script});
  }
  static wire::Attempt attempt(unsigned n) { return task(n, {}).attempt(); }
  void send(const wire::ToPilot& message);
  void run(const wire::Start& start);
  void kill_task(unsigned n, bool silent = false);
  void acknowledge(unsigned n);

  /// Takes messages until `happened`; fails the test where that takes half a minute.
  void until(const char* what, const std::function<bool()>& happened);
  wire::Result result_of(unsigned n);
  /// Runs it and waits for its end.
  wire::Result outcome(const wire::Start& start);
  /// What was captured, read from the log pack.
  std::string output(const wire::Result& result, unsigned stream = 1) const;
  int exit_code();
  /// The pilot's own process, not the one that keeps it.
  pid_t pilot_process() const { return static_cast<pid_t>(registration_.process()); }
  static bool lives(pid_t pid);
  /// Processes whose environment or command line has this text.
  static std::vector<pid_t> processes_with(const std::string& text);
  std::string path(const std::string& name) const { return directory_ + "/" + name; }
  std::string contents(const std::string& name) const;
  void write(const std::string& name, const std::string& text) const;
  bool exists(const std::string& name) const;

  std::string directory_;  // of this test alone
  wire::PilotFile file_;
  Fd listener_;
  Fd socket_;
  std::optional<wire::Link> link_;
  pid_t pid_{-1};
  std::optional<int> status_;

  wire::Register registration_;
  bool registered_{false};
  std::map<unsigned, wire::Result> results_;
  std::map<unsigned, unsigned> result_counts_;
  std::map<unsigned, std::map<unsigned, std::string>> chunks_;  // task, stream
  std::set<unsigned> ended_chunks_;
  std::set<unsigned> started_;
  std::vector<unsigned> returned_;
  std::map<unsigned, unsigned> input_wanted_;
  std::map<unsigned, std::uint64_t> input_offset_;
  std::string leaving_;
  std::string trouble_;  // of the workspace
  std::set<unsigned> waiting_for_workspace_;
  bool closed_{false};

 private:
  void take(const wire::ToEngine& message);
  void pump(int timeout_ms);
};

}  // namespace hpcbatch::pilot
