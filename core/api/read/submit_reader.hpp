// The keys of a submit as they come, in whatever order.
#pragma once

#include "api/read/read_request.hpp"

#include <boost/json/value.hpp>

#include <cstddef>
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

}  // namespace hpcbatch
