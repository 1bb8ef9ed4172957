#include "dropbox/written_documents.hpp"

#include "documents/texts.hpp"
#include "documents/view.hpp"
#include "documents/yaml.hpp"

#include <hpcbatch/text.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <ctime>

namespace hpcbatch {
namespace {

constexpr std::size_t kLongestOutput = std::size_t{64} * 1024;
// Ours are larger than what a client may write: they hold that and the texts of the result.
constexpr DocumentLimits kDocumentLimits{
    .bytes = std::size_t{16} << 20, .nodes = 20'000, .depth = 40};

void set(Node& map, std::string name, Node value) {
  map.kind = Node::Kind::Map;
  std::erase_if(map.fields, [&](const Field& field) { return field.name == name; });
  map.fields.push_back(Field{.name = std::move(name), .line = 1, .value = std::move(value)});
}

Node map_node(const JobFile::Map& map) {
  Node node;
  node.kind = Node::Kind::Map;
  for (const auto& [name, value] : map) set(node, name, text_node(value));
  return node;
}

Node with_hpc(const Submitted& job) {
  Node hpc;
  set(hpc, "finished_file", text_node(job.workspace + "/finished.out"));
  set(hpc, "input_map", map_node(job.inputs));
  set(hpc, "key", text_node(job.key));
  set(hpc, "output_map", map_node(job.outputs));
  set(hpc, "owner", integer_node(job.owner));
  set(hpc, "workspace", text_node(job.workspace));
  Node document = job.document;
  set(document, "hpc", std::move(hpc));
  return document;
}

Node result_node(const JobResult& result) {
  Node node;
  set(node, "end", text_node(local_time(result.end)));
  set(node, "message", text_node(result.message));
  set(node, "rc", integer_node(result.exit_code));
  if (!result.reason.empty()) set(node, "reason", text_node(result.reason));
  set(node, "start", text_node(local_time(result.start)));
  set(node, "status", text_node(result.ok ? "ok" : "error"));
  set(node, "stderr", text_node(shortened(result.standard_error, kLongestOutput)));
  set(node, "stdout", text_node(shortened(result.standard_output, kLongestOutput)));
  return node;
}

JobFile::Map text_map(const View& view) {
  JobFile::Map map;
  for (const View& entry : view.map().entries()) map.emplace_back(entry.name(), entry.text());
  return map;
}

/// Words that YAML 1.1 takes for something else than a text.
constexpr std::array<std::string_view, 10> kReserved{"y",   "n",    "yes",   "no",   "on",
                                                     "off", "true", "false", "null", "~"};

bool is_reserved(std::string_view text) {
  const std::string lower = lower_case(std::string(text));
  return std::find(kReserved.begin(), kReserved.end(), lower) != kReserved.end();
}

bool is_plain(std::string_view text) {
  const auto is_fine = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) ||
           std::string_view("_./ -").find(c) != std::string_view::npos;
  };
  return !text.empty() &&
         (std::isalpha(static_cast<unsigned char>(text.front())) || text.front() == '_' ||
          text.front() == '/') &&
         text.back() != ' ' && std::all_of(text.begin(), text.end(), is_fine) && !is_reserved(text);
}

bool is_printable_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; });
}

std::string single_quoted(std::string_view text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? std::string("''") : std::string(1, c);
  return result + "'";
}

/// PyYAML refuses to read C1 controls and U+FFFE, U+FFFF where they stand as they are, and takes
/// U+0085, U+2028, U+2029 for line ends.
bool must_be_escaped(unsigned code_point) {
  return (code_point >= 0x80 && code_point < 0xA0) || code_point == 0x2028 ||
         code_point == 0x2029 || code_point == 0xFEFF || code_point == 0xFFFE ||
         code_point == 0xFFFF;
}

std::string double_quoted(std::string_view text) {
  std::string result = "\"";
  for (std::size_t at = 0; at < text.size();) {
    const auto byte = [&](std::size_t i) {
      return static_cast<unsigned>(static_cast<unsigned char>(text[at + i]));
    };
    const std::size_t length = byte(0) < 0x80 ? 1 : byte(0) < 0xE0 ? 2 : byte(0) < 0xF0 ? 3 : 4;
    unsigned code_point = byte(0);
    if (length == 2) code_point = (byte(0) & 0x1FU) << 6 | (byte(1) & 0x3FU);
    if (length == 3)
      code_point = (byte(0) & 0x0FU) << 12 | (byte(1) & 0x3FU) << 6 | (byte(2) & 0x3FU);
    if (length == 1) {
      switch (text[at]) {
        case '"':
          result += "\\\"";
          break;
        case '\\':
          result += "\\\\";
          break;
        case '\n':
          result += "\\n";
          break;
        case '\t':
          result += "\\t";
          break;
        default:
          result += text[at];
      }
    } else if (length < 4 && must_be_escaped(code_point)) {
      result += fmt::format("\\u{:04x}", code_point);
    } else {
      result += text.substr(at, length);
    }
    at += length;
  }
  return result + "\"";
}

std::string scalar(const Node& node) {
  // What the client wrote without quotes keeps its meaning only without quotes.
  if (!node.quoted && !node.text.empty() && node.text.find('\n') == std::string::npos &&
      !entry::begins_as_indicator(node.text))
    return node.text;
  if (is_plain(node.text)) return node.text;
  return is_printable_ascii(node.text) ? single_quoted(node.text) : double_quoted(node.text);
}

