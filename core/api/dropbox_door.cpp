#include "api/dropbox_door.hpp"

#include "runtime/asio.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/value_from.hpp>
#include <boost/json/value_to.hpp>
#include <boost/json/serialize.hpp>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <unordered_map>

namespace hpcbatch {
namespace {

namespace json = boost::json;

// Of each stream the first and the last so many bytes go into a result.
constexpr std::size_t kEndOfStream = std::size_t{256} << 10;

/// Whoever drops a job file has no environment to hand on; the task gets what every program expects.
std::map<std::string, std::string> plain_environment() {
  std::map<std::string, std::string> environment;
  for (const char* name : {"HOME", "PATH", "USER", "LOGNAME", "LANG", "SHELL"}) {
    if (const char* value = std::getenv(name)) environment[name] = value;
  }
  return environment;
}

}  // namespace

/// One drop box and the tasks that it waits for.  Its thread calls `submit` and `cancel`; all else is the loop's.
class DropboxDoors::Door final : public TaskDoor {
 public:
  Door(Runtime& runtime, Api& api, ToolShelf& tools, DropboxSettings settings)
      : runtime_(runtime), api_(api), tools_(tools), settings_(std::move(settings)) {}

  Result<void> open(const std::string& workspace) {
    auto box = Dropbox::start({.directory = settings_.directory,
                               .workspace = workspace,
                               .allow = settings_.allow,
                               .templates = settings_.templates,
                               .variables = settings_.variables,
                               .warn = [directory = settings_.directory](const std::string& text) { spdlog::warn("drop box {}: {}", directory, text); }},
                              *this);
    if (!box) return box.error();
    box_ = std::move(*box);
    return {};
  }
  const DropboxSettings& settings() const { return settings_; }
  /// Whether the array is a task of this drop box.
  void array_ended(ArrayId array) {
    const auto at = waiting_.find(array);
    if (at != waiting_.end() && !runtime_.engine().state_of({array, 0})) tell(array);
  }

  void submit(DropboxTask task) override {
    auto shared = std::make_shared<DropboxTask>(std::move(task));
    asio::post(runtime_.loop(), [this, shared] { submit_on_loop(*shared); });
  }
  void cancel(const std::string& key) override {
    asio::post(runtime_.loop(), [this, key] {
      const auto at = by_key_.find(key);
      if (at != by_key_.end()) runtime_.cancel({{at->second, std::nullopt}}, [](std::uint64_t) {});
    });
  }

 private:
  struct Waiting {
    std::string key;
    std::map<std::string, DropboxTaskEnd::Output> outputs;
  };

  void refuse(const std::string& key, const std::string& why) {
    DropboxTaskEnd end;
    end.key = key;
    end.message = why;
    box_->task_ended(std::move(end));
  }

  void submit_on_loop(const DropboxTask& task) {
    if (!box_) {
      // Its first jobs can be there before the drop box has been handed over.
      asio::post(runtime_.loop(), [this, task] { submit_on_loop(task); });
      return;
    }
    Recipe recipe;
    recipe.directory = task.directory;
    recipe.umask = api_.facts().umask;
    NewArray array;
    array.indices = IndexRange{0, 0};
    array.needs.amounts.set(kCpus, Amount::of(1));
    Waiting waiting{task.key, {}};
    std::string tool;
    if (const auto* command = std::get_if<std::vector<std::string>>(&task.work)) {
      recipe.argv = *command;
    } else {
      const ToolCall& call = std::get<ToolCall>(task.work);
      auto rendered = tools_.prepare(call, task.output_directory);
      if (!rendered) return refuse(task.key, rendered.error().text);
      recipe.argv = rendered->task.argv;
      recipe.variables = rendered->task.environment;
      recipe.container = rendered->task.container;
      array.needs = rendered->needs;
      for (const RenderedOutput& output : rendered->outputs) {
        if (!output.destination.empty()) waiting.outputs[output.name] = {output.staged, output.optional};
      }
      tool = call.tool;
    }
    auto stored = std::make_shared<store::Recipe>();
    stored->bytes = to_bytes(recipe);
    stored->environment = environment_bytes(plain_environment());
    stored->name = task.name;
    stored->tool = tool;
    // The key alone identifies the job: its folder's name is in the command and differs from submit to submit.
    Submission submission{task.client, task.key, 0, {std::move(array)}, {std::move(stored)}};
    runtime_.submit(std::move(submission), [this, task, waiting](const std::variant<std::vector<ArrayId>, SubmitRefusal>& answer) {
      if (const auto* refusal = std::get_if<SubmitRefusal>(&answer)) {
        if (!refusal->not_now) return refuse(task.key, refusal->text);
        auto later = std::make_shared<asio::steady_timer>(runtime_.loop(), std::chrono::seconds{5});
        later->async_wait([this, task, later](const boost::system::error_code& error) {
          if (!error) submit_on_loop(task);
        });
        return;
      }
      const ArrayId id = std::get<0>(answer).front();
      waiting_[id] = waiting;
      by_key_[task.key] = id;
      array_ended(id);
    });
  }

