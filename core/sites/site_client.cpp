#include "sites/site_client.hpp"

#include "documents/texts.hpp"
#include "hpcbatch/kept_connection.hpp"
#include "hpcbatch/node_avoider.hpp"
#include "plugin_host/guarded.hpp"
#include "sites/allocation_request.hpp"
#include "sites/workspace_files.hpp"
#include "wire/outbox.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <optional>
#include <set>
#include <sstream>
#include <utility>

namespace hpcbatch {
namespace {

constexpr std::size_t kMostOfALine = 300;
constexpr const char* kOutputHead = "hbout ";

constexpr const char* kOutputTailScript = R"sh(
directory=$1; shift
for name in "$@"; do
  [ -s "$directory/$name.out" ] || continue
  printf '\nhbout %s\n' "$name"
  tail -c 4096 "$directory/$name.out" 2>/dev/null
done
)sh";

std::string plain_line(std::string line) {
  for (char& c : line) {
    if (static_cast<unsigned char>(c) < ' ' || c == 0x7f) c = ' ';
  }
  const auto begin = line.find_first_not_of(' ');
  if (begin == std::string::npos) return "";
  line = line.substr(begin, line.find_last_not_of(' ') + 1 - begin);
  // Cut, it may end within a character.
  return valid_utf8(line.size() > kMostOfALine ? line.substr(0, kMostOfALine - 3) + "..." : line);
}

using namespace std::chrono_literals;

constexpr auto kPollLimit = 60s;
constexpr auto kLookLimit = 15s;
// A database of years; nothing else is asked of the site meanwhile.
constexpr auto kPastLimit = 60s;
constexpr auto kCancelLimit = 60s;
constexpr auto kFileLimit = 120s;
constexpr auto kCheckLimit = 150s;
constexpr auto kGoodbyeLimit = 5s;
// A site may clean its file system, the pilot program with it.
constexpr auto kBelievePilot = 10min;
// Names in the outbox: what a pilot was writing when it was killed, what a person may want to look
// at.
constexpr const char* kHalfWritten = ".tmp";
constexpr const char* kDamaged = ".damaged";
// A transport is to come back at its deadline; after this much more it is left behind.
constexpr auto kHandsGrace = 10s;
// Longer than that, people are told.
constexpr auto kPatience = 10s;

/// What a plugin throws says nothing about whether the command ran.
Result<CommandOutput> run_once(Transport& transport, const CommandLine& command,
                               Deadline deadline) {
  struct Said {
    Result<CommandOutput> output;
  };
  auto said = guarded("transport", [&] { return Said{transport.run(command, deadline)}; });
  if (!said) return Error{Error::Kind::Transient, said.error().text};
  return std::move(said->output);
}

/// Writing into it would make it, also where its file system is only not mounted.
bool has_folder(Transport& transport, const std::string& workspace, const std::string& folder,
                Deadline deadline) {
  const auto there = list_folder(transport, workspace, deadline);
  return there && std::find(there->begin(), there->end(), folder) != there->end();
}

std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

std::string below(const std::string& folder, const std::string& name) {
  return folder + "/" + name;
}

/// What one pilot left; nothing where the file has gone meanwhile, or is kept as damaged.
Result<std::vector<std::string>> read_left(Transport& transport, const AllocationId& id,
                                           const std::string& directory, const std::string& name,
                                           Deadline deadline) {
  const std::string path = below(directory, name);
  auto bytes = read_whole(transport, path, deadline);
  if (!bytes) {
    // Gone meanwhile it is no loss; what is there and cannot be read, perhaps for a ticket that has
    // run out, is waited for.
    auto still = list_folder(transport, directory, deadline);
    if (!still) return still.error();
    if (std::find(still->begin(), still->end(), name) == still->end())
      return std::vector<std::string>();
    return bytes.error();
  }
  auto outbox = wire::decode_outbox(*bytes);
  if (outbox) return std::move(outbox->results);
  spdlog::error("cannot read what a pilot of {} left: {}; kept as {}{}", id.name,
                outbox.error().text, path, kDamaged);
  auto kept = write_files(transport, {{path + kDamaged, *bytes, 0600}}, deadline);
  if (!kept) return kept.error();
  return std::vector<std::string>();
}

/// What all pilots of an allocation left in the outbox.
Result<std::vector<std::string>> results_left(Transport& transport, const AllocationId& id,
                                              const std::string& workspace, Deadline deadline) {
  // A file system that is not mounted shows an empty directory, or none.
  auto there = list_folder(transport, workspace, deadline);
  if (!there) return there.error();
  if (std::find(there->begin(), there->end(), "outbox") == there->end())
    return Error{Error::Kind::Transient, "it is not there; is " + workspace + " mounted?"};
  const std::string directory = workspace + "/outbox";
  auto names = list_folder(transport, directory, deadline);
  if (!names) return names.error();
  std::vector<std::string> results;
  for (const std::string& name : *names) {
    if (!name.starts_with(id.name + ".") || name.ends_with(kHalfWritten) ||
        name.ends_with(kDamaged))
      continue;
    auto left = read_left(transport, id, directory, name, deadline);
    if (!left) return left.error();
    results.insert(results.end(), left->begin(), left->end());
  }
  return results;
}

}  // namespace

