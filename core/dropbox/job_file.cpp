#include "dropbox/job_file.hpp"

#include "documents/text_check.hpp"
#include "documents/view.hpp"
#include "documents/yaml.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

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

}  // namespace hpcbatch
