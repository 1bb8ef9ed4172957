#include "cli/tasks/many.hpp"

#include "cli/process/exit.hpp"
#include "cli/tasks/items.hpp"
#include "cli/tasks/submission.hpp"
#include "documents/text_check.hpp"
#include "model/index_set.hpp"
#include "model/placeholders.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <vector>

namespace hpcbatch {

std::uint64_t failures_allowed(const HaltOption& halt, std::uint64_t tasks) {
  if (!halt.share) return halt.failures.value_or(0);
  // With that share of them it is over, and with one in any case.
  const double at = std::ceil(*halt.share * static_cast<double>(tasks));
  return static_cast<std::uint64_t>(std::max(at, 1.0)) - 1;
}

namespace {

/// What asks for a second column where the items have one.
std::string stray_column(const WorkOptions& work, const Items& items) {
  if (items.items.empty() || !items.items.front().is_string() || !items.columns.empty()) return "";
  std::vector<std::string> texts = work.command;
  texts.insert(texts.end(), {work.standard_input, work.standard_output, work.standard_error,
                             work.directory, work.name});
  for (const std::string& text : texts) {
    for (const std::string_view name : columns_asked_for(text)) {
      if (name != "1" && name.find_first_not_of("0123456789") == std::string_view::npos)
        return "{" + std::string(name) + "}";
    }
  }
  return "";
}

/// A shell hands a pattern that no file matches on as it stands.
void refuse_pattern(const std::vector<ItemSource>& sources) {
  for (const ItemSource& source : sources) {
    if (source.words.size() != 1) continue;
    const std::string& word = source.words.front();
    const bool is_pattern = word.find_first_of("*?") != std::string::npos &&
                            word.find_first_of("./_") != std::string::npos &&
                            word.find("://") == std::string::npos &&
                            word.find(' ') == std::string::npos;
    std::error_code error;
    if (!is_pattern || std::filesystem::exists(word, error)) continue;
    throw CommandError(kExitUsage,
                       "no file matches '" + show_text(word) +
                           "', which the shell has handed on as it stands; a text that is meant so "
                           "is a line of a list: --each FILE");
  }
}

/// What would run, and not as its user means it.
void refuse_what_is_not_meant(const WorkOptions& work, const Items& items) {
  if (items.items.empty() || !items.items.front().is_string()) return;
  const std::string first(items.items.front().get_string());
  const std::string place = stray_column(work, items);
  const std::size_t separator = first.find_first_of("\t,;");
  if (!place.empty() && separator != std::string::npos) {
    throw CommandError(
        kExitUsage,
        "'" + place + "' stands for a column, and the items have one: say --columns " +
            (first[separator] == '\t' ? "tab" : "'" + first.substr(separator, 1) + "'") +
            "; a text that is meant as it stands belongs into a script");
  }
  std::error_code error;
  if (work.command.size() == 1 && work.command.front() == "{}" &&
      first.find(' ') != std::string::npos && !std::filesystem::exists(first, error)) {
    throw CommandError(kExitUsage,
                       "each item would be the name of a program, with all its spaces; "
                       "of lines that are commands say: -- sh -c 'eval \"$1\"' sh {}");
  }
}

}  // namespace

boost::json::object task_of_many(const WorkOptions& work, const ManyOptions& many,
                                 const std::string& directory, const Interrupt& interrupt) {
  Items items;
  if (!many.items.sources.empty()) items = read_items(many.items, interrupt);
  refuse_pattern(many.items.sources);
  refuse_what_is_not_meant(work, items);
  boost::json::object task = task_of(work, directory, items);
  std::uint64_t tasks = std::max<std::size_t>(items.items.size(), 1);
  if (many.array) {
    task["array"] = many.array->indices;
    if (const auto indices = parse_index_set(many.array->indices)) tasks = indices->size();
  }
  const std::uint32_t most =
      many.max_running == 0 && many.array ? many.array->max_running : many.max_running;
  if (most > 0) task["max_running"] = most;
  bound_failures(task, many, tasks);
  return task;
}

void bound_failures(boost::json::object& task, const ManyOptions& many, std::uint64_t tasks) {
  if (!many.halt) return;
  task["max_failures"] = failures_allowed(*many.halt, tasks);
  if (many.halt->ends_running) task["halt_running"] = true;
}

namespace {

/// As `{sample}`, and not `${sample}` or `{ echo; }` of a shell.
bool has_name_in_braces(const std::string& word) {
  const auto is_of_name = [](char letter) {
    return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_';
  };
  for (std::size_t at = word.find('{'); at != std::string::npos; at = word.find('{', at + 1)) {
    const std::size_t end = word.find('}', at);
    const bool is_shells = at > 0 && word[at - 1] == '$';
    if (end != std::string::npos && end > at + 1 && !is_shells &&
        std::all_of(word.begin() + static_cast<std::ptrdiff_t>(at) + 1,
                    word.begin() + static_cast<std::ptrdiff_t>(end), is_of_name))
      return true;
  }
  return false;
}

}  // namespace

void tell_doubt(const std::string& doubt) {
  if (!doubt.empty()) std::fprintf(stderr, "hpcbatch: %s\n", doubt.c_str());
}

std::string doubt_of(const WorkOptions& work, const ManyOptions& many,
                     const boost::json::object& task) {
  const auto any_word = [&](auto&& is) {
    return std::any_of(work.command.begin(), work.command.end(), is);
  };
  const auto holds = [](const char* text) {
    return [text](const std::string& word) { return word.find(text) != std::string::npos; };
  };
  if (work.command.empty()) return "";
  if (many.items.sources.empty()) {
    return any_word(holds("{}")) && many.array
               ? "the command has {}, which stands for items; an index of --array is "
                 "$HPCBATCH_TASK_INDEX"
               : "";
  }
  const boost::json::array* items = task.at("items").if_array();
  if (items == nullptr || items->empty() || any_word(holds("HPCBATCH_"))) return "";
  std::vector<std::string> columns;
  if (const auto* names = task.if_contains("columns")) {
    for (const auto& name : names->as_array()) columns.emplace_back(name.as_string());
  }
  Items all;
  all.items.push_back(items->front());
  all.columns = columns;
  if (const std::string place = stray_column(work, all); !place.empty())
    return place +
           " stays as it is: the items have one column, and --columns says what separates more";
  const Item first = item_of(items->front(), columns);
  const auto has_place = [&](const std::string& word) { return with_item(word, first, 1) != word; };
  const bool is_elsewhere = has_place(work.standard_input) || has_place(work.standard_output) ||
                            has_place(work.standard_error) || has_place(work.directory) ||
                            !work.inputs.empty() || !work.outputs.empty();
  if (any_word(has_place) || is_elsewhere) return "";
  // What no column is called is refused with a sentence of its own.
  if (!columns.empty() && any_word(has_name_in_braces)) return "";
  return "the command has no {}: each task has its item in $HPCBATCH_ITEM alone";
}

}  // namespace hpcbatch
