#include "pilot/images/oci_layout.hpp"

#include "pilot/images/image_tree.hpp"
#include "pilot/policy/image_pull.hpp"
#include "posix/files.hpp"

#include <archive.h>
#include <archive_entry.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>
#include <string_view>

#include <locale.h>
#include <sys/stat.h>
#include <unistd.h>

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

namespace {

constexpr std::string_view kRemoved = ".wh.";
constexpr std::string_view kOfOthers =
    ".wh..wh.";  // of the file system that made such layers first
constexpr std::string_view kEmptied = ".wh..wh..opq";
constexpr std::size_t kStep = std::size_t{256} << 10;
/// Headers and filling of an entry, with a long name and times: a stream has not much more than its
/// files.
constexpr std::uint64_t kAroundEntry = 4096;
constexpr std::uint64_t kAroundAll = std::uint64_t{1} << 20;

struct CloseArchive {
  void operator()(archive* a) const { ::archive_read_free(a); }
};
using Archive = std::unique_ptr<archive, CloseArchive>;

std::string why(archive* a) {
  const char* text = ::archive_error_string(a);
  return text == nullptr ? "it cannot be read" : text;
}

/// Names are bytes for us; the library wants to know which letters they are.
class PlainNames {
 public:
  PlainNames() : ours_(::newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr)) {
    if (ours_ != nullptr) before_ = ::uselocale(ours_);
  }
  PlainNames(const PlainNames&) = delete;
  PlainNames& operator=(const PlainNames&) = delete;
  ~PlainNames() {
    if (ours_ == nullptr) return;
    ::uselocale(before_);
    ::freelocale(ours_);
  }

 private:
  locale_t ours_;
  locale_t before_{};
};

/// The bytes of the blob, and of the tar archive in it: both are summed and counted.
class LayerStream {
 public:
  LayerStream(const Layer& layer, const ImageBudget& budget)
      : blob_sum_(layer.digest),
        most_(budget.bytes + budget.entries * kAroundEntry + kAroundAll),
        blob_(open_regular(AT_FDCWD, layer.blob, O_RDONLY, Links::Followed)) {
    if (!blob_) throw BadImage(why_not_regular(blob_.error));
    if (!layer.said_size.empty() && layer.said_size != std::to_string(blob_.size()))
      throw BadImage("it has " + std::to_string(blob_.size()) + " bytes and not " +
                     layer.said_size);
    if (!layer.diff_id.empty()) tar_sum_.emplace(layer.diff_id);
    packed_.reset(::archive_read_new());
    ::archive_read_support_filter_gzip(packed_.get());
    ::archive_read_support_filter_zstd(packed_.get());
    ::archive_read_support_format_raw(packed_.get());
    if (::archive_read_open(packed_.get(), this, nullptr, read_blob, nullptr) != ARCHIVE_OK ||
        ::archive_read_next_header(packed_.get(), &ignored_) != ARCHIVE_OK)
      throw BadImage(why(packed_.get()));
  }

  static la_ssize_t read_tar(archive* /*tar*/, void* self, const void** bytes) {
    return static_cast<LayerStream*>(self)->next_of_tar(bytes);
  }

  /// What the reader of the archive stumbled over: it does not hand on what we told it.
  std::string why_not(archive* tar) const { return trouble_.empty() ? why(tar) : trouble_; }

  /// To their ends, which the reader of the archive may not have seen.
  void finish() {
    const void* bytes = nullptr;
    la_ssize_t size = 0;
    while ((size = next_of_tar(&bytes)) > 0) {
    }
    if (size < 0) throw BadImage(trouble_);
    while ((size = next_of_blob(packed_.get(), &bytes)) > 0) {
    }
    if (size < 0) throw BadImage(why(packed_.get()));
    if (!blob_sum_.matches()) throw BadImage("it is not what its digest says");
    if (tar_sum_ && !tar_sum_->matches())
      throw BadImage("what is in it is not what the image's diff_id says");
  }

 private:
  static la_ssize_t read_blob(archive* a, void* self, const void** bytes) {
    return static_cast<LayerStream*>(self)->next_of_blob(a, bytes);
  }

  la_ssize_t next_of_blob(archive* a, const void** bytes) {
    ssize_t got = 0;
    do {
      got = ::read(blob_.fd.get(), room_.data(), room_.size());
    } while (got < 0 && errno == EINTR);
    if (got < 0) {
      ::archive_set_error(a, errno, "%s", std::strerror(errno));
      return -1;
    }
    blob_sum_.add(room_.data(), static_cast<std::size_t>(got));
    *bytes = room_.data();
    return got;
  }

