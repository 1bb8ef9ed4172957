// Which request is whose: method and path, once each.
#pragma once

#include "api/http/http_server.hpp"
#include "api/read/json_values.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hpcbatch {

using ReplyPtr = std::shared_ptr<HttpReply>;

/// On the loop's thread.
class Routes {
 public:
  using Handle = std::function<void(HttpRequest&, const ReplyPtr&)>;

  /// `path` is that behind /v1/, as `tasks/*/log`; `*` is any one word.  Of several that match the
  /// one that was added first is called.  `handle` answers, now or later, or throws BadRequest.
  void add(std::string_view method, std::string_view path, Handle handle);
  /// Answers itself where no route matches.
  void handle(HttpRequest& request, const ReplyPtr& reply) const;

 private:
  struct Route {
    std::string method;
    std::vector<std::string> path;
    Handle handle;
  };
  std::vector<Route> routes_;
};

// What stands behind the `?` of a request.

/// Empty where it is not there.
std::string text_in(const HttpRequest& request, const char* key);
/// Throws BadRequest where it is no whole number; `otherwise` where it is not there, or is empty.
std::uint32_t number_in(const HttpRequest& request, const char* key, std::uint32_t otherwise);
// Each throws BadRequest where it is something else, or empty; `otherwise` where it is not there.
std::uint64_t bytes_in(const HttpRequest& request, const char* key, std::uint64_t otherwise,
                       const char* what = "whole number");
/// As `parse` reads it, which may be one of the `words`; throws BadRequest where it is none, no value
/// where it is not there, or is empty.
template <class Value, class Parse>
std::optional<Value> word_in(const HttpRequest& request, const char* key, Parse parse,
                             std::string_view words) {
  const std::string text = text_in(request, key);
  if (text.empty()) return std::nullopt;
  const std::optional<Value> value = parse(text);
  if (!value) throw BadRequest(fmt::format("'{}' is no {}; {}", text, key, words));
  return value;
}
inline constexpr const char* kTaskStates =
    "states are waiting, held, running, finishing, unknown, done, failed, cancelled";
/// Not negative.
double seconds_in(const HttpRequest& request, const char* key, double otherwise);

}  // namespace hpcbatch