  void tell(ArrayId id) {
    auto node = waiting_.extract(id);
    by_key_.erase(node.mapped().key);
    auto end = std::make_shared<DropboxTaskEnd>();
    end->key = node.mapped().key;
    end->outputs = std::move(node.mapped().outputs);
    api_.read_facts({id, 0}, [this, end](const TaskFacts& facts) {
      if (!facts.result) return refuse(end->key, "its history was removed before its result was read");
      const Outcome& outcome = facts.result->outcome;
      end->failure = outcome.failure;
      end->exit_code = shell_exit_code(outcome).value_or(-1);
      end->message = outcome.message;
      end->start = outcome.started;
      end->end = outcome.ended;
      const std::string site = facts.allocation ? facts.allocation->site : "";
      read_stream(*facts.result, site, 1, [this, end, facts, site](std::string out) {
        end->standard_output = std::move(out);
        read_stream(*facts.result, site, 2, [this, end](std::string err) {
          end->standard_error = std::move(err);
          box_->task_ended(std::move(*end));
        });
      });
    });
  }

  void read_stream(const store::ResultRow& result, const std::string& site, std::uint32_t stream, std::function<void(std::string)> then) {
    const LogPlace& log = result.outcome.log;
    const std::uint64_t size = stream == 2 ? log.err_bytes : log.out_bytes;
    api_.read_log(result, site, stream, 0, kEndOfStream * 2, [this, result, site, stream, size, then = std::move(then)](Result<std::string> head) {
      // A result without its output is better than none; what cannot be read is said where it would stand.
      if (!head) return then("(hpcbatch cannot read this output: " + head.error().text + ")\n");
      if (head->size() >= size) return then(std::move(*head));
      std::string first = head->substr(0, kEndOfStream);
      api_.read_log(result, site, stream, size - kEndOfStream, kEndOfStream, [first = std::move(first), size, then](const Result<std::string>& tail) {
        then(fmt::format("{}\n[... {} bytes left out ...]\n{}", first, size - 2 * kEndOfStream, tail ? *tail : ""));
      });
    });
  }

  Runtime& runtime_;
  Api& api_;
  ToolShelf& tools_;
  DropboxSettings settings_;
  std::unordered_map<ArrayId, Waiting> waiting_;
  std::unordered_map<std::string, ArrayId> by_key_;
  std::unique_ptr<Dropbox> box_;  // last: its thread calls the rest
};

DropboxDoors::DropboxDoors(Runtime& runtime, Api& api, ToolShelf& tools, std::string workspace, std::string home)
    : runtime_(runtime), api_(api), tools_(tools), workspace_(std::move(workspace)), remembered_(home + "/dropboxes.json") {
  runtime_.on_ended([this](ArrayId array) {
    for (const auto& door : doors_) door->array_ended(array);
  });
}

DropboxDoors::~DropboxDoors() = default;

std::vector<DropboxSettings> DropboxDoors::list() const {
  std::vector<DropboxSettings> settings;
  for (const auto& door : doors_) settings.push_back(door->settings());
  return settings;
}

Result<void> DropboxDoors::start(const DropboxSettings& settings) {
  std::error_code error;
  const std::filesystem::path directory = std::filesystem::canonical(settings.directory, error);
  if (error) {
    return Error{Error::Kind::Rejected, fmt::format("cannot watch the drop box {}: {}", settings.directory, error.message())};
  }
  DropboxSettings canonical = settings;
  canonical.directory = directory.string();
  const auto known = std::find_if(doors_.begin(), doors_.end(), [&](const auto& door) { return door->settings().directory == canonical.directory; });
  if (known != doors_.end()) {
    if ((*known)->settings() == canonical) return {};
    return Error{Error::Kind::Rejected, fmt::format("the drop box {} is watched with other settings already; restart the engine to change them", canonical.directory)};
  }
  auto door = std::make_unique<Door>(runtime_, api_, tools_, canonical);
  if (auto opened = door->open(canonical.workspace.empty() ? workspace_ + "/dropbox" : canonical.workspace); !opened) {
    return opened;
  }
  doors_.push_back(std::move(door));
  spdlog::info("watching the drop box {}", canonical.directory);
  return {};
}

Result<void> DropboxDoors::add(const DropboxSettings& settings) {
  if (auto started = start(settings); !started) return started;
  json::array remembered;
  for (const DropboxSettings& box : list()) {
    remembered.push_back({{"directory", box.directory}, {"allow", json::array(box.allow.begin(), box.allow.end())},
                          {"templates", json::array(box.templates.begin(), box.templates.end())},
                          {"variables", json::value_from(box.variables)}});
  }
  const std::string aside = remembered_ + ".new";
  {
    std::ofstream out(aside, std::ios::trunc);
    out << json::serialize(remembered);
  }
  std::error_code error;
  std::filesystem::rename(aside, remembered_, error);
  if (error) return Error{Error::Kind::Transient, fmt::format("the drop box is watched, but cannot be remembered in {}: {}", remembered_, error.message())};
  return {};
}

void DropboxDoors::start_remembered() {
  std::ifstream in(remembered_);
  if (!in) return;
  std::stringstream text;
  text << in.rdbuf();
  boost::system::error_code error;
  const json::value boxes = json::parse(text.str(), error);
  if (error || !boxes.is_array()) {
    spdlog::warn("cannot read {}; name the drop boxes again", remembered_);
    return;
  }
  for (const json::value& box : boxes.get_array()) {
    const DropboxSettings settings{.directory = json::value_to<std::string>(box.at("directory")),
                                   .allow = json::value_to<std::vector<std::string>>(box.at("allow")),
                                   .templates = json::value_to<std::vector<std::string>>(box.at("templates")),
                                   .variables = json::value_to<std::map<std::string, std::string>>(box.at("variables"))};
    if (const auto started = start(settings); !started) spdlog::warn("{}", started.error().text);
  }
}

}  // namespace hpcbatch
