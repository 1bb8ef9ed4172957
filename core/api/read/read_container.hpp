// The image that a task runs in, and how.
#pragma once

#include "api/read/bad_request.hpp"
#include "model/container.hpp"

#include <boost/json/value.hpp>

#include <string>

namespace hpcbatch {

struct ContainerRequest {
  std::string image;
  ContainerTerms terms;
};

/// A text, the image alone, or an object.  Throws BadRequest.
ContainerRequest read_container(const boost::json::value& value, const std::string& what);

}  // namespace hpcbatch
