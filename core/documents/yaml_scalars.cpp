#include "documents/yaml_scalars.hpp"

#include "documents/yaml.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace hpcbatch::entry {
namespace {

constexpr std::uint64_t kWholeMega = std::uint64_t{1} << 20;
constexpr std::uint64_t kWholeGiga = std::uint64_t{1} << 30;

/// On one line.
std::string flow(const Node& node) {
  std::string text;
  const auto separate = [&text] { text += text.empty() ? "" : ", "; };
  switch (node.kind) {
    case Node::Kind::Null:
      return "~";
    case Node::Kind::Scalar:
      return node.quoted ? quoted(node.text) : scalar(node.text);
    case Node::Kind::List:
      for (const Node& item : node.items) {
        separate();
        text += flow(item);
      }
      return "[" + text + "]";
    case Node::Kind::Map:
      for (const Field& field : node.fields) {
        separate();
        text += scalar(field.name) + ": " + flow(field.value);
      }
      return "{" + text + "}";
  }
  return text;
}

}  // namespace

bool begins_as_indicator(std::string_view text) {
  return !text.empty() && std::string_view("-?:").find(text.front()) != std::string_view::npos &&
         (text.size() == 1 || text[1] == ' ');
}

std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    if (c == '\n') {
      result += "\\n";
    } else if (c == '\t') {
      result += "\\t";
    } else {
      result += c;
    }
  }
  return result + "\"";
}

std::string scalar(std::string_view text) {
  static constexpr std::string_view kFine = "_./@%+-";
  const auto is_fine = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           kFine.find(c) != std::string_view::npos;
  };
  const bool is_plain = !text.empty() && std::all_of(text.begin(), text.end(), is_fine) &&
                        text.front() != '-' && text.front() != '@' && text.front() != '%' &&
                        text != "null" && text != "Null" && text != "NULL";
  return is_plain ? std::string(text) : quoted(text);
}

std::string list(const std::vector<std::string>& texts) {
  std::string text;
  for (const std::string& one : texts) text += (text.empty() ? "" : ", ") + scalar(one);
  return "[" + text + "]";
}

std::string plugin(const std::string& name, const std::string& config) {
  const Node keys = config.empty() ? Node{} : parse_yaml(config, name);
  if (keys.kind != Node::Kind::Map || keys.fields.empty()) return scalar(name);
  return "{plugin: " + scalar(name) + ", " + flow(keys).substr(1);
}

std::string duration(Duration time) {
  const auto us = time.count();
  const std::int64_t second = 1'000'000;
  if (us != 0 && us % (3600 * second) == 0) return fmt::format("{}h", us / (3600 * second));
  if (us != 0 && us % (60 * second) == 0) return fmt::format("{}m", us / (60 * second));
  if (us % second == 0) return fmt::format("{}s", us / second);
  return fmt::format("{}ms", us / 1000);
}

std::string size(std::uint64_t bytes) {
  if (bytes % kWholeGiga == 0) return fmt::format("{}G", bytes / kWholeGiga);
  if (bytes % kWholeMega == 0) return fmt::format("{}M", bytes / kWholeMega);
  return fmt::format("{}", bytes);
}

const char* link_word(LinkKind link) {
  switch (link) {
    case LinkKind::Auto:
      break;
    case LinkKind::Unix:
      return "unix";
    case LinkKind::Direct:
      return "direct";
    case LinkKind::Relay:
      return "relay";
    case LinkKind::Spool:
      return "spool";
  }
  return "auto";
}

}  // namespace hpcbatch::entry