std::vector<std::string> not_living(const std::vector<std::string>& names,
                                    const std::vector<BatchJob>& jobs) {
  std::vector<std::string> over = names;
  for (const BatchJob& job : jobs) {
    if (job.state != BatchState::Ended) std::erase(over, job.name);
  }
  return over;
}

CommandLine ask_output_tails(const std::string& directory, const std::vector<std::string>& names) {
  CommandLine command{
      .argv = {"sh", "-c", kOutputTailScript, "sh", directory}, .environment = {}, .input = {}};
  command.argv.insert(command.argv.end(), names.begin(), names.end());
  return command;
}

OutputTails read_output_tails(const std::vector<std::string>& names, const std::string& output) {
  OutputTails words;
  std::string name;
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(kOutputHead)) {
      const std::string said = line.substr(std::string_view(kOutputHead).size());
      if (std::find(names.begin(), names.end(), said) != names.end()) {
        name = said;
        continue;
      }
    }
    line = plain_line(std::move(line));
    if (!name.empty() && !line.empty()) words[name] = std::move(line);
  }
  return words;
}

SiteClient::SiteClient(asio::io_context& loop, const PluginHost& plugins, Site site,
                       PilotProgram program)
    : plugins_(plugins),
      site_(std::move(site)),
      program_(std::move(program)),
      // The plugin was there a moment ago; should it be gone, the next call tries again.
      calls_(loop, kHandsGrace, [this] { return new_tools().has_value(); }),
      slow_(loop) {}

Result<void> SiteClient::open() {
  auto scheduler = plugins_.scheduler(site_.scheduler, site_.scheduler_config);
  if (!scheduler) return scheduler.error();
  scheduler_ = std::move(*scheduler);
  if (auto settled = settle_choices(site_, *scheduler_); !settled) return settled;
  return new_tools();
}

Result<void> SiteClient::new_tools() {
  auto transport = plugins_.transport(site_.transport, site_.transport_config);
  if (!transport) return transport.error();
  tools_ = std::make_shared<Tools>();
  tools_->transport = std::move(*transport);
  tools_->scheduler = scheduler_;
  return {};
}

void SiteClient::call(const char* what, std::chrono::seconds limit,
                      std::function<void(Tools&, Deadline)> work, std::function<void(bool)> then) {
  const auto own = std::make_shared<Going>();
  auto begin = [this, what, limit, own, work = std::move(work)]() -> CallLane::Work {
    begins(what, limit);
    *own = *going_;
    return [tools = tools_, work,
            doing = fmt::format("{} at site {} (scheduler {}, transport {})", what, site_.name,
                                site_.scheduler, site_.transport)](Deadline deadline) {
      const Doing named(doing);
      work(*tools, deadline);
    };
  };
  calls_.call(limit, std::move(begin), [this, own, then = std::move(then)](bool given_up) {
    // The next one has begun already, if there is any.
    if (going_ && going_->number == own->number) {
      going_.reset();
      slow_.cancel();
    }
    if (!given_up && std::chrono::steady_clock::now() - own->since < kPatience) is_told_ = false;
    then(given_up);
  });
}

