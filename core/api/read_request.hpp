// What a client says in JSON, checked key by key.
#pragma once

#include "api/bad_request.hpp"
#include "model/task.hpp"
#include "runtime/recipe.hpp"

#include <boost/json/value.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace hpcbatch {

boost::json::value parse_body(const std::string& body);
/// `12`, `12.345`, `12.1-99`.
Selection parse_selection(const std::string& text);
TaskId parse_task(const std::string& text);
/// The list `ids` of a request.
std::vector<Selection> read_selections(const boost::json::value& body);

/// One task of a submit as it was asked for; nothing is looked up yet.
struct TaskRequest {
  NewArray array;
  std::vector<std::string> command;  ///< empty where a tool is named
  std::string tool;
  std::map<std::string, std::string> parameters;
  std::map<std::string, std::vector<std::string>> inputs;  ///< a path may hold `{}`
  std::map<std::string, std::string> outputs;
  std::optional<std::string> directory;
  std::optional<std::map<std::string, std::string>> environment;
  std::map<std::string, std::string> env;
  std::string standard_input, standard_output, standard_error, container, name;
  std::vector<std::string> items;
  std::vector<std::string> shared;  ///< folders that must be seen where it runs
  std::optional<RecipeService> service;
  // What was said at all: the rest comes from the tool.
  bool says_cpus{false}, says_memory{false}, says_disk{false}, says_time{false}, says_gpus{false};
};

struct SubmitRequest {
  std::string client;
  std::string key;
  std::string directory;
  std::map<std::string, std::string> environment;
  std::optional<std::uint32_t> umask;
  std::vector<TaskRequest> tasks;
};

/// Throws BadRequest that names the task and the key.
SubmitRequest read_submit(const boost::json::value& body);

}  // namespace hpcbatch
