#include "api/read/read_request.hpp"

#include "api/read/json_values.hpp"
#include "api/read/read_task.hpp"
#include "documents/json_numbers.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <boost/json/array.hpp>
#include <boost/json/basic_parser_impl.hpp>
#include <boost/json/monotonic_resource.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/serializer.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

namespace hpcbatch {

namespace json = boost::json;

namespace {

using boost::system::error_code;

/// Told by the parser what it meets.  Makes a value of each of the submit's keys and of each of
/// its tasks, hands it on, and forgets it.
class SubmitPieces : public JsonMaker<SubmitPieces> {
 public:
  SubmitPieces() { stack_.reset(&*memory_); }

  bool is_object() const { return is_object_; }
  /// A key stands there twice, of which the last counts: that is not read piece by piece.
  bool has_double_key() const { return has_double_key_; }
  bool has_infinity() const { return has_infinity_; }
  SubmitReader& reader() { return reader_; }
  SubmitContent& content() { return content_; }

  bool on_object_begin(error_code&) {
    if (depth_++ == 0) is_object_ = true;
    return true;
  }
  bool on_object_end(std::size_t n, error_code& error) {
    return --depth_ == 0 || JsonMaker::on_object_end(n, error);
  }
  bool on_array_begin(error_code&) {
    if (depth_++ == 1 && is_object_ && key_ == "tasks" && !has_double_key_) {
      in_tasks_ = true;
      reader_.begin_tasks();
      content_.begin_list(key_);
    }
    return true;
  }
  bool on_array_end(std::size_t n, error_code& error) {
    if (--depth_ == 1 && std::exchange(in_tasks_, false)) {
      reader_.end_tasks();
      content_.end_list();
    } else if (depth_ != 0) {
      JsonMaker::on_array_end(n, error);
    }
    return true;
  }
  bool on_key_part(json::string_view text, std::size_t, error_code&) {
    if (depth_ == 1) {
      begin_key(text);
    } else {
      stack_.push_chars(text);
    }
    return true;
  }
  bool on_key(json::string_view text, std::size_t, error_code&) {
    if (depth_ == 1) {
      begin_key(text);
      key_is_whole_ = true;
      has_double_key_ = has_double_key_ || !keys_.insert(key_).second;
    } else {
      stack_.push_key(text);
    }
    return true;
  }
  void has_value() {
    if (depth_ == (in_tasks_ ? 2 : 1) || depth_ == 0) hand_on();
  }

 private:
  void begin_key(json::string_view text) {
    if (std::exchange(key_is_whole_, false)) key_.clear();
    key_.append(text.data(), text.size());
  }

  void hand_on() {
    {
      const json::value piece = stack_.release();
      has_infinity_ = has_infinity_ || holds_infinity(piece);
      if (is_object_ && !has_double_key_) {
        if (in_tasks_) {
          reader_.task(piece);
          content_.add_to_list(piece);
        } else {
          reader_.key(key_, piece);
          content_.add(key_, piece);
        }
      }
    }
    // Released, it would go on asking for twice as much each time that its room is too small.
    memory_.emplace(room_, sizeof room_);
    stack_.reset(&*memory_);
  }

