// What stands behind the `?` of a request.
#pragma once

#include "api/http_server.hpp"

#include <cstdint>
#include <string>

namespace hpcbatch {

/// Empty where it is not there.
std::string text_in(const HttpRequest& request, const char* key);
/// Throws BadRequest where it is no whole number; `otherwise` where it is not there, or is empty.
std::uint32_t number_in(const HttpRequest& request, const char* key, std::uint32_t otherwise);
// Each throws BadRequest where it is something else, or empty; `otherwise` where it is not there.
std::uint64_t bytes_in(const HttpRequest& request, const char* key, std::uint64_t otherwise);
/// Not negative.
double seconds_in(const HttpRequest& request, const char* key, double otherwise);

}  // namespace hpcbatch
