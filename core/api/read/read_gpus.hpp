// What a task asks of GPUs: a number, words as the command line has them, kinds, or terms.
#pragma once

#include "hardware/gpu_kind.hpp"
#include "model/resources.hpp"

#include <boost/json/value.hpp>

#include <string>

namespace hpcbatch {

/// Throws BadRequest that names what `where` does.
void read_gpus_into(Resources& amounts, GpuTerms& terms, const boost::json::value& value,
                    const std::string& where);

}  // namespace hpcbatch
