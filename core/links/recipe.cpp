#include "links/recipe.hpp"

#include "model/batch_number.hpp"
#include "model/item.hpp"
#include "store/store.hpp"
#include "wire/wire.pb.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

namespace hpcbatch {
namespace {

template <typename Variables>
void put(const std::map<std::string, std::string>& variables, Variables* out) {
  for (const auto& [name, value] : variables) {
    wire::Variable* variable = out->Add();
    variable->set_name(name);
    variable->set_value(value);
  }
}

/// For programs that look there.
void put_variable(wire::Start& start, const char* name, const std::string& value) {
  wire::Variable* variable = start.add_variables();
  variable->set_name(name);
  variable->set_value(value);
}

}  // namespace

void set_numbered(wire::Start& start, const IndexSet& indices) {
  for (const IndexSteps& some : steps_of(indices)) {
    start.add_numbered(some.first);
    start.add_numbered(some.last);
    start.add_numbered(some.step);
  }
}

PlaceValues place_values(const wire::Start& start, TaskId task) {
  PlaceValues values{task, task.index - (start.from_zero() ? 1 : 0), {}};
  std::vector<IndexSteps> all;
  for (int i = 0; i + 2 < start.numbered_size(); i += 3)
    all.push_back({start.numbered(i), start.numbered(i + 1), std::max(1U, start.numbered(i + 2))});
  if (const auto position = position_of(all, task.index))
    values.number = batch_number(task.array, *position);
  return values;
}

void add_variables(wire::Start& start, const std::map<std::string, std::string>& variables) {
  put(variables, start.mutable_variables());
}

void add_output(wire::Start& start, const std::string& name, const std::string& staged,
                const std::string& destination, bool optional) {
  wire::Output* output = start.add_outputs();
  output->set_name(name);
  output->set_staged(staged);
  output->set_destination(destination);
  output->set_optional(optional);
}

void set_service(wire::Start& start, const TaskService& service) {
  wire::Service* out = start.mutable_service();
  out->set_name(service.name);
  out->mutable_argv()->Assign(service.argv.begin(), service.argv.end());
  put(service.variables, out->mutable_variables());
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

void set_container(wire::Start& start, const std::string& image, const ContainerTerms& terms) {
  start.set_container(image);
  start.clear_container_terms();
  if (terms == ContainerTerms()) return;
  wire::Container* out = start.mutable_container_terms();
  for (const ContainerBind& bind : terms.binds) {
    wire::Bind* to = out->add_binds();
    to->set_from(bind.from);
    to->set_to(bind.to);
    to->set_read_only(bind.read_only);
  }
  out->set_no_network(terms.no_network);
  if (terms.gpus) out->set_gpus(*terms.gpus);
  out->set_keeps_entrypoint(terms.keeps_entrypoint);
  put(terms.variables, out->mutable_variables());
  out->set_runtime(terms.runtime);
}

std::string to_bytes(const wire::Start& start, Filled filled) {
  return static_cast<char>(filled) + start.SerializeAsString();
}

Filled filled_in(const std::string& bytes) {
  return bytes.empty() ? Filled::Nothing : static_cast<Filled>(bytes.front());
}

wire::Start start_from_bytes(const std::string& bytes) {
  wire::Start start;
  // Half a command is worse than none, which a pilot refuses.
  if (!bytes.empty() && !start.ParseFromArray(bytes.data() + 1, static_cast<int>(bytes.size() - 1)))
    start.Clear();
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

namespace {

constexpr std::string_view kNodePlace = "\x1fnode\x1f", kPlainNodePlace = "{node}";

/// The pilot puts its node's name in last.  What it is to replace is `{node}`, unless a folder or an
/// item has that in its own name.
void name_node_place(wire::Start& start) {
  const std::array<std::string*, 2> files{start.mutable_standard_output(),
                                          start.mutable_standard_error()};
  if (std::any_of(files.begin(), files.end(), [](const std::string* file) {
        return file->find(kPlainNodePlace) != std::string::npos;
      }))
    return start.set_node_place(std::string(kNodePlace));
  for (std::string* file : files) {
    for (std::size_t at = file->find(kNodePlace); at != std::string::npos;
         at = file->find(kNodePlace, at))
      file->replace(at, kNodePlace.size(), kPlainNodePlace);
  }
}

}  // namespace

void fill(wire::Start& start, Filled filled, TaskId task,
          const std::function<std::string()>& item) {
  if (filled == Filled::Nothing) return;
  std::optional<Item> own;
  if (filled != Filled::Paths) own = item_of(filled, item());
  PlaceValues values = place_values(start, task);
  if (values.number) values.node = kNodePlace;
  if (values.number) put_variable(start, "HPCBATCH_BATCH_NUMBER", std::to_string(*values.number));
  const auto put_into = [&](std::string& path) {
    if (path.find_first_of("{}") != std::string::npos) path = with_places(path, values, own);
  };
  put_into(*start.mutable_standard_input());
  put_into(*start.mutable_standard_output());
  put_into(*start.mutable_standard_error());
  if (values.number) name_node_place(start);
  if (task.index == 0) return;
  put_into(*start.mutable_directory());
  for (std::string& input : *start.mutable_inputs()) put_into(input);
  for (wire::Alias& link : *start.mutable_links()) put_into(*link.mutable_target());
  for (wire::Output& output : *start.mutable_outputs()) put_into(*output.mutable_destination());
  if (!own) return;
  put_variable(start, "HPCBATCH_ITEM", own->text());
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
    const wire::Start start = start_from_bytes(recipe.bytes);
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
  put(environment, message.mutable_variables());
  return message.SerializeAsString();
}

}  // namespace hpcbatch
