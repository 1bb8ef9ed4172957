// TOML as the same tree.
#include "documents/texts.hpp"
#include "documents/yaml.hpp"
#include "fuzz/harness.hpp"
#include "fuzz/same_document.hpp"

namespace hpcbatch::fuzz {
namespace {

bool all_texts_are_valid(const Node& node) {
  return !find_invalid_utf8(node.text) &&
         std::all_of(node.items.begin(), node.items.end(), all_texts_are_valid) &&
         std::all_of(node.fields.begin(), node.fields.end(), [](const Field& field) {
           return !find_invalid_utf8(field.name) && all_texts_are_valid(field.value);
         });
}

}  // namespace
}  // namespace hpcbatch::fuzz

HPCBATCH_HARNESS(toml, bytes) {
  const DocumentLimits limits{.bytes = std::size_t{1} << 16, .nodes = 1000, .depth = 32};
  Node node;
  try {
    node = parse_toml(bytes, "file", limits);
  } catch (const DocumentError& error) {
    check(!find_invalid_utf8(error.what()) && !find_control_byte(error.what()),
          "a refusal can be shown");
    return;
  }
  check(node.kind == Node::Kind::Map, "the root is a map");
  check(nodes_in(node) <= limits.nodes, "no more nodes than may be");
  check(all_texts_are_valid(node), "texts are valid UTF-8");
}
