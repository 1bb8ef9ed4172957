#include "keys.hpp"

#include "remote_shell.hpp"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <stdexcept>

namespace hpcbatch {
namespace {

std::runtime_error at(const YAML::Node& node, const std::string& what) {
  return std::runtime_error("line " + std::to_string(node.Mark().line + 1) + ": " + what);
}

}  // namespace

Keys::Keys(const char* config_yaml, const std::vector<std::string>& known)
    : map_(YAML::Load(config_yaml)) {
  if (!map_.IsNull() && !map_.IsMap()) throw std::runtime_error("the configuration must be a map");
  std::string all;
  for (const auto& name : known) all += (all.empty() ? "" : ", ") + name;
  for (const auto& entry : map_) {
    const std::string key = entry.first.Scalar();
    if (std::find(known.begin(), known.end(), key) == known.end())
      throw at(entry.first,
               std::string("unknown key '").append(key).append("'; known are: ").append(all));
  }
}

void Keys::fail(const std::string& key, const std::string& what) const {
  const YAML::Node& map = map_;
  const YAML::Node value = map[key];
  if (!value) throw std::runtime_error("'" + key + "' " + what);
  throw at(value, "'" + key + "' " + what);
}

std::optional<std::string> Keys::text(const std::string& key) const {
  const auto all = texts(key);
  if (all.empty()) return std::nullopt;
  if (all.size() > 1) fail(key, "must be one text");
  return all.front();
}

std::vector<std::string> Keys::texts(const std::string& key) const {
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

std::int64_t Keys::number(const std::string& key, std::int64_t least, std::int64_t most,
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

bool Keys::truth(const std::string& key, bool otherwise) const {
  const auto given = text(key);
  if (!given) return otherwise;
  bool truth = false;
  if (!YAML::convert<bool>::decode(YAML::Node(*given), truth)) fail(key, "must be true or false");
  return truth;
}

Environment Keys::environment() const {
  Environment environment;
  if (!map_.IsMap() || !map_["environment"]) return environment;
  const YAML::Node value = map_["environment"];
  if (!value.IsMap()) fail("environment", "must be a map of names to values");
  for (const auto& variable : value) {
    const std::string name = variable.first.Scalar();
    if (!is_variable_name(name))
      throw at(variable.first, "'" + name + "' is no name of a variable");
    if (!variable.second.IsScalar())
      throw at(variable.first, "the value of '" + name + "' must be a text");
    environment[name] = variable.second.Scalar();
  }
  return environment;
}

std::optional<std::string> Keys::safe_name(const std::string& key, const std::string& also) const {
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

std::vector<std::string> Keys::paths(const std::string& key) const {
  auto all = texts(key);
  for (std::string& path : all) {
    const char* home = std::getenv("HOME");
    if (path.starts_with("~/") && home != nullptr) path = home + path.substr(1);
    if (!path.starts_with('/')) fail(key, "must name files from / or ~/ on");
  }
  return all;
}

}  // namespace hpcbatch
