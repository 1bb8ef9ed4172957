// What the user said of a task -> the JSON of a submit.
#pragma once

#include "cli/parse/command.hpp"
#include "cli/process/exit.hpp"
#include "cli/process/surroundings.hpp"
#include "cli/tasks/items.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace hpcbatch {

/// Throws CommandError where the command line gives a parameter or an output two values.
void refuse_repeated(const WorkOptions& work, int exit_code);

/// On standard error, the folders into which outputs go that are not there: without them the work
/// would be done for nothing.
void tell_missing_folders(const WorkOptions& work, const std::string& directory);

/// A path of a task, as it is taken from a directory; one that its items make absolute stays.
std::string absolute_path(const std::string& from, const std::string& path, const Items& items);

/// One task of a submit.  Relative paths are taken from `directory`, the caller's, but for those
/// that begin with an item that is an absolute path itself.
boost::json::object task_of(const WorkOptions& work, const std::string& directory,
                            const Items& items = {});

/// The whole submit.  `key` may be empty.
boost::json::object submission_of(boost::json::array tasks, const Surroundings& around,
                                  const std::string& client, const std::string& key);

/// A key that nobody else chooses: with it a submit whose answer was lost can be sent again.
std::string random_key();

// One task for each index, or for each item -> the JSON of a submit.

/// Reads the items.  `directory`: the caller's.  Throws CommandError.
boost::json::object task_of_many(const WorkOptions& work, const ManyOptions& many,
                                 const std::string& directory, const Interrupt& interrupt);

/// What `--halt` and `--max-fails` say of so many tasks.
void bound_failures(boost::json::object& task, const ManyOptions& many, std::uint64_t tasks);

/// What of the command has hardly been meant so; empty: nothing.
std::string doubt_of(const WorkOptions& work, const ManyOptions& many,
                     const boost::json::object& task);
/// The same on standard error; it is run nevertheless.
void tell_doubt(const WorkOptions& work, const ManyOptions& many, const boost::json::object& task);

/// How many of so many tasks may fail.
std::uint64_t failures_allowed(const HaltOption& halt, std::uint64_t tasks);

}  // namespace hpcbatch
