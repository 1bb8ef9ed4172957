#include "sites/site_modules.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <sstream>
#include <string_view>

namespace hpcbatch {
namespace {

constexpr const char* kScript = R"sh(
command -v module >/dev/null 2>&1 || [ ! -r /etc/profile ] || . /etc/profile >/dev/null 2>&1
command -v module >/dev/null 2>&1 || { echo hbnone; exit 0; }
echo hbbegin
module -t avail 2>&1
echo hbend
)sh";

// What tasks of pilots most often want of a site.
constexpr std::array<std::string_view, 6> kOfUse{"apptainer", "singularity", "singularityce",
                                                 "cuda",      "ffmpeg",      "python"};
constexpr std::size_t kMostShown = 8;

/// Without what is said of it: "(default)", "(L)".
std::string bare(const std::string& line) {
  return line.substr(0, line.find('('));
}

bool is_name(const std::string& name) {
  return !name.empty() && !name.ends_with(':') && !name.ends_with('/') && !name.starts_with('-') &&
         name.find_first_of(" \t\r") == std::string::npos;
}

bool is_of_use(const std::string& name) {
  const std::string_view tool = std::string_view(name).substr(0, name.find('/'));
  return std::any_of(kOfUse.begin(), kOfUse.end(), [&](std::string_view one) {
    return std::equal(tool.begin(), tool.end(), one.begin(), one.end(), [](char a, char b) {
      return (a >= 'A' && a <= 'Z' ? static_cast<char>(a - 'A' + 'a') : a) == b;
    });
  });
}

}  // namespace

CommandLine list_modules() {
  return {.argv = {"sh", "-c", kScript}, .environment = {}, .input = {}};
}

std::optional<Modules> read_modules(const CommandOutput& output) {
  if (output.timed_out) return std::nullopt;
  std::istringstream lines(output.standard_output);
  std::string line;
  while (std::getline(lines, line) && line != "hbbegin") {
    if (line == "hbnone") return Modules{};
  }
  Modules modules{.has_command = true};
  while (std::getline(lines, line)) {
    if (line == "hbend") return modules;
    std::string name = bare(line);
    if (is_name(name) &&
        std::find(modules.names.begin(), modules.names.end(), name) == modules.names.end())
      modules.names.push_back(std::move(name));
  }
  return std::nullopt;
}

std::string show_modules(const std::optional<Modules>& modules) {
  if (!modules) return "could not be listed; try 'module avail' there";
  if (!modules->has_command) return "none: a batch script there has no command 'module'";
  if (modules->names.empty()) return "none: 'module avail' names none";
  std::vector<std::string> shown;
  for (const bool of_use : {true, false}) {
    for (const std::string& name : modules->names) {
      if (is_of_use(name) == of_use && shown.size() < kMostShown) shown.push_back(name);
    }
  }
  return fmt::format("{}: {}{}; what tasks need is loaded in `setup`, as in 'module load {}'",
                     modules->names.size(), fmt::join(shown, ", "),
                     shown.size() < modules->names.size() ? ", ..." : "", shown.front());
}

}  // namespace hpcbatch
