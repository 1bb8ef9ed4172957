#include "runtime/places.hpp"

namespace hpcbatch {
namespace {

constexpr std::string_view kItem = "{}";
constexpr std::string_view kIndex = "{index}";
constexpr std::string_view kId = "{id}";

}  // namespace

bool has_item(std::string_view text) {
  return text.find(kItem) != std::string_view::npos;
}

std::string with_item(std::string text, const std::string& item) {
  // One pass: an item that holds `{}` itself stays as it is.
  for (auto at = text.find(kItem); at != std::string::npos; at = text.find(kItem, at + item.size()))
    text.replace(at, kItem.size(), item);
  return text;
}

bool has_place(std::string_view path) {
  return has_item(path) || path.find(kIndex) != std::string_view::npos || has_id(path);
}

bool has_id(std::string_view path) {
  return path.find(kId) != std::string_view::npos;
}

std::string with_places(std::string_view path, TaskId task,
                        const std::optional<std::string>& item) {
  std::string filled;
  while (!path.empty()) {
    if (path.starts_with(kItem)) {
      filled += item ? *item : std::to_string(task.index);
      path.remove_prefix(kItem.size());
    } else if (path.starts_with(kIndex)) {
      filled += std::to_string(task.index);
      path.remove_prefix(kIndex.size());
    } else if (path.starts_with(kId)) {
      filled += to_string(task);
      path.remove_prefix(kId.size());
    } else {
      filled += path.front();
      path.remove_prefix(1);
    }
  }
  return filled;
}

}  // namespace hpcbatch
