// The scheduler `pbs` in tests: what a real OpenPBS 23.06 printed, and commands that are scripted.
#pragma once

#include "hpcbatch/contract/scheduler.hpp"

#include "hpcbatch/shell_quote.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <utility>

#include <unistd.h>

namespace hpcbatch {

inline std::unique_ptr<Scheduler> make(const std::string& config_yaml = "") {
  return contract::load<Scheduler>(PLUGINS "/schedulers/pbs.so", config_yaml);
}

inline CommandOutput answer(int exit_code, std::string out, std::string error = "") {
  return {.exit_code = exit_code,
          .timed_out = false,
          .standard_output = std::move(out),
          .standard_error = std::move(error)};
}

inline std::string recorded(const std::string& name) {
  std::ifstream file(std::string(RECORDED) + "/" + name);
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_FALSE(text.str().empty()) << name;
  return text.str();
}

/// A place with commands of its own.
class PbsShell : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "pbs-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
    scripted("id", "[ \"$1\" = -un ] && echo alice || exec /usr/bin/id \"$@\"");
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void scripted(const std::string& program, const std::string& text) const {
    std::ofstream(root_ / program) << "#!/bin/sh\n" << text << "\n";
    std::filesystem::permissions(root_ / program, std::filesystem::perms::owner_all);
  }
  void file(const std::string& name, const std::string& text) const {
    std::ofstream(root_ / name) << text;
  }
  std::string path(const std::string& name) const { return (root_ / name).string(); }

  void is_openpbs() const {
    scripted("qstat",
             "[ \"$1\" != --version ] || { echo 'pbs_version = 23.06.06'; exit; }\n"
             ". \"$0.more\"");
    file("qstat.more", "");
  }
  void is_torque() const {
    scripted("qstat",
             "[ \"$1\" != --version ] || { echo 'Version: 6.1.2' >&2; exit; }\n"
             ". \"$0.more\"");
    file("qstat.more", "");
  }
  /// As SLURM's Perl scripts are told from the others.
  void is_slurm() const {
    scripted("qstat", ". \"$0.more\"; exit\nuse Slurm ':all';\n");
    std::ofstream(root_ / "qstat", std::ios::app) << "use Slurm ':all';\n";
    file("qstat.more", "");
  }

  CommandOutput sh(const std::string& line) const {
    const std::string whole = "PATH=" + root_.string() + ":/usr/bin:/bin; export PATH; cd " +
                              root_.string() + "; " + line;
    std::FILE* pipe =
        ::popen(("sh -c " + shell_quoted(whole) + " 2>" + path("error")).c_str(), "r");
    CommandOutput output;
    for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe))
      output.standard_output += static_cast<char>(c);
    output.exit_code = WEXITSTATUS(::pclose(pipe));
    std::ifstream error(root_ / "error");
    std::getline(error, output.standard_error, '\0');
    return output;
  }
  CommandOutput run(const CommandLine& command) const {
    return sh("exec " + shell_quoted(command.argv));
  }

  std::filesystem::path root_;
};

}  // namespace hpcbatch
