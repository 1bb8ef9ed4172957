#include "sites/job_output_tail.hpp"

#include "documents/text_check.hpp"

#include <algorithm>
#include <sstream>

namespace hpcbatch {
namespace {

constexpr std::size_t kMostOfALine = 300;
constexpr const char* kOutputHead = "hbout ";

constexpr const char* kOutputTailScript = R"sh(
directory=$1; shift
for name in "$@"; do
  [ -s "$directory/$name.out" ] || continue
  printf '\nhbout %s\n' "$name"
  tail -c 4096 "$directory/$name.out" 2>/dev/null
done
)sh";

std::string plain_line(std::string line) {
  for (char& c : line) {
    if (static_cast<unsigned char>(c) < ' ' || c == 0x7f) c = ' ';
  }
  const auto begin = line.find_first_not_of(' ');
  if (begin == std::string::npos) return "";
  line = line.substr(begin, line.find_last_not_of(' ') + 1 - begin);
  // Cut, it may end within a character.
  return valid_utf8(line.size() > kMostOfALine ? line.substr(0, kMostOfALine - 3) + "..." : line);
}

}  // namespace

std::vector<std::string> not_living(const std::vector<std::string>& names,
                                    const std::vector<BatchJob>& jobs) {
  std::vector<std::string> over = names;
  for (const BatchJob& job : jobs) {
    if (job.state != BatchState::Ended) std::erase(over, job.name);
  }
  return over;
}

CommandLine ask_output_tails(const std::string& directory, const std::vector<std::string>& names) {
  CommandLine command{
      .argv = {"sh", "-c", kOutputTailScript, "sh", directory}, .environment = {}, .input = {}};
  command.argv.insert(command.argv.end(), names.begin(), names.end());
  return command;
}

OutputTails read_output_tails(const std::vector<std::string>& names, const std::string& output) {
  OutputTails words;
  std::string name;
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(kOutputHead)) {
      const std::string said = line.substr(std::string_view(kOutputHead).size());
      if (std::find(names.begin(), names.end(), said) != names.end()) {
        name = said;
        continue;
      }
    }
    line = plain_line(std::move(line));
    if (!name.empty() && !line.empty()) words[name] = std::move(line);
  }
  return words;
}

}  // namespace hpcbatch
