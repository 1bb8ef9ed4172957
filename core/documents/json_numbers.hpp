// Numbers in JSON: read to their last digit, written as people and simple tools can read them.
#pragma once

#include <boost/json/basic_parser.hpp>
#include <boost/json/parse_options.hpp>
#include <boost/json/storage_ptr.hpp>
#include <boost/json/value.hpp>
#include <boost/json/value_stack.hpp>
#include <boost/system/error_code.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hpcbatch {

// JSON whose numbers are read to their last digit: Boost's own reader (1.81) is up to one unit in
// the last place off.

/// The number of a text that Boost took for `number`.
double exact_number(double number, std::string_view text);

/// What Boost's parser tells what it meets, made into values; `Self::has_value` is called behind
/// each scalar, list and object, which lies on the stack then.  `Self` may have its own of any.
template <class Self>
class JsonMaker {
 public:
  using Error = boost::system::error_code;
  using Text = boost::json::string_view;
  // NOLINTBEGIN(readability-identifier-naming): the parser asks for these names
  static constexpr std::size_t max_object_size = boost::json::object::max_size();
  static constexpr std::size_t max_array_size = boost::json::array::max_size();
  static constexpr std::size_t max_key_size = boost::json::string::max_size();
  static constexpr std::size_t max_string_size = boost::json::string::max_size();
  // NOLINTEND(readability-identifier-naming)

  bool on_document_begin(Error&) { return true; }
  bool on_document_end(Error&) { return true; }
  bool on_object_begin(Error&) { return true; }
  bool on_object_end(std::size_t n, Error&) {
    stack_.push_object(n);
    return made();
  }
  bool on_array_begin(Error&) { return true; }
  bool on_array_end(std::size_t n, Error&) {
    stack_.push_array(n);
    return made();
  }
  bool on_key_part(Text text, std::size_t, Error&) {
    stack_.push_chars(text);
    return true;
  }
  bool on_key(Text text, std::size_t, Error&) {
    stack_.push_key(text);
    return true;
  }
  bool on_string_part(Text text, std::size_t, Error&) {
    stack_.push_chars(text);
    return true;
  }
  bool on_string(Text text, std::size_t, Error&) {
    stack_.push_string(text);
    return made();
  }
  bool on_number_part(Text, Error&) { return true; }
  bool on_int64(std::int64_t number, Text, Error&) {
    stack_.push_int64(number);
    return made();
  }
  bool on_uint64(std::uint64_t number, Text, Error&) {
    stack_.push_uint64(number);
    return made();
  }
  bool on_double(double number, Text text, Error&) {
    stack_.push_double(exact_number(number, text));
    return made();
  }
  bool on_bool(bool yes, Error&) {
    stack_.push_bool(yes);
    return made();
  }
  bool on_null(Error&) {
    stack_.push_null();
    return made();
  }
  bool on_comment_part(Text, Error&) { return true; }
  bool on_comment(Text, Error&) { return true; }

 protected:
  bool made() {
    static_cast<Self&>(*this).has_value();
    return true;
  }
  boost::json::value_stack stack_;
};

/// As boost::json::parse.
boost::json::value parse_json(std::string_view text, boost::system::error_code& error,
                              boost::json::storage_ptr storage = {},
                              const boost::json::parse_options& options = {});

/// A key that stands twice in an object of this text, of which all but the last would be lost.  No value where there
/// is none, or where the text is no JSON.
std::optional<std::string> repeated_key(std::string_view text);

// JSON whose numbers people and simple tools can read.

/// The same JSON text with numbers such as `4E0` and `1.5E-3` written as `4` and `0.0015`; very
/// large and very small ones keep an exponent.
std::string with_plain_numbers(std::string_view json);

/// Whether one of its numbers was larger than a double holds (1.8e308): it was read as infinite, which
/// JSON cannot say, and would be written as the word Infinity.
bool holds_infinity(const boost::json::value& value);

}  // namespace hpcbatch
