// What stands behind the `?` of a request.
#pragma once

#include "api/http_server.hpp"

#include <cstdint>
#include <string>

namespace hpcbatch {

/// Empty where it is not there.
std::string text_in(const HttpRequest& request, const char* key);
/// Throws BadRequest where it is no whole number; `otherwise` where it is not there.
std::uint32_t number_in(const HttpRequest& request, const char* key, std::uint32_t otherwise);
/// Not negative; throws BadRequest.
double seconds_in(const HttpRequest& request, const char* key, double otherwise);

}  // namespace hpcbatch
