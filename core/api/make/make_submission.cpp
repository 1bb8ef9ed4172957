#include "api/make/make_submission.hpp"

#include "api/make/submitted_files.hpp"
#include "api/read/json_values.hpp"
#include "api/read/read_task.hpp"
#include "model/quantities.hpp"
#include "records/estimate.hpp"
#include "tools/prepare.hpp"
#include "wire/wire.pb.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sodium.h>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <iterator>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include <unistd.h>

namespace hpcbatch {
namespace {

constexpr std::size_t kMostAdvice = 5;

/// What all sites that may run it want.
EstimateMode estimate_mode(const std::vector<const Site*>& sites, const Needs& needs) {
  std::optional<EstimateMode> least;
  for (const Site* site : sites) {
    if (may_run_at(needs, site->name))
      least = std::min(least.value_or(site->estimate), site->estimate);
  }
  return least.value_or(EstimateMode::Off);
}

std::string kind_of(const TaskRequest& task, const wire::Start& start) {
  return records::kind_of({.said = task.kind,
                           .tool = task.tool,
                           .name = task.name,
                           .program = start.argv().empty() ? std::string_view() : start.argv(0)});
}

/// What takes a GPU, or might, is known by its kind to who gives them out.
void note_kind(const TaskRequest& task, const wire::Start& start, Needs& needs) {
  if (needs.amounts.gpus() != Amount{} || !needs.device->instead.empty())
    needs.device.edit().kind = kind_of(task, start);
}

std::string random_token() {
  unsigned char bytes[16];
  randombytes_buf(bytes, sizeof bytes);
  char text[2 * sizeof bytes + 1];
  sodium_bin2hex(text, sizeof text, bytes, sizeof bytes);
  return "hpcbatch-directory-" + std::string(text);
}

/// The user's words go over the tool's.
Needs merged(const TaskRequest& task, const Needs& tool) {
  Needs needs = task.array.needs;
  for (const auto& [name, amount] : tool.amounts.entries()) {
    const bool gpu = name.starts_with(kAnyGpu);
    const bool said = name == kCpus     ? task.says_cpus
                      : name == kMemory ? task.says_memory
                      : name == kDisk   ? task.says_disk
                                        : gpu && task.says_gpus;
    if (!said) needs.amounts.set(name, amount);
  }
  if (!task.says_time) needs.time = tool.time;
  if (needs.site.empty()) needs.site = tool.site;
  needs.tags.insert(needs.tags.end(), tool.tags.begin(), tool.tags.end());
  std::sort(needs.tags.begin(), needs.tags.end());
  needs.tags.erase(std::unique(needs.tags.begin(), needs.tags.end()), needs.tags.end());
  return needs;
}

/// All that a task says, whether or not it has a tool.
wire::Start plain_start(const TaskRequest& task, const SubmitRequest& request) {
  wire::Start start;
  start.ParseFromString(task.for_pilot.get());
  // Nothing is put into the caller's folder, which he has not written.
  start.set_directory(task.directory   ? *task.directory
                      : is_array(task) ? as_it_stands(request.directory)
                                       : request.directory);
  start.set_standard_input(task.standard_input);
  start.set_standard_output(task.standard_output);
  start.set_standard_error(task.standard_error);
  start.set_input_streamed(task.array.streams_input);
  set_container(start, task.container.image, task.container.terms);
  start.set_from_zero(task.from_zero);
  if (task.array.numbered) set_numbered(start, task.array.indices);
  start.set_kind(task.kind);
  start.mutable_follows()->Assign(task.follows.begin(), task.follows.end());
  return start;
}

/// What a command reads and writes lies in a directory of its own, under the names it was given.
wire::Start command_start(const TaskRequest& task, const SubmitRequest& request) {
  wire::Start start = plain_start(task, request);
  start.mutable_argv()->Assign(task.command.begin(), task.command.end());
  add_variables(start, task.env);
  if (task.service) set_service(start, *task.service);
  if (task.inputs.empty() && task.outputs.empty()) return start;
  start.clear_directory();
  for (const auto& [name, paths] : task.inputs) {
    start.add_inputs(paths.front());
    wire::Alias* link = start.add_links();
    link->set_name(name);
    link->set_target(paths.front());
  }
  for (const auto& [name, path] : task.outputs) add_output(start, name, name, path, false);
  return start;
}

/// Files beside the tool's own that its command names: where that folder is not seen they go along.
void add_own_files(ToolRegistry& registry, const std::string& name, wire::Start& start) {
  const auto tool = registry.find(name);
  if (!tool) return;
  const std::string folder = (*tool)->directory + "/";
  std::vector<std::string> arguments(start.argv().begin(), start.argv().end());
  arguments.insert(arguments.end(), start.service().argv().begin(), start.service().argv().end());
  for (const std::string& argument : arguments) {
    std::error_code error;
    // A program that may be run need not be one that may be copied.
    if (argument.starts_with(folder) && std::filesystem::is_regular_file(argument, error) &&
        ::access(argument.c_str(), R_OK) == 0)
      start.add_inputs(argument);
  }
}

void publish_outputs(wire::Start& start, const RenderedTask& rendered) {
  for (const RenderedOutput& output : rendered.outputs) {
    if (!output.destination.empty())
      add_output(start, output.name, output.staged, output.destination, output.optional);
  }
}

struct OfTool {
  wire::Start start;
  std::vector<RenderedOutput> outputs;
};

ToolCall call_of(const TaskRequest& task, const std::map<std::string, InputFile>& files) {
  ToolCall call{task.tool, task.parameters, {}, task.outputs};
  for (const auto& [name, paths] : task.inputs) {
    for (const std::string& path : paths) call.inputs[name].push_back(files.at(path));
  }
  return call;
}

/// What of its recipe differs from task to task.
Filled filled_of(const TaskRequest& task, const wire::Start& start) {
  if (!task.items.empty()) return task.items_have_columns ? Filled::Rows : Filled::Items;
  // Its number is put in for each.
  if (task.array.numbered) return Filled::Paths;
  const auto has_brace = [](const std::string& path) {
    return path.find_first_of("{}") != std::string::npos;
  };
  bool any = has_brace(start.standard_input()) || has_brace(start.standard_output()) ||
             has_brace(start.standard_error());
  if (is_array(task)) {
    any = any || has_brace(start.directory());
    for (const std::string& path : start.inputs()) any = any || has_brace(path);
    for (const wire::Output& output : start.outputs()) any = any || has_brace(output.destination());
  }
  return any ? Filled::Paths : Filled::Nothing;
}

/// Where it will write: a text that stands for its directory, or the folder that it was given.
std::string directory_of(const TaskRequest& task) {
  return task.outputs_stay_in.empty() ? random_token() : task.outputs_stay_in;
}

/// Throws BadRequest.
OfTool tool_start(ToolRegistry& registry, TaskRequest& task, const SubmitRequest& request,
                  const std::map<std::string, InputFile>& files, const Rendering* made) {
  wire::Start start = plain_start(task, request);
  const bool is_published = task.outputs_stay_in.empty();
  const std::string directory = made ? made->directory : directory_of(task);
  if (is_published) start.set_directory_token(directory);
  auto rendered = made ? made->task : registry.prepare(call_of(task, files), directory);
  if (!rendered) throw BadRequest(rendered.error().text);
  start.mutable_argv()->Assign(rendered->task.argv.begin(), rendered->task.argv.end());
  std::map<std::string, std::string> variables = task.env;
  variables.insert(rendered->task.environment.begin(), rendered->task.environment.end());
  add_variables(start, variables);
  if (start.container().empty())
    set_container(start, rendered->task.container, rendered->container_terms);
  start.set_output_limit(rendered->output_limit);
  // A tool runs in its own directory: what it leaves beside its outputs goes with it.
  if (!task.directory) start.clear_directory();
  if (is_published) publish_outputs(start, *rendered);
  for (const InputFile& input : rendered->inputs) start.add_inputs(input.path);
  task.array.needs = merged(task, rendered->needs);
  if (rendered->service) {
    task.array.needs.service = rendered->service->name;
    rendered->service->on_devices = task.array.needs.amounts.gpus() > Amount{};
    set_service(start, *rendered->service);
  }
  add_own_files(registry, task.tool, start);
  return {std::move(start), std::move(rendered->outputs)};
}

/// Where this machine is all there is, a retry that ran out of memory has more of it: nothing else
/// could come of it.
void grow_by_standard(const std::vector<const Site*>& sites, NewArray& array) {
  constexpr std::uint32_t kHalfAsMuchAgain = 150;
  if (array.retries == 0 || array.course->retry_memory != 0) return;
  const bool is_here_alone = std::all_of(sites.begin(), sites.end(), [&](const Site* site) {
    return site->scheduler == "local" || !may_run_at(array.needs, site->name);
  });
  if (is_here_alone && array.needs.amounts.get(kMemory) != Amount{})
    array.course.edit().retry_memory = kHalfAsMuchAgain;
}

}  // namespace

std::optional<RenderingAsked> rendering_elsewhere(ToolRegistry& tools, const TaskRequest& task,
                                                  std::size_t place,
                                                  const std::map<std::string, InputFile>& files) {
  if (task.tool.empty() || !tools.blocking(task.tool)) return std::nullopt;
  auto preparation = tools.elsewhere(call_of(task, files), directory_of(task));
  if (!preparation) return std::nullopt;
  return RenderingAsked{place, std::move(*preparation)};
}

SubmissionMaker::SubmissionMaker(ToolRegistry& tools, std::vector<const Site*> sites,
                                 const SubmitRequest& request, std::uint32_t umask,
                                 const records::Estimates& estimates)
    : tools_(tools),
      sites_(std::move(sites)),
      request_(request),
      umask_(umask),
      estimates_(estimates) {
  made_.client = request.client;
  made_.key = request.key;
  if (request.lease) made_.read_by = ReadBy{request.reader, *request.lease};
  if (!request.environment.empty())
    environment_ = std::make_shared<const std::string>(environment_bytes(request.environment));
}

void SubmissionMaker::estimate(const TaskRequest& task, const wire::Start& start, Needs& needs) {
  if (estimates_.empty()) return;
  EstimateMode mode = task.estimate.value_or(estimate_mode(sites_, needs));
  // One that cannot be run again must not have too little; of ways each needs its own.
  if (task.array.streams_input || !needs.device->instead.empty())
    mode = std::min(mode, EstimateMode::Advise);
  if (mode == EstimateMode::Off) return;
  const std::string kind = kind_of(task, start);
  const auto known = estimates_.find(kind);
  if (known == estimates_.end()) return;
  records::Estimated made = records::estimated(needs, known->second, kind, mode, sites_);
  needs = std::move(made.needs);
  for (std::string& advice : made.advice) {
    const bool is_new =
        std::find(made_.advice.begin(), made_.advice.end(), advice) == made_.advice.end();
    if (is_new && made_.advice.size() < kMostAdvice) made_.advice.push_back(std::move(advice));
  }
}

void SubmissionMaker::expect(std::size_t tasks) {
  made_.arrays.reserve(tasks);
  made_.recipes.reserve(tasks);
}

std::vector<RenderedOutput> SubmissionMaker::add(TaskRequest task,
                                                 const std::map<std::string, InputFile>& files,
                                                 const Rendering* rendered) {
  OfTool made = task.tool.empty() ? OfTool{command_start(task, request_), {}}
                                  : tool_start(tools_, task, request_, files, rendered);
  wire::Start& start = made.start;
  const Filled filled = filled_of(task, start);
  note_far_sites(sites_, start, {filled, task.items}, task.shared, task.array.needs);
  choose_gpu_kinds(task.gpu_terms, sites_, task.array.needs);
  choose_ways(task.one_of, sites_, task.array.needs);
  choose_whole_node(task, sites_, task.array.needs);
  note_kind(task, start, task.array.needs);
  estimate(task, start, task.array.needs);
  grow_by_standard(sites_, task.array);
  start.set_umask(request_.umask.value_or(umask_));
  if (task.output_limit != 0) start.set_output_limit(task.output_limit);
  store::Recipe& stored = made_.recipes.emplace_back();
  stored.bytes = to_bytes(start, filled);
  stored.environment =
      task.environment ? std::make_shared<const std::string>(environment_bytes(*task.environment))
                       : environment_;
  if (!task.name.empty() || !task.tool.empty() || !task.items.empty())
    stored.words.edit() = {std::move(task.name), std::move(task.tool), std::move(task.items)};
  // Tasks of one submission mostly name the same.
  for (std::string& target : task.notify)
    if (std::find(made_.notify.begin(), made_.notify.end(), target) == made_.notify.end())
      made_.notify.push_back(std::move(target));
  made_.arrays.push_back(std::move(task.array));
  return std::move(made.outputs);
}

namespace {

/// Kinds of GPU that a demand would take, where its task may run.
std::set<std::string> gpu_kinds_for(std::string_view demand, const std::vector<const Site*>& sites,
                                    const Needs& needs) {
  std::set<std::string> kinds;
  for (const Site* site : sites) {
    if (!may_run_at(needs, site->name)) continue;
    for (const Shape& shape : site->shapes) {
      for (const auto& [supply, unused] : shape.capacity.entries()) {
        if (takes_gpu(demand, supply)) kinds.insert(supply.substr(kGpuPrefix.size()));
      }
    }
  }
  return kinds;
}

std::string gpu_kind_in_words(const std::string& kind) {
  const auto known = gpu_kind(kind);
  return known ? fmt::format("{} ({}, {})", kind, show_size(known->memory),
                             show_capability(known->capability))
               : kind + " (not known)";
}

[[noreturn]] void refuse_gpu_terms(const GpuTerms& terms, const std::set<std::string>& kinds) {
  std::vector<std::string> asked, there;
  if (terms.memory != 0) asked.push_back(show_size(terms.memory) + " of memory");
  if (terms.capability != 0) asked.push_back("capability " + show_capability(terms.capability));
  for (const std::string& kind : kinds) there.push_back(gpu_kind_in_words(kind));
  throw BadRequest(fmt::format("never_fits: no kind of GPU has {}; {}", fmt::join(asked, " and "),
                               there.empty()
                                   ? std::string("no shape has any that it would take")
                                   : fmt::format("there are {}", fmt::join(there, ", "))));
}

}  // namespace

void choose_gpu_kinds(const GpuTerms& terms, const std::vector<const Site*>& sites, Needs& needs) {
  if (!terms.any()) return;
  const auto& entries = needs.amounts.entries();
  const auto demand = std::find_if(entries.begin(), entries.end(), [](const auto& entry) {
    return entry.first.starts_with(kAnyGpu);
  });
  if (demand == entries.end()) return;
  const auto [name, amount] = *demand;
  const std::set<std::string> kinds = gpu_kinds_for(name, sites, needs);
  std::set<std::string> good;
  std::copy_if(kinds.begin(), kinds.end(), std::inserter(good, good.end()),
               [&](const std::string& kind) {
                 const auto known = gpu_kind(kind);
                 return known && meets(*known, terms);
               });
  if (good.empty()) refuse_gpu_terms(terms, kinds);
  needs.amounts.set(name, {});
  needs.amounts.set(
      std::string(kGpuPrefix) + fmt::format("{}", fmt::join(good, std::string(1, kGpuEither))),
      amount);
}

void choose_whole_node(const TaskRequest& task, const std::vector<const Site*>& sites,
                       Needs& needs) {
  if (!task.all_cpus && !task.all_memory) return;
  std::optional<Resources> chosen;
  for (const Site* site : sites) {
    if (!may_run_at(needs, site->name)) continue;
    const std::vector<std::string> choices = choices_of(needs, *site);
    for (const Shape& shape : site->shapes) {
      const Resources whole = usable(shape);
      if (!has_tags(made_for(shape, choices).tags, needs.tags) || !fits(needs.amounts, whole))
        continue;
      if (!chosen || whole.get(kMemory) < chosen->get(kMemory)) chosen = whole;
    }
  }
  // That nothing fits is told as of any other task.
  if (!chosen) return;
  if (task.all_cpus) needs.amounts.set(kCpus, chosen->get(kCpus));
  if (task.all_memory) needs.amounts.set(kMemory, chosen->get(kMemory));
}

void choose_ways(const std::vector<AskedWay>& ways, const std::vector<const Site*>& sites,
                 Needs& needs) {
  if (ways.empty()) return;
  Resources common = needs.amounts;
  for (const auto& [name, amount] : needs.amounts.entries())
    if (name == kCpus || name.starts_with(kAnyGpu)) common.set(name, {});
  std::vector<Resources> good;
  std::optional<BadRequest> refused;
  for (const AskedWay& way : ways) {
    Needs alone = needs;
    alone.amounts = common;
    for (const auto& [name, amount] : way.amounts.entries()) alone.amounts.set(name, amount);
    try {
      choose_gpu_kinds(way.gpu_terms, sites, alone);
      good.push_back(std::move(alone.amounts));
    } catch (const BadRequest& e) {
      refused = e;
    }
  }
  if (good.empty()) throw BadRequest(*refused);
  needs.amounts = std::move(good.front());
  needs.device.edit().instead.assign(std::make_move_iterator(good.begin() + 1),
                                     std::make_move_iterator(good.end()));
}

namespace {

using namespace std::chrono_literals;

/// Before whoever submits gives up and never hears what became of it.
constexpr std::chrono::minutes kLongest{5};

}  // namespace

struct ToolCalls::Rendered {
  std::vector<RenderingAsked> asked;
  std::function<void(const Renderings&)> then;
  std::chrono::steady_clock::time_point until;
  Renderings made{};
  std::size_t next{0};
};

void ToolCalls::render(std::vector<RenderingAsked> asked,
                       std::function<void(const Renderings&)> then) {
  if (asked.empty()) return then({});
  render_next(std::make_shared<Rendered>(
      Rendered{std::move(asked), std::move(then), std::chrono::steady_clock::now() + kLongest}));
}

void ToolCalls::render_next(const std::shared_ptr<Rendered>& all) {
  // One at a time: others have their turns in between, and an engine that ends waits for one alone.
  lane_.run([this, &loop = loop_, all] {
    const RenderingAsked& one = all->asked[all->next];
    auto task = std::chrono::steady_clock::now() < all->until ? one.preparation() : too_slow(*all);
    const bool is_last = !task || ++all->next == all->asked.size();
    all->made.emplace(one.place, Rendering{one.preparation.directory, std::move(task)});
    asio::post(loop, [this, all, is_last] {
      if (is_last)
        all->then(all->made);
      else
        render_next(all);
    });
  });
}

Result<RenderedTask> ToolCalls::too_slow(const Rendered& all) {
  return Error{Error::Kind::Rejected,
               fmt::format("the plugin of tool {} takes too long: of {} tasks {} were made in {} "
                           "minutes; submit fewer at once",
                           all.asked[all.next].preparation.call.tool, all.asked.size(), all.next,
                           kLongest.count())};
}

void ToolCalls::check(std::shared_ptr<const ToolFile> file,
                      std::shared_ptr<const BlockingTool> tool,
                      std::function<void(const Result<void>&)> then) {
  lane_.run([&loop = loop_, file = std::move(file), tool = std::move(tool),
             then = std::move(then)]() mutable {
    Result<void> found;
    try {
      (void)tool->describe();
      check_facts(*file, *tool);
    } catch (const std::exception& error) {
      found = Error{Error::Kind::Rejected, error.what()};
    }
    asio::post(loop, [found, then = std::move(then)] { then(found); });
  });
}

}  // namespace hpcbatch
