// The file of `srun --multi-prog`: which program each rank runs.
#include "batch/directives.hpp"
#include "model/index_set.hpp"
#include "slurm_commands/step.hpp"

#include <hpcbatch/text.hpp>

#include <cctype>

namespace hpcbatch::slurm_commands {
namespace {

/// As Slurm parts them: at blanks; within single quotation marks they belong to the word.
std::vector<std::string> words_of_line(const std::string& line) {
  std::vector<std::string> words;
  std::string word;
  bool quoted = false, begun = false;
  for (const char c : line) {
    if (c == '\'') {
      quoted = !quoted;
      begun = true;
    } else if (!quoted && std::isspace(static_cast<unsigned char>(c)) != 0) {
      if (begun) words.push_back(std::move(word));
      word.clear();
      begun = false;
    } else {
      word += c;
      begun = true;
    }
  }
  if (begun) words.push_back(std::move(word));
  return words;
}

/// `%t` is the rank, `%o` its place within the line's.
std::string with_rank(const std::string& word, unsigned rank, unsigned offset) {
  std::string text;
  for (std::size_t at = 0; at < word.size(); ++at) {
    const char next = word[at] == '%' && at + 1 < word.size() ? word[at + 1] : '\0';
    if (next == 't' || next == 'o') {
      text += std::to_string(next == 't' ? rank : offset);
      ++at;
    } else {
      text += word[at];
    }
  }
  return text;
}

/// Lines as they are meant, with the number of the first of those that a backslash joins.
std::vector<std::pair<unsigned, std::string>> joined_lines_of(const std::string& text) {
  std::vector<std::pair<unsigned, std::string>> lines;
  unsigned number = 0;
  bool goes_on = false;
  for (const std::string_view read : hpcbatch::lines_of(text)) {
    std::string line(read);
    ++number;
    const bool joins = line.ends_with('\\');
    if (joins) line.back() = ' ';
    if (goes_on)
      lines.back().second += line;
    else
      lines.emplace_back(number, std::move(line));
    goes_on = joins;
  }
  return lines;
}

class Programs {
 public:
  Programs(unsigned tasks, const std::string& file) : file_(file), all_(tasks) {}

  void add(unsigned number, const std::vector<std::string>& words) {
    const auto tasks = static_cast<std::uint32_t>(all_.size());
    const bool is_rest = words.front() == "*";
    const auto said = is_rest ? std::optional<IndexSet>(IndexRange{0, tasks - 1})
                              : parse_index_set(words.front());
    if (!said || words.size() < 2) wrong(number, "Invalid task range specification");
    unsigned offset = 0;
    const auto ranges = said->ranges();
    for (auto range = ranges.rbegin(); range != ranges.rend(); ++range) {
      for (std::uint64_t rank = range->first; rank <= range->last; ++rank) {
        if (rank >= tasks) return;
        if (!all_[rank].empty() && is_rest) continue;
        if (!all_[rank].empty()) wrong(number, "Duplicate record for task " + std::to_string(rank));
        for (std::size_t i = 1; i < words.size(); ++i)
          all_[rank].push_back(with_rank(words[i], static_cast<unsigned>(rank), offset));
        ++offset;
      }
    }
  }
  std::vector<std::vector<std::string>> all() && {
    for (std::size_t rank = 0; rank < all_.size(); ++rank) {
      if (all_[rank].empty())
        throw CommandFailed("srun: error: Configuration file " + file_ +
                            " invalid, no record for task id " + std::to_string(rank));
    }
    return std::move(all_);
  }

 private:
  [[noreturn]] void wrong(unsigned number, const std::string& what) const {
    throw CommandFailed("srun: error: " + what + "\nsrun: error: Line " + std::to_string(number) +
                        " of configuration file " + file_ + " invalid");
  }

  const std::string& file_;
  std::vector<std::vector<std::string>> all_;
};

}  // namespace

std::vector<std::vector<std::string>> programs_of_ranks(const std::string& text, unsigned tasks,
                                                        const std::string& file) {
  Programs programs(tasks, file);
  for (const auto& [number, line] : joined_lines_of(text)) {
    const std::vector<std::string> words = words_of_line(line);
    if (!words.empty() && !words.front().starts_with('#')) programs.add(number, words);
  }
  return std::move(programs).all();
}

}  // namespace hpcbatch::slurm_commands
