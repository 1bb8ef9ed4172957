#include "dropbox/job_file.hpp"

#include "documents/texts.hpp"
#include "documents/view.hpp"
#include "documents/yaml.hpp"
#include "hpcbatch/shell_quote.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <stdexcept>

namespace hpcbatch {
namespace {

constexpr DocumentLimits kJobFileLimits{
    .bytes = std::size_t{4} << 20, .nodes = 10'000, .depth = 32};

bool is_key(std::string_view name) {
  const auto is_fine = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
  };
  return !name.empty() && !std::isdigit(static_cast<unsigned char>(name.front())) &&
         std::all_of(name.begin(), name.end(), is_fine);
}

JobFile::Map map_of(const View& view, bool holds_paths) {
  JobFile::Map result;
  for (const View& entry : view.map().entries()) {
    if (!is_key(entry.name())) {
      entry.fail(fmt::format("the key '{}' in '{}' must be letters, digits and '_', no digit first",
                             show_text(entry.name(), 40), view.name()));
    }
    result.emplace_back(entry.name(), holds_paths ? entry.absolute_path() : entry.text());
  }
  return result;
}

constexpr std::string_view kLettersOfNames =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";

struct Mark {
  std::string_view name;  ///< empty: there is none
  std::string_view text;  ///< all of it
  bool is_quoted{false};
};

/// `<<name>>` or `<<name:q>>` at the start of `text`.
Mark mark_at(std::string_view text) {
  if (!text.starts_with("<<")) return {};
  std::string_view rest = text.substr(2);
  const auto end = std::min(rest.find_first_not_of(kLettersOfNames), rest.size());
  if (end == 0 || std::isdigit(static_cast<unsigned char>(rest.front()))) return {};
  Mark mark{.name = rest.substr(0, end)};
  rest.remove_prefix(end);
  mark.is_quoted = rest.starts_with(":q");
  if (mark.is_quoted) rest.remove_prefix(2);
  if (!rest.starts_with(">>")) return {};
  mark.text = text.substr(0, text.size() - rest.size() + 2);
  return mark;
}

bool is_number(std::string_view value) {
  return value.size() > 1 && std::all_of(value.begin() + 1, value.end(), [](char c) {
           return std::isdigit(static_cast<unsigned char>(c)) || c == '.';
         });
}

}  // namespace

JobFile job_of(const Node& document, const std::string& file) {
  const View whole(document, file, "the job file");
  MapView map = whole.map();
  JobFile job;
  job.script = map.get("script").non_empty_text();
  if (const auto args = map.find("args")) job.args = map_of(*args, false);
  job.inputs = map_of(map.get("input_map"), true);
  job.outputs = map_of(map.get("output_map"), true);
  job.document = document;
  for (const char* reserved : {"hpc", "job"}) {
    const auto is_it = [&](const Field& field) { return field.name == reserved; };
    if (std::erase_if(job.document.fields, is_it) > 0) {
      job.has_ours = true;
      job.warnings.push_back(
          fmt::format("'{}' in {} is ignored; it is ours to write", reserved, show_text(file)));
    }
  }
  return job;
}

JobFile parse_job(std::string_view text, const std::string& file) {
  return job_of(parse_yaml(text, file, kJobFileLimits), file);
}

bool is_safe_in_shell(std::string_view value) {
  const auto is_safe = [](char c) {
    return static_cast<unsigned char>(c) >= 0x80 || std::isalnum(static_cast<unsigned char>(c)) ||
           std::string_view("_./:,=+@%-").find(c) != std::string_view::npos;
  };
  if (value.empty() || !std::all_of(value.begin(), value.end(), is_safe)) return false;
  return value.front() != '-' || is_number(value);
}

RenderedTemplate render_template(std::string_view text,
                                 const std::map<std::string, TemplateValue>& values) {
  RenderedTemplate rendered;
  std::string& result = rendered.text;
  while (!text.empty()) {
    const auto begin = text.find("<<");
    result += text.substr(0, begin);
    if (begin == std::string_view::npos) break;
    text.remove_prefix(begin);
    const Mark mark = mark_at(text);
    if (mark.name.empty()) {
      // A here-document of the template's own, or a shift.
      result += text.front();
      text.remove_prefix(1);
      continue;
    }
    text.remove_prefix(mark.text.size());
    const auto value = values.find(std::string(mark.name));
    if (value == values.end()) {
      rendered.unknown.emplace(mark.name);
      result += mark.text;
      continue;
    }
    if (!mark.is_quoted && !value->second.trusted && !is_safe_in_shell(value->second.text)) {
      throw std::invalid_argument(
          fmt::format("the value of '{}' may hold only letters, digits and _./:,=+@%- (no '-' "
                      "first), because it is "
                      "inserted into a shell script (where the template says <<{}:q>> it may hold "
                      "anything); it is '{}'",
                      mark.name, mark.name, show_text(value->second.text, 60)));
    }
    result += mark.is_quoted ? shell_quoted(value->second.text) : value->second.text;
  }
  return rendered;
}

}  // namespace hpcbatch
