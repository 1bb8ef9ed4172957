// What a task needs beside amounts: GPUs, an image to run in, a service that it shares with
// others.
#pragma once

#include "api/read/json_values.hpp"
#include "hardware/gpu_kind.hpp"
#include "model/needs.hpp"
#include "model/resources.hpp"
#include "model/task.hpp"

#include <boost/json/value.hpp>

#include <string>

namespace hpcbatch {

// The image that a task runs in, and how.

struct ContainerRequest {
  std::string image;
  ContainerTerms terms;
};

/// A text, the image alone, or an object.  Throws BadRequest.
ContainerRequest read_container(const boost::json::value& value, const std::string& what);

// What a task asks of GPUs: a number, words as the command line has them, kinds, or terms.

/// Throws BadRequest that names what `where` does.
void read_gpus_into(Resources& amounts, GpuTerms& terms, const boost::json::value& value,
                    const std::string& where);

/// What each of them must have.  They throw the same.
std::uint64_t gpu_memory_of(const boost::json::value& value, const std::string& where);
unsigned gpu_capability_of(const boost::json::value& value, const std::string& where);

// What a client says of a service that its tasks share.

/// `what` names the key for the reader of a refusal.  Throws BadRequest.
TaskService read_service(const boost::json::value& value, const std::string& what);

}  // namespace hpcbatch
