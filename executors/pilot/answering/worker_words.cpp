#include "pilot/answering/worker_words.hpp"

#include <boost/json.hpp>

#include <utility>

namespace hpcbatch::pilot {
namespace {

namespace json = boost::json;

constexpr int kLargestExit = 255;

NotUnderstood not_understood(const std::string& why) {
  return {why};
}

bool holds(const json::object& object, const char* key) {
  const json::value* value = object.if_contains(key);
  return value != nullptr && value->is_bool() && value->get_bool();
}

std::string text_at(const json::object& object, const char* key) {
  const json::value* value = object.if_contains(key);
  return value != nullptr && value->is_string() ? std::string(value->get_string()) : std::string();
}

WorkerWord word_of_request(const json::object& object) {
  std::string id = text_at(object, "id");
  for (const auto& [key, is_error] : {std::pair{"stdout", false}, {"stderr", true}}) {
    if (object.contains(key)) return WorkerOutput{std::move(id), is_error, text_at(object, key)};
  }
  const json::value* code = object.if_contains("exit");
  if (code == nullptr || !code->is_int64() || code->get_int64() < 0 ||
      code->get_int64() > kLargestExit)
    return not_understood("'exit' must be a number from 0 to 255");
  return WorkerAnswer{std::move(id), static_cast<int>(code->get_int64())};
}

}  // namespace

std::string batch_line(const std::vector<RequestWords>& requests) {
  json::array list;
  for (const RequestWords& request : requests) {
    json::object environment;
    for (const auto& [name, value] : request.environment) environment[name] = value;
    list.push_back(json::object{{"id", request.id},
                                {"argv", json::value_from(request.argv)},
                                {"directory", request.directory},
                                {"env", std::move(environment)}});
  }
  return json::serialize(json::object{{"requests", std::move(list)}}) + "\n";
}

std::string cancel_line(const std::string& id) {
  return json::serialize(json::object{{"cancel", id}}) + "\n";
}

WorkerWord read_word(std::string_view line) {
  json::parse_options options;
  options.allow_invalid_utf8 = true;
  json::error_code error;
  const json::value value = json::parse({line.data(), line.size()}, error, {}, options);
  const json::object* object = error ? nullptr : value.if_object();
  if (object == nullptr) return not_understood("it is no JSON object");
  if (holds(*object, "ready")) return WorkerIsReady{};
  if (holds(*object, "renew")) return WorkerRenews{};
  if (object->contains("starting")) return WorkerStarts{};
  if (!text_at(*object, "id").empty()) return word_of_request(*object);
  return not_understood("it has neither 'ready', 'renew', 'starting' nor an 'id'");
}

}  // namespace hpcbatch::pilot
