// The configuration of a plugin: a YAML map whose unknown keys are refused with their line.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
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
  YAML::Node map_;
};

}  // namespace hpcbatch
