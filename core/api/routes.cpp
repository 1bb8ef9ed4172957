#include "api/routes.hpp"

#include "api/read/json_values.hpp"

#include <hpcbatch/text.hpp>

#include <fmt/format.h>

#include <algorithm>

namespace hpcbatch {
namespace {

std::vector<std::string> words_of(std::string_view path) {
  std::vector<std::string> words;
  while (!path.empty()) {
    const std::size_t end = std::min(path.find('/'), path.size());
    words.emplace_back(path.substr(0, end));
    path.remove_prefix(std::min(end + 1, path.size()));
  }
  return words;
}

/// `path` begins with v1.
bool matches(const std::vector<std::string>& route, const std::vector<std::string>& path) {
  return path.size() == route.size() + 1 &&
         std::equal(route.begin(), route.end(), path.begin() + 1,
                    [](const std::string& ours, const std::string& asked) {
                      return ours == "*" || ours == asked;
                    });
}

}  // namespace

void Routes::add(std::string_view method, std::string_view path, Handle handle) {
  routes_.push_back({std::string(method), words_of(path), std::move(handle)});
}

void Routes::handle(HttpRequest& request, const ReplyPtr& reply) const {
  // Where monitoring systems look unless they are told otherwise.
  if (request.path == std::vector<std::string>{"metrics"})
    request.path.insert(request.path.begin(), "v1");
  if (request.path.size() < 2 || request.path.front() != "v1")
    return reply->error(404, "there is nothing here; docs/api.md lists the requests");
  std::string methods;
  for (const Route& route : routes_) {
    if (!matches(route.path, request.path)) continue;
    if (route.method == request.method) return route.handle(request, reply);
    if (methods.find(route.method) == std::string::npos)
      methods += (methods.empty() ? "" : " and ") + route.method;
  }
  std::string asked;
  for (const std::string& word : request.path) asked += "/" + word;
  if (!methods.empty()) return reply->error(400, fmt::format("{} takes {}", asked, methods));
  reply->error(404, fmt::format("there is no {}; docs/api.md lists the requests", asked));
}

namespace {

template <class Number>
Number read(const HttpRequest& request, const char* key, Number otherwise, const char* what) {
  if (!request.query.contains(key)) return otherwise;
  const std::string text = text_in(request, key);
  const auto value = hpcbatch::number_in<Number>(text);
  if (!value || !(*value >= 0)) throw BadRequest(fmt::format("'{}={}' is no {}", key, text, what));
  return *value;
}

}  // namespace

std::string text_in(const HttpRequest& request, const char* key) {
  const auto at = request.query.find(key);
  return at == request.query.end() ? "" : at->second;
}

std::uint32_t number_in(const HttpRequest& request, const char* key, std::uint32_t otherwise) {
  return text_in(request, key).empty() ? otherwise : read(request, key, otherwise, "whole number");
}

std::uint64_t bytes_in(const HttpRequest& request, const char* key, std::uint64_t otherwise,
                       const char* what) {
  return read(request, key, otherwise, what);
}

double seconds_in(const HttpRequest& request, const char* key, double otherwise) {
  return read(request, key, otherwise, "number of seconds");
}

}  // namespace hpcbatch
