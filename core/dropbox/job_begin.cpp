// How an accepted job becomes a task: what it names is looked up and checked, its inputs are
// staged, its script is made.
#include "documents/texts.hpp"
#include "documents/view.hpp"
#include "documents/yaml.hpp"
#include "dropbox/job_file.hpp"
#include "dropbox/job_flow.hpp"
#include "dropbox/job_folder.hpp"

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <stdexcept>

#include <sys/stat.h>

namespace hpcbatch {
namespace {

constexpr const char* kScript = "job.sh";
/// Stands in a tool's folder where a template's has its script: from then on the engine may know
/// the task.
constexpr const char* kToolMark = "tool";
constexpr const char* kWorkspaceName = "workspace";

Error rejected(std::string text) {
  return Error{Error::Kind::Rejected, std::move(text)};
}

bool exists(const std::string& path) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0;
}

std::string last_part(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

std::map<std::string, TemplateValue> template_values(
    const std::map<std::string, std::string>& variables, const JobFile& job,
    const Submitted& submitted) {
  std::map<std::string, TemplateValue> values;
  for (const auto& [name, value] : variables) values[name] = {value, true};
  const bool is_ours = submitted.owner == ::geteuid();
  for (const auto& [name, value] : job.args) values[name] = {value, is_ours};
  values[kWorkspaceName] = {submitted.workspace, true};
  for (const auto& [name, path] : submitted.inputs) values[name] = {last_part(path), true};
  for (const auto& [name, path] : submitted.outputs) values[name] = {last_part(path), true};
  return values;
}

/// The names that a job of another user may not give: it could point a trusted value, such as the
/// folder of the containers, at programs of its own.
std::optional<std::string> reserved_name(const std::map<std::string, std::string>& variables,
                                         const JobFile& job) {
  for (const JobFile::Map* const map : {&job.args, &job.inputs, &job.outputs}) {
    for (const auto& [name, value] : *map) {
      if (name == kWorkspaceName || variables.contains(name)) return name;
    }
  }
  return std::nullopt;
}

}  // namespace

Result<void> JobFlow::begin(Active& active, bool is_resumed) {
  JobFile job;
  try {
    job = job_of(active.job.document, active.name);
  } catch (const DocumentError& e) {
    return rejected(e.message);
  }
  active.destinations = {job.outputs.begin(), job.outputs.end()};
  if (!workspace_.is_job_folder(active.job.workspace)) {
    return rejected(fmt::format("its folder {} is not in the workspace of this drop box",
                                show_text(active.job.workspace, 300)));
  }
  active.is_on_lane = true;
  on_lane(active.job.owner, [this, active, job, is_resumed] {
    return [this, key = active.job.key,
            prepared = std::make_shared<Prepared>(prepare(active, job, is_resumed))] {
      begun(key, std::move(*prepared));
    };
  });
  return {};
}

JobFlow::Prepared JobFlow::prepare(const Active& active, const JobFile& job,
                                   bool is_resumed) const {
  Prepared prepared{.task = DropboxTask{}, .is_tool = active.is_tool, .warnings = {}};
  prepared.task = task_of(active, job, is_resumed, prepared);
  return prepared;
}

Result<DropboxTask> JobFlow::task_of(const Active& active, const JobFile& job, bool is_resumed,
                                     Prepared& prepared) const {
  const std::string& folder = active.job.workspace;
  if (!is_word(job.script)) {
    return rejected(
        fmt::format("'{}' is no name of a template or a tool", show_text(job.script, 60)));
  }
  DropboxTask task{.key = active.job.key,
                   .client = "dropbox:" + options_.directory,
                   .name = show_text(active.name, 120),
                   .directory = folder,
                   .work = {},
                   .output_directory = folder + "/output"};
  if (is_resumed && exists(folder + "/" + kScript)) {
    task.work = std::vector<std::string>{folder + "/" + kScript};
    return task;
  }
  prepared.is_tool = is_resumed && exists(folder + "/" + kToolMark);
  const bool is_known_to_the_engine = prepared.is_tool;
  if (!is_known_to_the_engine) {
    auto text = find_template(options_.templates, job.script, options_.trust_group);
    if (!text) return text.error();
    if (const auto checked = check_paths(active, job); !checked) return checked.error();
    if (const auto made = workspace_.make(folder); !made) return made.error();
    if (*text) {
      auto command = stage(active, job, **text, prepared);
      if (!command) return command.error();
      task.work = std::move(*command);
      return task;
    }
    prepared.is_tool = true;
    if (active.job.owner != ::geteuid()) {
      return rejected(fmt::format(
          "there is no template '{}', and a job file of user {} may name templates only (the "
          "engine belongs to user {})",
          job.script, active.job.owner, ::geteuid()));
    }
  }
  auto call = call_of(active, job, is_known_to_the_engine);
  if (!call) return call.error();
  if (!is_known_to_the_engine) {
    if (const auto marked = write_script(folder, kToolMark, job.script + "\n"); !marked)
      return marked.error();
  }
  task.work = std::move(*call);
  return task;
}

Result<void> JobFlow::check_paths(const Active& active, const JobFile& job) const {
  std::vector<Publication> outputs;
  for (const auto& [key, path] : job.outputs) {
    outputs.push_back({.key = key, .staged = {}, .destination = path});
    for (const auto& [input, source] : job.inputs) {
      if (are_same_file(path, source, active.job.owner)) {
        return rejected(fmt::format("output '{}' and input '{}' are the same file: {}", key, input,
                                    show_text(path, 300)));
      }
    }
  }
  return check_destinations(outputs, rights_of(active));
}

Result<std::vector<std::string>> JobFlow::stage(const Active& active, const JobFile& job,
                                                const std::string& text, Prepared& prepared) const {
  if (active.job.owner != ::geteuid()) {
    if (const auto name = reserved_name(options_.variables, job)) {
      return rejected(fmt::format(
          "'{}' is set by the drop box, and a job file of user {} may not give it (the engine "
          "belongs to user {})",
          *name, active.job.owner, ::geteuid()));
    }
  }
  std::string script;
  try {
    RenderedTemplate rendered =
        render_template(text, template_values(options_.variables, job, active.job));
    for (const std::string& name : rendered.unknown) {
      prepared.warnings.push_back(fmt::format(
          "{}: template '{}' uses <<{}>>, which the job does not give; it is left as it is",
          show_text(active.name), job.script, name));
    }
    script = std::move(rendered.text);
  } catch (const std::invalid_argument& e) {
    return rejected(fmt::format("template '{}': {}", job.script, e.what()));
  }
  std::uint64_t room = options_.input_limit;
  for (std::size_t i = 0; i < job.inputs.size(); ++i) {
    const auto done =
        stage_input(job.inputs[i].second, active.job.inputs[i].second, active.job.owner, room);
    if (!done) return done.error();
    room -= *done;
  }
  if (const auto written = write_script(active.job.workspace, kScript, script); !written)
    return written.error();
  return command_of(active.job.workspace + "/" + kScript, script);
}

Result<ToolCall> JobFlow::call_of(const Active& active, const JobFile& job, bool is_resumed) const {
  ToolCall call{.tool = job.script,
                .parameters = {job.args.begin(), job.args.end()},
                .inputs = {},
                .outputs = {job.outputs.begin(), job.outputs.end()}};
  for (const auto& [key, path] : job.inputs) {
    auto file = look_at_input(path, active.job.owner);
    // The engine has the task already and looks only at its key.
    if (!file && is_resumed) file = InputFile{.path = path, .size = 0, .modified = {}};
    if (!file) return file.error();
    call.inputs[key] = {*file};
  }
  return call;
}

// How the jobs that an earlier drop box left, or a crash left half done, are taken up again.

namespace {

constexpr std::size_t kLargestDocument = std::size_t{16} << 20;

}  // namespace

void JobFlow::resume(const std::string& name) {
  if (key_of_.contains(name)) return;
  const std::string submitted = name + ".submitted";
  const auto content = folder_->read(submitted, kLargestDocument);
  if (!content) return warn(content.error().text);
  ReadSubmitted read;
  std::optional<Submitted> job;
  try {
    const Node document = parse_yaml(content->text, submitted,
                                     {.bytes = kLargestDocument, .nodes = 20'000, .depth = 40});
    if (!document.find("hpc")) {
      // A crash between taking it and saying so; nothing has been submitted.
      if (folder_->look(name))
        return warn(fmt::format("{} is no document of ours", show_text(submitted)));
      if (const auto back = folder_->rename(submitted, name); !back) warn(back.error().text);
      return;
    }
    read = parse_submitted(content->text, submitted);
    job = content->stamp.owner == ::geteuid() ? job_to_resume(name, read) : std::nullopt;
  } catch (const DocumentError& e) {
    return warn(fmt::format("cannot take up {} again: line {}: {}", show_text(submitted), e.line,
                            e.message));
  }
  if (!job) {
    return warn(fmt::format(
        "{} was not written here by us, as far as our workspace knows; it is left alone: "
        "remove it, and drop the job again",
        show_text(submitted)));
  }
  if (read.is_finished) {
    if (const auto moved = folder_->rename(submitted, name + ".finished"); !moved)
      warn(moved.error().text);
    workspace_.forget_taken(job->workspace);
    workspace_.remove(job->workspace);
    return;
  }
  Active active;
  active.name = name;
  active.job = std::move(*job);
  active.readers = readers_of(content->stamp);
  add(std::move(active), true);
}

/// Where others can put files of ours, what we noted for ourselves is believed, not what stands
/// there.
std::optional<Submitted> JobFlow::job_to_resume(const std::string& name,
                                                const ReadSubmitted& read) const {
  if (!others_can_put(folder_->facts(), ::geteuid())) return read.job;
  const auto taken = workspace_.taken(read.job.workspace);
  if (!taken || taken->name != name) return std::nullopt;
  ReadSubmitted noted = parse_submitted(taken->document, name);
  if (noted.job.key != read.job.key) return std::nullopt;
  return std::move(noted.job);
}

}  // namespace hpcbatch