void SiteClient::begins(const char* what, std::chrono::seconds limit) {
  going_ = Going{what, std::chrono::steady_clock::now(), limit, ++begun_};
  slow_.expires_after(kPatience);
  slow_.async_wait([this](const boost::system::error_code& error) {
    if (error || is_told_) return;
    const std::string text = waits_for();
    if (text.empty()) return;
    is_told_ = true;
    spdlog::warn("site {}: {}", site_.name, text);
  });
}

std::string SiteClient::waits_for() const {
  if (!going_) return {};
  const auto waited =
      std::chrono::floor<std::chrono::seconds>(std::chrono::steady_clock::now() - going_->since);
  if (waited < kPatience) return {};
  return fmt::format(
      "no answer for {} s while {} (scheduler {}, transport {}, workspace {}); given up after {} s",
      waited.count(), going_->what, site_.scheduler, site_.transport, site_.workspace,
      (going_->limit + kHandsGrace).count());
}

void SiteClient::with_transport(std::function<void(Transport&, Deadline)> work,
                                std::function<void(bool)> then) {
  call(
      "reading or writing files", kFileLimit,
      [work = std::move(work)](Tools& tools, Deadline deadline) {
        work(*tools.transport, deadline);
      },
      std::move(then));
}

std::string SiteClient::file_path(const AllocationId& id) const {
  return site_.workspace + "/allocations/" + id.name + ".pilot";
}

AllocationRequest SiteClient::request(const AllocationId& id, const Shape& shape,
                                      const std::vector<std::string>& avoided) const {
  AllocationRequest request =
      allocation_request(site_, shape, id.name, {program_.path_in(site_.workspace), file_path(id)});
  if (const auto* avoider = dynamic_cast<const NodeAvoider*>(scheduler_.get());
      avoider && !avoided.empty()) {
    const auto more = guarded("scheduler", [&] { return avoider->options_without(avoided); });
    if (more) request.options.insert(request.options.end(), more->begin(), more->end());
  }
  return request;
}