void write(const Node& node, std::size_t indent, bool begins_line, std::string& text);

void write_fields(const Node& node, std::size_t indent, std::string& text) {
  std::vector<const Field*> fields;
  for (const Field& field : node.fields) fields.push_back(&field);
  std::sort(fields.begin(), fields.end(),
            [](const Field* a, const Field* b) { return a->name < b->name; });
  bool is_first = true;
  for (const Field* field : fields) {
    if (!is_first) text.append(indent, ' ');
    is_first = false;
    const std::string name = scalar(text_node(field->name));
    if (name.size() > entry::kLongestKey)
      text += "? " + name + "\n" + std::string(indent, ' ') + ":";
    else
      text += name + ":";
    write(field->value, indent, false, text);
  }
}

void write(const Node& node, std::size_t indent, bool begins_line, std::string& text) {
  const auto leaf = [&](std::string_view value) {
    if (!begins_line) text += " ";
    text += value;
    text += "\n";
  };
  switch (node.kind) {
    case Node::Kind::Null:
      return leaf("null");
    case Node::Kind::Scalar:
      return leaf(scalar(node));
    case Node::Kind::Map:
      if (node.fields.empty()) return leaf("{}");
      if (!begins_line) {
        indent += 2;
        text += "\n" + std::string(indent, ' ');
      }
      return write_fields(node, indent, text);
    case Node::Kind::List:
      if (node.items.empty()) return leaf("[]");
      if (!begins_line) text += "\n" + std::string(indent, ' ');
      for (std::size_t i = 0; i < node.items.size(); ++i) {
        if (i > 0) text.append(indent, ' ');
        text += "- ";
        write(node.items[i], indent + 2, true, text);
      }
  }
}

}  // namespace

std::string job_key(const std::string& name, std::uint64_t inode, std::int64_t changed_ns,
                    std::string_view content) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;  // FNV-1a: tells contents apart, proves nothing
  for (const char c : content) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return fmt::format("{}:{}:{}:{:016x}", show_text(name, 120), inode, changed_ns, hash);
}

std::string submitted_document(const Submitted& job) {
  return python_yaml(with_hpc(job));
}

std::string finished_document(const Submitted& job, const JobResult& result) {
  Node document = with_hpc(job);
  set(document, "job", result_node(result));
  return python_yaml(document);
}

std::string refused_document(const Node& document, const JobResult& result, std::uint32_t owner) {
  Node whole;
  whole.kind = Node::Kind::Map;
  if (document.kind == Node::Kind::Map) whole = document;
  Node hpc;
  set(hpc, "owner", integer_node(owner));
  set(whole, "hpc", std::move(hpc));
  set(whole, "job", result_node(result));
  return python_yaml(whole);
}

std::optional<std::uint32_t> submitter_in(std::string_view text, const std::string& file) {
  try {
    const Node document = parse_yaml(text, file, kDocumentLimits);
    const View whole(document, file, "the document");
    MapView map = whole.map();
    MapView hpc = map.get("hpc").map();
    return static_cast<std::uint32_t>(hpc.get("owner").integer(0, UINT32_MAX));
  } catch (const DocumentError&) {
    return std::nullopt;
  }
}

ReadSubmitted parse_submitted(std::string_view text, const std::string& file) {
  ReadSubmitted read;
  const Node document = parse_yaml(text, file, kDocumentLimits);
  const View whole(document, file, "the submitted job");
  MapView map = whole.map();
  MapView hpc = map.get("hpc").map();
  read.job.key = hpc.get("key").non_empty_text();
  read.job.workspace = hpc.get("workspace").absolute_path();
  read.job.owner = static_cast<std::uint32_t>(hpc.get("owner").integer(0, UINT32_MAX));
  read.job.inputs = text_map(hpc.get("input_map"));
  read.job.outputs = text_map(hpc.get("output_map"));
  read.is_finished = map.find("job").has_value();
  read.job.document = document;
  std::erase_if(read.job.document.fields,
                [](const Field& field) { return field.name == "hpc" || field.name == "job"; });
  return read;
}

std::string local_time(Time time) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(time);
  const std::time_t whole = seconds.time_since_epoch().count();
  std::tm parts{};
  ::localtime_r(&whole, &parts);
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02}:{:02}.{:06}", parts.tm_year + 1900,
                     parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec,
                     (time - seconds).count());
}

std::string shortened(std::string text, std::size_t most) {
  if (text.size() <= most) return text;
  const std::string_view all = text;
  return fmt::format("{}\n[... {} bytes left out ...]\n{}", all.substr(0, most / 2),
                     text.size() - most / 2 * 2, all.substr(text.size() - most / 2));
}

std::string python_yaml(const Node& node) {
  std::string text;
  write(node, 0, true, text);
  return text;
}

Node text_node(std::string_view text) {
  Node node;
  node.kind = Node::Kind::Scalar;
  node.text = make_printable(text);
  node.quoted = true;
  return node;
}

Node integer_node(std::int64_t value) {
  Node node;
  node.kind = Node::Kind::Scalar;
  node.text = std::to_string(value);
  return node;
}

}  // namespace hpcbatch
