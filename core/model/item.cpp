#include "model/item.hpp"

#include "hpcbatch/shell_quote.hpp"
#include "model/batch_number.hpp"
#include "programs/program_words.hpp"

#include <hpcbatch/text.hpp>

#include <algorithm>
#include <array>
#include <functional>

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
  const std::size_t number = number_in<std::size_t>(name).value_or(0);
  return number >= 1 && number <= columns_.size() ? &columns_[number - 1].second : nullptr;
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

namespace {

std::string_view whole(std::string_view path) {
  return path;
}

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

std::string_view name_without_ending(std::string_view path) {
  return without_ending(name_of(path));
}

struct Part {
  std::string_view sign;
  std::string_view (*of)(std::string_view text);
  bool keeps_beginning;  ///< absolute where the text is
};
constexpr std::array kParts{Part{"", whole, true}, Part{".", without_ending, true},
                            Part{"/", name_of, false}, Part{"//", folder_of, true},
                            Part{"/.", name_without_ending, false}};

bool is_of_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-';
}

/// `{name/.}`, taken apart.
struct Place {
  std::string_view text;  ///< with its braces
  std::string_view name;
  const Part* part{nullptr};  ///< null: `{#}`
  char form{kPlainPlace};
  std::size_t width{0};  ///< of a number, in digits at least
};

/// Takes `:4` from the end of a sign.
std::size_t take_width(std::string_view& sign) {
  if (sign.size() < 2 || sign.size() > 3 || sign.front() != ':') return 0;
  const auto width = number_in<std::size_t>(sign.substr(1));
  if (!width) return 0;
  sign = {};
  return *width;
}

std::optional<Place> place_at(std::string_view text) {
  if (text.starts_with("{#}")) return Place{text.substr(0, 3), {}, nullptr};
  const auto end = std::find_if_not(text.begin() + 1, text.end(), is_of_name);
  const auto size = static_cast<std::size_t>(end - text.begin());
  // Nothing that is a sign is longer.
  constexpr std::size_t kLongestSign = 8;
  std::string_view sign = text.substr(std::min(size, text.size()), kLongestSign);
  const std::size_t length = sign.find('}');
  if (length == std::string_view::npos) return std::nullopt;
  sign = sign.substr(0, length);
  const char form = take_form(sign);
  const std::size_t width = take_width(sign);
  const auto part =
      std::find_if(kParts.begin(), kParts.end(), [&](const Part& one) { return one.sign == sign; });
  if (part == kParts.end()) return std::nullopt;
  return Place{text.substr(0, size + length + 1), text.substr(1, size - 1), &*part, form, width};
}

bool stands_alone(const Place& place, std::string_view name) {
  return place.name == name && place.part != nullptr && place.part->sign.empty();
}

/// The text that a part of is asked for; null: it is none of the item's.
const std::string* asked_of(const Place& place, const Item& item) {
  // Only numbers have a width.
  if (place.part == nullptr || place.width != 0) return nullptr;
  return place.name.empty() ? &item.text() : item.column(place.name);
}

bool is_own(const Place& place, std::string_view name, const Item& item) {
  return stands_alone(place, name) && item.column(name) == nullptr;
}

bool is_index(const Place& place, const Item& item) {
  return place.part == nullptr || is_own(place, "index", item);
}

/// Only an engine that has taken the task knows it, and it is another for each.
bool is_id(const Place& place, const Item& item) {
  return is_own(place, "id", item) || is_own(place, "number", item);
}

bool is_doubled(std::string_view text, std::size_t at, Doubled doubled) {
  return doubled == Doubled::OneBrace && at + 1 < text.size() && text[at + 1] == text[at];
}