// NOLINTNEXTLINE(readability-function-cognitive-complexity,readability-function-size)
void SiteClient::submit(
    const AllocationId& id, const Shape& shape, wire::PilotFile file,
    const std::vector<std::string>& avoided,
    std::function<void(std::variant<AllocationAccepted, AllocationRefused>)> answer) {
  using Answer = std::variant<AllocationAccepted, AllocationRefused>;
  auto result = std::make_shared<std::optional<Answer>>();
  auto work = [id, asked = request(id, shape, avoided), made_for = shape.made_for,
               file = std::move(file), file_at = file_path(id), result, program = program_,
               workspace = site_.workspace, name = site_.name](Tools& tools, Deadline deadline) {
    const auto refuse = [&](Refusal refusal, const std::string& text) {
      *result = AllocationRefused{
          id, refusal, fmt::format("cannot submit {} to {}: {}", id.name, name, first_line(text))};
    };
    AllocationRequest request = asked;
    if (auto chosen = add_choices(*tools.scheduler, made_for, request); !chosen)
      return refuse(Refusal::Permanent, chosen.error().text);
    const std::string script_at = request.directory + "/" + id.name + ".sh";
    auto script = guarded("scheduler", [&] { return tools.scheduler->script(request); });
    if (!script) return refuse(Refusal::Permanent, script.error().text);
    auto ready = guarded("transport", [&]() -> Result<void> {
      const auto now = std::chrono::steady_clock::now();
      const bool is_there = has_folder(*tools.transport, workspace, "allocations", deadline);
      if (!is_there || !tools.pilot_seen || now >= *tools.pilot_seen + kBelievePilot) {
        if (auto put = program.deliver(*tools.transport, workspace, deadline); !put) return put;
        tools.pilot_seen = now;
      }
      return write_files(*tools.transport,
                         {{file_at, wire::to_text(file), 0600}, {script_at, *script, 0700}},
                         deadline);
    });
    // Until the submit command runs nothing can have been submitted, and what keeps a login or a
    // file from us may pass without a word.
    if (!ready) return refuse(Refusal::Transient, ready.error().text);
    const auto command =
        guarded("scheduler", [&] { return tools.scheduler->submit(request, script_at); });
    if (!command) return refuse(Refusal::Permanent, command.error().text);
    const auto output = run_once(*tools.transport, *command, deadline);
    // A transport that rejects a command promises that nothing of it ran.
    if (!output && output.error().kind == Error::Kind::Rejected)
      return refuse(Refusal::Transient, output.error().text);
    if (!output) {
      refuse(Refusal::Unclear, output.error().text);
      // The line was lost, and the command at its other end goes on until its own deadline.
      std::get<AllocationRefused>(**result).may_be_under_way = true;
      return;
    }
    auto read = guarded("scheduler", [&] { return tools.scheduler->read_submit(*output); });
    if (!read) return refuse(Refusal::Unclear, read.error().text);
    if (const auto* number = std::get_if<std::string>(&*read)) {
      *result = AllocationAccepted{id, *number};
    } else {
      const auto& refused = std::get<SubmitRefused>(*read);
      refuse(refused.refusal, refused.text);
    }
  };
  call("submitting a batch job", kSubmitDeadline, std::move(work),
       [id, result, answer = std::move(answer)](bool given_up) {
         if (given_up || !*result) {
           answer(AllocationRefused{id, Refusal::Unclear,
                                    "the submit command did not come back in time"});
         } else {
           answer(std::move(**result));
         }
       });
}

void SiteClient::renew_pilot_file(const AllocationId& id, wire::PilotFile file) {
  call(
      "writing a pilot's file", kFileLimit,
      [file = std::move(file), at = file_path(id), workspace = site_.workspace](Tools& tools,
                                                                                Deadline deadline) {
        // A pilot that cannot read its new addresses keeps trying the old ones: nothing better can
        // be done here.
        (void)guarded("transport", [&]() -> Result<void> {
          if (!has_folder(*tools.transport, workspace, "allocations", deadline)) return {};
          return write_files(*tools.transport, {{at, wire::to_text(file), 0600}}, deadline);
        });
      },
      [](bool) {});
}

void SiteClient::poll(const std::string& prefix, std::vector<std::string> names,
                      std::vector<std::string> silent, std::function<void(Result<Listed>)> answer) {
  auto result = std::make_shared<Result<Listed>>(Error{Error::Kind::Transient, "no answer"});
  auto work = [prefix, names = std::move(names), silent = std::move(silent), result,
               directory = site_.workspace + "/allocations"](Tools& tools, Deadline deadline) {
    auto output = guarded("transport", [&] {
      return tools.transport->run(tools.scheduler->poll(prefix, names), deadline);
    });
    if (!output) {
      *result = output.error();
    } else if (output->timed_out) {
      *result = Error{Error::Kind::Transient, "the batch system did not answer in time"};
    } else {
      auto jobs = guarded("scheduler", [&] { return tools.scheduler->read_poll(prefix, *output); });
      if (!jobs) {
        *result = jobs.error();
        return;
      }
      Listed listed{plain_jobs(std::move(*jobs)), {}};
      const std::vector<std::string> over = not_living(silent, listed.jobs);
      if (!over.empty()) {
        // What cannot be read is no reason to know nothing of the batch jobs.
        const auto said = guarded("transport", [&] {
          return tools.transport->run(ask_output_tails(directory, over), deadline);
        });
        if (said) listed.output_tail = read_output_tails(over, said->standard_output);
      }
      *result = std::move(listed);
    }
  };
  call("listing our batch jobs", kPollLimit, std::move(work),
       [result, answer = std::move(answer)](bool given_up) {
         if (given_up) {
           answer(Error{Error::Kind::Transient, "the batch system did not answer in time"});
         } else {
           answer(std::move(*result));
         }
       });
}

