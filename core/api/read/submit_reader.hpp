// The keys of a submit as they come, in whatever order.
#pragma once

#include "api/read/read_request.hpp"

#include <sodium.h>
#include <boost/json/value.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hpcbatch {

/// Remembers the first refusal, which goes for all that comes behind it.
class SubmitReader {
 public:
  void key(std::string_view key, const boost::json::value& value);
  void begin_tasks() { has_tasks_ = true; }
  void task(const boost::json::value& value);
  void end_tasks();
  /// Throws BadRequest.
  SubmitRequest finish();

 private:
  void read_key(const std::string& key, const boost::json::value& value);

  SubmitRequest request_;
  bool has_tasks_{false};
  std::size_t tasks_{0};  ///< seen so far
  std::optional<std::string> refusal_;
  std::optional<std::string> of_only_task_;  ///< the refusal, should no other task follow
};

// What identifies a submit's content; the same on every machine and in every version.

/// Fed with the submit's keys in the order in which they stand there, its tasks one by one or as a
/// whole.  Environment, umask, the task in which the client runs and who waits for it are not
/// content: the same work sent again from elsewhere is the same work.
class SubmitContent {
 public:
  SubmitContent();
  void add(std::string_view key, const boost::json::value& value);
  void begin_list(std::string_view key);
  void add_to_list(const boost::json::value& value);
  void end_list();
  std::uint64_t hash();

 private:
  void add_text(std::string_view text);
  void add_value(const boost::json::value& value);

  crypto_generichash_state state_;
  bool is_first_{true};  ///< of its list
};

std::uint64_t content_of(const boost::json::value& submit);

}  // namespace hpcbatch
