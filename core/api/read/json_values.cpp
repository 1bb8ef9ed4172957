#include "api/read/json_values.hpp"

#include "documents/task_values.hpp"
#include "documents/texts.hpp"
#include "model/item.hpp"
#include "model/quantities.hpp"

#include <hpcbatch/text.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace hpcbatch {
namespace json = boost::json;

namespace {

/// As the configuration has it.
constexpr double kMostOfAnything = 1e9;
constexpr double kMostBytes = 0x1p49;

double positive(const json::value& value, const std::string& what) {
  if (!value.is_number()) throw BadRequest(what + " must be a number");
  const double number = value.to_number<double>();
  if (!(number >= 0)) throw BadRequest(what + " must be a number from 0 up");
  return number;
}

template <std::string (*one)(const json::value&, const std::string&)>
std::vector<std::string> list_of(const json::value& value, const std::string& what) {
  if (!value.is_array()) throw BadRequest(what + " must be a list of texts");
  std::vector<std::string> all;
  for (const json::value& entry : value.get_array()) all.push_back(one(entry, what));
  return all;
}

}  // namespace

std::string bytes_of(const json::value& value, const std::string& what) {
  if (!value.is_string()) throw BadRequest(what + " must be a text");
  const auto& text = value.get_string();
  if (text.find('\0') != json::string::npos) throw BadRequest(what + " may not hold a zero byte");
  return {text.data(), text.size()};
}

void check_amounts(const boost::json::object& amounts, const std::string& what) {
  if (amounts.size() > kMostAmounts)
    throw BadRequest(
        fmt::format("{} has {} names; a task may have {}", what, amounts.size(), kMostAmounts));
}

std::string text_of(const json::value& value, const std::string& what) {
  std::string text = bytes_of(value, what);
  if (find_invalid_utf8(text))
    throw BadRequest(fmt::format("{} '{}' is not valid UTF-8", what, show_text(text)));
  return text;
}

std::vector<std::string> texts_of(const json::value& value, const std::string& what) {
  return list_of<text_of>(value, what);
}

std::vector<std::string> list_of_bytes(const json::value& value, const std::string& what) {
  return list_of<bytes_of>(value, what);
}

std::map<std::string, std::string> text_map_of(const json::value& value, const std::string& what) {
  if (!value.is_object()) throw BadRequest(what + " must be a map of names to texts");
  std::map<std::string, std::string> map;
  for (const auto& [name, entry] : value.get_object()) {
    if (name.empty() || name.find('=') != std::string_view::npos)
      throw BadRequest(fmt::format("{} has the impossible name '{}'", what, std::string(name)));
    map[name] = bytes_of(entry, what + "." + std::string(name));
  }
  return map;
}

double number_of(const json::value& value, const std::string& what) {
  const double number = positive(value, what);
  if (number > kMostOfAnything)
    throw BadRequest(
        fmt::format("{} is {:g}, which is more than could be had anywhere", what, number));
  return number;
}

std::int64_t whole_of(const json::value& value, const std::string& what, std::int64_t least,
                      std::int64_t most) {
  boost::system::error_code error;
  const auto number = value.is_number() ? value.to_number<std::int64_t>(error) : 0;
  if (!value.is_number() || error || number < least || number > most) {
    throw BadRequest(fmt::format("{} must be a whole number from {} to {}", what, least, most));
  }
  return number;
}

bool bool_of(const json::value& value, const std::string& what) {
  if (!value.is_bool()) throw BadRequest(what + " must be true or false");
  return value.get_bool();
}

Amount size_of(const json::value& value, const std::string& what) {
  // A job's own arithmetic may ask for more than there is: it is told where it does not fit.
  if (value.is_number())
    return Amount::of(static_cast<std::int64_t>(std::min(positive(value, what), kMostBytes)));
  try {
    return Amount::of(static_cast<std::int64_t>(read_size(text_of(value, what))));
  } catch (const std::invalid_argument& error) {
    throw BadRequest(fmt::format("{}: {}", what, error.what()));
  }
}

Duration duration_of(const json::value& value, const std::string& what) {
  std::optional<Duration> duration;
  if (value.is_number()) {
    duration = parse_duration(fmt::format("{:f}", positive(value, what)));
  } else {
    duration = parse_duration(text_of(value, what));
  }
  if (!duration || duration->count() <= 0)
    throw BadRequest(what + " must be a time, for example 1h30m");
  return *duration;
}

std::string path_of(const json::value& value, const std::string& what) {
  std::string path = bytes_of(value, what);
  if (!path.starts_with('/'))
    throw BadRequest(fmt::format("{} '{}' must be an absolute path", what, path));
  return path;
}

std::string file_of(const json::value& value, const std::string& what) {
  std::string path = bytes_of(value, what);
  return begins_with_item(path) ? path : path_of(value, what);
}

std::uint32_t umask_of(const json::value& value, const std::string& what) {
  const std::string text = text_of(value, what);
  const auto mask = number_in<std::uint32_t>(text, 8);
  if (!mask || *mask > 0777) {
    throw BadRequest(
        fmt::format("{} '{}' must be up to three octal digits, for example 022", what, text));
  }
  return *mask;
}

std::string plain_word(const json::value& value, const std::string& what) {
  std::string text = text_of(value, what);
  if (text.empty() ||
      std::any_of(text.begin(), text.end(), [](unsigned char c) { return c <= ' ' || c == 127; })) {
    throw BadRequest(what + " must be a word without blanks");
  }
  return text;
}

std::vector<std::string> plain_words(const json::value& value, const std::string& what) {
  std::vector<std::string> words;
  for (const json::value& word : value.is_array() ? value.get_array() : json::array{value})
    words.push_back(plain_word(word, what));
  std::sort(words.begin(), words.end());
  words.erase(std::unique(words.begin(), words.end()), words.end());
  return words;
}

}  // namespace hpcbatch