  unsigned char room_[16384];
  std::optional<json::monotonic_resource> memory_{std::in_place, room_, sizeof room_};
  int depth_{0};
  bool is_object_{false}, has_double_key_{false}, has_infinity_{false}, in_tasks_{false},
      key_is_whole_{true};
  std::string key_;
  std::set<std::string> keys_;
  SubmitReader reader_;
  SubmitContent content_;
};

void refuse_json(const error_code& error) {
  if (error) throw BadRequest("the body is no JSON: " + error.message());
}

json::parse_options with_any_bytes() {
  json::parse_options options;
  options.allow_invalid_utf8 = true;
  return options;
}

constexpr const char* kNoObject = "the body must be a JSON object";
constexpr const char* kTooLarge =
    "a number in the body is larger than 1.8e308, the largest that a double holds; write it as a "
    "text";

json::value parse(const std::string& body, const json::parse_options& options) {
  error_code error;
  // It is read once and goes as a whole.
  json::value value = parse_json(body.empty() ? "{}" : body, error,
                                 json::make_shared_resource<json::monotonic_resource>(), options);
  refuse_json(error);
  if (!value.is_object()) throw BadRequest(kNoObject);
  if (holds_infinity(value)) throw BadRequest(kTooLarge);
  return value;
}

}  // namespace

json::value parse_body(const std::string& body) {
  return parse(body, {});
}

json::value parse_body_of_submits(const std::string& body) {
  return parse(body, with_any_bytes());
}

SubmitRequest read_submit(const json::value& body) {
  SubmitReader reader;
  for (const auto& [key, value] : body.get_object()) reader.key(std::string_view(key), value);
  return reader.finish();
}

SubmitWithContent read_submit_body(std::string body) {
  if (body.empty()) body = "{}";
  json::basic_parser<SubmitPieces> parser{with_any_bytes()};
  error_code error;
  const std::size_t read = parser.write_some(false, body.data(), body.size(), error);
  if (!error && read < body.size()) error = json::error::extra_data;
  refuse_json(error);
  SubmitPieces& pieces = parser.handler();
  if (!pieces.is_object()) throw BadRequest(kNoObject);
  if (pieces.has_double_key()) {
    const json::value whole = parse_body_of_submits(body);
    return {read_submit(whole), content_of(whole)};
  }
  if (pieces.has_infinity()) throw BadRequest(kTooLarge);
  body = {};
  return {pieces.reader().finish(), pieces.content().hash()};
}

Selection parse_selection(const std::string& text) {
  Selection selection;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, selection.array.value);
  const auto bad = [&]() -> BadRequest {
    return BadRequest(fmt::format("'{}' is no id; ids look like 12, 12.345 or 12.1-99", text));
  };
  if (error != std::errc{} || selection.array.value == 0) throw bad();
  if (stop == end) return selection;
  if (*stop != '.') throw bad();
  selection.indices =
      parse_index_set(std::string_view(stop + 1, static_cast<std::size_t>(end - stop - 1)));
  if (!selection.indices) throw bad();
  return selection;
}

TaskId parse_task(const std::string& text) {
  const Selection selection = parse_selection(text);
  if (!selection.indices) return {selection.array, 0};
  if (selection.indices->contains(0))
    throw BadRequest(fmt::format(
        "'{}' is no task: ids count from 1; of an array from 0 the first task is .1", text));
  if (selection.indices->size() != 1)
    throw BadRequest(fmt::format("'{}' names several tasks where one is needed", text));
  return {selection.array, selection.indices->ranges().front().first};
}

namespace {

std::vector<std::string> ids_in(const json::value& body) {
  const json::value* ids = body.get_object().if_contains("ids");
  if (!ids) throw BadRequest("'ids' is missing: a list like [\"12\", \"12.345\"]");
  std::vector<std::string> texts = texts_of(*ids, "ids");
  if (texts.empty()) throw BadRequest("'ids' is empty: name at least one task");
  return texts;
}

}  // namespace

std::vector<Selection> read_selections(const json::value& body) {
  std::vector<Selection> selections;
  for (const std::string& text : ids_in(body)) selections.push_back(parse_selection(text));
  return selections;
}

Chosen read_chosen(const json::value& body) {
  Chosen chosen;
  for (const std::string& text : ids_in(body)) {
    const std::size_t to = text.find('-');
    if (to == text.npos || text.find('.') != text.npos) {
      chosen.tasks.push_back(parse_selection(text));
      continue;
    }
    const ArrayId first = parse_selection(text.substr(0, to)).array;
    const ArrayId last = parse_selection(text.substr(to + 1)).array;
    if (last < first)
      throw BadRequest(fmt::format("'{}' is no submit: its last id is below its first", text));
    chosen.submits.emplace_back(first, last);
  }
  return chosen;
}

