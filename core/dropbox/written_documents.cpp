#include "dropbox/written_documents.hpp"

#include "documents/text_check.hpp"
#include "documents/view.hpp"
#include "documents/yaml.hpp"
#include "dropbox/python_yaml.hpp"

#include <fmt/format.h>

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

}  // namespace hpcbatch
