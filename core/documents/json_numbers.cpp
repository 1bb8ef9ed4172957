#include "documents/json_numbers.hpp"

#include <hpcbatch/text.hpp>

#include <fmt/format.h>
#include <boost/json/array.hpp>
#include <boost/json/basic_parser_impl.hpp>
#include <boost/json/object.hpp>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>
#include <vector>

namespace hpcbatch {
namespace {

class Whole : public JsonMaker<Whole> {
 public:
  void begin(boost::json::storage_ptr storage) { stack_.reset(std::move(storage)); }
  void has_value() {}
  boost::json::value take() { return stack_.release(); }
};

class KeyWatch : public JsonMaker<KeyWatch> {
 public:
  void has_value() {}
  bool on_object_begin(Error&) {
    keys_.emplace_back();
    return true;
  }
  bool on_object_end(std::size_t n, Error& error) {
    keys_.pop_back();
    return JsonMaker::on_object_end(n, error);
  }
  bool on_key_part(Text text, std::size_t n, Error& error) {
    key_.append(text.data(), text.size());
    return JsonMaker::on_key_part(text, n, error);
  }
  bool on_key(Text text, std::size_t n, Error& error) {
    key_.append(text.data(), text.size());
    if (!keys_.back().insert(key_).second && !repeated_) repeated_ = key_;
    key_.clear();
    return JsonMaker::on_key(text, n, error);
  }
  std::optional<std::string> repeated() const { return repeated_; }

 private:
  std::vector<std::set<std::string>> keys_;  ///< of each object that is open
  std::string key_;
  std::optional<std::string> repeated_;
};

constexpr std::string_view kOfNumbers = "0123456789+-.eE";
constexpr double kAllDigits = 1e15;

std::string plain(std::string_view number) {
  const auto value = number_in<double>(number);
  if (!value) return std::string(number);
  const bool is_whole = *value == std::floor(*value) && std::abs(*value) < kAllDigits;
  return is_whole ? fmt::format("{:.0f}", *value) : fmt::format("{}", *value);
}

/// How long the text in quotation marks is that begins there.
std::size_t size_of_string(std::string_view json) {
  std::size_t at = 1;
  while (at < json.size() && json[at] != '"') at += json[at] == '\\' ? 2 : 1;
  return std::min(at + 1, json.size());
}

}  // namespace

double exact_number(double number, std::string_view text) {
  return number_in<double>(text).value_or(number);
}

boost::json::value parse_json(std::string_view text, boost::system::error_code& error,
                              boost::json::storage_ptr storage,
                              const boost::json::parse_options& options) {
  error.clear();
  boost::json::basic_parser<Whole> parser{options};
  parser.handler().begin(std::move(storage));
  const std::size_t read = parser.write_some(false, text.data(), text.size(), error);
  if (!error && read < text.size()) error = boost::json::error::extra_data;
  return error ? boost::json::value() : parser.handler().take();
}

std::optional<std::string> repeated_key(std::string_view text) {
  boost::json::basic_parser<KeyWatch> parser{{}};
  boost::system::error_code error;
  parser.write_some(false, text.data(), text.size(), error);
  return error ? std::nullopt : parser.handler().repeated();
}

std::string with_plain_numbers(std::string_view json) {
  std::string out;
  out.reserve(json.size());
  while (!json.empty()) {
    std::size_t size = std::min(json.find_first_of("\"-0123456789"), json.size());
    out += json.substr(0, size);
    json.remove_prefix(size);
    if (json.empty()) break;
    const bool is_string = json.front() == '"';
    size = is_string ? size_of_string(json)
                     : std::min(json.find_first_not_of(kOfNumbers), json.size());
    const std::string_view token = json.substr(0, size);
    if (!is_string && token.find_first_of("eE") != std::string_view::npos)
      out += plain(token);
    else
      out += token;
    json.remove_prefix(size);
  }
  return out;
}

bool holds_infinity(const boost::json::value& value) {
  if (value.is_double()) return !std::isfinite(value.get_double());
  if (value.is_array()) {
    const auto& items = value.get_array();
    return std::any_of(items.begin(), items.end(), holds_infinity);
  }
  if (!value.is_object()) return false;
  const auto& fields = value.get_object();
  return std::any_of(fields.begin(), fields.end(),
                     [](const auto& field) { return holds_infinity(field.value()); });
}

}  // namespace hpcbatch