namespace {

constexpr const char* kNoTasks = "'tasks' must be a list of at least one task";

/// Nothing where these are no names of ours: the task may be another engine's.
std::optional<Within> within_of(const boost::json::value& value) {
  const auto names = text_map_of(value, "within");
  const auto task = names.find("task"), pilot = names.find("pilot");
  if (names.size() != 2 || task == names.end() || pilot == names.end())
    throw BadRequest("'within' must have 'task' and 'pilot', as a task's environment has them");
  const auto its_pilot = parse_pilot(pilot->second);
  if (!its_pilot) return std::nullopt;
  try {
    return Within{parse_task(task->second), *its_pilot};
  } catch (const BadRequest&) {
    return std::nullopt;
  }
}

constexpr std::size_t kLongestReader = 200;
constexpr double kShortestLease = 1;
constexpr double kLongestLease = 86400;

Duration lease_of(const boost::json::value& value) {
  const double seconds = value.is_number() ? value.to_number<double>() : 0;
  if (!(seconds >= kShortestLease && seconds <= kLongestLease)) {
    throw BadRequest(fmt::format("'lease_s' must be a number of seconds from {:.0f} to {:.0f}",
                                 kShortestLease, kLongestLease));
  }
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
}

std::optional<std::string> refusal_of(const boost::json::value& task, const std::string& what,
                                      std::deque<TaskRequest>& tasks) {
  try {
    tasks.push_back(read_task(task, what));
  } catch (const BadRequest& e) {
    return e.what();
  }
  return std::nullopt;
}

}  // namespace

void SubmitReader::read_key(const std::string& key, const boost::json::value& value) {
  if (key == "client") {
    request_.client = text_of(value, key);
  } else if (key == "key") {
    request_.key = text_of(value, key);
  } else if (key == "directory") {
    request_.directory = path_of(value, key);
  } else if (key == "environment") {
    request_.environment = text_map_of(value, key);
  } else if (key == "umask") {
    request_.umask = umask_of(value, key);
  } else if (key == "within") {
    request_.within = within_of(value);
  } else if (key == "reader") {
    request_.reader = text_of(value, key);
    if (request_.reader.empty() || request_.reader.size() > kLongestReader)
      throw BadRequest(fmt::format("'reader' must have 1 to {} bytes", kLongestReader));
  } else if (key == "lease_s") {
    request_.lease = lease_of(value);
  } else if (key == "tasks") {
    if (!value.is_array()) throw BadRequest(kNoTasks);
    begin_tasks();
    for (const boost::json::value& one : value.get_array()) task(one);
    end_tasks();
  } else {
    throw BadRequest(fmt::format("'{}' is no key of a submit; docs/api.md lists them", key));
  }
}

void SubmitReader::key(std::string_view key, const boost::json::value& value) {
  if (refusal_) return;
  try {
    read_key(std::string(key), value);
  } catch (const BadRequest& e) {
    refusal_ = e.what();
  }
}

void SubmitReader::task(const boost::json::value& value) {
  ++tasks_;
  if (refusal_) return;
  refusal_ = refusal_of(value, fmt::format("task {}", tasks_), request_.tasks);
  // Whether it is the only one, and is called so, is not known yet.
  if (refusal_ && tasks_ == 1) of_only_task_ = refusal_of(value, "task", request_.tasks);
}

void SubmitReader::end_tasks() {
  if (tasks_ == 0 && !refusal_) refusal_ = kNoTasks;
  if (tasks_ == 1 && of_only_task_) refusal_ = of_only_task_;
}

SubmitRequest SubmitReader::finish() {
  if (refusal_) throw BadRequest(*refusal_);
  if (!has_tasks_) throw BadRequest("'tasks' is missing");
  if (request_.client.empty())
    throw BadRequest("'client' is missing: a name for whoever submits, for example shell:alice");
  if (request_.reader.empty() != !request_.lease)
    throw BadRequest("'reader' and 'lease_s' go together: who waits, and how long it may be away");
  check_numbered(request_);
  check_written_once(request_);
  return std::move(request_);
}

namespace {

constexpr std::size_t kDigest = crypto_generichash_BYTES_MIN;

}  // namespace

SubmitContent::SubmitContent() : state_() {
  crypto_generichash_init(&state_, nullptr, 0, kDigest);
}

