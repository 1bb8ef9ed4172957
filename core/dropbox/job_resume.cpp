// How the jobs that an earlier drop box left, or a crash left half done, are taken up again.
#include "documents/text_check.hpp"
#include "documents/view.hpp"
#include "documents/yaml.hpp"
#include "dropbox/job_flow.hpp"

#include <fmt/format.h>

namespace hpcbatch {
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
