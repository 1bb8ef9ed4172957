#include "api/dropbox_ports.hpp"

#include "api/make/make_submission.hpp"
#include "api/make/submitted_files.hpp"
#include "api/read/json_values.hpp"
#include "dropbox_host/box_process.hpp"
#include "dropbox_host/serve_box.hpp"
#include "posix/files.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <thread>
#include <unordered_map>
#include <utility>

#include <sys/file.h>

namespace hpcbatch {
namespace {

// Of each stream the first and the last so many bytes go into a result.
constexpr std::size_t kEndOfStream = std::size_t{256} << 10;
constexpr std::chrono::seconds kRefusedFor{5};  // where the engine takes nothing now
/// At the start of an engine; later its folders are waited for beside all else.
constexpr std::chrono::seconds kOpensWithin{30};
/// After that one whose process died has a new one.
constexpr std::chrono::seconds kAgain{1};
/// Processes of an engine that was killed end when they see it.
constexpr std::chrono::seconds kOthersEnd{10};

/// Whoever drops a job file has no environment to hand on; the task gets what every program
/// expects.
std::map<std::string, std::string> plain_environment() {
  std::map<std::string, std::string> environment;
  for (const char* name : {"HOME", "PATH", "USER", "LOGNAME", "LANG", "SHELL"}) {
    if (const char* value = std::getenv(name)) environment[name] = value;
  }
  return environment;
}

/// A folder has one name, whatever links lead to it.
Result<DropboxSettings> with_real_directory(DropboxSettings settings) {
  std::error_code error;
  const std::filesystem::path directory = std::filesystem::canonical(settings.directory, error);
  if (error) {
    return Error{Error::Kind::Rejected, fmt::format("cannot watch the drop box {}: {}",
                                                    settings.directory, error.message())};
  }
  settings.directory = directory.string();
  return settings;
}

}  // namespace

/// One drop box and the tasks that it waits for.
class DropboxPorts::Port final : public std::enable_shared_from_this<Port> {
 public:
  Port(Runtime& runtime, Api& api, ToolRegistry& tools, DropboxSettings settings)
      : runtime_(runtime), api_(api), tools_(tools), settings_(std::move(settings)) {}

  /// `opened` is called once: at once, where that is waited for.  `gone`: its process has ended, and
  /// nobody has closed it.
  void open(const std::string& workspace, const std::string& lock, bool waits,
            const std::function<void(const Result<void>&)>& opened, std::function<void()> gone) {
    gone_ = std::move(gone);
    process_ = std::make_shared<BoxProcess>(runtime_.loop());
    Result<void> started = process_->start({.directory = settings_.directory,
                                            .workspace = workspace,
                                            .allow = settings_.allow,
                                            .templates = settings_.templates,
                                            .variables = settings_.variables,
                                            .trust_group = settings_.trust_group,
                                            .warn = {},
                                            .most_active_of_one = settings_.jobs_limit,
                                            .input_limit = settings_.input_limit},
                                           lock);
    if (started && waits) started = process_->wait(kOpensWithin);
    if (!started) {
      close_at_once();
      return opened(started);
    }
    process_->listen({.submit = [this](const DropboxTask& task) { submit_on_loop(task); },
                      .cancel = [this](const std::string& key) { cancel(key); },
                      .warn = [](const std::string& text) { spdlog::warn("{}", text); },
                      .ended = [self = shared_from_this()] { self->ended(); }},
                     waits ? std::function<void(const Result<void>&)>{} : opened);
    if (waits) opened(started);
  }
  /// Its process ends, which may take as long as an input is copied; then `then`.  What it waits for
  /// is told to nobody: the jobs are found again by the next drop box on the same directory.
  void close(std::function<void()> then) {
    gone_ = std::move(then);
    is_closing_ = true;
    process_->close();
  }
  void close_at_once() {
    if (process_) std::exchange(process_, nullptr)->leave();
  }
  /// Whether the array is a task of this drop box.
  void array_ended(ArrayId array) {
    const auto at = waiting_.find(array);
    if (at != waiting_.end() && !runtime_.engine().state_of({array, 0})) tell(array);
  }

