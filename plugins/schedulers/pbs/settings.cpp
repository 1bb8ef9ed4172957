#include "settings.hpp"

#include "dialect.hpp"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <stdexcept>

namespace hpcbatch::pbs {
namespace {

std::runtime_error at(const YAML::Node& node, const std::string& what) {
  return std::runtime_error("line " + std::to_string(node.Mark().line + 1) + ": " + what);
}

/// A word that goes into an argument of qsub, where commas, colons and spaces have a meaning.
std::string word(const YAML::Node& key, const YAML::Node& value, const std::string& also_allowed) {
  const std::string name = key.as<std::string>();
  if (!value.IsScalar() || value.Scalar().empty())
    throw at(key, "the value of '" + name + "' must be a text");
  std::string text = value.Scalar();
  const bool is_word = std::all_of(text.begin(), text.end(), [&](unsigned char c) {
    return std::isalnum(c) != 0 || also_allowed.find(static_cast<char>(c)) != std::string::npos;
  });
  if (!is_word) throw at(key, "'" + text + "' cannot be the value of '" + name + "'");
  return text;
}

std::string read_dialect(const YAML::Node& key, const YAML::Node& value) {
  std::string text = value.IsScalar() ? value.Scalar() : "";
  if (std::find(kDialects.begin(), kDialects.end(), text) != kDialects.end()) return text;
  throw at(key, "unknown dialect '" + text +
                    "'; known are: openpbs (PBS Pro too), torque, slurm-torque (SLURM's own qsub)");
}

std::map<std::string, std::string> read_gpu_kinds(const YAML::Node& key, const YAML::Node& value) {
  if (!value.IsMap())
    throw at(key,
             "'gpu_kinds' must be a map such as {a100: gpu_model=A100}, from a kind of GPU to "
             "the resource that asks for it");
  std::map<std::string, std::string> kinds;
  for (const auto& kind : value)
    kinds[kind.first.as<std::string>()] = word(kind.first, kind.second, "=._-:");
  return kinds;
}

}  // namespace

Settings read_settings(const char* config_yaml) {
  Settings settings;
  const YAML::Node config = YAML::Load(config_yaml);
  if (config.IsNull()) return settings;
  if (!config.IsMap()) throw at(config, "the configuration of 'pbs' must be a map");
  for (const auto& entry : config) {
    const auto key = entry.first.as<std::string>();
    if (key == "dialect") {
      settings.dialect = read_dialect(entry.first, entry.second);
    } else if (key == "place") {
      settings.place = word(entry.first, entry.second, ":=_-");
    } else if (key == "gpu_kinds") {
      settings.gpu_kinds = read_gpu_kinds(entry.first, entry.second);
    } else {
      throw at(entry.first, "unknown key '" + key +
                                "'; known are: dialect, place, gpu_kinds; what qsub is to be given "
                                "belongs under 'options' of the site");
    }
  }
  return settings;
}

}  // namespace hpcbatch::pbs
