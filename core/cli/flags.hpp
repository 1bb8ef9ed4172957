// Adds flags to a verb such that a malformed value is refused with the flag's name.
#pragma once

#include <CLI/App.hpp>

#include <stdexcept>
#include <string>
#include <vector>

namespace hpcbatch::detail {

/// One value; `store` throws std::invalid_argument where it is not well formed.
template <class Store>
CLI::Option* add_value(CLI::App& verb, const std::string& flag, const char* type, Store store,
                       const std::string& description) {
  const auto guarded = [flag, store](const std::string& text) {
    try {
      store(text);
    } catch (const std::invalid_argument& error) {
      throw CLI::ValidationError(flag, error.what());
    }
  };
  return verb.add_option_function<std::string>(flag, guarded, description)->type_name(type);
}

/// A flag that may be given several times, one value each.
template <class Store>
CLI::Option* add_values(CLI::App& verb, const std::string& flag, const char* type, Store store,
                        const std::string& description) {
  const auto guarded = [flag, store](const std::vector<std::string>& texts) {
    try {
      for (const std::string& text : texts) store(text);
    } catch (const std::invalid_argument& error) {
      throw CLI::ValidationError(flag, error.what());
    }
  };
  return verb.add_option_function<std::vector<std::string>>(flag, guarded, description)
      ->allow_extra_args(false)
      ->type_name(type);
}

inline void add_json_flag(CLI::App& verb, bool& into) {
  verb.add_flag("--json", into, "one JSON object a line, with stable keys");
}

}  // namespace hpcbatch::detail
