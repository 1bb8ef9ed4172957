#include "pilot/images/oci_layout.hpp"

#include "pilot/images/digest_sum.hpp"
#include "pilot/images/image_layer.hpp"
#include "pilot/policy/json_text.hpp"
#include "posix/regular_file.hpp"
#include "posix/write_all.hpp"

#include <sys/stat.h>
#include <cerrno>
#include <cstring>
#include <string_view>

namespace hpcbatch::pilot {
namespace {

constexpr const char* kTagName = "org.opencontainers.image.ref.name";
/// Registries take no larger descriptions.
constexpr std::size_t kLargestText = std::size_t{4} << 20;
constexpr timespec kNow{0, UTIME_NOW};

std::optional<JsonText> index_of(const std::string& layout) {
  // The layout is the user's, and may be put together from links.
  const RegularText index =
      read_regular(AT_FDCWD, layout + "/index.json", kLargestText, Links::Followed);
  return index ? read_json(index.text) : std::nullopt;
}

/// The entry of the image that the tag names, or of the first one.
const JsonText* entry_of(const JsonText& index, const std::string& tag) {
  for (const JsonText& manifest : index.at("manifests").list) {
    if (tag.empty() || manifest.at("annotations").at(kTagName).text == tag) return &manifest;
  }
  return nullptr;
}

/// A digest becomes a part of a path.
std::string blob_of(const std::string& layout, std::string digest) {
  const std::size_t colon = digest.find(':');
  if (colon == std::string::npos || digest.find_first_of("/.") != std::string::npos ||
      digest.find('\0') != std::string::npos)
    throw BadImage("it has a part that cannot be named: '" + digest.substr(0, 100) + "'");
  digest[colon] = '/';
  return layout + "/blobs/" + digest;
}

/// What a descriptor points to, which is what its digest and its size say.
JsonText described(const std::string& layout, const JsonText& descriptor, const std::string& what) {
  const std::string& digest = descriptor.at("digest").text;
  const RegularText blob =
      read_regular(AT_FDCWD, blob_of(layout, digest), kLargestText, Links::Followed);
  if (!blob) throw BadImage("cannot read its " + what + ": " + why_not_regular(blob.error));
  const std::string& size = descriptor.at("size").text;
  if (!matches_digest(digest, blob.text) ||
      (!size.empty() && size != std::to_string(blob.text.size())))
    throw BadImage("its " + what + " is not what its digest " + digest + " says");
  auto read = read_json(blob.text);
  if (!read) throw BadImage("its " + what + " is no JSON");
  return std::move(*read);
}

/// From the manifest and the configuration, which have to agree.
std::vector<Layer> layers_of(const std::string& layout, const JsonText& manifest,
                             const JsonText& config) {
  const std::vector<JsonText>& listed = manifest.at("layers").list;
  const std::vector<JsonText>& sums = config.at("rootfs").at("diff_ids").list;
  if (listed.empty()) throw BadImage("it has no layers");
  if (!sums.empty() && sums.size() != listed.size())
    throw BadImage("it has " + std::to_string(listed.size()) + " layers and sums of " +
                   std::to_string(sums.size()));
  std::vector<Layer> layers;
  for (std::size_t at = 0; at < listed.size(); ++at) {
    const std::string& digest = listed[at].at("digest").text;
    layers.push_back({blob_of(layout, digest), digest, sums.empty() ? "" : sums[at].text,
                      listed[at].at("size").text});
  }
  return layers;
}

void write_environment(const JsonText& config, ImageTree& tree) {
  std::string lines;
  for (const JsonText& line : config.at("config").at("Env").list) {
    if (line.text.find('\n') == std::string::npos) lines += line.text + '\n';
  }
  tree.put_folder({"ch"}, 0755, kNow);
  const Fd file = tree.put_file({"ch", "environment"}, 0644);
  if (const int error = write_all(file.get(), lines); error != 0)
    throw BadImage(std::string("cannot write its variables: ") + std::strerror(error));
}

/// At these Charliecloud shows what is the node's.
void make_usual_folders(ImageTree& tree) {
  for (const char* name : {"dev", "proc", "sys", "tmp", "etc", "home", "mnt", "root"}) {
    if (!tree.has({name})) tree.put_folder({name}, 0755, kNow);
  }
  for (const char* name : {"passwd", "group", "hosts", "resolv.conf"}) {
    if (!tree.has({"etc", name})) tree.put_file({"etc", name}, 0644);
  }
}

void unpack(const std::string& layout, const JsonText& entry, const std::string& folder,
            ImageBudget budget) {
  const JsonText manifest = described(layout, entry, "manifest");
  const JsonText config = described(layout, manifest.at("config"), "configuration");
  const std::vector<Layer> layers = layers_of(layout, manifest, config);
  ImageTree tree(folder);
  for (const Layer& layer : layers) {
    try {
      unpack_layer(layer, tree, budget);
    } catch (const BadImage& trouble) {
      throw BadImage("its layer " + layer.digest + ": " + trouble.what());
    }
  }
  make_usual_folders(tree);
  write_environment(config, tree);
}

}  // namespace

std::string digest_in_layout(const std::string& layout, const std::string& tag) {
  const auto index = index_of(layout);
  const JsonText* entry = index ? entry_of(*index, tag) : nullptr;
  return entry == nullptr ? std::string() : entry->at("digest").text;
}

std::string unpack_layout(const std::string& layout, const std::string& tag,
                          const std::string& tree, const ImageBudget& budget) {
  const auto index = index_of(layout);
  const JsonText* entry = index ? entry_of(*index, tag) : nullptr;
  if (entry == nullptr)
    return layout + " has no image" + (tag.empty() ? std::string() : " '" + tag + "'");
  try {
    unpack(layout, *entry, tree, budget);
  } catch (const BadImage& trouble) {
    return "cannot unpack the image " + entry->at("digest").text + " in " + layout + ": " +
           trouble.what();
  }
  return {};
}

}  // namespace hpcbatch::pilot
