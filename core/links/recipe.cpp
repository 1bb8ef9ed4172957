#include "links/recipe.hpp"

#include "model/placeholders.hpp"
#include "store/store.hpp"
#include "wire/wire.pb.h"

#include <fmt/format.h>

#include <algorithm>

namespace hpcbatch {
namespace {

void put(const TaskService& service, wire::Service* out) {
  out->set_name(service.name);
  for (const std::string& argument : service.argv) out->add_argv(argument);
  for (const auto& [name, value] : service.variables) {
    wire::Variable* variable = out->add_variables();
    variable->set_name(name);
    variable->set_value(value);
  }
  out->set_memory(service.memory);
  out->set_idle_ms(static_cast<std::uint64_t>(service.idle.count()));
  out->set_requests(service.requests);
  out->set_start_ms(static_cast<std::uint64_t>(service.start.count()));
  if (service.kind != TaskService::Kind::Answer) return;
  out->set_answers(true);
  out->set_batch(service.batch);
  out->set_instances(service.instances);
  out->set_on_devices(service.on_devices);
}

TaskService service_from(const wire::Service& from) {
  TaskService service;
  service.name = from.name();
  service.argv.assign(from.argv().begin(), from.argv().end());
  for (const wire::Variable& variable : from.variables())
    service.variables[variable.name()] = variable.value();
  service.memory = from.memory();
  service.idle = std::chrono::milliseconds(from.idle_ms());
  service.requests = from.requests();
  service.start = std::chrono::milliseconds(from.start_ms());
  if (!from.answers()) return service;
  service.kind = TaskService::Kind::Answer;
  service.batch = from.batch();
  service.instances = from.instances();
  service.on_devices = from.on_devices();
  return service;
}

void put(const ContainerTerms& terms, wire::Container* out) {
  for (const ContainerBind& bind : terms.binds) {
    wire::Bind* to = out->add_binds();
    to->set_from(bind.from);
    to->set_to(bind.to);
    to->set_read_only(bind.read_only);
  }
  out->set_no_network(terms.no_network);
  if (terms.gpus) out->set_gpus(*terms.gpus);
  out->set_keeps_entrypoint(terms.keeps_entrypoint);
  for (const auto& [name, value] : terms.variables) {
    wire::Variable* variable = out->add_variables();
    variable->set_name(name);
    variable->set_value(value);
  }
  out->set_runtime(terms.runtime);
}

ContainerTerms terms_from(const wire::Container& from) {
  ContainerTerms terms;
  for (const wire::Bind& bind : from.binds())
    terms.binds.push_back({bind.from(), bind.to(), bind.read_only()});
  terms.no_network = from.no_network();
  if (from.has_gpus()) terms.gpus = from.gpus();
  terms.keeps_entrypoint = from.keeps_entrypoint();
  for (const wire::Variable& variable : from.variables())
    terms.variables[variable.name()] = variable.value();
  terms.runtime = from.runtime();
  return terms;
}

Filled filled_in(const std::string& bytes) {
  return bytes.empty() ? Filled::Nothing : static_cast<Filled>(bytes.front());
}

/// For programs that look there.
void put_item(wire::Start& start, const std::string& item) {
  wire::Variable* variable = start.add_variables();
  variable->set_name("HPCBATCH_ITEM");
  variable->set_value(item);
}

}  // namespace

std::string to_bytes(const Recipe& recipe) {
  wire::Start start;
  for (const std::string& argument : recipe.argv) start.add_argv(argument);
  for (const auto& [name, value] : recipe.variables) {
    wire::Variable* variable = start.add_variables();
    variable->set_name(name);
    variable->set_value(value);
  }
  start.set_directory(recipe.directory);
  start.set_standard_input(recipe.standard_input);
  start.set_standard_output(recipe.standard_output);
  start.set_standard_error(recipe.standard_error);
  start.set_input_streamed(recipe.stream_input);
  start.set_container(recipe.container);
  if (recipe.container_terms != ContainerTerms())
    put(recipe.container_terms, start.mutable_container_terms());
  if (recipe.umask) start.set_umask(*recipe.umask);
  start.set_output_limit(recipe.output_limit);
  start.set_cpu_bind(static_cast<std::uint32_t>(recipe.cpu_binding.bind));
  start.set_threads_per_core(recipe.cpu_binding.threads_per_core);
  start.set_directory_token(recipe.directory_token);
  start.set_from_zero(recipe.from_zero);
  for (const RecipeOutput& output : recipe.outputs) {
    wire::Output* out = start.add_outputs();
    out->set_name(output.name);
    out->set_staged(output.staged);
    out->set_destination(output.destination);
    out->set_check_owner(output.owner.has_value());
    out->set_owner(output.owner.value_or(0));
    out->set_optional(output.optional);
  }
  for (const std::string& input : recipe.inputs) start.add_inputs(input);
  for (const RecipeLink& link : recipe.links) {
    wire::Alias* out = start.add_links();
    out->set_name(link.name);
    out->set_target(link.path);
  }
  if (recipe.service) put(*recipe.service, start.mutable_service());
  start.set_kind(recipe.kind);
  for (const std::uint64_t array : recipe.follows) start.add_follows(array);
  return static_cast<char>(recipe.filled) + start.SerializeAsString();
}

wire::Start start_from_bytes(const std::string& bytes, Filled& filled) {
  wire::Start start;
  filled = filled_in(bytes);
  if (!bytes.empty()) start.ParseFromArray(bytes.data() + 1, static_cast<int>(bytes.size() - 1));
  return start;
}

bool needs_items(const std::string& bytes) {
  const Filled filled = filled_in(bytes);
  return filled == Filled::Items || filled == Filled::Rows;
}

Item item_of(Filled filled, const std::string& stored) {
  return filled == Filled::Rows ? Item::unpacked(stored) : Item(stored);
}

Item item_of(const std::string& bytes, const std::string& stored) {
  return item_of(filled_in(bytes), stored);
}

Recipe recipe_from_bytes(const std::string& bytes) {
  Recipe recipe;
  const wire::Start start = start_from_bytes(bytes, recipe.filled);
  recipe.argv.assign(start.argv().begin(), start.argv().end());
  for (const wire::Variable& variable : start.variables())
    recipe.variables[variable.name()] = variable.value();
  recipe.directory = start.directory();
  recipe.standard_input = start.standard_input();
  recipe.standard_output = start.standard_output();
  recipe.standard_error = start.standard_error();
  recipe.stream_input = start.input_streamed();
  recipe.container = start.container();
  recipe.container_terms = terms_from(start.container_terms());
  if (start.has_umask()) recipe.umask = start.umask();
  recipe.output_limit = start.output_limit();
  recipe.cpu_binding = {cpu_bind_of(start.cpu_bind()), start.threads_per_core()};
  recipe.directory_token = start.directory_token();
  recipe.from_zero = start.from_zero();
  for (const wire::Output& output : start.outputs()) {
    recipe.outputs.push_back({output.name(), output.staged(), output.destination(),
                              output.check_owner() ? std::optional(output.owner()) : std::nullopt,
                              output.optional()});
  }
  recipe.inputs.assign(start.inputs().begin(), start.inputs().end());
  for (const wire::Alias& link : start.links())
    recipe.links.push_back({link.name(), link.target()});
  if (start.has_service()) recipe.service = service_from(start.service());
  recipe.kind = start.kind();
  recipe.follows.assign(start.follows().begin(), start.follows().end());
  return recipe;
}

void fill(wire::Start& start, Filled filled, TaskId task,
          const std::function<std::string()>& item) {
  if (filled == Filled::Nothing) return;
  std::optional<Item> own;
  if (filled != Filled::Paths) own = item_of(filled, item());
  const std::uint32_t index = task.index - (start.from_zero() ? 1 : 0);
  const auto put_into = [&](std::string& path) {
    if (path.find('{') != std::string::npos) path = with_places(path, task, own, index);
  };
  put_into(*start.mutable_standard_output());
  put_into(*start.mutable_standard_error());
  if (task.index == 0) return;
  put_into(*start.mutable_directory());
  put_into(*start.mutable_standard_input());
  for (std::string& input : *start.mutable_inputs()) put_into(input);
  for (wire::Alias& link : *start.mutable_links()) put_into(*link.mutable_target());
  for (wire::Output& output : *start.mutable_outputs()) put_into(*output.mutable_destination());
  if (!own) return;
  put_item(start, own->text());
  for (std::string& argument : *start.mutable_argv())
    argument = with_item(argument, *own, task.index);
}

std::optional<std::string> refusal_of_size(const store::Recipe& recipe) {
  const auto refusal = [](const char* what, std::size_t bytes) {
    return fmt::format("{} {} bytes, and a task may have {} at most; put large texts in files",
                       what, bytes, kLargestPart);
  };
  if (recipe.environment && recipe.environment->size() > kLargestPart)
    return refusal("the environment has", recipe.environment->size());
  std::size_t bytes = recipe.bytes.size();
  if (!recipe.words->items.empty() && bytes <= kLargestPart) {
    Filled filled{};
    const wire::Start start = start_from_bytes(recipe.bytes, filled);
    std::size_t places = 0;
    for (const std::string& argument : start.argv())
      places += static_cast<std::size_t>(std::count(argument.begin(), argument.end(), '{'));
    const auto longest =
        std::max_element(recipe.words->items.begin(), recipe.words->items.end(),
                         [](const auto& a, const auto& b) { return a.size() < b.size(); });
    bytes += places * longest->size();
  }
  if (bytes > kLargestPart) return refusal("command and variables have", bytes);
  return std::nullopt;
}

std::string environment_bytes(const std::map<std::string, std::string>& environment) {
  wire::Environment message;
  for (const auto& [name, value] : environment) {
    wire::Variable* variable = message.add_variables();
    variable->set_name(name);
    variable->set_value(value);
  }
  return message.SerializeAsString();
}

}  // namespace hpcbatch
