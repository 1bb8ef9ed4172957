// What a change of tasks has come to, in words.
#pragma once

#include "cli/parse/command.hpp"

#include <boost/json/object.hpp>

#include <string>

namespace hpcbatch {

/// The verb, which is also the last part of its path in the API: `cancel`.
const char* verb_of(ChangeCommand::Change change);

/// Of what `POST /v1/tasks/VERB` answers, a sentence.  `is_some`: only tasks that failed in some way were meant.
std::string change_in_words(ChangeCommand::Change change, const boost::json::object& answer,
                            bool is_some);

}  // namespace hpcbatch
