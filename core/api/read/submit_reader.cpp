#include "api/read/submit_reader.hpp"

#include "api/read/json_values.hpp"
#include "api/read/named_paths.hpp"
#include "api/read/read_request.hpp"

#include <fmt/format.h>
#include <boost/json/serialize.hpp>
#include <boost/json/serializer.hpp>

#include <cstring>
#include <utility>

namespace hpcbatch {
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

}  // namespace hpcbatch
