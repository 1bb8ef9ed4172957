// One task for each index, or for each item -> the JSON of a submit.
#pragma once

#include "cli/parse/command.hpp"
#include "cli/process/interrupt.hpp"

#include <boost/json/object.hpp>

#include <cstdint>
#include <string>

namespace hpcbatch {

/// Reads the items.  `directory`: the caller's.  Throws CommandError.
boost::json::object task_of_many(const WorkOptions& work, const ManyOptions& many,
                                 const std::string& directory, const Interrupt& interrupt);

/// What `--halt` and `--max-fails` say of so many tasks.
void bound_failures(boost::json::object& task, const ManyOptions& many, std::uint64_t tasks);

/// What of the command has hardly been meant so; empty: nothing.
std::string doubt_of(const WorkOptions& work, const ManyOptions& many,
                     const boost::json::object& task);

/// On standard error; it is run nevertheless.
void tell_doubt(const std::string& doubt);

/// How many of so many tasks may fail.
std::uint64_t failures_allowed(const HaltOption& halt, std::uint64_t tasks);

}  // namespace hpcbatch
