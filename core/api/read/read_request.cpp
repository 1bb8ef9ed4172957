#include "api/read/read_request.hpp"

#include "api/read/json_values.hpp"
#include "api/read/submit_reader.hpp"
#include "documents/json_numbers.hpp"

#include <fmt/format.h>
#include <boost/json/basic_parser_impl.hpp>
#include <boost/json/monotonic_resource.hpp>

#include <charconv>
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

namespace json = boost::json;

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

std::vector<Selection> read_selections(const json::value& body) {
  const json::value* ids = body.get_object().if_contains("ids");
  if (!ids) throw BadRequest("'ids' is missing: a list like [\"12\", \"12.345\"]");
  std::vector<Selection> selections;
  for (const std::string& text : texts_of(*ids, "ids")) selections.push_back(parse_selection(text));
  if (selections.empty()) throw BadRequest("'ids' is empty: name at least one task");
  return selections;
}

}  // namespace hpcbatch
