#include "history/promise.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <utility>

namespace hpcbatch::history {
namespace {

bool is_plain(char c) {
  return c > ' ' && c < '\x7f' && c != '%' && c != '=';
}

std::optional<std::string> unescaped(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      if (!is_plain(text[i])) return std::nullopt;
      out += text[i];
      continue;
    }
    if (i + 2 >= text.size()) return std::nullopt;
    const std::size_t high = std::string_view("0123456789ABCDEF").find(text[i + 1]);
    const std::size_t low = std::string_view("0123456789ABCDEF").find(text[i + 2]);
    if (high == std::string_view::npos || low == std::string_view::npos) return std::nullopt;
    out += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return out;
}

/// Cuts the next word off; empty at the end.
std::string_view next_word(std::string_view& line) {
  const std::size_t end = std::min(line.find(' '), line.size());
  const std::string_view word = line.substr(0, end);
  line.remove_prefix(std::min(end + 1, line.size()));
  return word;
}

Error expected(const std::string& what) {
  return {Error::Kind::Rejected, "cannot read a line of a history: expected " + what};
}

}  // namespace

std::string_view fact_of(const Record& record, std::string_view name) {
  const auto at = std::find_if(record.facts.begin(), record.facts.end(),
                               [&](const auto& fact) { return fact.first == name; });
  return at == record.facts.end() ? std::string_view() : std::string_view(at->second);
}

hpcbatch::Result<Record> read_history_line(std::string_view line) {
  Record record;
  const std::string_view time = next_word(line);
  const auto [end, error] = std::from_chars(time.data(), time.data() + time.size(), record.time_us);
  if (error != std::errc{} || end != time.data() + time.size()) {
    return expected("a time in microseconds first, not '" + std::string(time) + "'");
  }
  for (std::string* word : {&record.by, &record.what}) {
    const auto text = unescaped(next_word(line));
    if (!text || text->empty()) return expected("who recorded what after the time");
    *word = *text;
  }
  while (!line.empty()) {
    const std::string_view word = next_word(line);
    const std::size_t equals = word.find('=');
    if (equals == 0 || equals == std::string_view::npos)
      return expected("NAME=VALUE, not '" + std::string(word) + "'");
    auto name = unescaped(word.substr(0, equals));
    auto value = unescaped(word.substr(equals + 1));
    if (!name || !value)
      return expected("NAME=VALUE without a bad %XX, not '" + std::string(word) + "'");
    record.facts.emplace_back(std::move(*name), std::move(*value));
  }
  return record;
}

hpcbatch::Result<History> read_history(const std::vector<std::string>& paths) {
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    std::error_code failed;
    if (!std::filesystem::is_directory(path, failed)) {
      files.push_back(path);
      continue;
    }
    for (const auto& entry : std::filesystem::directory_iterator(path, failed)) {
      if (entry.path().extension() == ".history") files.push_back(entry.path());
    }
    if (failed)
      return Error{Error::Kind::Rejected,
                   "cannot read the folder " + path + ": " + failed.message()};
  }
  std::sort(files.begin(), files.end());
  if (files.empty())
    return Error{Error::Kind::Rejected,
                 "there is no history: name files, or folders with files *.history"};

  History history;
  for (const std::string& file : files) {
    std::ifstream in(file);
    if (!in) return Error{Error::Kind::Rejected, "cannot open " + file};
    std::string line;
    for (std::size_t number = 1; std::getline(in, line); ++number) {
      // Whoever was killed may have left half a line.
      if (in.eof()) break;
      auto record = read_history_line(line);
      if (!record)
        return Error{Error::Kind::Rejected,
                     file + ":" + std::to_string(number) + ": " + record.error().text};
      history.push_back(std::move(record.value()));
    }
  }
  std::stable_sort(history.begin(), history.end(),
                   [](const Record& a, const Record& b) { return a.time_us < b.time_us; });
  return history;
}

std::uint64_t number_of(const Record& record, std::string_view name) {
  const std::string_view text = fact_of(record, name);
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size() ? number : 0;
}

TaskId task_of(const Record& record) {
  const std::string_view text = fact_of(record, "task");
  const std::size_t dot = text.find('.');
  TaskId task;
  std::from_chars(text.data(), text.data() + std::min(dot, text.size()), task.array.value);
  if (dot != std::string_view::npos)
    std::from_chars(text.data() + dot + 1, text.data() + text.size(), task.index);
  return task;
}

ArrayId array_of(const Record& record) {
  return {number_of(record, "array")};
}

IndexSet indices_of(const Record& record) {
  return parse_index_set(fact_of(record, "indices")).value_or(IndexSet{});
}

std::vector<TaskId> tasks_of(const Record& record) {
  std::vector<TaskId> tasks;
  const IndexSet indices = indices_of(record);
  for (const IndexRange& range : indices.ranges()) {
    for (std::uint64_t i = range.first; i <= range.last; ++i)
      tasks.push_back({array_of(record), static_cast<std::uint32_t>(i)});
  }
  return tasks;
}

bool is_by_engine(const Record& record) {
  return record.by.starts_with("engine/");
}

std::string pilot_process(const Record& record) {
  constexpr std::string_view kPilot = "pilot/";
  return record.by.starts_with(kPilot) ? record.by.substr(kPilot.size()) : std::string();
}

std::string pilot_of(const std::string& process) {
  return process.substr(0, process.find('/'));
}

std::string allocation_of(const std::string& pilot) {
  return pilot.substr(0, pilot.find('.'));
}

}  // namespace hpcbatch::history