void SiteClient::look_at_queue(std::function<void(Result<std::optional<QueueSeen>>)> answer) {
  const Error late{Error::Kind::Transient, "the batch system did not answer in time"};
  auto result = std::make_shared<Result<std::optional<QueueSeen>>>(late);
  auto work = [result](Tools& tools, Deadline deadline) {
    const auto* watcher = dynamic_cast<const QueueWatcher*>(tools.scheduler.get());
    if (!watcher) {
      *result = std::optional<QueueSeen>{};
      return;
    }
    auto output = guarded("transport",
                          [&] { return tools.transport->run(watcher->watch_queue(), deadline); });
    if (!output) {
      *result = output.error();
    } else if (!output->timed_out) {
      auto seen = guarded("scheduler", [&]() -> Result<QueueSeen> {
        auto queue = watcher->read_queue(*output);
        if (!queue) return queue.error();
        const auto* room = dynamic_cast<const RoomWatcher*>(tools.scheduler.get());
        return QueueSeen{std::move(*queue), room ? room->read_room(*output) : WatchedRoom{}};
      });
      if (seen)
        *result = std::optional(std::move(*seen));
      else
        *result = seen.error();
    }
  };
  call("looking at the queue", kLookLimit, std::move(work),
       [result, late, answer = std::move(answer)](bool given_up) {
         answer(given_up ? Result<std::optional<QueueSeen>>(late) : std::move(*result));
       });
}

void SiteClient::list_past(std::chrono::seconds from, std::chrono::seconds until,
                           std::function<void(Result<PastJobs>)> answer) {
  const Error late{Error::Kind::Transient, "the batch system did not answer in time"};
  auto result = std::make_shared<Result<PastJobs>>(late);
  auto work = [result, from, until](Tools& tools, Deadline deadline) {
    const auto* history = dynamic_cast<const QueueHistory*>(tools.scheduler.get());
    if (!history) {
      *result = Error{Error::Kind::Rejected,
                      "its scheduler plugin has no word for what accounting keeps"};
      return;
    }
    auto output = guarded("transport", [&] {
      return tools.transport->run(history->list_past(from, until), deadline);
    });
    if (!output)
      *result = output.error();
    else if (!output->timed_out)
      *result = guarded("scheduler", [&] { return history->read_past(*output); });
  };
  call("reading the accounting", kPastLimit, std::move(work),
       [result, late, answer = std::move(answer)](bool given_up) {
         answer(given_up ? Result<PastJobs>(late) : std::move(*result));
       });
}

void SiteClient::cancel(const AllocationId& id, const std::string& number) {
  call(
      "cancelling a batch job", kCancelLimit,
      [id, number](Tools& tools, Deadline deadline) {
        // Whether it helped is seen at the next poll, and it is told again if not.
        (void)guarded("transport", [&] {
          return tools.transport->run(tools.scheduler->cancel({id.name}, {number}), deadline);
        });
      },
      [](bool) {});
}

void SiteClient::read_outbox(const AllocationId& id,
                             std::function<void(Result<std::vector<std::string>>)> answer) {
  auto result = std::make_shared<Result<std::vector<std::string>>>(
      Error{Error::Kind::Transient, "no answer"});
  auto work = [id, workspace = site_.workspace, result](Tools& tools, Deadline deadline) {
    *result = guarded("transport",
                      [&] { return results_left(*tools.transport, id, workspace, deadline); });
  };
  call("reading results that pilots left", kFileLimit, std::move(work),
       [result, answer = std::move(answer)](bool given_up) {
         answer(given_up ? Result<std::vector<std::string>>(Error{
                               Error::Kind::Transient, "the workspace did not answer in time"})
                         : std::move(*result));
       });
}

