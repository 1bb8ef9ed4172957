#include "api/read/read_container.hpp"

#include "api/read/json_values.hpp"

#include <fmt/format.h>

namespace hpcbatch {
namespace {

namespace json = boost::json;

void read_binds(const json::value& value, const std::string& where, ContainerTerms& terms) {
  for (const std::string& text : texts_of(value, where)) {
    const auto bind = parse_container_bind(text);
    if (!bind || bind->from.front() != '/' || bind->to.front() != '/')
      throw BadRequest(fmt::format(
          "{}: '{}' is no bind; write /FOLDER, /FOLDER:/THERE or /FOLDER:/THERE:ro", where, text));
    terms.binds.push_back(*bind);
  }
}

std::string word_of(const json::value& value, const std::string& where) {
  if (value.is_bool()) return value.get_bool() ? "true" : "false";
  return text_of(value, where);
}

}  // namespace

ContainerRequest read_container(const json::value& value, const std::string& what) {
  if (value.is_string()) return {text_of(value, what), {}};
  if (!value.is_object())
    throw BadRequest(what + " must be the name of an image, or an object with 'image'");
  ContainerRequest container;
  for (const auto& [key, entry] : value.get_object()) {
    const std::string where = fmt::format("{}.{}", what, std::string_view(key));
    if (key == "image") {
      container.image = text_of(entry, where);
    } else if (key == "binds") {
      read_binds(entry, where, container.terms);
    } else if (key == "environment") {
      container.terms.variables = text_map_of(entry, where);
    } else if (const std::string complaint = take_container_word(
                   container.terms, std::string_view(key), word_of(entry, where));
               !complaint.empty()) {
      throw BadRequest(fmt::format("{} {}", where, complaint));
    }
  }
  if (container.image.empty()) throw BadRequest(what + ".image is missing");
  return container;
}

}  // namespace hpcbatch
