#include "cli/split/split_tasks.hpp"

#include "cli/client/engine_client.hpp"
#include "cli/parse/spelled.hpp"
#include "cli/process/process.hpp"
#include "cli/show/table.hpp"
#include "cli/show/terminal.hpp"
#include "cli/show/values.hpp"
#include "cli/tasks/items.hpp"
#include "cli/tasks/submission.hpp"
#include "model/quantities.hpp"
#include "posix/files.hpp"

#include <boost/json/serialize.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>

namespace hpcbatch {
namespace {

namespace json = boost::json;

constexpr std::chrono::seconds kAskFor{20};
constexpr std::chrono::seconds kMargin{30};
// Each is a task of its own, and a file in one folder.
constexpr std::size_t kMostParts = 100'000;
constexpr std::size_t kShownFailures = 10;
constexpr std::uint32_t kRetries = 1;

std::string whole_path(const std::string& from, const std::string& path) {
  return (std::filesystem::path(from) / path).lexically_normal().string();
}

/// All that decides what a file is: who takes a split up again must find it as it was.
std::string facts_of_file(const std::string& path, std::uint64_t* size = nullptr) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0)
    throw CommandError(kExitUsage, "cannot read " + path + ": " + std::strerror(errno));
  if (!S_ISREG(info.st_mode)) throw CommandError(kExitUsage, path + " is not a regular file");
  if (::access(path.c_str(), R_OK) != 0)
    throw CommandError(kExitUsage, "cannot read " + path + ": " + std::strerror(errno));
  if (size != nullptr) *size = static_cast<std::uint64_t>(info.st_size);
  return path + " " + std::to_string(info.st_size) + " " + std::to_string(info.st_mtim.tv_sec) +
         "." + std::to_string(info.st_mtim.tv_nsec);
}

std::vector<std::string> paths_in(const std::string& file, const std::string& directory,
                                  const Interrupt& interrupt) {
  ItemOptions options;
  options.sources.push_back({file, {}});
  std::vector<std::string> paths;
  for (const json::value& item : read_items(options, interrupt).items) {
    if (!item.is_string()) throw CommandError(kExitUsage, file + " must have one path a line");
    paths.push_back(whole_path(directory, std::string(item.get_string())));
  }
  return paths;
}

constexpr std::size_t kLargestText = std::size_t{1} << 30;

std::string text_of_file(const std::string& path) {
  return read_regular(AT_FDCWD, path, kLargestText, Links::Followed).text;
}

void write_file(const std::string& path, const std::string& text) {
  if (const int error = replace_file(AT_FDCWD, path, text, {}); error != 0)
    throw CommandError(kExitUsage, "cannot write " + path + ": " + std::strerror(error));
}

bool is_too_large(const std::string& failure) {
  return failure == "oom_task" || failure == "time_task" || failure == "disk_task";
}

class SplitRun {
 public:
  SplitRun(const SplitCommand& command, const Session& session)
      : options_(command.split),
        session_(session),
        client_(session.client()),
        patient_(client_, session, status_),
        around_(look_around()) {
    plan_.task = task_of(command.work, around_.directory);
    if (!command.work.says("retries")) plan_.task["retries"] = kRetries;
    plan_.result = whole_path(around_.directory, options_.result);
    plan_.folder = options_.parts.empty() ? plan_.result + ".parts"
                                          : whole_path(around_.directory, options_.parts);
    plan_.merge = options_.merge;
    plan_.name = !command.work.says("name")
                     ? "split " + std::filesystem::path(plan_.result).filename().string()
                     : command.work.one("name");
    tool_ = command.work.one("tool");
  }

  int run() {
    read_data_set();
    connect_or_start(client_, session_.places, session_.interrupt, Lifetime::UntilIdle);
    if (!tool_.empty()) look_up_tool();
    folder_.emplace(plan_.folder, words_);
    if (!plan_.recording.empty()) cut_recording();
    return run_parts();
  }
  void tell_how_to_go_on() {
    if (!folder_) return;
    status_.clear();
    say("the work goes on; the same command takes it up again");
  }

 private:
  struct Ended {
    std::string name;
    json::object task;
  };

