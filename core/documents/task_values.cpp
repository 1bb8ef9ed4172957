#include "documents/task_values.hpp"

#include "documents/moments.hpp"
#include "documents/texts.hpp"
#include "hardware/gpu_kind.hpp"
#include "model/quantities.hpp"

#include <hpcbatch/text.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <csignal>
#include <cstring>
#include <ctime>
#include <optional>
#include <stdexcept>
#include <vector>

namespace hpcbatch {
namespace {

namespace json = boost::json;
using Type = TaskKey::Type;

[[noreturn]] void refuse(std::string_view text, const std::string& expected) {
  throw std::invalid_argument("'" + show_text(text) + "' is not " + expected);
}

json::value whole_where_it_can_be(double value) {
  if (value == std::floor(value) && value < 1e15) return static_cast<std::int64_t>(value);
  return value;
}

std::vector<std::string_view> ways_in(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t end = text.find(separator);
    parts.push_back(trimmed(text.substr(0, end), " "));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

json::value cpus_in(std::string_view text) {
  const double cpus = parse_amount(text);
  if (cpus <= 0) refuse(text, "a number of cpus; a task needs more than 0, as 1 or 0.5");
  return whole_where_it_can_be(cpus);
}

json::value flag_in(std::string_view text) {
  if (text == "true" || text == "yes") return true;
  if (text != "false" && text != "no") refuse(text, "true or false");
  return false;
}

json::value choice_in(const TaskKey& key, std::string_view text) {
  std::vector<std::string> known;
  for (const std::string_view word : parts_of(key.more.words, ' ')) known.emplace_back(word);
  if (std::find(known.begin(), known.end(), text) != known.end()) return json::string(text);
  throw std::invalid_argument(fmt::format("'{}' is none of {}{}", show_text(text),
                                          fmt::join(known, ", "), spelling_hint(text, known)));
}

double coming_moment(std::string_view text) {
  if (const auto seconds = number_in<double>(text); seconds && *seconds >= 1e8) return *seconds;
  const auto moment = parse_coming_moment(text, static_cast<double>(std::time(nullptr)));
  if (!moment)
    refuse(text,
           "a moment, like 18:30, tomorrow, 2026-01-31T12:00, now+90minutes or seconds since 1970");
  return *moment;
}

json::value factor_in(std::string_view text) {
  const auto factor =
      number_in<double>(text.substr(0, text.size() - (text.ends_with('x') ? 1 : 0)));
  if (!factor || *factor < 1 || *factor > 100) refuse(text, "a factor from 1 to 100, like 1.5x");
  return whole_where_it_can_be(*factor);
}

json::value gpus_in(std::span<const std::string> texts) {
  json::object by_kind;
  std::optional<double> of_any;
  for (const std::string& text : texts) {
    const auto [kinds, count] = parse_gpus(text);
    if (kinds.empty())
      of_any = count;
    else
      by_kind[kinds] = whole_where_it_can_be(count);
  }
  if (!of_any) return by_kind;
  if (!by_kind.empty())
    throw std::invalid_argument("say a number of any kind or numbers by kind, not both");
  return whole_where_it_can_be(*of_any);
}

/// The key that a way calls so; null: none.
const TaskKey* need_called(std::string_view said) {
  if (said == "mem") return find_task_key("memory");
  static constexpr std::array<std::string_view, 6> kOfWays{"cpus", "memory",     "disk",
                                                           "gpus", "gpu_memory", "gpu_capability"};
  std::string name(said);
  std::replace(name.begin(), name.end(), '-', '_');
  return std::find(kOfWays.begin(), kOfWays.end(), name) == kOfWays.end() ? nullptr
                                                                          : find_task_key(name);
}

/// `gpus=a100:2,cpus=4`.
json::value way_in(std::string_view text) {
  static const std::vector<std::string> kKnown{"cpus", "mem",        "disk",
                                               "gpus", "gpu-memory", "gpu-capability"};
  if (text.empty()) throw std::invalid_argument("is empty; write it as gpus=1,cpus=4");
  json::object way;
  for (const std::string_view word : ways_in(text, ',')) {
    const std::size_t equals = word.find('=');
    if (equals == std::string_view::npos || equals == 0)
      throw std::invalid_argument(fmt::format(
          "'{}' does not say what is needed; write it as gpus=1,cpus=4", show_text(text)));
    const std::string said(trimmed(word.substr(0, equals), " "));
    const TaskKey* key = need_called(said);
    if (key == nullptr)
      throw std::invalid_argument(fmt::format(
          "'{}' is none of {} (the time, the site and all else are the same for all ways "
          "and are said once){}",
          show_text(said), fmt::join(kKnown, ", "), spelling_hint(said, kKnown)));
    if (way.contains(key->name)) throw std::invalid_argument(fmt::format("says {} twice", said));
    try {
      way[key->name] = task_value(*key, trimmed(word.substr(equals + 1), " "));
    } catch (const std::invalid_argument& error) {
      throw std::invalid_argument(fmt::format("{}: {}", said, error.what()));
    }
  }
  return way;
}

void add_ways(std::string_view text, json::array& ways) {
  const auto parts = ways_in(text, ';');
  for (const std::string_view part : parts)
    if (!part.empty() || parts.size() == 1) ways.push_back(way_in(part));
}

json::value ways_in(std::span<const std::string> texts) {
  json::array ways;
  for (const std::string& text : texts) add_ways(text, ways);
  return ways;
}

json::value one_value(const TaskKey& key, std::string_view text) {
  if (key.more.all && text == "all") return "all";
  switch (key.type) {
    case Type::Whole:
      return parse_whole(text, key.more.least, key.more.most);
    case Type::Cpus:
      return cpus_in(text);
    case Type::Flag:
      return flag_in(text);
    case Type::Choice:
      return choice_in(key, text);
    case Type::SizeOrNone:
      if (text != "none") read_size(text);
      break;
    case Type::Size:
      read_size(text);
      break;
    case Type::TimeSpan:
      checked_duration(std::string(text));
      break;
    case Type::Factor:
      return factor_in(text);
    case Type::Signal:
      read_early_signal(text);
      break;
    case Type::Moment:
      return whole_where_it_can_be(coming_moment(text));
    case Type::Capability:
      if (!parse_capability(text)) refuse(text, "a compute capability of CUDA, as 8.0");
      break;
    default:
      break;
  }
  return json::string(text);
}

}  // namespace

bool keeps_letters(TaskKey::Type type) {
  switch (type) {
    case Type::Whole:
    case Type::Factor:
    case Type::Moment:
    case Type::Cpus:
    case Type::Flag:
    case Type::Gpus:
    case Type::Ways:
    case Type::Amounts:
    case Type::Service:
      return false;
    default:
      return true;
  }
}

bool takes_several(TaskKey::Type type) {
  switch (type) {
    case Type::WordList:
    case Type::Ids:
    case Type::Gpus:
    case Type::Ways:
    case Type::Files:
    case Type::Variables:
    case Type::Values:
      return true;
    default:
      return false;
  }
}

json::value task_value(const TaskKey& key, std::span<const std::string> texts) {
  if (key.type == Type::Gpus) return gpus_in(texts);
  if (key.type == Type::Ways) return ways_in(texts);
  if (!takes_several(key.type)) return one_value(key, texts.back());
  return json::array(texts.begin(), texts.end());
}

json::value task_value(const TaskKey& key, std::string_view text) {
  const std::string one(text);
  return task_value(key, {&one, 1});
}

std::optional<json::value> value_of_text(const TaskKey& key, const json::value& said) {
  const bool has_words = key.type == Type::Gpus || key.type == Type::Ways;
  if (said.is_string() && (has_words || !takes_several(key.type)))
    return task_value(key, std::string_view(said.get_string()));
  if (!has_words || !said.is_array() || said.get_array().empty()) return std::nullopt;
  if (key.type == Type::Ways) {
    json::array ways;
    for (const json::value& one : said.get_array()) {
      if (one.is_string())
        add_ways(one.get_string(), ways);
      else
        ways.push_back(one);
    }
    return ways;
  }
  std::vector<std::string> texts;
  for (const json::value& one : said.get_array()) {
    if (!one.is_string()) return std::nullopt;
    texts.emplace_back(one.get_string());
  }
  return task_value(key, texts);
}

std::uint64_t read_size(std::string_view text) {
  const auto bytes = parse_size(text);
  if (!bytes) refuse(text, "a size, like 512M, 8G or a number of bytes, 512T at most");
  return *bytes;
}

const std::string& checked_size(const std::string& text) {
  read_size(text);
  return text;
}

const std::string& checked_duration(const std::string& text) {
  if (!parse_duration(text))
    refuse(text, "a duration, like 90s, 1h30m, 01:30:00 or a number of seconds");
  return text;
}

int parse_signal(std::string_view text) {
  if (const auto number = number_in<int>(text)) return *number > 0 && *number < NSIG ? *number : 0;
  std::string name = upper_case(std::string(text));
  if (name.starts_with("SIG")) name.erase(0, 3);
  for (int number = 1; number < NSIG; ++number) {
    const char* known = ::sigabbrev_np(number);
    if (known != nullptr && name == known) return number;
  }
  return 0;
}

EarlySignal read_early_signal(std::string_view text) {
  const std::size_t at = std::min(text.find('@'), text.size());
  EarlySignal signal;
  signal.number = parse_signal(text.substr(0, at));
  if (at < text.size()) {
    const auto before = parse_duration(text.substr(at + 1));
    if (!before) refuse(text, "a signal; write it as TERM@2m or USR1@90s");
    signal.before = *before;
  }
  if (signal.number == 0)
    refuse(text, "a signal; write a name such as TERM, USR1 or INT, as TERM@2m");
  return signal;
}

std::size_t delay_at(std::string_view word) {
  const std::size_t plus = word.rfind('+');
  const bool is_one =
      plus != std::string_view::npos && parse_duration(word.substr(plus + 1)).has_value();
  return is_one ? plus : word.size();
}

std::int64_t parse_whole(std::string_view text, std::int64_t low, std::int64_t high) {
  const auto number = number_in<std::int64_t>(text);
  if (!number || *number < low || *number > high)
    refuse(text, "a whole number from " + std::to_string(low) + " to " + std::to_string(high));
  return *number;
}

double parse_amount(std::string_view text) {
  const auto value = number_in<double>(text);
  if (!value || !std::isfinite(*value) || *value < 0) refuse(text, "a number, like 4 or 0.5");
  return *value;
}

}  // namespace hpcbatch