 private:
  void cancel(const std::string& key) {
    const auto at = by_key_.find(key);
    if (at != by_key_.end())
      runtime_.requests().cancel({{at->second, std::nullopt}}, [](const Result<Changed>&) {});
    else if (on_their_way_.contains(key))
      cancelled_.insert(key);
  }

  void ended() {
    process_.reset();
    if (gone_) std::exchange(gone_, nullptr)();
  }

  bool is_served() const { return process_ && !is_closing_; }

  struct Waiting {
    std::string key;
    std::map<std::string, DropboxTaskEnd::Output> outputs;
  };

  void refuse(const std::string& key, const std::string& why) {
    arrived(key);
    DropboxTaskEnd end;
    end.key = key;
    end.message = why;
    hand_over(end);
  }

  /// It is no longer on its way; whether it was cancelled meanwhile.
  bool arrived(const std::string& key) {
    on_their_way_.erase(key);
    return cancelled_.erase(key) != 0;
  }

  void hand_over(const DropboxTaskEnd& end) {
    if (is_served()) process_->tell(end);
  }

  struct Asked {
    TaskRequest task;
    std::map<std::string, InputFile> files;
  };

  static Asked asked_of(const DropboxTask& task) {
    Asked made;
    TaskRequest& asked = made.task;
    asked.array.indices = IndexRange{0, 0};
    asked.array.needs.amounts.set(kCpus, Amount::of(1));
    asked.name = task.name;
    asked.directory = task.directory;
    // A command's files and all results are in the job's folder.
    asked.shared = {task.directory.empty() ? task.output_directory : task.directory};
    if (const auto* command = std::get_if<std::vector<std::string>>(&task.work)) {
      asked.command = *command;
    } else {
      const ToolCall& call = std::get<ToolCall>(task.work);
      asked.tool = call.tool;
      asked.parameters = call.parameters;
      asked.outputs = call.outputs;
      asked.outputs_stay_in = task.output_directory;
      for (const auto& [name, inputs] : call.inputs) {
        for (const InputFile& input : inputs) {
          asked.inputs[name].push_back(input.path);
          made.files.emplace(input.path, input);
        }
      }
    }
    return made;
  }

  /// Throws BadRequest.
  std::pair<Submission, Waiting> made_of(const DropboxTask& task, Asked asked,
                                         const Renderings& rendered) {
    SubmitRequest request;
    request.client = task.client;
    // The key alone identifies the job: its folder's name is in the command and differs from submit
    // to submit.
    request.key = task.key;
    request.environment = plain_environment();
    SubmissionMaker maker(tools_, sites_of(runtime_.engine()), request, api_.facts().umask,
                          runtime_.learning().estimates());
    Waiting waiting{task.key, {}};
    const Rendering* made = rendered.empty() ? nullptr : &rendered.begin()->second;
    for (const RenderedOutput& output : maker.add(std::move(asked.task), asked.files, made)) {
      if (!output.destination.empty())
        waiting.outputs[output.name] = {output.staged, output.optional};
    }
    return {maker.take(), std::move(waiting)};
  }

  void submit_on_loop(const DropboxTask& task) {
    if (!is_served()) return;
    on_their_way_.insert(task.key);
    Asked asked = asked_of(task);
    std::vector<RenderingAsked> elsewhere;
    if (auto one = rendering_elsewhere(tools_, asked.task, 0, asked.files))
      elsewhere.push_back(std::move(*one));
    api_.tool_calls().render(
        std::move(elsewhere),
        [self = shared_from_this(), task, asked = std::move(asked)](const Renderings& rendered) {
          self->submit_made(task, asked, rendered);
        });
  }

