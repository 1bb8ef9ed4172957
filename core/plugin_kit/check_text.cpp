#include "plugin_kit/check_text.hpp"

#include "cli/show/values.hpp"

#include <cstdio>
#include <string>
#include <utility>

namespace hpcbatch::plugin_kit {
namespace {

namespace json = boost::json;

std::string indented(std::string text) {
  for (std::size_t at = 0; (at = text.find('\n', at)) != std::string::npos; at += 5)
    text.replace(at, 1, "\n    ");
  return text;
}

}  // namespace

void print_heard(const json::object& heard) {
  if (heard.contains("plugin")) {
    std::printf("%s plugin %s %s, %s\n", text_at(heard, "kind").c_str(),
                text_at(heard, "plugin").c_str(), text_at(heard, "version").c_str(),
                text_at(heard, "fingerprint").c_str());
  } else if (heard.contains("promise")) {
    std::printf("%s ... ", text_at(heard, "promise").c_str());
  } else if (heard.at("good").as_bool()) {
    std::printf("good\n");
  } else {
    std::printf("BROKEN\n    %s\n", indented(text_at(heard, "text")).c_str());
  }
  std::fflush(stdout);
}

void HeardTogether::add(const json::object& heard) {
  if (heard.contains("plugin"))
    plugin_ = heard;
  else if (heard.contains("promise"))
    promises_.emplace_back(heard);
  else
    for (const auto& [key, value] : heard) promises_.back().as_object()[key] = value;
}

json::object HeardTogether::take() {
  json::object all = std::move(plugin_);
  all["promises"] = std::move(promises_);
  return all;
}

}  // namespace hpcbatch::plugin_kit