  la_ssize_t next_of_tar(const void** bytes) {
    std::size_t size = 0;
    la_int64_t at = 0;
    const int result = ::archive_read_data_block(packed_.get(), bytes, &size, &at);
    if (result == ARCHIVE_EOF) return 0;
    if (result != ARCHIVE_OK) trouble_ = why(packed_.get());
    if (size > most_) trouble_ = "it unpacks to far more than its files have";
    if (!trouble_.empty()) return ARCHIVE_FATAL;
    most_ -= size;
    if (tar_sum_) tar_sum_->add(*bytes, size);
    return static_cast<la_ssize_t>(size);
  }

  std::string trouble_;
  DigestSum blob_sum_;
  std::optional<DigestSum> tar_sum_;
  std::uint64_t most_;
  RegularFile blob_;
  std::vector<char> room_ = std::vector<char>(kStep);
  Archive packed_;
  archive_entry* ignored_{};
};

/// One entry after another, in the order of the layer.
class Unpacking {
 public:
  Unpacking(archive* tar, const LayerStream& stream, ImageTree& tree, ImageBudget& budget)
      : tar_(tar), stream_(stream), tree_(tree), budget_(budget) {}

  void take(archive_entry* entry) {
    if (budget_.entries == 0)
      throw BadImage("the image has more than " + std::to_string(ImageBudget::kMostEntries) +
                     " files and folders");
    --budget_.entries;
    const char* name = ::archive_entry_pathname(entry);
    if (name == nullptr) throw BadImage("the name of an entry cannot be read");
    const ImagePath path = image_path(name);
    if (is_mark(path) || path.empty()) return;
    // What a node has there is shown at its place.
    if (path.front() == "dev" && path.size() > 1) return;
    if (const char* target = ::archive_entry_hardlink(entry)) {
      tree_.put_hard_link(path, image_path(target));
    } else if (::archive_entry_filetype(entry) == AE_IFREG) {
      put_file(path, entry);
    } else if (::archive_entry_filetype(entry) == AE_IFDIR) {
      tree_.put_folder(path, ::archive_entry_perm(entry), changed(entry));
    } else if (::archive_entry_filetype(entry) == AE_IFLNK) {
      const char* said = ::archive_entry_symlink(entry);
      if (said == nullptr) throw BadImage("the link " + shown(path) + " has no target");
      tree_.put_link(path, said);
    }
    // Devices, FIFOs and sockets are nobody's data, and whoever reads the tree could hang on them.
  }

 private:
  static timespec changed(archive_entry* entry) {
    if (::archive_entry_mtime_is_set(entry) == 0) return {0, UTIME_NOW};
    return {::archive_entry_mtime(entry), ::archive_entry_mtime_nsec(entry)};
  }

  /// A mark says what earlier layers have no more; true for one that was followed.
  bool is_mark(const ImagePath& path) {
    for (std::size_t at = 0; at < path.size(); ++at) {
      const std::string& step = path[at];
      if (!step.starts_with(kRemoved)) continue;
      const bool is_last = at + 1 == path.size();
      const ImagePath folder(path.begin(), path.begin() + static_cast<std::ptrdiff_t>(at));
      if (is_last && step == kEmptied) {
        tree_.empty_folder(folder);
      } else if (!step.starts_with(kOfOthers)) {
        const std::string name = step.substr(kRemoved.size());
        if (!is_last || name.empty() || name == "." || name == "..")
          throw BadImage("its mark " + shown(path) + " names nothing that could be taken away");
        ImagePath gone = folder;
        gone.push_back(name);
        tree_.take_away(gone);
      }
      return true;
    }
    return false;
  }

