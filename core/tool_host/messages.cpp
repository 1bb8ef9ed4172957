#include "tool_host/messages.hpp"
#include "documents/struct_json.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include <array>
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <stdexcept>

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace hpcbatch {

template <>
inline constexpr auto kFields<ToolRequest> = fields("tool", &ToolRequest::tool, "parameters",
                                                    &ToolRequest::parameters, "inputs",
                                                    &ToolRequest::inputs, "outputs",
                                                    &ToolRequest::outputs);
template <>
inline constexpr auto kFields<ToolNeeds> = fields("cpus", &ToolNeeds::cpus, "memory",
                                                  &ToolNeeds::memory, "disk", &ToolNeeds::disk,
                                                  "gpus", &ToolNeeds::gpus, "time",
                                                  &ToolNeeds::time);
template <>
inline constexpr auto kFields<ToolTask> = fields("argv", &ToolTask::argv, "environment",
                                                 &ToolTask::environment, "container",
                                                 &ToolTask::container, "needs", &ToolTask::needs);
template <>
inline constexpr auto kFields<ToolDescription> = fields("summary", &ToolDescription::summary);
template <>
inline constexpr auto kFields<FactDescription> = fields("name", &FactDescription::name, "of_many",
                                                        &FactDescription::of_many);
template <>
inline constexpr auto kFields<tool_host::Objection> = fields("text", &tool_host::Objection::text);
template <>
inline constexpr auto kFields<tool_host::Question> = fields("what", &tool_host::Question::what,
                                                            "plugin", &tool_host::Question::plugin,
                                                            "text", &tool_host::Question::text,
                                                            "request",
                                                            &tool_host::Question::request, "file",
                                                            &tool_host::Question::file);

}  // namespace hpcbatch

namespace hpcbatch::tool_host {
namespace {

namespace json = boost::json;

/// Names of files are bytes.
json::value parsed(std::string_view text) {
  json::parse_options options;
  options.allow_invalid_utf8 = true;
  return json::parse(text, {}, options);
}

}  // namespace

std::string to_text(const Question& question) {
  return json::serialize(json_of_struct(question));
}

std::string to_text(Answer answer) {
  // JSON has no other; one that is left out is refused by whoever asked.
  if (auto* values = std::get_if<FactValues>(&answer))
    std::erase_if(*values, [](const auto& fact) { return !std::isfinite(fact.second); });
  return json::serialize(json_of_struct(answer));
}

Question question_of(std::string_view text) {
  auto question = struct_of_json<Question>(parsed(text));
  if (question.what < Question::What::Describe || question.what > Question::What::FactsOf)
    throw std::invalid_argument("a question of no known kind");
  return question;
}

Answer answer_of(std::string_view text) {
  return struct_of_json<Answer>(parsed(text));
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
