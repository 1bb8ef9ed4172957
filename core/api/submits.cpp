#include "api/submits.hpp"

#include "api/far_sites.hpp"
#include "api/files_now.hpp"
#include "api/read/bad_request.hpp"
#include "api/read/own_paths.hpp"
#include "api/read/submit_content.hpp"
#include "loop/asio.hpp"

#include <fmt/format.h>
#include <sodium.h>

#include <algorithm>
#include <filesystem>

namespace hpcbatch {
namespace {

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

Recipe plain_recipe(const TaskRequest& task, const SubmitRequest& request) {
  Recipe recipe;
  recipe.argv = task.command;
  recipe.variables = task.env;
  recipe.directory = task.directory.value_or(request.directory);
  recipe.standard_input = task.standard_input;
  recipe.standard_output = task.standard_output;
  recipe.standard_error = task.standard_error;
  recipe.stream_input = task.array.streams_input;
  recipe.container = task.container;
  recipe.filled = filled_of(task);
  recipe.service = task.service;
  return recipe;
}

/// What a command reads and writes lies in a directory of its own, under the names it was given.
Recipe command_recipe(const TaskRequest& task, const SubmitRequest& request) {
  Recipe recipe = plain_recipe(task, request);
  if (task.inputs.empty() && task.outputs.empty()) return recipe;
  recipe.directory.clear();
  for (const auto& [name, paths] : task.inputs) {
    recipe.inputs.push_back(paths.front());
    recipe.links.push_back({name, paths.front()});
  }
  for (const auto& [name, path] : task.outputs)
    recipe.outputs.push_back({name, name, path, std::nullopt, false});
  return recipe;
}

/// Files beside the tool's own that its command names: where that folder is not seen they go along.
void add_own_files(ToolShelf& shelf, const std::string& name, Recipe& recipe) {
  const auto tool = shelf.find(name);
  if (!tool) return;
  const std::string folder = (*tool)->directory + "/";
  for (const std::string& argument : recipe.argv) {
    std::error_code error;
    if (argument.starts_with(folder) && std::filesystem::is_regular_file(argument, error))
      recipe.inputs.push_back(argument);
  }
}

/// Throws BadRequest.
Recipe tool_recipe(ToolShelf& shelf, TaskRequest& task, const SubmitRequest& request,
                   const SeenFiles& seen) {
  ToolCall call{task.tool, task.parameters, {}, task.outputs};
  for (const auto& [name, paths] : task.inputs) {
    for (const std::string& path : paths) call.inputs[name].push_back(seen.files.at(path));
  }
  Recipe recipe = plain_recipe(task, request);
  recipe.directory_token = random_token();
  auto rendered = shelf.prepare(call, recipe.directory_token);
  if (!rendered) throw BadRequest(rendered.error().text);
  recipe.argv = rendered->task.argv;
  recipe.variables = rendered->task.environment;
  for (const auto& [name, value] : task.env) recipe.variables[name] = value;
  if (recipe.container.empty()) recipe.container = rendered->task.container;
  recipe.output_limit = rendered->output_limit;
  // A tool runs in its own directory: what it leaves beside its outputs goes with it.
  if (!task.directory) recipe.directory.clear();
  for (const RenderedOutput& output : rendered->outputs) {
    if (!output.destination.empty())
      recipe.outputs.push_back(
          {output.name, output.staged, output.destination, std::nullopt, output.optional});
  }
  for (const InputFile& input : rendered->inputs) recipe.inputs.push_back(input.path);
  add_own_files(shelf, task.tool, recipe);
  task.array.needs = merged(task, rendered->needs);
  return recipe;
}

int status_of(const SubmitRefusal& refusal) {
  return refusal.conflict ? 409 : refusal.not_now ? 503 : 400;
}

boost::json::array texts_of(const std::vector<ArrayId>& ids) {
  boost::json::array texts;
  for (const ArrayId id : ids) texts.push_back(boost::json::string(std::to_string(id.value)));
  return texts;
}

boost::json::object answer_of(const std::variant<std::vector<ArrayId>, SubmitRefusal>& answer) {
  if (const auto* refusal = std::get_if<SubmitRefusal>(&answer))
    return {{"error", refusal->text}, {"status", status_of(*refusal)}};
  return {{"ids", texts_of(std::get<0>(answer))}};
}

}  // namespace

void Submits::add_to(Routes& routes) {
  routes.add("POST", "tasks", [this](HttpRequest& request, const ReplyPtr& reply) {
    post(std::move(request.body), reply);
  });
  routes.add("POST", "tasks/try", [this](HttpRequest& request, const ReplyPtr& reply) {
    try_out(std::move(request.body), reply);
  });
  routes.add("POST", "submits",
             [this](HttpRequest& request, const ReplyPtr& reply) { post_several(request, reply); });
  routes.add("GET", "keys",
             [this](HttpRequest& request, const ReplyPtr& reply) { ids_of_key(request, reply); });
}

void Submits::post(std::string body, const ReplyPtr& reply) {
  SubmitWithContent read = read_submit_body(std::move(body));
  submit(std::move(read.request), read.content,
         [reply](std::variant<std::vector<ArrayId>, SubmitRefusal> answer) {
           if (const auto* refusal = std::get_if<SubmitRefusal>(&answer)) {
             reply->error(status_of(*refusal), refusal->text);
           } else {
             reply->answer(200, answer_of(answer));
           }
         });
}

void Submits::post_several(const HttpRequest& request, const ReplyPtr& reply) {
  const boost::json::value body = parse_body(request.body);
  const boost::json::value* list = body.get_object().if_contains("submits");
  if (!list || !list->is_array() || list->get_array().empty() || body.get_object().size() != 1)
    throw BadRequest("the one key is 'submits': a list of at least one submit");
  struct Gathered {
    boost::json::array answers;
    std::size_t missing{0};
  };
  auto gathered = std::make_shared<Gathered>();
  gathered->missing = list->get_array().size();
  gathered->answers.resize(gathered->missing);
  std::size_t place = 0;
  for (const boost::json::value& one : list->get_array()) {
    const auto answer = [reply, gathered,
                         place](const std::variant<std::vector<ArrayId>, SubmitRefusal>& said) {
      gathered->answers[place] = answer_of(said);
      if (--gathered->missing == 0) reply->answer(200, {{"answers", std::move(gathered->answers)}});
    };
    ++place;
    try {
      if (!one.is_object()) throw BadRequest("a submit must be an object");
      submit(read_submit(one), content_of(one), answer);
    } catch (const std::exception& e) {
      // What came before it is taken, and told.
      answer(SubmitRefusal{e.what()});
    }
  }
}

void Submits::ids_of_key(const HttpRequest& request, const ReplyPtr& reply) {
  const auto client = request.query.find("client");
  const auto key = request.query.find("key");
  if (client == request.query.end() || key == request.query.end())
    throw BadRequest("/v1/keys takes GET with 'client' and 'key'");
  runtime_.look([client = client->second, key = key->second](
                    store::Store& store) { return store.history().ids_of_key(client, key); },
                [reply](const std::vector<ArrayId>& ids) {
                  if (ids.empty()) return reply->error(404, "no submit with this key is known");
                  reply->answer(200, {{"ids", texts_of(ids)}});
                });
}

void Submits::submit(SubmitRequest request, std::uint64_t content, SubmitAnswer answer) {
  auto take = [this, answer](Submission submission) {
    runtime_.requests().submit(std::move(submission), answer);
  };
  prepare(std::move(request), content, std::move(take),
          [answer = std::move(answer)](SubmitRefusal refusal) { answer(std::move(refusal)); });
}

void Submits::prepare(SubmitRequest request, std::uint64_t content, Prepared prepared,
                      Refuse refuse) {
  NamedFiles named = named_now(request);
  auto render = [this, request = std::move(request), content, prepared = std::move(prepared),
                 refuse = std::move(refuse)](const SeenFiles& seen) mutable {
    if (!seen.refusal.empty()) return refuse(SubmitRefusal{seen.refusal});
    Submission submission{request.client, request.key, content, {}, {}};
    const auto shared =
        request.environment.empty()
            ? nullptr
            : std::make_shared<const std::string>(environment_bytes(request.environment));
    submission.arrays.reserve(request.tasks.size());
    submission.recipes.reserve(request.tasks.size());
    for (; !request.tasks.empty(); request.tasks.pop_front()) {
      TaskRequest& task = request.tasks.front();
      Recipe recipe;
      try {
        recipe = task.tool.empty() ? command_recipe(task, request)
                                   : tool_recipe(tools_, task, request, seen);
        note_far_sites(sites_of(runtime_.engine()), recipe, task.items, task.shared,
                       task.array.needs);
      } catch (const BadRequest& e) {
        return refuse(SubmitRefusal{e.what()});
      }
      recipe.umask = request.umask.value_or(umask_);
      if (task.output_limit != 0) recipe.output_limit = task.output_limit;
      store::Recipe& stored = submission.recipes.emplace_back();
      stored.bytes = to_bytes(recipe);
      stored.environment =
          task.environment
              ? std::make_shared<const std::string>(environment_bytes(*task.environment))
              : shared;
      stored.name = task.name;
      stored.tool = task.tool;
      stored.items = std::move(task.items);
      submission.arrays.push_back(std::move(task.array));
    }
    prepared(std::move(submission));
  };
  if (named.inputs.empty() && named.destinations.empty()) return render({});
  auto shared_render = std::make_shared<decltype(render)>(std::move(render));
  files_.run([&loop = runtime_.loop(), named = std::move(named), shared_render] {
    auto seen = std::make_shared<SeenFiles>(look_at(named));
    asio::post(loop, [seen, shared_render] { (*shared_render)(*seen); });
  });
}

}  // namespace hpcbatch