  void submit_made(const DropboxTask& task, const Asked& asked, const Renderings& rendered) {
    if (!is_served()) return;  // closed meanwhile
    if (cancelled_.contains(task.key)) return refuse(task.key, "cancelled");
    try {
      auto [submission, waiting] = made_of(task, asked, rendered);
      runtime_.requests().submit(
          std::move(submission),
          [this, self = shared_from_this(), task, waiting = std::move(waiting)](
              const std::variant<std::vector<ArrayId>, SubmitRefusal>& answer) {
            answered(task, waiting, answer);
          });
    } catch (const BadRequest& e) {
      refuse(task.key, e.what());
    }
  }

  void answered(const DropboxTask& task, const Waiting& waiting,
                const std::variant<std::vector<ArrayId>, SubmitRefusal>& answer) {
    if (const auto* refusal = std::get_if<SubmitRefusal>(&answer)) {
      if (!refusal->not_now) return refuse(task.key, refusal->text);
      auto later = std::make_shared<asio::steady_timer>(runtime_.loop(), kRefusedFor);
      later->async_wait(
          [self = shared_from_this(), task, later](const boost::system::error_code& error) {
            if (!error) self->submit_on_loop(task);
          });
      return;
    }
    const ArrayId id = std::get<0>(answer).front();
    waiting_[id] = waiting;
    by_key_[task.key] = id;
    if (arrived(task.key))
      runtime_.requests().cancel({{id, std::nullopt}}, [](const Result<Changed>&) {});
    array_ended(id);
  }

  void tell(ArrayId id) {
    auto node = waiting_.extract(id);
    by_key_.erase(node.mapped().key);
    auto end = std::make_shared<DropboxTaskEnd>();
    end->key = node.mapped().key;
    end->outputs = std::move(node.mapped().outputs);
    api_.tasks().read_facts(
        {id, 0}, [this, self = shared_from_this(), end](const TaskFacts& facts) {
          if (!facts.result)
            return refuse(end->key, "its history was removed before its result was read");
          const Outcome& outcome = facts.result->outcome;
          end->failure = outcome.failure;
          end->exit_code = shell_exit_code(outcome).value_or(-1);
          end->message = outcome.message;
          end->start = outcome.started;
          end->end = outcome.ended;
          const std::string site = facts.allocation ? facts.allocation->site : "";
          read_stream(*facts.result, site, 1, [this, self, end, facts, site](std::string out) {
            end->standard_output = std::move(out);
            read_stream(*facts.result, site, 2, [self, end](std::string err) {
              end->standard_error = std::move(err);
              self->hand_over(*end);
            });
          });
        });
  }

  void read_stream(const store::ResultRow& result, const std::string& site, std::uint32_t stream,
                   std::function<void(std::string)> then) {
    const LogPlace& log = result.outcome.log;
    const std::uint64_t size = stream == 2 ? log.err_bytes : log.out_bytes;
    api_.logs().read(
        result, site, stream, 0, kEndOfStream * 2,
        [this, self = shared_from_this(), result, site, stream, size,
         then = std::move(then)](Result<std::string> head) {
          // A result without its output is better than none; what cannot be read is said where it
          // would stand.
          if (!head) return then("(hpcbatch cannot read this output: " + head.error().text + ")\n");
          if (head->size() >= size) return then(std::move(*head));
          std::string first = head->substr(0, kEndOfStream);
          api_.logs().read(result, site, stream, size - kEndOfStream, kEndOfStream,
                           [first = std::move(first), size, then](const Result<std::string>& tail) {
                             then(fmt::format("{}\n[... {} bytes left out ...]\n{}", first,
                                              size - 2 * kEndOfStream, tail ? *tail : ""));
                           });
        });
  }

