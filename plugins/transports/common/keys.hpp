// The configuration of a plugin: a YAML map whose unknown keys are refused with their line.
#pragma once

#include "process.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <yaml-cpp/yaml.h>

namespace hpcbatch {

/// Every method throws std::runtime_error with the line and what was expected.
class Keys {
 public:
  Keys(const char* config_yaml, const std::vector<std::string>& known);

  std::optional<std::string> text(const std::string& key) const;
  std::vector<std::string> texts(const std::string& key) const;  ///< one text or a list of them
  std::int64_t number(const std::string& key, std::int64_t least, std::int64_t most,
                      std::int64_t otherwise) const;
  bool truth(const std::string& key, bool otherwise) const;
  Environment environment() const;  ///< of the key `environment`
  /// A name that means nothing to a shell or to ssh but itself; never begins with a dash.
  std::optional<std::string> safe_name(const std::string& key, const std::string& also) const;
  /// `~/` is the home directory of whoever runs this.
  std::vector<std::string> paths(const std::string& key) const;
  [[noreturn]] void fail(const std::string& key, const std::string& what) const;

 private:
  YAML::Node map_;
};

}  // namespace hpcbatch
