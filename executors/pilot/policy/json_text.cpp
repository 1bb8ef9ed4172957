#include "pilot/policy/json_text.hpp"

#include <boost/json.hpp>

namespace hpcbatch::pilot {
namespace {

namespace json = boost::json;

// The library goes no deeper than 32, so that this does not either.
// NOLINTNEXTLINE(misc-no-recursion)
JsonText text_of_value(const json::value& value) {
  JsonText text;
  if (const json::object* object = value.if_object()) {
    for (const auto& [name, field] : *object) text.fields[std::string(name)] = text_of_value(field);
  } else if (const json::array* list = value.if_array()) {
    for (const json::value& one : *list) text.list.push_back(text_of_value(one));
  } else {
    text.text = value.is_string() ? std::string(value.get_string()) : json::serialize(value);
  }
  return text;
}

}  // namespace

const JsonText& JsonText::at(const std::string& name) const {
  static const JsonText nothing;
  const auto field = fields.find(name);
  return field == fields.end() ? nothing : field->second;
}

std::optional<JsonText> read_json(std::string_view text) {
  json::error_code error;
  const json::value value = json::parse({text.data(), text.size()}, error);
  if (error) return std::nullopt;
  return text_of_value(value);
}

}  // namespace hpcbatch::pilot
