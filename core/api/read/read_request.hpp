// What a client says in JSON, checked key by key.
#pragma once

#include "api/read/json_values.hpp"
#include "api/read/read_task.hpp"
#include "model/event.hpp"
#include "model/ids.hpp"
#include "model/task.hpp"

#include <boost/json/value.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sodium.h>

namespace hpcbatch {

boost::json::value parse_body(const std::string& body);
/// One with submits in it, some of whose texts may hold any bytes: of each of the others it is
/// checked where it is read that it is UTF-8.
boost::json::value parse_body_of_submits(const std::string& body);

/// The task in which a client runs, by the names that its pilot gave it.
struct Within {
  TaskId task;
  PilotId pilot;
};

struct SubmitRequest {
  std::string client;
  std::string key;
  std::string directory;
  std::map<std::string, std::string> environment;
  std::optional<std::uint32_t> umask;
  std::optional<Within> within;
  std::string reader;
  std::optional<Duration> lease;
  std::deque<TaskRequest> tasks;  ///< large, so that each is freed as soon as it is done with
};

/// Throws BadRequest that names the task and the key.
SubmitRequest read_submit(const boost::json::value& body);

struct SubmitWithContent {
  SubmitRequest request;
  std::uint64_t content{0};
};
/// The same of a whole body, whose tasks are read one by one while it is parsed: there may be
/// hundreds of thousands.
SubmitWithContent read_submit_body(std::string body);

// Which tasks a client means.

/// `12`, `12.345`, `12.1-99`.  Throws BadRequest.
Selection parse_selection(const std::string& text);
TaskId parse_task(const std::string& text);
/// The list `ids` of a request.
std::vector<Selection> read_selections(const boost::json::value& body);
/// The same, but whole submits may be among them, as `GET /v1/arrays?per=submit` names them: `12-15`.
struct Chosen {
  std::vector<Selection> tasks;
  std::vector<std::pair<ArrayId, ArrayId>> submits;  ///< from the first of their arrays to the last
};
Chosen read_chosen(const boost::json::value& body);

// The keys of a submit as they come, in whatever order.

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

// What waiting tasks are told anew.

/// Whether tasks that wait may be told that key anew.
bool can_be_updated(const std::string& key);

/// Of a map of such keys with the values that a submit has; throws BadRequest.
TermsChange read_terms_change(const boost::json::value& value);

}  // namespace hpcbatch
