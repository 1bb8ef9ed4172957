// The documents that we write beside a job: `X.job.submitted` and `X.job.finished`.
#pragma once

#include "documents/view.hpp"
#include "dropbox/job_file.hpp"
#include "model/ids.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hpcbatch {

/// A job that was accepted: the client's document and what `hpc:` says beside it.
struct Submitted {
  Node document;           ///< the client's
  std::string key;         ///< the task's, the same after a restart
  std::string workspace;   ///< the job's own folder
  std::uint32_t owner{0};  ///< user id of the job file's owner
  JobFile::Map inputs;     ///< key to the path in the workspace
  JobFile::Map outputs;
};

/// How a job ended, as its client is told.
struct JobResult {
  bool ok{false};
  std::string message;  ///< AMP's clients know some by heart
  std::string reason;   ///< what `message` leaves out
  int exit_code{-1};    ///< -1: nothing ran
  std::string standard_output;
  std::string standard_error;
  Time start{};
  Time end{};
};

/// Key of what was dropped: a file of the same name, dropped later, has another.
std::string job_key(const std::string& name, std::uint64_t inode, std::int64_t changed_ns,
                    std::string_view content);

std::string submitted_document(const Submitted& job);
std::string finished_document(const Submitted& job, const JobResult& result);
/// For a job that was never accepted; `document` is what could be read of it, `owner` its file's.
std::string refused_document(const Node& document, const JobResult& result, std::uint32_t owner);
/// The owner of the job whose document this is, as we have written it; no value where it says none.
std::optional<std::uint32_t> submitter_in(std::string_view text, const std::string& file);

struct ReadSubmitted {
  Submitted job;
  bool is_finished{false};  ///< its result is already in it; only its name is still the old one
};
/// Throws DocumentError.
ReadSubmitted parse_submitted(std::string_view text, const std::string& file);

/// `YYYY-MM-DD HH:MM:SS.ffffff`, local time, always six digits.
std::string local_time(Time time);
/// The first and the last part of a long text with a note between them of how much was left out.
std::string shortened(std::string text, std::size_t most);

// Writes documents as PyYAML does: sorted keys, block style, types that PyYAML reads back as they
// were.

std::string python_yaml(const Node& node);

/// A scalar that every YAML reader takes for this text, whatever is in it.  Any bytes: what is no
/// valid UTF-8 is replaced.
Node text_node(std::string_view text);
Node integer_node(std::int64_t value);

}  // namespace hpcbatch
