// An OCI layout as a registry or its author may have made it: nothing is written but below the tree.
#include "fuzz/harness.hpp"
#include "pilot/policy/container_image.hpp"
#include "pilot/policy/json_text.hpp"
#include "pilot/processes/oci_layout.hpp"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include <stdlib.h>

namespace hpcbatch::fuzz {
namespace {

namespace fs = std::filesystem;

constexpr const char* kOurs = "what nobody may change";

void put(const fs::path& file, std::string_view text) {
  std::ofstream(file, std::ios::binary) << text;
}

/// Digests of the files are not compared with what they name: a name of each is enough here.
void make_layout(const fs::path& layout, Input& input, std::string_view layer) {
  fs::create_directories(layout / "blobs/sha256");
  put(layout / "index.json", input.part());
  put(layout / "blobs/sha256/a", input.part());
  put(layout / "blobs/sha256/b", input.part());
  put(layout / "blobs/sha256/c", layer);
}

}  // namespace
}  // namespace hpcbatch::fuzz

HPCBATCH_HARNESS(oci, bytes) {
  Input input(bytes);
  const std::size_t which = input.number() % 4;
  if (which != 0) {
    if (const auto json = pilot::read_json(input.rest()))
      check(json->list.size() + json->fields.size() <= input.rest().size(),
            "no more fields than bytes");
    return;
  }
  std::string pattern = fs::temp_directory_path() / "hpcbatch-fuzz-XXXXXX";
  const fs::path root = ::mkdtemp(pattern.data());
  put(root / "ours", kOurs);
  Input parts = input;
  for (int i = 0; i < 3; ++i) parts.part();
  make_layout(root / "layout", input, parts.rest());
  pilot::unpack_layout(root / "layout", "", root / "tree");
  std::set<std::string> there;
  for (const auto& entry : fs::directory_iterator(root)) there.insert(entry.path().filename());
  there.erase("tree");
  check(there == std::set<std::string>{"layout", "ours"}, "nothing is made beside the tree");
  std::ifstream ours(root / "ours");
  check(std::string(std::istreambuf_iterator<char>(ours), {}) == kOurs,
        "nothing beside the tree changes");
  std::error_code ignored;
  fs::remove_all(root, ignored);
}
