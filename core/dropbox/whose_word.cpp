#include "dropbox/whose_word.hpp"

#include <fmt/format.h>

namespace hpcbatch {
namespace {

constexpr std::uint32_t kRoot = 0;
constexpr std::uint32_t kOthersCanWrite = 022;
constexpr std::uint32_t kSticky = 01000;

bool is_ours_or_roots(std::uint32_t owner, std::uint32_t us) {
  return owner == us || owner == kRoot;
}

std::string shown(std::uint32_t mode) {
  return fmt::format("mode {:04o}", mode & 07777U);
}

}  // namespace

bool others_can_put(const FolderFacts& folder, std::uint32_t us) {
  return !is_ours_or_roots(folder.owner, us) || (folder.mode & kOthersCanWrite) != 0 ||
         folder.can_be_swapped;
}

std::string why_no_dropbox(const FolderFacts& folder, std::uint32_t us) {
  if (!(folder.mode & kOthersCanWrite)) return "";
  if (!(folder.mode & kSticky)) {
    return fmt::format(
        "others than its owner can write it and rename what is not theirs ({}); use chmod go-w, or "
        "chmod +t so that each renames only his own",
        shown(folder.mode));
  }
  if (us != kRoot && folder.owner != us) {
    return fmt::format(
        "its sticky bit ({}) keeps user {} from taking what others put there; it must belong to "
        "that user",
        shown(folder.mode), us);
  }
  return "";
}

std::string why_nobodys_word(const FolderFacts& folder, const JobFacts& file, std::uint32_t us) {
  if (const std::string why = why_no_dropbox(folder, us); !why.empty())
    return "the drop box serves nobody: " + why;
  if (file.is_known)
    return "it was taken before, or the drop box wrote it; a job is a new file of its submitter's";
  if (file.links > 1) return "it has another name elsewhere (a hard link); a job file has one name";
  if (file.mode & kOthersCanWrite) {
    return fmt::format(
        "others than its owner can write it ({}), so it is not its owner's word; use chmod go-w",
        shown(file.mode));
  }
  if (is_ours_or_roots(file.owner, us)) {
    if (!others_can_put(folder, us)) return "";
    return fmt::format(
        "it belongs to user {}, and others than user {} and root can put files into the drop box "
        "(it belongs to user {}, {}{}); jobs of that user go through a drop box of their own, or "
        "`hpcbatch submit`",
        file.owner, us, folder.owner, shown(folder.mode),
        folder.can_be_swapped ? ", and others can rename it or a folder above it" : "");
  }
  if (is_ours_or_roots(folder.owner, us) || folder.owner == file.owner) return "";
  return fmt::format(
      "it belongs to user {}, and user {}, to whom the drop box belongs, can put others' files "
      "there; give the folder to user {}",
      file.owner, folder.owner, us);
}

}  // namespace hpcbatch
