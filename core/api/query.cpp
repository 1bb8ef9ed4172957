#include "api/query.hpp"

#include "api/read/json_values.hpp"

#include <fmt/format.h>

#include <charconv>

namespace hpcbatch {
namespace {

template <class Number>
Number read(const HttpRequest& request, const char* key, Number otherwise, const char* what) {
  if (!request.query.contains(key)) return otherwise;
  const std::string text = text_in(request, key);
  Number value{};
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || stop != end || !(value >= 0))
    throw BadRequest(fmt::format("'{}={}' is no {}", key, text, what));
  return value;
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