/// What stands between is handed over as it is, and each place; it says whether it has replaced
/// that.  One pass: what a value has of places itself stays as it is.
void walk(std::string_view text, Doubled doubled, const std::function<bool(const Place&)>& replace,
          const std::function<void(std::string_view)>& keep) {
  std::size_t kept = 0;
  const std::string_view signs = doubled == Doubled::OneBrace ? "{}" : "{";
  for (std::size_t at = text.find_first_of(signs); at != std::string_view::npos;
       at = text.find_first_of(signs, at)) {
    if (is_doubled(text, at, doubled)) {
      keep(text.substr(kept, at + 1 - kept));
      at += 2;
      kept = at;
      continue;
    }
    const auto place = text[at] == '{' ? place_at(text.substr(at)) : std::nullopt;
    // A shell's: ${NAME}, ${1}, ${#}.
    const bool may_be_a_shells = place && (!place->name.empty() || place->part == nullptr);
    if (!place || (may_be_a_shells && at > 0 && text[at - 1] == '$')) {
      ++at;
      continue;
    }
    keep(text.substr(kept, at - kept));
    kept = at;
    if (replace(*place)) {
      kept += place->text.size();
      at = kept;
    } else {
      ++at;
    }
  }
  keep(text.substr(kept));
}

/// The first place that is one of those; empty: none.
template <class Is>
std::string_view find_place(std::string_view text, Doubled doubled, Is is) {
  std::string_view found;
  walk(
      text, doubled,
      [&](const Place& place) {
        if (found.empty() && is(place)) found = place.text;
        return false;
      },
      [](std::string_view) {});
  return found;
}

template <class Replace>
std::string filled(std::string_view text, Doubled doubled, Replace replace) {
  std::string out;
  walk(
      text, doubled, [&](const Place& place) { return replace(place, out); },
      [&](std::string_view kept) { out += kept; });
  return out;
}

/// Between braces a name, or signs as parts of a path have them, or both; `{a,b}`, `{1..3}`, `{x.y}`
/// and `{ echo; }` are none.
bool looks_like_a_place(std::string_view inner) {
  const auto name_end = std::find_if_not(inner.begin(), inner.end(), is_of_name);
  const std::string_view name = inner.substr(0, static_cast<std::size_t>(name_end - inner.begin()));
  std::string_view signs = inner.substr(name.size());
  const std::string_view form = signs.substr(std::min(signs.find(':'), signs.size()));
  signs.remove_suffix(form.size());
  const bool is_form =
      form.empty() || (form.size() > 1 && std::all_of(form.begin() + 1, form.end(), is_of_name));
  const bool is_empty = signs.empty() && name.find_first_not_of("-_") == std::string_view::npos;
  return is_form && signs.find_first_not_of("./#%+") == std::string_view::npos &&
         (!is_empty || form.size() > 1);
}

/// By what stands before it: a variable of a shell, a word of curl's or git's, a count of a regular
/// expression.
bool is_of_another_language(std::string_view before, std::string_view inner, const Item& item) {
  if (before.empty()) return false;
  if (std::string_view("$%@^#\\").find(before.back()) != std::string_view::npos) return true;
  const bool is_count = inner.find_first_not_of("0123456789") == std::string_view::npos;
  const bool is_class = before.size() > 1 && before[before.size() - 2] == '\\';
  // Of `x{2}` the items tell: those that have columns are asked for the second.
  const bool is_letter = item.columns().empty() && is_of_name(before.back());
  return is_count && (before.back() == ']' || before.back() == ')' || is_class || is_letter);
}

bool put_item_in(const Place& place, const Item& item, std::string& out) {
  const std::string* text = asked_of(place, item);
  if (text == nullptr) return false;
  const std::string_view value = place.part->of(*text);
  out += place.form == kQuotedPlace ? shell_quoted(value) : std::string(value);
  return true;
}

}  // namespace

std::string with_places_marked(std::string_view text, const Item& item) {
  std::string out;
  walk(
      text, Doubled::AsTheyStand,
      [&](const Place& place) {
        if (asked_of(place, item) == nullptr) return false;
        out += place.form;
        return true;
      },
      [&](std::string_view kept) { out += without_marks(kept); });
  return out;
}

std::string as_it_stands(std::string_view name) {
  std::string out;
  for (const char c : name) out.append(c == '{' || c == '}' ? 2 : 1, c);
  return out;
}

std::string without_doubled(std::string_view name) {
  return filled(name, Doubled::OneBrace, [](const Place&, std::string&) { return false; });
}

namespace {

/// Of a name.
template <class Is>
bool has(std::string_view name, Is is) {
  return !find_place(name, Doubled::OneBrace, is).empty();
}

}  // namespace