// NOLINTNEXTLINE(readability-function-cognitive-complexity)
void SiteClient::forget(const AllocationId& id) {
  auto work = [file = file_path(id), outbox = site_.workspace + "/outbox", prefix = id.name + ".",
               own = site_.workspace + "/allocations/" + id.name](Tools& tools, Deadline deadline) {
    (void)guarded("transport", [&]() -> Result<void> {
      std::vector<std::string> gone{own + ".sh", own + ".env", file};
      if (auto names = list_folder(*tools.transport, outbox, deadline)) {
        for (const std::string& name : *names) {
          if (name.starts_with(prefix) && !name.ends_with(kDamaged))
            gone.push_back(below(outbox, name));
        }
      }
      return remove_files(*tools.transport, gone, deadline);
    });
  };
  call("removing files", kFileLimit, std::move(work), [](bool) {});
  // A pilot that was killed left what its attempts had made.  A call of its own: a large tree takes
  // long.
  auto sweep = [workspace = site_.workspace, prefix = id.name + "."](Tools& tools,
                                                                     Deadline deadline) {
    (void)guarded("transport", [&]() -> Result<void> {
      std::vector<std::string> gone;
      for (const std::string& folder :
           {workspace + "/work", workspace + "/out", workspace + "/spool"}) {
        auto names = list_folder(*tools.transport, folder, deadline);
        if (!names) return names.error();
        for (const std::string& name : *names) {
          if (name.starts_with(prefix)) gone.push_back(below(folder, name));
        }
      }
      return gone.empty() ? Result<void>() : remove_files(*tools.transport, gone, deadline);
    });
  };
  call("removing files", kFileLimit, std::move(sweep), [](bool) {});
}

void SiteClient::find_left(const std::string& prefix,
                           std::function<void(std::vector<AllocationId>)> answer) {
  auto names = std::make_shared<std::set<std::string>>();
  auto work = [names, prefix, workspace = site_.workspace](Tools& tools, Deadline deadline) {
    const auto look = [&](const std::string& folder, const std::string& suffix) {
      const auto there = guarded(
          "transport", [&] { return list_folder(*tools.transport, workspace + folder, deadline); });
      if (!there) return;
      for (const std::string& name : *there) {
        if (name.starts_with(prefix) && name.ends_with(suffix) && !name.ends_with(kDamaged))
          names->insert(name.substr(0, name.find('.')));
      }
    };
    look("/allocations", ".pilot");
    look("/outbox", "");
    look("/work", "");
    look("/out", "");
    look("/spool", "");
  };
  call("listing the workspace", kFileLimit, std::move(work),
       [names, answer = std::move(answer)](bool given_up) {
         std::vector<AllocationId> found;
         if (given_up) return answer(std::move(found));
         for (const std::string& name : *names) found.push_back(AllocationId{name});
         answer(std::move(found));
       });
}

void SiteClient::end_connection() {
  if (!dynamic_cast<ConnectionKeeper*>(tools_->transport.get())) return;
  call(
      "ending the connection", kGoodbyeLimit,
      [](Tools& tools, Deadline deadline) {
        (void)guarded("transport", [&]() -> Result<void> {
          dynamic_cast<ConnectionKeeper&>(*tools.transport).end_connection(deadline);
          return {};
        });
      },
      [](bool) {});
}

void SiteClient::check(std::function<void(SiteReport)> answer) {
  auto streams = plugins_.transport(site_.transport, site_.transport_config);
  if (!streams) return answer({{{"transport", false, streams.error().text}}, std::nullopt});
  auto report = std::make_shared<SiteReport>();
  auto work = [report, site = site_, program = program_,
               streams = std::shared_ptr<Transport>(std::move(*streams))](Tools& tools,
                                                                          Deadline deadline) {
    *report = check_site(site, program, *tools.scheduler, *tools.transport, *streams, deadline);
  };
  call("checking the site", kCheckLimit, std::move(work),
       [report, answer = std::move(answer)](bool given_up) {
         if (given_up) {
           answer({{{"transport", false, "did not come back in time"}}, std::nullopt});
         } else {
           answer(std::move(*report));
         }
       });
}

}  // namespace hpcbatch
