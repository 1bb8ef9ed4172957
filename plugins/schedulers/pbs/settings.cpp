#include "settings.hpp"

#include "dialect.hpp"
#include "hpcbatch/keys.hpp"

#include <algorithm>

namespace hpcbatch::pbs {
namespace {

/// Goes into an argument of qsub, where commas, colons and spaces have a meaning.
bool is_word(const std::string& text, const std::string& also_allowed) {
  return std::all_of(text.begin(), text.end(), [&](unsigned char c) {
    return std::isalnum(c) != 0 || also_allowed.find(static_cast<char>(c)) != std::string::npos;
  });
}

std::string not_a_value(const std::string& text, const std::string& name) {
  return "'" + text + "' cannot be the value of '" + name + "'";
}

std::string read_dialect(const Keys& keys) {
  const auto text = keys.text("dialect");
  if (!text || std::find(kDialects.begin(), kDialects.end(), *text) != kDialects.end())
    return text.value_or("");
  keys.fail_with("dialect", "unknown dialect '" + *text +
                                "'; known are: openpbs (PBS Pro too), torque, slurm-torque "
                                "(SLURM's own qsub)");
}

std::string read_place(const Keys& keys) {
  const auto text = keys.text("place");
  if (!text) return {};
  if (text->empty()) keys.fail("place", "must be a text");
  if (!is_word(*text, ":=_-")) keys.fail_with("place", not_a_value(*text, "place"));
  return *text;
}

std::map<std::string, std::string> read_gpu_kinds(const Keys& keys) {
  std::map<std::string, std::string> kinds;
  for (const Keys::Entry& kind :
       keys.entries("gpu_kinds",
                    "a map such as {a100: gpu_model=A100}, from a kind of GPU to the resource that "
                    "asks for it")) {
    if (kind.text.empty()) Keys::fail(kind, "the value of '" + kind.name + "' must be a text");
    if (!is_word(kind.text, "=._-:")) Keys::fail(kind, not_a_value(kind.text, kind.name));
    kinds[kind.name] = kind.text;
  }
  return kinds;
}

}  // namespace

Settings read_settings(const char* config_yaml) {
  const Keys keys(config_yaml, {"dialect", "place", "gpu_kinds"},
                  "what qsub is to be given belongs under 'options' of the site");
  return {read_dialect(keys), read_place(keys), read_gpu_kinds(keys)};
}

}  // namespace hpcbatch::pbs