void SubmitContent::add(std::string_view key, const boost::json::value& value) {
  if (key == "environment" || key == "umask" || key == "within" || key == "reader" ||
      key == "lease_s") {
    return;
  }
  add_text(boost::json::serialize(boost::json::string_view(key.data(), key.size())));
  add_value(value);
}

void SubmitContent::begin_list(std::string_view key) {
  add_text(boost::json::serialize(boost::json::string_view(key.data(), key.size())));
  add_text("[");
  is_first_ = true;
}

void SubmitContent::add_to_list(const boost::json::value& value) {
  if (!std::exchange(is_first_, false)) add_text(",");
  add_value(value);
}

void SubmitContent::end_list() {
  add_text("]");
}

std::uint64_t SubmitContent::hash() {
  unsigned char digest[kDigest];
  crypto_generichash_final(&state_, digest, sizeof digest);
  std::uint64_t hash = 0;
  std::memcpy(&hash, digest, sizeof hash);
  return hash >> 1;  // the store's integers have a sign
}

void SubmitContent::add_text(std::string_view text) {
  crypto_generichash_update(&state_, reinterpret_cast<const unsigned char*>(text.data()),
                            text.size());
}

void SubmitContent::add_value(const boost::json::value& value) {
  boost::json::serializer serializer;
  serializer.reset(&value);
  char piece[4096];
  while (!serializer.done()) {
    const auto text = serializer.read(piece, sizeof piece);
    add_text({text.data(), text.size()});
  }
}

std::uint64_t content_of(const boost::json::value& submit) {
  SubmitContent content;
  for (const auto& [key, value] : submit.get_object()) content.add(std::string_view(key), value);
  return content.hash();
}

namespace {

constexpr std::array<std::string_view, 20> kCanChange{
    "cpus",         "memory",       "disk",  "gpus",      "time",
    "time_request", "site",         "tags",  "priority",  "retries",
    "max_running",  "name",         "after", "after_any", "after_each",
    "after_start",  "after_failed", "begin", "deadline",  "requeue"};

bool is_wait(std::string_view key) {
  return key.starts_with("after");
}

}  // namespace

bool can_be_updated(const std::string& key) {
  return !key.empty() && std::find(kCanChange.begin(), kCanChange.end(), key) != kCanChange.end();
}

TermsChange read_terms_change(const json::value& value) {
  if (!value.is_object() || value.get_object().empty())
    throw BadRequest("'set' must be a map of what is to change, as {\"priority\": 5}");
  json::object as_task = value.get_object();
  for (const auto& [key, said] : as_task) {
    if (can_be_updated(std::string(key))) continue;
    throw BadRequest(fmt::format("'set' has '{}'; of tasks that wait {} can be changed",
                                 std::string_view(key),
                                 fmt::join(kCanChange.begin(), kCanChange.end(), ", ")));
  }
  const json::object& said = value.get_object();
  const json::value* const time = said.if_contains("time");
  const bool has_no_limit = time != nullptr && time->is_null();
  if (has_no_limit) as_task.erase("time");
  as_task["command"] = json::array{"true"};
  TaskRequest task = read_task(as_task, "'set'");
  if (task.all_cpus || task.all_memory)
    throw BadRequest("'set': say how much; 'all' goes with a submit");
  NewArray& array = task.array;
  TermsChange change;
  if (!said.contains("cpus")) array.needs.amounts.set(kCpus, {});
  if (has_no_limit) array.needs.time = Duration{};
  change.needs = {array.needs.amounts, array.needs.time, array.needs.time_request};
  if (said.contains("site")) change.site = array.needs.site;
  if (said.contains("tags")) change.tags = array.needs.tags;
  if (said.contains("priority")) change.priority = array.priority;
  if (said.contains("retries")) change.retries = array.retries;
  if (said.contains("max_running")) change.max_running = array.max_running;
  if (said.contains("name")) change.name = task.name;
  change.begin = array.course->begin;
  change.deadline = array.course->deadline;
  if (said.contains("requeue")) change.requeue = !array.course->no_requeue;
  const bool waits =
      std::any_of(said.begin(), said.end(), [](const auto& one) { return is_wait(one.key()); });
  if (waits) change.after = std::move(array.after);
  return change;
}

}  // namespace hpcbatch
