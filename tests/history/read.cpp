#include "history/promise.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>

namespace hpcbatch::history {

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
      auto record = wire::read_history_line(line);
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
  const std::string_view text = record.get(name);
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size() ? number : 0;
}

TaskId task_of(const Record& record) {
  const std::string_view text = record.get("task");
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
  return parse_index_set(record.get("indices")).value_or(IndexSet{});
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
