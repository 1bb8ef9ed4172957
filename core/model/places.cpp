#include "model/places.hpp"

#include <algorithm>
#include <array>

namespace hpcbatch {
namespace {

constexpr std::array<std::string_view, 2> kIndex{"{index}", "{#}"};
constexpr std::string_view kId = "{id}";

std::string_view name_of(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

std::string_view folder_of(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string_view::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

/// A name that begins with its only dot has no ending.
std::string_view without_ending(std::string_view path) {
  const std::size_t dot = path.rfind('.');
  const std::size_t name = path.rfind('/') + 1;
  return dot == std::string_view::npos || dot <= name ? path : path.substr(0, dot);
}

struct Part {
  std::string_view place;
  std::string_view (*of)(std::string_view item);
};
constexpr std::array kParts{
    Part{"{}", [](std::string_view item) { return item; }}, Part{"{.}", without_ending},
    Part{"{/}", name_of}, Part{"{//}", folder_of},
    Part{"{/.}", [](std::string_view item) { return without_ending(name_of(item)); }}};

bool has(std::string_view text, std::string_view place) {
  return text.find(place) != std::string_view::npos;
}

bool has_index(std::string_view text) {
  return std::any_of(kIndex.begin(), kIndex.end(),
                     [&](std::string_view place) { return has(text, place); });
}

struct Values {
  std::string_view item;
  std::optional<std::string> index, id;
};

/// What stands at the beginning of the text, and how long its place is there; 0: none.
std::size_t place_at(std::string_view text, const Values& values, std::string& into) {
  for (const Part& part : kParts) {
    if (!text.starts_with(part.place)) continue;
    into += part.of(values.item);
    return part.place.size();
  }
  for (const std::string_view place : kIndex) {
    if (!values.index || !text.starts_with(place)) continue;
    into += *values.index;
    return place.size();
  }
  if (!values.id || !text.starts_with(kId)) return 0;
  into += *values.id;
  return kId.size();
}

/// One pass: what a value has of places itself stays as it is.
std::string filled(std::string_view text, const Values& values) {
  std::string out;
  while (!text.empty()) {
    const std::size_t plain = std::min(text.find('{'), text.size());
    out += text.substr(0, plain);
    text.remove_prefix(plain);
    if (text.empty()) break;
    const std::size_t size = place_at(text, values, out);
    if (size == 0) out += text.front();
    text.remove_prefix(std::max<std::size_t>(size, 1));
  }
  return out;
}

}  // namespace

bool begins_with_item(std::string_view path) {
  return path.starts_with("{}") || path.starts_with("{.}") || path.starts_with("{//}");
}

bool has_item(std::string_view text) {
  return std::any_of(kParts.begin(), kParts.end(),
                     [&](const Part& part) { return has(text, part.place); });
}

std::string with_item(std::string_view text, const std::string& item) {
  return filled(text, {.item = item, .index = {}, .id = {}});
}

std::string with_item(std::string_view text, const std::string& item, std::uint32_t index) {
  const bool numbered = has(text, "{#}");
  if (!numbered) return with_item(text, item);
  // In a command `{index}` stays what it is: the environment has it.
  std::string out;
  for (;;) {
    const std::size_t at = text.find("{#}");
    out += with_item(text.substr(0, at), item);
    if (at == std::string_view::npos) return out;
    out += std::to_string(index);
    text.remove_prefix(at + 3);
  }
}

bool has_place(std::string_view path) {
  return has_item(path) || has_index(path) || has_id(path);
}

bool has_id(std::string_view path) {
  return has(path, kId);
}

std::string with_places(std::string_view path, TaskId task,
                        const std::optional<std::string>& item) {
  const std::string index = std::to_string(task.index);
  return filled(path, {.item = item ? *item : index, .index = index, .id = to_string(task)});
}

}  // namespace hpcbatch
