#include "cli/show/values.hpp"

#include "cli/parse/script.hpp"
#include "documents/plain_numbers.hpp"
#include "model/quantities.hpp"

#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>

#include <array>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <utility>

namespace hpcbatch {
namespace {

namespace json = boost::json;

std::string number_text(double value) {
  std::array<char, 32> text{};
  const int size = value == std::floor(value) && std::abs(value) < 1e15
                       ? std::snprintf(text.data(), text.size(), "%.0f", value)
                       : std::snprintf(text.data(), text.size(), "%g", value);
  return {text.data(), static_cast<std::size_t>(size)};
}

std::string scalar_text(const json::value& value) {
  if (value.is_string()) return std::string(value.get_string());
  if (value.is_bool()) return value.get_bool() ? "yes" : "no";
  if (value.is_double()) return number_text(value.get_double());
  if (value.is_null()) return "";
  return with_plain_numbers(json::serialize(value));
}

const json::value* find(const json::object& object, std::string_view key) {
  return object.if_contains({key.data(), key.size()});
}

bool is_number_at(const json::object& object, std::string_view key) {
  const json::value* value = find(object, key);
  return value != nullptr && value->is_number();
}

std::string quoted(const std::string& word) {
  static constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./=:,+@%{}";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  std::string out = "'";
  for (const char letter : word) out += letter == '\'' ? "'\\''" : std::string(1, letter);
  return out + "'";
}

}  // namespace

std::string text_at(const json::object& object, std::string_view key) {
  const json::value* value = find(object, key);
  if (value == nullptr) return "";
  if (!value->is_array()) return scalar_text(*value);
  std::string out;
  for (const json::value& item : value->get_array())
    out += (out.empty() ? "" : ", ") + scalar_text(item);
  return out;
}

std::string time_at(const json::object& object, std::string_view key) {
  if (!is_number_at(object, key)) return "";
  const auto seconds = static_cast<std::time_t>(number_at(object, key));
  std::tm local{};
  if (::localtime_r(&seconds, &local) == nullptr) return "";
  std::array<char, 32> text{};
  return {text.data(), std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S", &local)};
}

std::string moment_at(const json::object& object, std::string_view key, std::time_t now) {
  if (!is_number_at(object, key)) return "";
  const auto seconds = static_cast<std::time_t>(number_at(object, key));
  std::tm local{}, today{};
  if (::localtime_r(&seconds, &local) == nullptr || ::localtime_r(&now, &today) == nullptr)
    return "";
  const bool is_today = local.tm_year == today.tm_year && local.tm_yday == today.tm_yday;
  std::array<char, 32> text{};
  return {text.data(),
          std::strftime(text.data(), text.size(), is_today ? "%H:%M:%S" : "%m-%d %H:%M", &local)};
}

std::string duration_at(const json::object& object, std::string_view key) {
  if (!is_number_at(object, key)) return "";
  return show_duration(
      std::chrono::duration_cast<Duration>(std::chrono::duration<double>(number_at(object, key))));
}

std::string size_at(const json::object& object, std::string_view key) {
  if (!is_number_at(object, key)) return "";
  return show_size(static_cast<std::uint64_t>(std::max(0.0, number_at(object, key))));
}

std::string gpus_at(const json::object& object, std::string_view key) {
  const json::object* kinds = object_at(object, key);
  if (kinds == nullptr) return text_at(object, key);
  std::string out;
  for (const auto& entry : *kinds) {
    const std::string kind = entry.key() == "any" ? "of any kind" : std::string(entry.key());
    out += (out.empty() ? "" : ", ") + scalar_text(entry.value()) + " " + kind;
  }
  return out;
}

std::string whole(double number) {
  return std::to_string(static_cast<std::int64_t>(number));
}

double number_at(const json::object& object, std::string_view key) {
  return is_number_at(object, key) ? find(object, key)->to_number<double>() : 0;
}

bool flag_at(const json::object& object, std::string_view key) {
  const json::value* value = find(object, key);
  return value != nullptr && value->is_bool() && value->get_bool();
}

const json::object* object_at(const json::object& object, std::string_view key) {
  const json::value* value = find(object, key);
  return value == nullptr ? nullptr : value->if_object();
}

const json::array* array_at(const json::object& object, std::string_view key) {
  const json::value* value = find(object, key);
  return value == nullptr ? nullptr : value->if_array();
}

std::string command_at(const json::object& object, std::string_view key) {
  const json::array* words = array_at(object, key);
  if (words == nullptr) return text_at(object, key);
  std::vector<std::string> command;
  for (const json::value& word : *words) command.push_back(scalar_text(word));
  std::string out;
  for (const std::string& word : command_of_script(std::move(command)))
    out += (out.empty() ? "" : " ") + quoted(word);
  return out;
}

void print(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
}

void print_json(const json::value& value) {
  print(with_plain_numbers(json::serialize(value)) + "\n");
}

}  // namespace hpcbatch
