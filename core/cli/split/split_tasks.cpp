#include "cli/split/split_tasks.hpp"

#include "cli/process/process.hpp"
#include "cli/show/values.hpp"
#include "cli/tasks/submission.hpp"
#include "hpcbatch/shell_quote.hpp"
#include "model/item.hpp"
#include "posix/files.hpp"
#include "programs/program_words.hpp"

#include <hpcbatch/text.hpp>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <filesystem>
#include <optional>
#include <sstream>
#include <string_view>

#include <fcntl.h>

namespace hpcbatch {
namespace {

namespace json = boost::json;

constexpr const char* kOut = "out";
constexpr const char* kList = "list";
// What a merge is to have of what was said of the parts: where it runs, not how much it needs.
constexpr const char* kOfMerges[] = {"site",        "not_sites", "tags",    "env",
                                     "environment", "retries",   "priority"};

std::string base_name(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

/// The names under which a part finds its files: each in a folder of its own, as two may have the
/// same.
std::string inner_name(const char* kind, std::size_t number, const std::string& path) {
  return std::string(kind) + "/" + std::to_string(number) + "/" + base_name(path);
}

struct Named {
  std::vector<std::string> names;
  std::vector<std::string> paths;
};

Named files_of(const SplitPlan& plan, const split::Part& part) {
  Named files;
  for (std::size_t i = 0; i < part.count; ++i) {
    const std::string& path = plan.units[part.first + i].path;
    files.paths.push_back(path);
    files.names.push_back(inner_name("files", i + 1, path));
  }
  return files;
}

Named reused_of(const SplitPlan& plan) {
  Named files;
  for (std::size_t i = 0; i < plan.reuse.size(); ++i) {
    files.paths.push_back(plan.reuse[i]);
    files.names.push_back(inner_name("reuse", i + 1, plan.reuse[i]));
  }
  return files;
}

/// A word that is nothing else becomes as many words as there are names.  As part of one they stand
/// with blanks between them, in quotes for a shell where that is asked for.
void add_word(json::array& command, const std::string& word, const Named& files,
              const Named& reused) {
  const Named* only = word == "{files}" ? &files : word == "{reuse}" ? &reused : nullptr;
  if (only != nullptr) {
    for (const std::string& name : only->names) command.emplace_back(name);
    return;
  }
  const auto value = [&](std::string_view name, char form) -> std::optional<std::string> {
    if (name == kList || name == kOut) return std::string(name);
    const Named* named = name == "files" ? &files : name == "reuse" ? &reused : nullptr;
    if (named == nullptr) return std::nullopt;
    if (form == kQuotedPlace) return shell_quoted(named->names);
    return joined(named->names, " ");
  };
  command.emplace_back(fill_braces(word, value));
}

void add_inputs(json::object& inputs, const Named& files) {
  for (std::size_t i = 0; i < files.names.size(); ++i)
    inputs[files.names[i]] = as_it_stands(files.paths[i]);
}

json::object& object_in(json::object& task, const char* key) {
  json::value& value = task[key];
  if (!value.is_object()) value.emplace_object();
  return value.get_object();
}

json::object common_of_merges(const SplitPlan& plan) {
  json::object task;
  for (const char* key : kOfMerges) {
    if (const json::value* value = plan.task.if_contains(key)) task[key] = *value;
  }
  return task;
}

std::vector<std::string> fields_of(const std::string& line) {
  std::vector<std::string> fields;
  std::istringstream text(line);
  for (std::string field; std::getline(text, field, '\t');) fields.push_back(field);
  return fields;
}

namespace fs = std::filesystem;

constexpr const char* kStateFile = "split.json";
constexpr std::size_t kLargestState = std::size_t{1} << 30;

json::object state_in(const std::string& file) {
  const std::string text = read_regular(AT_FDCWD, file, kLargestState, Links::Followed).text;
  json::error_code error;
  const json::value found = json::parse(text, error);
  return !error && found.is_object() ? found.get_object() : json::object{};
}

/// Results of parts and merges, lists, and what is kept of them.
bool is_a_splits(std::string name) {
  if (name == kStateFile || name == "pieces" || name.starts_with("merge")) return true;
  if (name.ends_with(".list")) name.resize(name.size() - 5);
  return !name.empty() && std::isdigit(static_cast<unsigned char>(name.front())) != 0 &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return std::isdigit(static_cast<unsigned char>(c)) != 0 || c == 'a' || c == 'b';
         });
}

}  // namespace

std::string result_of(const SplitPlan& plan, const std::string& name) {
  return plan.folder + "/" + name;
}

std::string list_file_of(const SplitPlan& plan, const std::string& name) {
  return plan.folder + "/" + name + ".list";
}

bool wants_list(const SplitPlan& plan) {
  const json::value* command = plan.task.if_contains("command");
  if (command == nullptr || !command->is_array()) return false;
  return std::any_of(
      command->get_array().begin(), command->get_array().end(), [](const json::value& word) {
        return word.is_string() &&
               std::string_view(word.get_string()).find("{list}") != std::string_view::npos;
      });
}

std::string list_text_of(const SplitPlan& plan, const split::Part& part) {
  std::string text;
  for (const std::string& name : files_of(plan, part).names) text += name + "\n";
  return text;
}

