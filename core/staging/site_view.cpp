#include "staging/site_view.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <utility>

namespace hpcbatch {
namespace {

// Standard streams that go to files the site does not see are written beside the outputs.
constexpr const char* kOwnDirectory = "hpcbatch-own-directory";
constexpr const char* kOutput = ".hpcbatch-stdout";
constexpr const char* kError = ".hpcbatch-stderr";

bool is_unseen(const std::string& path, const Site& site) {
  return path.starts_with('/') && !seen_as(site.path_map, path);
}

bool is_path_letter(char next) {
  return std::isalnum(static_cast<unsigned char>(next)) != 0 || next == '.' || next == '_' ||
         next == '-' || next == '/';
}

/// Whether a path may begin there: not in the middle of another, but behind the letter of an
/// option.
bool may_begin(const std::string& text, std::size_t at) {
  if (at == 0 || !is_path_letter(text[at - 1])) return true;
  return text.starts_with('-') && text.find('/') == at;
}

using Names = std::map<std::string, std::string>;  // here to there

/// Whole paths only: `/a/b` does not stand in `/a/bc`.  The longest name first.
void rename_in(std::string& text, const Names& names) {
  std::string renamed;
  for (std::size_t at = 0; at < text.size();) {
    const auto* found = static_cast<const Names::value_type*>(nullptr);
    if (text[at] == '/' && may_begin(text, at)) {
      for (const auto& name : names) {
        const std::size_t end = at + name.first.size();
        if (text.compare(at, name.first.size(), name.first) == 0 &&
            (end == text.size() || !is_path_letter(text[end])) &&
            (!found || name.first.size() > found->first.size()))
          found = &name;
      }
    }
    if (found) {
      renamed += found->second;
      at += found->first.size();
    } else {
      renamed += text[at++];
    }
  }
  text = std::move(renamed);
}

wire::Output stream_output(const char* name, const char* staged, const std::string& destination,
                           int place) {
  wire::Output output;
  output.set_place(static_cast<std::uint32_t>(place));
  output.set_name(name);
  output.set_staged(staged);
  output.set_destination(destination);
  output.set_of_failure(true);
  return output;
}

/// The outputs, and the standard streams among them that go to files.
std::vector<wire::Output> all_outputs(const wire::Start& recipe) {
  std::vector<wire::Output> all(recipe.outputs().begin(), recipe.outputs().end());
  for (std::size_t i = 0; i < all.size(); ++i) all[i].set_place(static_cast<std::uint32_t>(i));
  const int next = recipe.outputs_size();
  if (!recipe.standard_output().empty())
    all.push_back(stream_output("stdout", kOutput, recipe.standard_output(), next));
  if (!recipe.standard_error().empty() && recipe.standard_error() != recipe.standard_output())
    all.push_back(stream_output("stderr", kError, recipe.standard_error(), next + 1));
  return all;
}

/// Of the standard streams only those whose files the site does not see.
std::vector<wire::Output> outputs_at(const Site& site, const wire::Start& recipe) {
  std::vector<wire::Output> all = all_outputs(recipe);
  const auto streams = all.begin() + recipe.outputs_size();
  all.erase(std::remove_if(
                streams, all.end(),
                [&](const wire::Output& stream) { return !is_unseen(stream.destination(), site); }),
            all.end());
  return all;
}

/// All or none: then those that the site would see are fetched as well.
bool must_be_fetched(const std::vector<wire::Output>& outputs, const Site& site) {
  return std::any_of(outputs.begin(), outputs.end(), [&](const wire::Output& output) {
    return is_unseen(output.destination(), site);
  });
}

/// In its command, that of its service, and its variables.
void rename_words(wire::Start& start, const Names& names) {
  for (std::string& argument : *start.mutable_argv()) rename_in(argument, names);
  if (start.has_service()) {
    for (std::string& argument : *start.mutable_service()->mutable_argv())
      rename_in(argument, names);
  }
  for (wire::Variable& variable : *start.mutable_variables())
    rename_in(*variable.mutable_value(), names);
}

}  // namespace

std::vector<std::string> files_to_stage_in(const wire::Start& recipe, const Site& site) {
  std::vector<std::string> files;
  const auto add = [&](const std::string& path) {
    if (is_unseen(path, site) && std::find(files.begin(), files.end(), path) == files.end())
      files.push_back(path);
  };
  for (const std::string& input : recipe.inputs()) add(input);
  add(recipe.standard_input());
  add(recipe.container());
  return files;
}

std::string folder_of_outputs(const Site& site, const PilotId& pilot, const AttemptId& attempt) {
  return fmt::format("{}/out/{}/{}.{}-{}-{:x}", site.workspace, to_string(pilot),
                     attempt.task.array.value, attempt.task.index, attempt.number, attempt.epoch);
}

std::vector<wire::Output> outputs_to_fetch(const wire::Start& recipe,
                                           const std::vector<std::uint32_t>& published) {
  std::vector<wire::Output> all = all_outputs(recipe);
  const std::set<std::uint32_t> there(published.begin(), published.end());
  std::erase_if(all, [&](const wire::Output& output) { return !there.contains(output.place()); });
  for (wire::Output& output : all) output.set_staged(std::to_string(output.place()));
  return all;
}

std::optional<std::string> show_at(
    wire::Start& start, const Site& site, const std::string& folder_of_outputs,
    const std::function<std::optional<std::string>(const std::string&)>& place_of) {
  std::vector<std::string> missing;
  const auto there = [&](const std::string& path) -> std::string {
    if (!path.starts_with('/')) return path;
    if (const auto seen = seen_as(site.path_map, path)) return *seen;
    if (const auto place = place_of(path)) return *place;
    missing.push_back(path);
    return path;
  };
  Names names;
  for (std::string& input : *start.mutable_inputs()) {
    const std::string here = input;
    input = there(here);
    names[here] = input;
  }
  for (wire::Alias& link : *start.mutable_links()) link.set_target(there(link.target()));
  start.set_standard_input(there(start.standard_input()));
  start.set_container(there(start.container()));
  if (!missing.empty())
    return fmt::format("its input {} was not staged in at site {}", missing.front(), site.name);
  rename_words(start, names);
  // Nothing of this machine is of use where its file system is not seen.
  if (!seen_as(site.path_map, "/")) start.set_environment(0);
  start.set_directory(seen_as(site.path_map, start.directory()).value_or(""));

  const std::vector<wire::Output> outputs = outputs_at(site, start);
  const bool is_fetched = must_be_fetched(outputs, site);
  if (start.directory_token().empty() &&
      outputs.size() != static_cast<std::size_t>(start.outputs_size()))
    start.set_directory_token(kOwnDirectory);
  const std::string own = start.directory_token() + "/";
  const bool same = start.standard_error() == start.standard_output();
  for (const auto& [unseen, name, stream] :
       {std::tuple{is_unseen(start.standard_output(), site), kOutput,
                   start.mutable_standard_output()},
        std::tuple{is_unseen(start.standard_error(), site), same ? kOutput : kError,
                   start.mutable_standard_error()}}) {
    *stream = unseen ? own + name : seen_as(site.path_map, *stream).value_or(*stream);
  }
  start.clear_outputs();
  for (const wire::Output& each : outputs) {
    wire::Output* output = start.add_outputs();
    *output = each;
    if (is_fetched) {
      output->set_destination(fmt::format("{}/{}", folder_of_outputs, each.place()));
      // That is looked at where it is published in the end.
      output->set_check_owner(false);
    } else {
      output->set_destination(seen_as(site.path_map, output->destination()).value_or(""));
    }
  }
  start.set_stage_out(is_fetched);
  return std::nullopt;
}

}  // namespace hpcbatch
