#include "model/item.hpp"

#include <algorithm>
#include <charconv>

namespace hpcbatch {
namespace {

constexpr char kColumn = '\x1e';
constexpr char kValue = '\x1f';

}  // namespace

const std::string* Item::column(std::string_view name) const {
  if (columns_.empty()) return name == "1" ? &text_ : nullptr;
  const auto named = std::find_if(columns_.begin(), columns_.end(),
                                  [&](const auto& column) { return column.first == name; });
  if (named != columns_.end()) return &named->second;
  std::size_t number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  const bool is_number = error == std::errc{} && end == name.data() + name.size();
  return is_number && number >= 1 && number <= columns_.size() ? &columns_[number - 1].second
                                                               : nullptr;
}

void Item::add_column(std::string name, std::string value) {
  columns_.emplace_back(std::move(name), std::move(value));
}

std::string Item::packed() const {
  std::string out = text_;
  for (const auto& [name, value] : columns_) (((out += kColumn) += name) += kValue) += value;
  return out;
}

Item Item::unpacked(std::string_view packed) {
  const auto next = [&](char separator) {
    const std::size_t end = std::min(packed.find(separator), packed.size());
    std::string part(packed.substr(0, end));
    packed.remove_prefix(std::min(end + 1, packed.size()));
    return part;
  };
  Item item(next(kColumn));
  while (!packed.empty()) {
    std::string column = next(kColumn);
    const std::size_t middle = std::min(column.find(kValue), column.size());
    item.add_column(column.substr(0, middle),
                    middle < column.size() ? column.substr(middle + 1) : std::string());
  }
  return item;
}

std::string same_item(const Item& item) {
  if (item.columns().empty()) return item.text();
  auto columns = item.columns();
  std::sort(columns.begin(), columns.end());
  Item alike;
  for (auto& [name, value] : columns) alike.add_column(std::move(name), std::move(value));
  return alike.packed();
}

bool can_be_packed(std::string_view text) {
  return text.find(kColumn) == std::string_view::npos &&
         text.find(kValue) == std::string_view::npos;
}

}  // namespace hpcbatch
