#include "dropbox/job_flow.hpp"

#include "documents/texts.hpp"
#include "documents/view.hpp"
#include "documents/yaml.hpp"
#include "dropbox/job_folder.hpp"
#include "dropbox/job_rights.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

namespace hpcbatch {
namespace {

constexpr std::size_t kLargestSubmitted = std::size_t{16} << 20;
constexpr std::string_view kSubmitted = ".submitted";
constexpr std::string_view kFinished = ".finished";
constexpr std::string_view kIgnored = ".ignored";
constexpr const char* kCancelled = "Cancelled: its .submitted file was removed";

std::string with(const std::string& name, std::string_view ending) {
  return name + std::string(ending);
}

Time wall_clock() {
  return std::chrono::time_point_cast<Duration>(std::chrono::system_clock::now());
}

JobResult error_result(std::string message) {
  JobResult result;
  result.message = std::move(message);
  result.start = result.end = wall_clock();
  return result;
}

/// The superuser's documents become the submitter's, who may then remove them where that is his
/// right; of another engine he may read it.  By the file itself: another may stand at its name.
void give(const Fd& document, std::uint32_t owner) {
  const uid_t us = ::geteuid();
  if (owner == us || owner == 0) return;
  if (us == 0) {
    (void)!::fchown(document.get(), owner, static_cast<gid_t>(-1));
  } else {
    let_read(document.get(), owner);
  }
}

JobFile::Map staged(const JobFile::Map& files, const std::string& folder) {
  std::set<std::string> taken;
  JobFile::Map result;
  for (const auto& [key, path] : files)
    result.emplace_back(key, folder + "/" + staged_name(path, taken));
  return result;
}

}  // namespace

void JobFlow::warn(const std::string& text) const {
  if (options_.warn) options_.warn(fmt::format("drop box {}: {}", options_.directory, text));
}

void JobFlow::use(DropboxFolder folder) {
  folder_ = std::move(folder);
  ++generation_;
}

PublishRights JobFlow::rights_of(const Active& active) const {
  return {.owner = active.job.owner, .allow = options_.allow, .dropbox = options_.directory};
}

/// Whether the document of this name is there for another user, and `owner` could not remove it.
bool JobFlow::is_anothers(const std::string& document, std::uint32_t owner) const {
  const auto stamp = folder_->look(document);
  if (!stamp) return false;
  const FolderFacts folder = folder_->facts();
  // Where others can put files of ours or root's, such a file is not in our name.
  if (owner == ::geteuid() || owner == 0) return others_can_put(folder, ::geteuid());
  if (owner == folder.owner) return false;
  if (!S_ISREG(stamp->mode)) return true;
  if (stamp->owner != ::geteuid()) return stamp->owner != owner;
  const auto content = folder_->read(document, kLargestSubmitted);
  return !content || submitter_in(content->text, document) != owner;
}

bool JobFlow::is_in_anothers_way(const std::string& name, std::uint32_t owner) const {
  return is_anothers(with(name, kFinished), owner) || is_anothers(with(name, kSubmitted), owner);
}

Result<void> JobFlow::set_aside(const std::string& name, std::string_view why) {
  const auto moved = folder_->rename_to_free(name, with(name, kIgnored));
  if (!moved) return moved.error();
  warn(fmt::format("{} {}; it is ignored and is now {}", show_text(name), why, show_text(*moved)));
  return {};
}

Result<Fd> JobFlow::put(const std::string& name, const std::string& text, const Readers& readers) {
  auto file = folder_->put(name, text, readers);
  if (!file) return file;
  if (const auto stamp = stamp_of(*file)) known_.add(*stamp);
  return file;
}

JobFlow::Active JobFlow::accepted(const std::string& name, const JobFile& job,
                                  const DropboxFolder::Content& content) const {
  Active active;
  active.name = name;
  active.job.document = job.document;
  active.job.key = job_key(name, content.stamp.inode, content.stamp.changed_ns, content.text);
  active.job.workspace = workspace_.name_folder(content.stamp.inode, wall_clock(), folders_);
  active.job.owner = content.stamp.owner;
  active.readers = readers_of(content.stamp);
  active.job.inputs = staged(job.inputs, active.job.workspace + "/input");
  active.job.outputs = staged(job.outputs, active.job.workspace + "/output");
  return active;
}

JobFlow::Taking JobFlow::take(const std::string& name, const DropboxFolder::Content& content) {
  const FolderFacts folder = folder_->facts();
  const std::uint32_t us = ::geteuid();
  if (const std::string why = why_no_dropbox(folder, us); !why.empty())
    return {Taken::Later, "the drop box cannot be used: " + why};
  const std::uint32_t owner = content.stamp.owner;
  // Were it left, it would run as a job of its own once the first one ends.
  const bool is_again = key_of_.contains(name);
  if (is_again || is_in_anothers_way(name, owner)) {
    const auto moved = set_aside(name, is_again ? "was written again while it is being worked on"
                                                : "has the name of another user's job");
    return moved ? Taking{} : Taking{Taken::Later, moved.error().text};
  }
  JobFacts facts{.owner = owner,
                 .mode = content.stamp.mode,
                 .links = content.stamp.links,
                 .is_known = known_.contains(content.stamp)};
  if (std::string why = why_nobodys_word(folder, facts, us); !why.empty())
    return {Taken::NobodysWord, std::move(why)};
  JobFile job;
  try {
    job = parse_job(content.text, name);
  } catch (const DocumentError& e) {
    return {Taken::NotYet, fmt::format("line {}: {}", e.line, e.message)};
  }
  facts.is_known = owner == us && job.has_ours;
  if (std::string why = why_nobodys_word(folder, facts, us); !why.empty())
    return {Taken::NobodysWord, std::move(why)};
  for (const std::string& text : job.warnings) warn(text);

  Active active = accepted(name, job, content);
  const std::string document = submitted_document(active.job);
  if (others_can_put(folder, us)) {
    const auto noted = workspace_.note_taken(active.job.workspace, {name, document});
    if (!noted) return {Taken::Later, noted.error().text};
  }
  // The rename takes the job: it is allowed or refused before anything else has happened.
  const std::string submitted = with(name, kSubmitted);
  const auto moved = folder_->rename(name, submitted);
  if (const auto written = moved ? put(submitted, document, active.readers) : moved.error();
      !written) {
    workspace_.forget_taken(active.job.workspace);
    if (!moved) return {Taken::Later, moved.error().text};
    if (const auto back = folder_->rename(submitted, name); !back) warn(back.error().text);
    return {Taken::Later, written.error().text};
  }
  // It was replaced; where it is there still, somebody has given it another name meanwhile.
  if (const auto left = stamp_of(content.file); left && left->links > 0) known_.add(*left);
  // A result of an earlier job of this name would be taken for this one's.
  if (const auto removed = folder_->remove(with(name, kFinished)); !removed)
    warn(removed.error().text);
  add(std::move(active), false);
  return {};
}

void JobFlow::add(Active active, bool is_resumed) {
  active.seen_in = generation_;
  const std::string key = active.job.key;
  key_of_[active.name] = key;
  folders_.insert(active.job.workspace);
  if (!active_.contains(key)) ++active_of_[active.job.owner];
  Active& kept = active_.insert_or_assign(key, std::move(active)).first->second;
  if (const auto begun = begin(kept, is_resumed); !begun)
    deliver(kept, error_result(begun.error().text));
}

std::size_t JobFlow::room_of(std::uint32_t owner) const {
  const auto at = active_of_.find(owner);
  const std::size_t his = at == active_of_.end() ? 0 : at->second;
  return options_.most_active_of_one - std::min(options_.most_active_of_one, his);
}

void JobFlow::on_lane(std::uint32_t owner, std::function<std::function<void()>()> work) {
  lanes_.post(owner, [this, work = std::move(work)] {
    if (ends_) return;
    hand_back(work());
  });
}

void JobFlow::hand_back(std::function<void()> then) {
  {
    const std::lock_guard lock(mutex_);
    done_.push_back(std::move(then));
  }
  ring_();
}

void JobFlow::go_on() {
  std::vector<std::function<void()>> done;
  {
    const std::lock_guard lock(mutex_);
    done.swap(done_);
  }
  for (const auto& then : done) then();
}

void JobFlow::begun(const std::string& key, Prepared prepared) {
  Active& active = active_.at(key);
  active.is_tool = prepared.is_tool;
  for (const std::string& text : prepared.warnings) warn(text);
  look_after(active.name);
  active.is_on_lane = false;
  if (active.cancelled) return deliver(active, error_result(kCancelled));
  if (!prepared.task) return deliver(active, error_result(prepared.task.error().text));
  submit_port_.submit(std::move(*prepared.task));
}

void JobFlow::published(const std::string& key, JobResult result) {
  Active& active = active_.at(key);
  active.is_on_lane = false;
  deliver(active, std::move(result));
}

void JobFlow::refuse(const std::string& name, const std::string& why, bool is_told) {
  const auto stamp = folder_->look(name);
  if (!stamp) return;
  if (key_of_.contains(name) || is_in_anothers_way(name, stamp->owner)) {
    // Its result would be taken for that of the other.
    const auto moved = set_aside(name, "has the name of another job and cannot be used: " + why);
    if (!moved) warn(moved.error().text);
    return;
  }
  Node document;
  const auto content = folder_->read(name, kLargestSubmitted);
  if (is_told && content && content->stamp.links == 1 && content->stamp.owner == stamp->owner) {
    try {
      document = parse_yaml(content->text, name);
    } catch (const DocumentError&) {
      // Then the result stands alone.
    }
  }
  warn(fmt::format("{} is refused: {}", show_text(name), why));
  const JobResult result = error_result("The job file cannot be used: " + why);
  // The job goes first: were it the other way round and a removal not allowed, it would be refused
  // again and again.
  if (const auto removed = folder_->remove(name); !removed) return warn(removed.error().text);
  const std::string finished = with(name, kFinished);
  const auto written =
      put(finished, refused_document(document, result, stamp->owner), readers_of(*stamp));
  if (!written) return warn(written.error().text);
  give(*written, stamp->owner);
}

void JobFlow::look_after(const std::string& name) {
  const auto at = key_of_.find(name);
  if (at == key_of_.end()) return;
  Active& active = active_.at(at->second);
  if (folder_->look(with(name, kSubmitted))) {
    active.seen_in = generation_;
  } else if (active.seen_in == generation_ && !active.cancelled &&
             folder_->is_still(options_.directory)) {
    active.cancelled = true;
    // What is being prepared is no task yet, and what is being published has ended.
    if (!active.is_on_lane) submit_port_.cancel(active.job.key);
  }
}

void JobFlow::look_after_all() {
  std::vector<std::string> names;
  for (const auto& [name, key] : key_of_) names.push_back(name);
  for (const std::string& name : names) look_after(name);
}

void JobFlow::ended(const DropboxTaskEnd& end) {
  const auto at = active_.find(end.key);
  if (at == active_.end() || at->second.undelivered || at->second.is_on_lane) return;
  Active& active = at->second;
  look_after(active.name);
  active.is_on_lane = true;
  on_lane(active.job.owner, [this, active, end] {
    return [this, key = end.key, result = result_of(active, end)] { published(key, result); };
  });
}

JobResult JobFlow::result_of(const Active& active, const DropboxTaskEnd& end) const {
  JobResult result;
  result.exit_code = end.exit_code;
  result.standard_output = end.standard_output;
  result.standard_error = end.standard_error;
  result.end = end.end.value_or(wall_clock());
  result.start = end.start.value_or(result.end);
  if (active.cancelled) {
    result.message = kCancelled;
  } else if (!end.failure) {
    result.message = end.message;
  } else if (*end.failure == Failure::Ok && end.exit_code == 0) {
    const auto published = publish(publications(active, end), rights_of(active));
    result.ok = published.has_value();
    result.message = result.ok ? "Successful" : "Could not copy files";
    if (!result.ok) result.reason = published.error().text;
  } else if (*end.failure == Failure::ToolFailed || *end.failure == Failure::ToolSignal) {
    result.message = fmt::format("Remote process failed with RC {}", end.exit_code);
  } else {
    result.message = fmt::format("{}: {}", to_string(*end.failure), end.message);
  }
  return result;
}

std::vector<Publication> JobFlow::publications(const Active& active,
                                               const DropboxTaskEnd& end) const {
  std::vector<Publication> outputs;
  for (const auto& [key, staged] : active.job.outputs) {
    const auto destination = active.destinations.find(key);
    if (destination == active.destinations.end()) continue;
    Publication output{.key = key, .staged = staged, .destination = destination->second};
    if (active.is_tool) {
      const auto written = end.outputs.find(key);
      if (written == end.outputs.end() || written->second.file.find('/') != std::string::npos)
        continue;
      output.staged = active.job.workspace + "/output/" + written->second.file;
      struct stat status {};
      const bool is_absent = ::lstat(output.staged.c_str(), &status) != 0 && errno == ENOENT;
      if (written->second.optional && is_absent) continue;
    }
    outputs.push_back(std::move(output));
  }
  return outputs;
}

void JobFlow::deliver(Active& active, JobResult result) {
  active.undelivered = std::move(result);
  write_result(active);
}

bool JobFlow::write_result(Active& active) {
  // The result goes into the old name first, so that one rename makes it seen and no crash leaves
  // both.
  const std::string submitted = with(active.name, kSubmitted);
  const auto written =
      put(submitted, finished_document(active.job, *active.undelivered), active.readers);
  const auto moved =
      written ? folder_->rename(submitted, with(active.name, kFinished)) : written.error();
  if (!moved) {
    warn(fmt::format("the result of {} waits: {}", show_text(active.name), moved.error().text));
    return false;
  }
  give(*written, active.job.owner);
  workspace_.forget_taken(active.job.workspace);
  // It may hold a million files, and goes at the drop box's end too.
  lanes_.post(active.job.owner, [this, folder = active.job.workspace] {
    workspace_.remove(folder);
    hand_back([this, folder] { folders_.erase(folder); });
  });
  const std::string key = active.job.key;
  if (--active_of_[active.job.owner] == 0) active_of_.erase(active.job.owner);
  key_of_.erase(active.name);
  active_.erase(key);
  return true;
}

void JobFlow::deliver_again() {
  std::vector<Active*> waiting;
  for (auto& [key, active] : active_) {
    if (active.undelivered) waiting.push_back(&active);
  }
  for (Active* const active : waiting) {
    if (!write_result(*active)) return;
  }
}

}  // namespace hpcbatch