  Runtime& runtime_;
  Api& api_;
  ToolRegistry& tools_;
  DropboxSettings settings_;
  std::unordered_map<ArrayId, Waiting> waiting_;
  std::unordered_map<std::string, ArrayId> by_key_;
  std::set<std::string> on_their_way_;   ///< keys of what the engine has not taken yet
  std::set<std::string> cancelled_;      ///< of these
  std::shared_ptr<BoxProcess> process_;  ///< holds this while it lives
  bool is_closing_{false};
  std::function<void()> gone_;
};

DropboxPorts::DropboxPorts(Runtime& runtime, Api& api, ToolRegistry& tools, std::string workspace,
                           const std::string& home)
    : runtime_(runtime),
      api_(api),
      tools_(tools),
      workspace_(std::move(workspace)),
      remembered_(home + "/dropboxes.json"),
      lock_(home + "/dropboxes.lock"),
      retry_(runtime.loop()) {
  runtime_.on_ended([this](ArrayId array) {
    for (const auto& [directory, box] : boxes_) {
      if (box.port) box.port->array_ended(array);
    }
  });
}

DropboxPorts::~DropboxPorts() {
  for (const auto& [directory, box] : boxes_) {
    if (box.port) box.port->close_at_once();
  }
}

std::vector<DropboxState> DropboxPorts::list() const {
  std::vector<DropboxState> states;
  for (const auto& [directory, box] : boxes_)
    states.push_back({box.settings, box.is_configured, box.why_not});
  return states;
}

bool DropboxPorts::others_are_gone(std::chrono::seconds longest) {
  if (others_are_gone_) return true;
  const Fd lock(open_box_lock(lock_));
  const auto until = std::chrono::steady_clock::now() + longest;
  // Where there are no locks on files nobody can tell.
  while (lock && ::flock(lock.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    if (std::chrono::steady_clock::now() >= until) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return others_are_gone_ = true;
}

void DropboxPorts::open(const std::string& directory, bool waits, const Answer& then) {
  Box& box = boxes_.at(directory);
  if (!others_are_gone(waits ? kOthersEnd : std::chrono::seconds{0})) {
    constexpr const char* kWhy = "a process of the engine before is still at work at a drop box";
    if (box.why_not != kWhy) spdlog::warn("cannot watch the drop box {}: {}", directory, kWhy);
    box.why_not = kWhy;
    return then(Error{Error::Kind::Transient, box.why_not});
  }
  box.is_changing = true;
  const auto port = std::make_shared<Port>(runtime_, api_, tools_, box.settings);
  box.port = port;
  port->open(
      box.settings.workspace.empty() ? workspace_ + "/dropbox" : box.settings.workspace, lock_,
      waits,
      [this, directory, then](const Result<void>& opened) {
        Box& now = boxes_.at(directory);
        now.is_changing = false;
        const std::string why_not = opened ? "" : opened.error().text;
        if (!opened) now.port.reset();
        if (opened)
          spdlog::info("watching the drop box {}", directory);
        else if (why_not != now.why_not)
          spdlog::warn("cannot watch the drop box {}: {}", directory, why_not);
        now.why_not = why_not;
        then(opened);
      },
      [this, directory, of = std::weak_ptr(port)] {
        const auto at = boxes_.find(directory);
        if (at == boxes_.end() || at->second.port != of.lock() || !at->second.port) return;
        Box& now = at->second;
        now.port.reset();
        now.why_not = "its process has ended; another one is started";
        spdlog::warn("the drop box {}: {}", directory, now.why_not);
        try_again_later(kAgain);
      });
}

Result<void> DropboxPorts::start(const DropboxSettings& settings) {
  auto canonical = with_real_directory(settings);
  if (!canonical) return canonical.error();
  if (const auto known = boxes_.find(canonical->directory); known != boxes_.end()) {
    if (known->second.settings == *canonical) return {};
    return Error{Error::Kind::Rejected,
                 fmt::format("the drop box {} is named twice, with different settings",
                             canonical->directory)};
  }
  boxes_.emplace(canonical->directory, Box{*canonical, true, nullptr, {}, false});
  Result<void> told;
  open(canonical->directory, true, [&told](const Result<void>& opened) { told = opened; });
  // What passes holds up no other door.
  if (!told && told.error().kind == Error::Kind::Transient) return {};
  return told;
}

void DropboxPorts::add(const DropboxSettings& settings, const Answer& answer) {
  auto canonical = with_real_directory(settings);
  if (!canonical) return answer(canonical.error());
  const std::string& directory = canonical->directory;
  const auto known = boxes_.find(directory);
  if (known == boxes_.end()) {
    boxes_.emplace(directory, Box{*canonical, false, nullptr, {}, false});
    return open(directory, false, [this, directory, answer](const Result<void>& opened) {
      if (opened) return answer(remember());
      boxes_.erase(directory);
      answer(opened);
    });
  }
  if (known->second.port && known->second.settings == *canonical) return answer({});
  change(directory, answer, [this, directory, answer, wanted = *canonical] {
    boxes_.at(directory).settings = wanted;
    open(directory, false, [this, answer](const Result<void>& opened) {
      const auto written = remember();
      try_again_later();
      answer(opened ? written : opened);
    });
  });
}

void DropboxPorts::remove(const std::string& directory, const Answer& answer) {
  // One whose folder is gone is known by the name that it had.
  const auto canonical = with_real_directory(
      {.directory = directory, .workspace = {}, .allow = {}, .templates = {}, .variables = {}});
  const std::string name =
      boxes_.contains(directory) || !canonical ? directory : canonical->directory;
  if (!boxes_.contains(name)) {
    return answer(
        Error{Error::Kind::Rejected, fmt::format("the folder {} is not watched", directory)});
  }
  change(name, answer, [this, name, answer] {
    boxes_.erase(name);
    spdlog::info("the drop box {} is watched no more", name);
    answer(remember());
  });
}

void DropboxPorts::change(const std::string& directory, const Answer& refuse,
                          std::function<void()> then) {
  Box& box = boxes_.at(directory);
  if (box.is_configured) {
    return refuse(Error{
        Error::Kind::Rejected,
        fmt::format(
            "the drop box {} is set in the configuration; change it there and restart the engine",
            directory)});
  }
  if (box.is_changing)
    return refuse(
        Error{Error::Kind::Transient,
              fmt::format("the drop box {} is just being changed; try again", directory)});
  box.is_changing = true;
  auto done = [this, directory, then = std::move(then)] {
    boxes_.at(directory).is_changing = false;
    then();
  };
  if (!box.port) return done();
  box.port->close([this, directory, done = std::move(done)] {
    boxes_.at(directory).port.reset();
    done();
  });
}

Result<void> DropboxPorts::remember() const {
  std::vector<DropboxSettings> told;
  for (const auto& [directory, box] : boxes_) {
    if (!box.is_configured) told.push_back(box.settings);
  }
  auto written = write_remembered(remembered_, told);
  if (written) return written;
  return Error{Error::Kind::Transient,
               fmt::format("this holds until the engine ends, but cannot be remembered: {}",
                           written.error().text)};
}

void DropboxPorts::start_remembered() {
  RememberedBoxes read = read_remembered(remembered_);
  for (const std::string& text : read.warnings) spdlog::warn("{}", text);
  for (DropboxSettings& settings : read.boxes) {
    const std::string directory = settings.directory;
    Box box{std::move(settings), false, nullptr, {}, false};
    const auto [at, is_new] = boxes_.try_emplace(directory, std::move(box));
    if (is_new) {
      open(directory, true, [](const Result<void>&) {});
    } else {
      spdlog::warn(
          "the drop box {} is in the configuration now; what `hpcbatch dropbox` said of it is "
          "dropped",
          directory);
    }
  }
  try_again_later();
}

void DropboxPorts::try_again_later(std::chrono::seconds after) {
  const auto is_missing = [](const auto& entry) {
    return !entry.second.port && !entry.second.is_changing;
  };
  if (std::none_of(boxes_.begin(), boxes_.end(), is_missing)) return;
  retry_.expires_after(after);
  retry_.async_wait([this, is_missing](const boost::system::error_code& error) {
    if (error) return;
    std::vector<std::string> missing;
    for (const auto& entry : boxes_)
      if (is_missing(entry)) missing.push_back(entry.first);
    for (const std::string& directory : missing)
      open(directory, false, [this](const Result<void>& opened) {
        if (!opened) try_again_later();
      });
  });
}

}  // namespace hpcbatch
