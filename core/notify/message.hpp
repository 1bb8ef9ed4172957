// What is said of submissions that have ended, and the program that carries it.  Pure.
#pragma once

#include "model/notify_target.hpp"
#include "store/history.hpp"

#include <boost/json/object.hpp>

#include <string>
#include <vector>

namespace hpcbatch {

/// A program that is to carry a message.
struct Parcel {
  std::vector<std::string> argv;
  std::vector<std::string> variables;  ///< NAME=value, over the engine's
  std::string input;                   ///< its standard input
  std::string handed_over;             ///< what it reads from its descriptor 3
};

/// All of one submission in one line, `12 (fit) failed: 3 of 100 tasks failed`; of several their sums.
std::string subject_of(const std::vector<store::SubmissionEnd>& ended);
/// In lines for people, at most some fifty submissions.
std::string text_of(const std::vector<store::SubmissionEnd>& ended);
/// As docs/notify.md has it.
boost::json::object to_json(const std::vector<store::SubmissionEnd>& ended);

/// Names of tasks stand in no header and no command as they are.
Parcel parcel_for(const NotifyTarget& target, const std::vector<store::SubmissionEnd>& ended);

}  // namespace hpcbatch