  void read_data_set() {
    words_ = {json::serialize(plan_.task),
              plan_.merge,
              tool_,
              plan_.result,
              std::to_string(options_.files_per_task),
              options_.bytes_per_task,
              std::to_string(options_.pieces),
              options_.piece_length,
              std::to_string(options_.merge_at_once)};
    if (!options_.reuse.empty())
      plan_.reuse = paths_in(options_.reuse, around_.directory, session_.interrupt);
    for (const std::string& path : plan_.reuse) words_.push_back(facts_of_file(path));
    if (!options_.recording.empty()) {
      plan_.recording = whole_path(around_.directory, options_.recording);
      words_.push_back(facts_of_file(plan_.recording));
      return;
    }
    for (std::string& path : paths_in(options_.inputs, around_.directory, session_.interrupt)) {
      DataUnit unit;
      words_.push_back(facts_of_file(path, &unit.size));
      unit.path = std::move(path);
      plan_.units.push_back(std::move(unit));
    }
  }

  void look_up_tool() {
    const json::object tool = client_.get("/v1/tools/" + tool_);
    const json::object* split = object_at(tool, "split");
    if (split == nullptr)
      throw CommandError(kExitUsage, "the tool " + tool_ +
                                         " does not say how it is split: its file needs `split:` "
                                         "with its input and output (docs/tools.md)");
    plan_.tool = {text_at(*split, "input"), text_at(*split, "output"), text_at(*split, "cut"),
                  text_at(*split, "merge")};
    if (!plan_.recording.empty() && plan_.tool.cut.empty())
      throw CommandError(kExitUsage, "the tool " + tool_ + " does not say how a recording is cut");
  }

  std::vector<std::string> submit(json::array tasks, const std::string& which) {
    json::object request =
        submission_of(std::move(tasks), around_, client_name(), folder_->key() + "-" + which);
    return submit_safely(client_, session_, request);
  }

  void cut_recording() {
    double seconds = 0;
    if (!options_.piece_length.empty())
      seconds =
          std::chrono::duration<double>(parse_duration(options_.piece_length).value()).count();
    const std::vector<std::string> ids =
        submit({task_of_cut(plan_, options_.pieces, seconds)}, "cut");
    ids_[ids.at(0)] = "cut";
    status_.show("cutting the recording");
    const std::vector<Ended> ended = wait_for_some();
    if (text_at(ended.at(0).task, "state") != "done")
      throw CommandError(kExitTaskFailed, "the recording could not be cut: task " + ids.at(0) +
                                              " " + reason_of(ended.at(0).task));
    const std::string file = result_of(plan_, "pieces");
    plan_.units = read_pieces(text_of_file(file), file);
  }

  /// At least one.
  std::vector<Ended> wait_for_some() {
    for (;;) {
      json::object question{{"any", true}, {"timeout", kAskFor.count()}};
      json::array& asked = question["ids"].emplace_array();
      for (const auto& [id, name] : ids_) asked.emplace_back(id);
      const json::object answer =
          patient_.post("/v1/tasks/wait", json::serialize(question), kAskFor + kMargin);
      const json::array* over = array_at(answer, "ended");
      if (over == nullptr || over->empty()) continue;
      std::vector<Ended> ended;
      for (const json::value& id : *over) {
        const auto at = ids_.find(std::string(id.as_string()));
        if (at == ids_.end()) continue;
        ended.push_back({at->second, patient_.get("/v1/tasks/" + at->first)});
        ids_.erase(at);
      }
      return ended;
    }
  }

  static std::string reason_of(const json::object& task) {
    const std::string failure = text_at(task, "failure"), message = text_at(task, "message");
    return text_at(task, "state") + (failure.empty() ? "" : " (" + failure + ")") +
           (message.empty() ? "" : ": " + message);
  }

  int run_parts() {
    std::vector<std::uint64_t> sizes;
    for (const DataUnit& unit : plan_.units) sizes.push_back(unit.size);
    const split::PartBounds bounds{
        .files = plan_.recording.empty() ? options_.files_per_task : 1,
        .bytes = options_.bytes_per_task.empty() ? 0 : parse_size(options_.bytes_per_task).value()};
    std::vector<split::Part> parts = split::cut_into_parts(sizes, bounds);
    if (parts.size() > kMostParts)
      throw CommandError(kExitUsage, std::to_string(parts.size()) + " parts are more than the " +
                                         std::to_string(kMostParts) +
                                         " that one split may have: put more files into each");
    const bool is_merged = !plan_.merge.empty() || !plan_.tool.merge.empty();
    split::SplitPlanner planner(std::move(parts), is_merged ? options_.merge_at_once : 0);
    for (;;) {
      for (const split::SplitPlanner::Action& action : planner.decide()) {
        if (const auto* over = std::get_if<split::SplitPlanner::Over>(&action))
          return end(*over, planner, is_merged);
        if (const auto* run = std::get_if<split::SplitPlanner::RunParts>(&action))
          begin(run->parts);
        if (const auto* run = std::get_if<split::SplitPlanner::RunMerges>(&action))
          begin(run->merges);
      }
      show(planner.counts());
      for (const Ended& one : wait_for_some()) take(one, planner);
    }
  }