json::object task_of_part(const SplitPlan& plan, const split::Part& part) {
  json::object task = plan.task;
  task["name"] = plan.name + " part " + part.name;
  const Named reused = reused_of(plan);
  if (!plan.tool.output.empty()) {
    object_in(task, "outputs")[plan.tool.output] = as_it_stands(result_of(plan, part.name));
    if (!plan.recording.empty()) {
      object_in(task, "inputs")[plan.tool.input] = json::array{as_it_stands(plan.recording)};
      json::object& parameters = object_in(task, "parameters");
      for (const auto& [name, value] : plan.units.at(part.first).parameters)
        parameters[name] = value;
      return task;
    }
    const Named files = files_of(plan, part);
    json::array paths;
    for (const Named* some : {&files, &reused})
      for (const std::string& path : some->paths) paths.emplace_back(as_it_stands(path));
    object_in(task, "inputs")[plan.tool.input] = std::move(paths);
    return task;
  }
  const Named files = files_of(plan, part);
  json::array command;
  for (const json::value& word : plan.task.at("command").as_array())
    add_word(command, std::string(word.as_string()), files, reused);
  task["command"] = std::move(command);
  json::object& inputs = object_in(task, "inputs");
  add_inputs(inputs, files);
  add_inputs(inputs, reused);
  if (wants_list(plan)) inputs[kList] = as_it_stands(list_file_of(plan, part.name));
  object_in(task, "outputs")[kOut] = as_it_stands(result_of(plan, part.name));
  return task;
}

json::object task_of_merge(const SplitPlan& plan, const split::Merge& merge) {
  json::object task = common_of_merges(plan);
  task["name"] = plan.name + " " + merge.name;
  const std::string destination =
      as_it_stands(merge.is_last ? plan.result : result_of(plan, merge.name));
  if (plan.merge.empty()) {
    task["tool"] = plan.tool.merge;
    json::array parts;
    for (const std::string& name : merge.of)
      parts.emplace_back(as_it_stands(result_of(plan, name)));
    object_in(task, "inputs")["parts"] = std::move(parts);
    object_in(task, "outputs")["merged"] = destination;
    return task;
  }
  std::vector<std::string> parts;
  json::object& inputs = object_in(task, "inputs");
  for (const std::string& name : merge.of) {
    parts.push_back("parts/" + name);
    inputs["parts/" + name] = as_it_stands(result_of(plan, name));
  }
  const auto value = [&](std::string_view name, char) -> std::optional<std::string> {
    if (name == kOut) return std::string(name);
    return name == "parts" ? std::optional(shell_quoted(parts)) : std::nullopt;
  };
  task["command"] = json::array{"sh", "-c", fill_braces(plan.merge, value)};
  object_in(task, "outputs")[kOut] = destination;
  return task;
}

json::object task_of_cut(const SplitPlan& plan, std::uint32_t pieces, double seconds) {
  json::object task = common_of_merges(plan);
  task["name"] = plan.name + " cut";
  task["tool"] = plan.tool.cut;
  object_in(task, "inputs")["recording"] = json::array{as_it_stands(plan.recording)};
  object_in(task, "parameters") = {{"pieces", std::to_string(pieces)},
                                   {"seconds", std::to_string(seconds)}};
  // What is said of the tool that is split may be another's parameter.
  object_in(task, "outputs")["table"] = as_it_stands(result_of(plan, "pieces"));
  return task;
}

std::vector<DataUnit> read_pieces(const std::string& text, const std::string& file) {
  std::istringstream lines(text);
  std::string line;
  std::getline(lines, line);
  const std::vector<std::string> names = fields_of(line);
  std::vector<DataUnit> units;
  while (std::getline(lines, line)) {
    const std::vector<std::string> fields = fields_of(line);
    if (fields.size() != names.size())
      throw CommandError(kExitTaskFailed, file + " is no table of pieces: a line has " +
                                              std::to_string(fields.size()) + " fields and not " +
                                              std::to_string(names.size()));
    DataUnit unit;
    for (std::size_t i = 0; i < names.size(); ++i) unit.parameters[names[i]] = fields[i];
    units.push_back(std::move(unit));
  }
  if (units.empty()) throw CommandError(kExitTaskFailed, file + " lists no pieces");
  return units;
}

std::uint64_t fingerprint_of(const std::vector<std::string>& words) {
  // FNV-1a, each word with its length before it.
  std::uint64_t hash = 14695981039346656037U;
  const auto add = [&hash](std::string_view text) {
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211U;
  };
  for (const std::string& word : words) {
    add(std::to_string(word.size()) + ":");
    add(word);
  }
  return hash;
}

SplitFolder::SplitFolder(std::string path, const std::vector<std::string>& words)
    : path_(std::move(path)) {
  const std::string fingerprint = std::to_string(fingerprint_of(words));
  const std::string state = path_ + "/" + kStateFile;
  std::error_code error;
  fs::create_directories(path_, error);
  if (error) throw CommandError(kExitUsage, "cannot make " + path_ + ": " + error.message());
  if (fs::exists(state, error)) {
    const json::object before = state_in(state);
    if (text_at(before, "of") != fingerprint)
      throw CommandError(kExitUsage,
                         path_ +
                             " belongs to another split, or to this one before its files, its "
                             "command or its options changed: remove the folder to begin anew, "
                             "or name another with --parts");
    key_ = text_at(before, "key");
    return;
  }
  if (!fs::is_empty(path_, error) || error)
    throw CommandError(kExitUsage, path_ +
                                       " has files in it and is no split's folder: name another "
                                       "with --parts");
  key_ = random_key();
  const json::object now{{"of", fingerprint}, {"key", key_}};
  if (const int failed = replace_file(AT_FDCWD, state, json::serialize(now) + "\n", {});
      failed != 0)
    throw CommandError(kExitUsage, "cannot write " + state + ": " + std::strerror(failed));
}

void SplitFolder::remove() const {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(path_, error)) {
    std::error_code kept;
    if (is_a_splits(entry.path().filename().string())) fs::remove(entry.path(), kept);
  }
  fs::remove(path_, error);
}

}  // namespace hpcbatch