std::string_view first_item_place(std::string_view text, const Item& item) {
  return find_place(text, Doubled::AsTheyStand,
                    [&](const Place& place) { return asked_of(place, item) != nullptr; });
}

bool has_item(std::string_view name, const Item& item) {
  return has(name, [&](const Place& place) { return asked_of(place, item) != nullptr; });
}

bool begins_with_item(std::string_view path) {
  if (!path.starts_with('{')) return false;
  const auto place = place_at(path);
  return place && place->part != nullptr && place->part->keeps_beginning;
}

std::vector<std::string_view> columns_asked_for(std::string_view text, Doubled doubled) {
  std::vector<std::string_view> names;
  find_place(text, doubled, [&](const Place& place) {
    if (!place.name.empty()) names.push_back(place.name);
    return false;
  });
  return names;
}

std::vector<std::string_view> stray_places(std::string_view text, const Item& item,
                                           std::initializer_list<std::string_view> known,
                                           Doubled doubled) {
  constexpr std::size_t kLongest = 64;
  std::vector<std::string_view> stray;
  for (std::size_t at = text.find('{'); at != std::string_view::npos; at = text.find('{', at + 1)) {
    if (is_doubled(text, at, doubled)) {
      ++at;
      continue;
    }
    const std::size_t size = text.substr(at, kLongest).find('}');
    if (size == std::string_view::npos) continue;
    const std::string_view inner = text.substr(at + 1, size - 1);
    if (!looks_like_a_place(inner) || is_of_another_language(text.substr(0, at), inner, item))
      continue;
    const auto place = place_at(text.substr(at));
    const bool is_known =
        place && (place->part == nullptr || asked_of(*place, item) != nullptr ||
                  std::any_of(known.begin(), known.end(),
                              [&](std::string_view name) { return stands_alone(*place, name); }));
    if (!is_known) stray.push_back(text.substr(at, size + 1));
  }
  return stray;
}

std::string with_item(std::string_view name, const Item& item) {
  return filled(name, Doubled::OneBrace, [&](const Place& place, std::string& out) {
    return put_item_in(place, item, out);
  });
}

std::string with_item(std::string_view text, const Item& item, std::uint32_t index) {
  // In a command `{index}` stays what it is: the environment has it.
  return filled(text, Doubled::AsTheyStand, [&](const Place& place, std::string& out) {
    if (place.part != nullptr) return put_item_in(place, item, out);
    out += std::to_string(index);
    return true;
  });
}

bool has_place(std::string_view path, const Item& item) {
  return has_item(path, item) || has_index(path, item) || has_id(path, item);
}

bool has_index(std::string_view path, const Item& item) {
  return has(path, [&](const Place& place) { return is_index(place, item); });
}

bool has_id(std::string_view path, const Item& item) {
  return has(path, [&](const Place& place) { return is_id(place, item); });
}

namespace {

std::string padded(std::string text, std::size_t width) {
  if (text.size() < width) text.insert(0, width - text.size(), '0');
  return text;
}

/// What stands for it of the task itself; none: that is the item's, or nothing.
std::optional<std::string> own_text(const Place& place, const PlaceValues& values,
                                    const Item& item) {
  if (is_index(place, item)) return std::to_string(values.index.value_or(values.task.index));
  if (is_own(place, "id", item)) return to_string(values.task);
  if (!values.number) return std::nullopt;
  if (is_own(place, "number", item)) return std::to_string(*values.number);
  if (is_own(place, "node", item)) return std::string(values.node);
  if (!is_own(place, "array_number", item)) return std::nullopt;
  return std::to_string(batch_number(values.task.array).value_or(*values.number));
}

}  // namespace

std::string with_places(std::string_view path, const PlaceValues& values,
                        const std::optional<Item>& item) {
  const Item own = item ? *item : Item(std::to_string(values.index.value_or(values.task.index)));
  return filled(path, Doubled::OneBrace, [&](const Place& place, std::string& out) {
    const auto text = own_text(place, values, own);
    if (!text) return put_item_in(place, own, out);
    out += padded(*text, place.width);
    return true;
  });
}

}  // namespace hpcbatch
