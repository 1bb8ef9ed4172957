#include "pilot/images/image_layer.hpp"

#include "pilot/images/digest_sum.hpp"
#include "posix/regular_file.hpp"

#include <archive.h>
#include <archive_entry.h>
#include <locale.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>

namespace hpcbatch::pilot {
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

}  // namespace hpcbatch::pilot
