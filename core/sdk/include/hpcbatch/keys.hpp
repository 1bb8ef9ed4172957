// The configuration of a plugin: a YAML map whose unknown keys are refused with their line.  Needs
// yaml-cpp; no other header of the SDK does.
#pragma once

#include "hpcbatch/text.hpp"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <yaml-cpp/yaml.h>

namespace hpcbatch {

/// Every method throws std::runtime_error with the line and what was expected.
class Keys {
 public:
  /// `advice` follows what is said of an unknown key.
  Keys(const char* config_yaml, const std::vector<std::string>& known,
       const std::string& advice = "");

  std::optional<std::string> text(const std::string& key) const;
  std::vector<std::string> texts(const std::string& key) const;  ///< one text or a list of them
  std::int64_t number(const std::string& key, std::int64_t least, std::int64_t most,
                      std::int64_t otherwise) const;
  bool truth(const std::string& key, bool otherwise) const;
  /// A name that means nothing to a shell or to ssh but itself; never begins with a dash.
  std::optional<std::string> safe_name(const std::string& key, const std::string& also) const;
  /// `~/` is the home directory of whoever runs this.
  std::vector<std::string> paths(const std::string& key) const;
  struct Entry {
    std::string name, text;
    int line{0};
  };
  /// A map of names to texts.  `form` says what it must be: "a map such as {a: b}".
  std::vector<Entry> entries(const std::string& key, const std::string& form) const;

  [[noreturn]] void fail(const std::string& key, const std::string& what) const;
  [[noreturn]] static void fail(const Entry& entry, const std::string& what);
  /// As said, without the key's name before it.
  [[noreturn]] void fail_with(const std::string& key, const std::string& sentence) const;

 private:
  static std::runtime_error in_line(int line, const std::string& what) {
    return std::runtime_error("line " + std::to_string(line) + ": " + what);
  }
  static int line_of(const YAML::Node& node) { return node.Mark().line + 1; }

  YAML::Node map_;
};

inline Keys::Keys(const char* config_yaml, const std::vector<std::string>& known,
                  const std::string& advice)
    : map_(YAML::Load(config_yaml)) {
  if (!map_.IsNull() && !map_.IsMap())
    throw in_line(line_of(map_), "the configuration must be a map");
  const std::string all = joined(known, ", ");
  for (const auto& entry : map_) {
    const std::string key = entry.first.Scalar();
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    std::string text = std::string("unknown key '").append(key).append("'");
    text.append(all.empty() ? "; this plugin takes no configuration" : "; known are: ").append(all);
    if (!advice.empty()) text.append("; ").append(advice);
    throw in_line(line_of(entry.first), text);
  }
}

inline void Keys::fail(const std::string& key, const std::string& what) const {
  fail_with(key, "'" + key + "' " + what);
}

inline void Keys::fail_with(const std::string& key, const std::string& sentence) const {
  const YAML::Node& map = map_;
  const YAML::Node value = map[key];
  if (!value) throw std::runtime_error(sentence);
  throw in_line(line_of(value), sentence);
}

inline void Keys::fail(const Entry& entry, const std::string& what) {
  throw in_line(entry.line, what);
}

inline std::optional<std::string> Keys::text(const std::string& key) const {
  if (!map_.IsMap() || !map_[key]) return std::nullopt;
  const YAML::Node value = map_[key];
  if (!value.IsScalar()) fail(key, "must be a text");
  return value.Scalar();
}

inline std::vector<std::string> Keys::texts(const std::string& key) const {
  if (!map_.IsMap() || !map_[key]) return {};
  const YAML::Node value = map_[key];
  std::vector<std::string> all;
  if (value.IsScalar()) all.push_back(value.Scalar());
  if (value.IsSequence()) {
    for (const auto& item : value) {
      if (!item.IsScalar()) fail(key, "must be a text or a list of texts");
      all.push_back(item.Scalar());
    }
  }
  if (all.empty() && !value.IsSequence()) fail(key, "must be a text or a list of texts");
  return all;
}

inline std::int64_t Keys::number(const std::string& key, std::int64_t least, std::int64_t most,
                                 std::int64_t otherwise) const {
  const auto given = text(key);
  if (!given) return otherwise;
  std::int64_t number = 0;
  const YAML::Node value(*given);
  if (!YAML::convert<std::int64_t>::decode(value, number) || number < least || number > most) {
    fail(key,
         "must be a whole number from " + std::to_string(least) + " to " + std::to_string(most));
  }
  return number;
}

inline bool Keys::truth(const std::string& key, bool otherwise) const {
  const auto given = text(key);
  if (!given) return otherwise;
  bool truth = false;
  if (!YAML::convert<bool>::decode(YAML::Node(*given), truth)) fail(key, "must be true or false");
  return truth;
}

inline std::vector<Keys::Entry> Keys::entries(const std::string& key,
                                              const std::string& form) const {
  if (!map_.IsMap() || !map_[key]) return {};
  const YAML::Node value = map_[key];
  if (!value.IsMap()) fail(key, "must be " + form);
  std::vector<Entry> all;
  for (const auto& one : value) {
    Entry entry{one.first.Scalar(), {}, line_of(one.first)};
    if (!one.second.IsScalar()) fail(entry, "the value of '" + entry.name + "' must be a text");
    entry.text = one.second.Scalar();
    all.push_back(std::move(entry));
  }
  return all;
}

inline std::optional<std::string> Keys::safe_name(const std::string& key,
                                                  const std::string& also) const {
  auto name = text(key);
  if (!name) return name;
  const bool is_safe = !name->empty() && name->front() != '-' && name->size() < 256 &&
                       std::all_of(name->begin(), name->end(), [&](unsigned char c) {
                         return (c < 128 && std::isalnum(c) != 0) ||
                                also.find(static_cast<char>(c)) != std::string::npos;
                       });
  if (!is_safe)
    fail(key, "may have letters, digits and " + also + " only, and begins with no dash");
  return name;
}

inline std::vector<std::string> Keys::paths(const std::string& key) const {
  auto all = texts(key);
  for (std::string& path : all) {
    const char* home = std::getenv("HOME");
    if (path.starts_with("~/") && home != nullptr) path = home + path.substr(1);
    if (!path.starts_with('/')) fail(key, "must name files from / or ~/ on");
  }
  return all;
}

}  // namespace hpcbatch
