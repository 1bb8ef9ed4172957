#include "tool_host/messages.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value_from.hpp>
#include <boost/json/value_to.hpp>

#include <array>
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <stdexcept>

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace hpcbatch::tool_host {
namespace {

namespace json = boost::json;
using Clock = std::chrono::system_clock;

/// Names of files are bytes.
json::value parsed(std::string_view text) {
  json::parse_options options;
  options.allow_invalid_utf8 = true;
  return json::parse(text, {}, options);
}

json::array file_json(const InputFile& file) {
  return {file.path, file.size, file.modified.time_since_epoch().count()};
}
InputFile file_of(const json::array& parts) {
  return {.path = json::value_to<std::string>(parts.at(0)),
          .size = parts.at(1).to_number<std::uint64_t>(),
          .modified =
              Clock::time_point(Clock::duration(parts.at(2).to_number<Clock::duration::rep>()))};
}

json::object request_json(const ToolRequest& request) {
  json::object inputs;
  for (const auto& [name, files] : request.inputs) {
    json::array list;
    for (const InputFile& file : files) list.push_back(file_json(file));
    inputs[name] = std::move(list);
  }
  return {{"tool", request.tool},
          {"parameters", json::value_from(request.parameters)},
          {"inputs", std::move(inputs)},
          {"outputs", json::value_from(request.outputs)}};
}

using Words = std::map<std::string, std::string>;

ToolRequest request_of(const json::object& object) {
  ToolRequest request{.tool = json::value_to<std::string>(object.at("tool")),
                      .parameters = json::value_to<Words>(object.at("parameters")),
                      .inputs = {},
                      .outputs = json::value_to<Words>(object.at("outputs"))};
  for (const auto& [name, files] : object.at("inputs").as_object()) {
    std::vector<InputFile>& list = request.inputs[std::string(name)];
    for (const json::value& file : files.as_array()) list.push_back(file_of(file.as_array()));
  }
  return request;
}

template <class Value>
void put(json::object& object, const char* key, const std::optional<Value>& value) {
  if (value) object[key] = *value;
}
template <class Value>
std::optional<Value> taken(const json::object& object, const char* key) {
  const json::value* value = object.if_contains(key);
  return value ? std::optional(value->to_number<Value>()) : std::nullopt;
}

json::object needs_json(const ToolNeeds& needs) {
  json::object object{{"gpus", json::value_from(needs.gpus)}};
  put(object, "cpus", needs.cpus);
  put(object, "memory", needs.memory);
  put(object, "disk", needs.disk);
  if (needs.time) object["time"] = needs.time->count();
  return object;
}

ToolNeeds needs_of(const json::object& object) {
  ToolNeeds needs{.cpus = taken<double>(object, "cpus"),
                  .memory = taken<std::uint64_t>(object, "memory"),
                  .disk = taken<std::uint64_t>(object, "disk"),
                  .gpus = json::value_to<std::map<std::string, double>>(object.at("gpus")),
                  .time = {}};
  if (const auto time = taken<std::int64_t>(object, "time"))
    needs.time = std::chrono::seconds(*time);
  return needs;
}

json::object answer_json(const ToolDescription& description) {
  return {{"summary", description.summary}};
}
json::object answer_json(std::monostate) {
  return {{"good", true}};
}
json::object answer_json(const ToolTask& task) {
  return {{"argv", json::value_from(task.argv)},
          {"environment", json::value_from(task.environment)},
          {"container", task.container},
          {"needs", needs_json(task.needs)}};
}
json::object answer_json(const KnownFacts& facts) {
  json::array list;
  for (const FactDescription& fact : facts)
    list.push_back({fact.name, fact.of_many == FactDescription::OfMany::Largest});
  return {{"facts", std::move(list)}};
}
json::object answer_json(const FactValues& values) {
  json::object object;
  for (const auto& [name, value] : values) {
    // JSON has no other; one that is left out is refused by whoever asked.
    if (std::isfinite(value)) object[name] = value;
  }
  return {{"values", std::move(object)}};
}
json::object answer_json(const Objection& refusal) {
  return {{"refused", refusal.text}};
}

KnownFacts known_facts(const json::value& list) {
  KnownFacts facts;
  for (const json::value& fact : list.as_array()) {
    const json::array& parts = fact.as_array();
    facts.push_back({.name = json::value_to<std::string>(parts.at(0)),
                     .of_many = parts.at(1).as_bool() ? FactDescription::OfMany::Largest
                                                      : FactDescription::OfMany::Sum});
  }
  return facts;
}

}  // namespace

std::string to_text(const Question& question) {
  return json::serialize(json::object{{"what", static_cast<int>(question.what)},
                                      {"plugin", question.plugin},
                                      {"text", question.text},
                                      {"request", request_json(question.request)},
                                      {"file", file_json(question.file)}});
}

std::string to_text(const Answer& answer) {
  return json::serialize(std::visit([](const auto& one) { return answer_json(one); }, answer));
}

Question question_of(std::string_view text) {
  const json::value value = parsed(text);
  const json::object& object = value.as_object();
  const auto what = object.at("what").to_number<int>();
  if (what < 0 || what > static_cast<int>(Question::What::FactsOf))
    throw std::invalid_argument("a question of no known kind");
  return {.what = static_cast<Question::What>(what),
          .plugin = json::value_to<std::string>(object.at("plugin")),
          .text = json::value_to<std::string>(object.at("text")),
          .request = request_of(object.at("request").as_object()),
          .file = file_of(object.at("file").as_array())};
}

Answer answer_of(std::string_view text) {
  const json::value value = parsed(text);
  const json::object& object = value.as_object();
  if (const json::value* refused = object.if_contains("refused"))
    return Objection{json::value_to<std::string>(*refused)};
  if (object.contains("good")) return std::monostate{};
  if (const json::value* summary = object.if_contains("summary"))
    return ToolDescription{json::value_to<std::string>(*summary)};
  if (const json::value* facts = object.if_contains("facts")) return known_facts(*facts);
  if (const json::value* values = object.if_contains("values"))
    return json::value_to<FactValues>(*values);
  return ToolTask{.argv = json::value_to<std::vector<std::string>>(object.at("argv")),
                  .environment = json::value_to<Words>(object.at("environment")),
                  .container = json::value_to<std::string>(object.at("container")),
                  .needs = needs_of(object.at("needs").as_object())};
}

namespace {

constexpr std::size_t kHead = 4;

/// False: it does not become ready in time.
bool is_ready(int socket, short what, const std::optional<FrameDeadline>& deadline) {
  for (;;) {
    int left = -1;
    if (deadline) {
      const auto time = std::chrono::ceil<std::chrono::milliseconds>(
          *deadline - std::chrono::steady_clock::now());
      if (time.count() <= 0) return false;
      left = static_cast<int>(time.count());
    }
    pollfd wait{socket, what, 0};
    const int count = ::poll(&wait, 1, left);
    if (count > 0) return true;
    if (count < 0 && errno != EINTR) return false;
  }
}

bool send_all(int socket, std::string_view bytes, const std::optional<FrameDeadline>& deadline) {
  while (!bytes.empty()) {
    if (!is_ready(socket, POLLOUT, deadline)) return false;
    const ssize_t sent = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

bool receive_all(int socket, char* to, std::size_t size,
                 const std::optional<FrameDeadline>& deadline) {
  while (size > 0) {
    if (!is_ready(socket, POLLIN, deadline)) return false;
    const ssize_t got = ::recv(socket, to, size, MSG_DONTWAIT);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got <= 0) return false;
    to += got;
    size -= static_cast<std::size_t>(got);
  }
  return true;
}

}  // namespace

bool send_frame(int socket, std::string_view text, std::optional<FrameDeadline> deadline) {
  if (text.size() > kLongestFrame) return false;
  std::string head;
  for (const unsigned shift : {24U, 16U, 8U, 0U})
    head += static_cast<char>(static_cast<std::uint32_t>(text.size()) >> shift & 0xffU);
  return send_all(socket, head, deadline) && send_all(socket, text, deadline);
}

std::optional<std::string> receive_frame(int socket, std::optional<FrameDeadline> deadline) {
  std::array<char, kHead> head{};
  if (!receive_all(socket, head.data(), head.size(), deadline)) return std::nullopt;
  std::size_t size = 0;
  for (const char byte : head) size = size << 8U | static_cast<unsigned char>(byte);
  if (size > kLongestFrame) return std::nullopt;
  std::string text(size, '\0');
  if (!receive_all(socket, text.data(), size, deadline)) return std::nullopt;
  return text;
}

}  // namespace hpcbatch::tool_host
