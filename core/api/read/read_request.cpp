#include "api/read/read_request.hpp"

#include "api/read/submit_content.hpp"
#include "api/read/submit_reader.hpp"
#include "documents/plain_numbers.hpp"

#include <boost/json/basic_parser_impl.hpp>
#include <boost/json/monotonic_resource.hpp>
#include <boost/json/value_stack.hpp>

#include <charconv>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

namespace hpcbatch {

namespace json = boost::json;

namespace {

using boost::system::error_code;

/// The parser's own is up to one unit in the last place off (Boost 1.81): `number` of `text`, exactly.
double exact(double number, json::string_view text) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  return error == std::errc{} && rest == end ? value : number;
}

/// Told by the parser what it meets.  Makes one value of all.
class WholeBody {
 public:
  // NOLINTBEGIN(readability-identifier-naming): the parser asks for these names
  static constexpr std::size_t max_object_size = json::object::max_size();
  static constexpr std::size_t max_array_size = json::array::max_size();
  static constexpr std::size_t max_key_size = json::string::max_size();
  static constexpr std::size_t max_string_size = json::string::max_size();
  // NOLINTEND(readability-identifier-naming)

  // It is read once and goes as a whole.
  WholeBody() { stack_.reset(json::make_shared_resource<json::monotonic_resource>()); }
  json::value take() { return stack_.release(); }

  bool on_document_begin(error_code&) { return true; }
  bool on_document_end(error_code&) { return true; }
  bool on_object_begin(error_code&) { return true; }
  bool on_object_end(std::size_t n, error_code&) {
    stack_.push_object(n);
    return true;
  }
  bool on_array_begin(error_code&) { return true; }
  bool on_array_end(std::size_t n, error_code&) {
    stack_.push_array(n);
    return true;
  }
  bool on_key_part(json::string_view text, std::size_t, error_code&) {
    stack_.push_chars(text);
    return true;
  }
  bool on_key(json::string_view text, std::size_t, error_code&) {
    stack_.push_key(text);
    return true;
  }
  bool on_string_part(json::string_view text, std::size_t, error_code&) {
    stack_.push_chars(text);
    return true;
  }
  bool on_string(json::string_view text, std::size_t, error_code&) {
    stack_.push_string(text);
    return true;
  }
  bool on_number_part(json::string_view, error_code&) { return true; }
  bool on_int64(std::int64_t number, json::string_view, error_code&) {
    stack_.push_int64(number);
    return true;
  }
  bool on_uint64(std::uint64_t number, json::string_view, error_code&) {
    stack_.push_uint64(number);
    return true;
  }
  bool on_double(double number, json::string_view text, error_code&) {
    stack_.push_double(exact(number, text));
    return true;
  }
  bool on_bool(bool yes, error_code&) {
    stack_.push_bool(yes);
    return true;
  }
  bool on_null(error_code&) {
    stack_.push_null();
    return true;
  }
  bool on_comment_part(json::string_view, error_code&) { return true; }
  bool on_comment(json::string_view, error_code&) { return true; }

 private:
  json::value_stack stack_;
};

/// Told by the parser what it meets.  Makes a value of each of the submit's keys and of each of
/// its tasks, hands it on, and forgets it.
class SubmitPieces {
 public:
  // NOLINTBEGIN(readability-identifier-naming): the parser asks for these names
  static constexpr std::size_t max_object_size = json::object::max_size();
  static constexpr std::size_t max_array_size = json::array::max_size();
  static constexpr std::size_t max_key_size = json::string::max_size();
  static constexpr std::size_t max_string_size = json::string::max_size();
  // NOLINTEND(readability-identifier-naming)

  SubmitPieces() { stack_.reset(&*memory_); }

  bool is_object() const { return is_object_; }
  /// A key stands there twice, of which the last counts: that is not read piece by piece.
  bool has_double_key() const { return has_double_key_; }
  bool has_infinity() const { return has_infinity_; }
  SubmitReader& reader() { return reader_; }
  SubmitContent& content() { return content_; }

  bool on_document_begin(error_code&) { return true; }
  bool on_document_end(error_code&) { return true; }
  bool on_object_begin(error_code&) {
    if (depth_++ == 0) is_object_ = true;
    return true;
  }
  bool on_object_end(std::size_t n, error_code&) {
    if (--depth_ != 0) put([n](json::value_stack& stack) { stack.push_object(n); });
    return true;
  }
  bool on_array_begin(error_code&) {
    if (depth_++ == 1 && is_object_ && key_ == "tasks" && !has_double_key_) {
      in_tasks_ = true;
      reader_.begin_tasks();
      content_.begin_list(key_);
    }
    return true;
  }
  bool on_array_end(std::size_t n, error_code&) {
    if (--depth_ == 1 && std::exchange(in_tasks_, false)) {
      reader_.end_tasks();
      content_.end_list();
    } else if (depth_ != 0) {
      put([n](json::value_stack& stack) { stack.push_array(n); });
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
  bool on_string_part(json::string_view text, std::size_t, error_code&) {
    stack_.push_chars(text);
    return true;
  }
  bool on_string(json::string_view text, std::size_t, error_code&) {
    return put([text](json::value_stack& stack) { stack.push_string(text); });
  }
  bool on_number_part(json::string_view, error_code&) { return true; }
  bool on_int64(std::int64_t number, json::string_view, error_code&) {
    return put([number](json::value_stack& stack) { stack.push_int64(number); });
  }
  bool on_uint64(std::uint64_t number, json::string_view, error_code&) {
    return put([number](json::value_stack& stack) { stack.push_uint64(number); });
  }
  bool on_double(double found, json::string_view text, error_code&) {
    const double number = exact(found, text);
    return put([number](json::value_stack& stack) { stack.push_double(number); });
  }
  bool on_bool(bool yes, error_code&) {
    return put([yes](json::value_stack& stack) { stack.push_bool(yes); });
  }
  bool on_null(error_code&) {
    return put([](json::value_stack& stack) { stack.push_null(); });
  }
  bool on_comment_part(json::string_view, error_code&) { return true; }
  bool on_comment(json::string_view, error_code&) { return true; }

 private:
  void begin_key(json::string_view text) {
    if (std::exchange(key_is_whole_, false)) key_.clear();
    key_.append(text.data(), text.size());
  }

  template <class Push>
  bool put(Push push) {
    push(stack_);
    if (depth_ == (in_tasks_ ? 2 : 1) || depth_ == 0) hand_on();
    return true;
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
  json::value_stack stack_;
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

template <class Handler>
void read_with(json::basic_parser<Handler>& parser, const std::string& body) {
  error_code error;
  const std::size_t read = parser.write_some(false, body.data(), body.size(), error);
  if (!error && read < body.size()) error = json::error::extra_data;
  refuse_json(error);
}

json::value parse(const std::string& body, const json::parse_options& options) {
  json::basic_parser<WholeBody> parser{options};
  read_with(parser, body.empty() ? "{}" : body);
  json::value value = parser.handler().take();
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
  read_with(parser, body);
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

}  // namespace hpcbatch