  void begin(const std::vector<split::Part>& parts) {
    json::array tasks;
    for (const split::Part& part : parts) {
      if (wants_list(plan_)) write_file(list_file_of(plan_, part.name), list_text_of(plan_, part));
      tasks.emplace_back(task_of_part(plan_, part));
    }
    remember(submit(std::move(tasks), parts.front().name), parts);
  }
  void begin(const std::vector<split::Merge>& merges) {
    json::array tasks;
    for (const split::Merge& merge : merges) tasks.emplace_back(task_of_merge(plan_, merge));
    remember(submit(std::move(tasks), merges.front().name), merges);
  }
  template <class Things>
  void remember(const std::vector<std::string>& ids, const Things& things) {
    for (std::size_t i = 0; i < things.size(); ++i) ids_[ids.at(i)] = things[i].name;
  }

  void take(const Ended& one, split::SplitPlanner& planner) {
    const bool is_done = text_at(one.task, "state") == "done";
    const split::PartEnd end = is_done ? split::PartEnd::Done
                               : is_too_large(text_at(one.task, "failure"))
                                   ? split::PartEnd::TooLarge
                                   : split::PartEnd::Failed;
    if (!is_done) failed_[one.name] = one.task;
    const std::size_t halved = planner.counts().halved;
    planner.ended(one.name, end);
    if (planner.counts().halved == halved) return;
    status_.clear();
    say("part " + one.name + " " + reason_of(one.task) + "; it is cut in two");
  }

  void show(const split::SplitPlanner::Counts& counts) {
    std::string text =
        std::to_string(counts.done) + " of " + std::to_string(counts.parts) + " parts done";
    if (counts.failed != 0) text += ", " + std::to_string(counts.failed) + " failed";
    if (counts.merges != 0)
      text +=
          ", " + std::to_string(counts.merged) + " of " + std::to_string(counts.merges) + " merges";
    status_.show(text);
  }

  int end(const split::SplitPlanner::Over& over, const split::SplitPlanner& planner,
          bool is_merged) {
    status_.clear();
    const split::SplitPlanner::Counts& counts = planner.counts();
    if (options_.json) {
      json::object object{{"result", is_merged ? plan_.result : plan_.folder},
                          {"parts", counts.parts},
                          {"cut_in_two", counts.halved},
                          {"merges", counts.merged}};
      json::array& failed = object["failed"].emplace_array();
      for (const std::string& name : over.failed)
        failed.push_back(json::object{{"part", name},
                                      {"id", text_at(failed_[name], "id")},
                                      {"reason", reason_of(failed_[name])}});
      print_json(object);
    }
    if (over.failed.empty()) {
      if (!options_.json) print((is_merged ? plan_.result : plan_.folder) + "\n");
      if (is_merged && !options_.keep_parts) folder_->remove();
      return kExitDone;
    }
    std::string ids;
    for (std::size_t i = 0; i < over.failed.size(); ++i) {
      const json::object& task = failed_[over.failed[i]];
      ids += " " + text_at(task, "id");
      if (i < kShownFailures)
        say(one_line(over.failed[i] + " (task " + text_at(task, "id") + ") " + reason_of(task)));
    }
    say(std::to_string(over.failed.size()) + " of " + std::to_string(counts.parts) +
        " parts failed, and nothing is merged; mend what is wrong, `hpcbatch retry" + ids +
        "`, and the same command goes on");
    return kExitTaskFailed;
  }

  const SplitOptions& options_;
  const Session& session_;
  EngineClient client_;
  StatusLine status_;
  PatientClient patient_;
  Surroundings around_;
  SplitPlan plan_;
  std::string tool_;
  std::vector<std::string> words_;  // that decide what comes out
  std::optional<SplitFolder> folder_;
  std::map<std::string, std::string> ids_;  // of what runs, and its part's or merge's name
  std::map<std::string, json::object> failed_;
};

}  // namespace

int perform(const SplitCommand& command, const Session& session) {
  SplitRun run(command, session);
  try {
    return run.run();
  } catch (const InterruptedByUser&) {
    run.tell_how_to_go_on();
    throw;
  }
}

}  // namespace hpcbatch
