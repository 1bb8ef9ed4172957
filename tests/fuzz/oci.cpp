// An OCI layout as a registry or its author may have made it: nothing is written but below the tree.
#include "fuzz/harness.hpp"
#include "pilot/images/oci_layout.hpp"
#include "pilot/policy/image_pull.hpp"

#include <sodium.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <vector>

#include <stdlib.h>

namespace hpcbatch::fuzz {
namespace {

namespace fs = std::filesystem;

constexpr const char* kOurs = "what nobody may change";
constexpr std::size_t kBlock = 512, kSumAt = 148, kSumSize = 8, kMarkAt = 257;

void put(const fs::path& file, std::string_view text) {
  std::ofstream(file, std::ios::binary) << text;
}

/// Under its digest, as a hostile author would do it too.
std::string put_blob(const fs::path& layout, std::string_view bytes) {
  std::array<unsigned char, crypto_hash_sha256_BYTES> sum{};
  crypto_hash_sha256(sum.data(), reinterpret_cast<const unsigned char*>(bytes.data()),
                     bytes.size());
  std::array<char, crypto_hash_sha256_BYTES * 2 + 1> digits{};
  sodium_bin2hex(digits.data(), digits.size(), sum.data(), sum.size());
  put(layout / "blobs/sha256" / digits.data(), bytes);
  return R"({"digest": "sha256:)" + std::string(digits.data()) + R"("})";
}

/// The sums of its heads, which hold off nobody.
std::string with_sums(std::string_view archive) {
  std::string text(archive);
  for (std::size_t at = 0; at + kBlock <= text.size(); at += kBlock) {
    if (text.compare(at + kMarkAt, 5, "ustar") != 0) continue;
    std::fill_n(text.begin() + static_cast<std::ptrdiff_t>(at + kSumAt), kSumSize, ' ');
    unsigned sum = 0;
    for (std::size_t i = 0; i < kBlock; ++i) sum += static_cast<unsigned char>(text[at + i]);
    std::snprintf(&text[at + kSumAt], kSumSize, "%06o", sum);
  }
  return text;
}

void make_layout(const fs::path& layout, std::string_view config, std::string_view layers,
                 std::size_t cut) {
  fs::create_directories(layout / "blobs/sha256");
  cut = std::min(cut * kBlock, layers.size());
  std::string listed = put_blob(layout, with_sums(layers.substr(0, cut)));
  listed += ", " + put_blob(layout, with_sums(layers.substr(cut)));
  const std::string manifest =
      R"({"config": )" + put_blob(layout, config) + R"(, "layers": [)" + listed + "]}";
  put(layout / "index.json", R"({"manifests": [)" + put_blob(layout, manifest) + "]}");
}

void unpack(std::string_view config, std::string_view layers, std::size_t cut) {
  std::string pattern = fs::temp_directory_path() / "hpcbatch-fuzz-XXXXXX";
  const fs::path root = ::mkdtemp(pattern.data());
  put(root / "ours", kOurs);
  make_layout(root / "layout", config, layers, cut);
  static_cast<void>(pilot::unpack_layout(root / "layout", "", root / "tree",
                                         {.bytes = std::size_t{1} << 20, .entries = 200}));
  std::set<std::string> there;
  for (const auto& entry : fs::directory_iterator(root)) there.insert(entry.path().filename());
  there.erase("tree");
  check(there == std::set<std::string>{"layout", "ours"}, "nothing is made beside the tree");
  std::ifstream ours(root / "ours");
  check(std::string(std::istreambuf_iterator<char>(ours), {}) == kOurs,
        "nothing beside the tree changes");
  check(fs::hard_link_count(root / "ours") == 1, "nothing beside the tree gets another name");
  std::error_code ignored;
  fs::remove_all(root, ignored);
}

}  // namespace
}  // namespace hpcbatch::fuzz

HPCBATCH_HARNESS(oci, bytes) {
  Input input(bytes);
  const std::size_t which = input.number() % 2;
  if (which == 0) {
    const std::size_t cut = input.number();
    const std::string_view config = input.part();
    unpack(config, input.rest(), cut);
  } else if (const auto json = pilot::read_json(input.rest())) {
    check(json->list.size() + json->fields.size() <= input.rest().size(),
          "no more fields than bytes");
  }
}
