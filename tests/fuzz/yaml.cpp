// The strict reader of YAML: within its limits, and what it has read it can be given again.
#include "documents/yaml.hpp"
#include "documents/texts.hpp"
#include "fuzz/harness.hpp"
#include "fuzz/same_document.hpp"

HPCBATCH_HARNESS(yaml, bytes) {
  const DocumentLimits limits{.bytes = std::size_t{1} << 16, .nodes = 1000, .depth = 32};
  Node node;
  try {
    node = parse_yaml(bytes, "file", limits);
  } catch (const DocumentError& error) {
    check(!find_invalid_utf8(error.what()) && !find_control_byte(error.what()),
          "a refusal can be shown");
    return;
  }
  check(nodes_in(node) <= limits.nodes, "no more nodes than may be");
  check(same_document(node, parse_yaml(to_yaml(node), "again", {})),
        "a document survives being written");
}