  void put_file(const ImagePath& path, archive_entry* entry) {
    const la_int64_t said = ::archive_entry_size(entry);
    const auto size = static_cast<std::uint64_t>(std::max<la_int64_t>(said, 0));
    if (said < 0 || size > budget_.bytes)
      throw BadImage("with " + shown(path) +
                     " the image has more than all images together may have here; take a smaller "
                     "one, or raise HPCBATCH_IMAGES_GB in the site's setup");
    budget_.bytes -= size;
    const Fd file = tree_.put_file(path, ::archive_entry_perm(entry));
    const void* bytes = nullptr;
    std::size_t count = 0;
    la_int64_t at = 0;
    int result = ARCHIVE_OK;
    while ((result = ::archive_read_data_block(tar_, &bytes, &count, &at)) == ARCHIVE_OK) {
      if (at < 0 || static_cast<std::uint64_t>(at) > size ||
          count > size - static_cast<std::uint64_t>(at))
        throw BadImage(shown(path) + " has more bytes than it says");
      if (!write_at(file.get(), static_cast<const char*>(bytes), count, at))
        throw BadImage("cannot write " + shown(path) + ": " + std::strerror(errno));
    }
    if (result != ARCHIVE_EOF) throw BadImage(stream_.why_not(tar_));
    const timespec times[2] = {changed(entry), changed(entry)};
    // Its end may be a hole.
    if (::ftruncate(file.get(), static_cast<off_t>(size)) != 0)
      throw BadImage("cannot write " + shown(path) + ": " + std::strerror(errno));
    ::futimens(file.get(), times);
  }

  static bool write_at(int file, const char* bytes, std::size_t count, la_int64_t at) {
    while (count > 0) {
      const ssize_t done = ::pwrite(file, bytes, count, at);
      if (done < 0 && errno == EINTR) continue;
      if (done < 0) return false;
      bytes += done;
      at += done;
      count -= static_cast<std::size_t>(done);
    }
    return true;
  }

  archive* tar_;
  const LayerStream& stream_;
  ImageTree& tree_;
  ImageBudget& budget_;
};

}  // namespace

void unpack_layer(const Layer& layer, ImageTree& tree, ImageBudget& budget) {
  const PlainNames names;
  LayerStream stream(layer, budget);
  const Archive tar(::archive_read_new());
  ::archive_read_support_format_tar(tar.get());
  if (::archive_read_open(tar.get(), &stream, nullptr, LayerStream::read_tar, nullptr) !=
      ARCHIVE_OK)
    throw BadImage(stream.why_not(tar.get()));
  tree.begin_layer();
  Unpacking unpacking(tar.get(), stream, tree, budget);
  archive_entry* entry = nullptr;
  int result = ARCHIVE_OK;
  while ((result = ::archive_read_next_header(tar.get(), &entry)) == ARCHIVE_OK ||
         result == ARCHIVE_WARN)
    unpacking.take(entry);
  if (result != ARCHIVE_EOF) throw BadImage(stream.why_not(tar.get()));
  stream.finish();
  tree.end_layer();
}

DigestSum::DigestSum(const std::string& digest) {
  const std::size_t colon = digest.find(':');
  const std::string kind = digest.substr(0, colon);
  if (colon != std::string::npos) digits_ = digest.substr(colon + 1);
  is_long_ = kind == "sha512";
  const std::size_t bytes = is_long_ ? crypto_hash_sha512_BYTES : crypto_hash_sha256_BYTES;
  if ((kind != "sha256" && !is_long_) || digits_.size() != 2 * bytes ||
      digits_.find_first_not_of("0123456789abcdef") != std::string::npos)
    throw BadImage("'" + digest.substr(0, 100) +
                   "' is no digest that is known here (sha256, sha512)");
  ::crypto_hash_sha256_init(&short_);
  ::crypto_hash_sha512_init(&long_);
}

void DigestSum::add(const void* bytes, std::size_t size) {
  const auto* begin = static_cast<const unsigned char*>(bytes);
  if (is_long_) {
    ::crypto_hash_sha512_update(&long_, begin, size);
  } else {
    ::crypto_hash_sha256_update(&short_, begin, size);
  }
}

bool DigestSum::matches() {
  std::array<unsigned char, crypto_hash_sha512_BYTES> sum{};
  if (is_long_) {
    ::crypto_hash_sha512_final(&long_, sum.data());
  } else {
    ::crypto_hash_sha256_final(&short_, sum.data());
  }
  std::array<char, 2 * sum.size() + 1> digits{};
  ::sodium_bin2hex(digits.data(), digits.size(), sum.data(), digits_.size() / 2);
  return digits_ == digits.data();
}

bool matches_digest(const std::string& digest, std::string_view bytes) {
  DigestSum sum(digest);
  sum.add(bytes.data(), bytes.size());
  return sum.matches();
}

}  // namespace hpcbatch::pilot
