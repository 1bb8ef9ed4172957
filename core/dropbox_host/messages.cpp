#include "dropbox_host/messages.hpp"

#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value_from.hpp>
#include <boost/json/value_to.hpp>

#include <chrono>
#include <map>
#include <optional>
#include <stdexcept>
#include <vector>

namespace hpcbatch {
namespace {

namespace json = boost::json;

using Words = std::map<std::string, std::string>;
using Texts = std::vector<std::string>;

template <class Value>
Value at(const json::value& value, const char* key) {
  return json::value_to<Value>(value.as_object().at(key));
}

json::value moment(const std::optional<Time>& time) {
  return time ? json::value(time->time_since_epoch().count()) : json::value(nullptr);
}
std::optional<Time> moment_at(const json::value& value, const char* key) {
  const json::value& count = value.as_object().at(key);
  if (count.is_null()) return std::nullopt;
  return Time(Duration(count.to_number<Duration::rep>()));
}

json::object to_json(const ToolCall& call) {
  json::object inputs;
  for (const auto& [name, files] : call.inputs) {
    json::array list;
    for (const InputFile& file : files)
      list.push_back({file.path, file.size, file.modified.time_since_epoch().count()});
    inputs[name] = std::move(list);
  }
  return {{"tool", call.tool},
          {"parameters", json::value_from(call.parameters)},
          {"inputs", std::move(inputs)},
          {"outputs", json::value_from(call.outputs)}};
}

ToolCall read_call(const json::value& value) {
  using Modified = decltype(InputFile::modified);
  ToolCall call{.tool = at<std::string>(value, "tool"),
                .parameters = at<Words>(value, "parameters"),
                .inputs = {},
                .outputs = at<Words>(value, "outputs")};
  for (const auto& [name, files] : value.as_object().at("inputs").as_object()) {
    for (const json::value& file : files.as_array()) {
      const json::array& parts = file.as_array();
      call.inputs[std::string(name)].push_back(
          {.path = json::value_to<std::string>(parts.at(0)),
           .size = parts.at(1).to_number<std::uint64_t>(),
           .modified =
               Modified(Modified::duration(parts.at(2).to_number<Modified::duration::rep>()))});
    }
  }
  return call;
}

}  // namespace

std::string message(std::string_view key, json::value value) {
  json::object object;
  object[key] = std::move(value);
  return json::serialize(object) + '\n';
}

json::key_value_pair read_message(std::string_view line) {
  json::parse_options options;
  options.allow_invalid_utf8 = true;
  json::value value = json::parse(line, {}, options);
  json::object& object = value.as_object();
  if (object.size() != 1) throw std::invalid_argument("a message has one key");
  return *object.begin();
}

json::object to_json(const DropboxOptions& options) {
  return {{"directory", options.directory},
          {"workspace", options.workspace},
          {"allow", json::value_from(options.allow)},
          {"templates", json::value_from(options.templates)},
          {"variables", json::value_from(options.variables)},
          {"trust_group", options.trust_group},
          {"most_active_of_one", options.most_active_of_one},
          {"input_limit", options.input_limit}};
}

DropboxOptions read_box_options(const json::value& value) {
  return {.directory = at<std::string>(value, "directory"),
          .workspace = at<std::string>(value, "workspace"),
          .allow = at<Texts>(value, "allow"),
          .templates = at<Texts>(value, "templates"),
          .variables = at<Words>(value, "variables"),
          .trust_group = at<std::string>(value, "trust_group"),
          .warn = {},
          .most_active_of_one = at<std::size_t>(value, "most_active_of_one"),
          .input_limit = at<std::uint64_t>(value, "input_limit")};
}

json::object to_json(const DropboxTask& task) {
  json::object object{{"key", task.key},
                      {"client", task.client},
                      {"name", task.name},
                      {"directory", task.directory},
                      {"output_directory", task.output_directory}};
  if (const auto* command = std::get_if<Texts>(&task.work))
    object["command"] = json::value_from(*command);
  else
    object["call"] = to_json(std::get<ToolCall>(task.work));
  return object;
}

DropboxTask read_box_task(const json::value& value) {
  DropboxTask task{.key = at<std::string>(value, "key"),
                   .client = at<std::string>(value, "client"),
                   .name = at<std::string>(value, "name"),
                   .directory = at<std::string>(value, "directory"),
                   .work = {},
                   .output_directory = at<std::string>(value, "output_directory")};
  if (const json::value* call = value.as_object().if_contains("call"))
    task.work = read_call(*call);
  else
    task.work = at<Texts>(value, "command");
  return task;
}

json::object to_json(const DropboxTaskEnd& end) {
  json::object outputs;
  for (const auto& [name, output] : end.outputs)
    outputs[name] = json::array{output.file, output.optional};
  return {
      {"key", end.key},
      {"failure", end.failure ? json::value(static_cast<int>(*end.failure)) : json::value(nullptr)},
      {"exit_code", end.exit_code},
      {"message", end.message},
      {"stdout", end.standard_output},
      {"stderr", end.standard_error},
      {"start", moment(end.start)},
      {"end", moment(end.end)},
      {"outputs", std::move(outputs)}};
}

DropboxTaskEnd read_box_task_end(const json::value& value) {
  DropboxTaskEnd end{.key = at<std::string>(value, "key"),
                     .failure = {},
                     .exit_code = at<int>(value, "exit_code"),
                     .message = at<std::string>(value, "message"),
                     .standard_output = at<std::string>(value, "stdout"),
                     .standard_error = at<std::string>(value, "stderr"),
                     .start = moment_at(value, "start"),
                     .end = moment_at(value, "end"),
                     .outputs = {}};
  if (const json::value& failure = value.as_object().at("failure"); !failure.is_null())
    end.failure = static_cast<Failure>(failure.to_number<std::uint8_t>());
  for (const auto& [name, output] : value.as_object().at("outputs").as_object())
    end.outputs[std::string(name)] = {json::value_to<std::string>(output.as_array().at(0)),
                                      output.as_array().at(1).as_bool()};
  return end;
}

}  // namespace hpcbatch
