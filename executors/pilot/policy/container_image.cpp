#include "pilot/policy/container_image.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace hpcbatch::pilot {
namespace {

constexpr std::array<std::string_view, 4> kImageEndings = {".sif", ".simg", ".img", ".tar"};
constexpr std::array<std::string_view, 3> kSquashEndings = {".sqfs", ".squashfs", ".sqsh"};
// Of what Apptainer alone can run.
constexpr std::array<std::string_view, 4> kItsOwn = {"library://", "oras://", "shub://",
                                                     "instance://"};
constexpr std::string_view kRegistry = "docker://";
constexpr std::string_view kLayout = "oci:";
constexpr std::array<std::string_view, 2> kArchives = {"docker-archive:", "oci-archive:"};

template <std::size_t N>
bool ends_as(std::string_view text, const std::array<std::string_view, N>& endings) {
  return std::any_of(endings.begin(), endings.end(),
                     [text](std::string_view ending) { return text.ends_with(ending); });
}

std::string below(const std::string& directory, std::string_view path) {
  return path.starts_with('/') ? std::string(path) : directory + "/" + std::string(path);
}

Image image_at(std::string path, const std::string& said, const PathFacts& facts) {
  if (facts.is_layout) return {ImageKind::Layout, std::move(path), said};
  if (facts.is_folder) return {ImageKind::Tree, std::move(path), said};
  if (ends_as(path, kSquashEndings)) return {ImageKind::Squash, std::move(path), said};
  if (path.ends_with(".tar")) return {ImageKind::Archive, std::move(path), said};
  return {ImageKind::File, std::move(path), said};
}

/// Without ":tag" or "@digest" at its end.
std::string without_tag(const std::string& place) {
  const std::size_t slash = place.rfind('/');
  const std::size_t tag = place.find_first_of(":@", slash == std::string::npos ? 0 : slash);
  return place.substr(0, tag);
}

}  // namespace

bool is_path_of_image(const std::string& text) {
  if (text.find("://") != std::string::npos || text.starts_with(kLayout)) return false;
  return text.starts_with('/') || text.starts_with('.') || ends_as(text, kImageEndings) ||
         ends_as(text, kSquashEndings);
}

Image image_of(const std::string& text, const std::string& directory, const PathFacts& facts) {
  for (const std::string_view scheme : kItsOwn) {
    if (text.starts_with(scheme)) return {ImageKind::Other, text, text};
  }
  if (text.starts_with(kRegistry))
    return {ImageKind::Registry, text.substr(kRegistry.size()), text};
  if (text.starts_with(kLayout))
    return {ImageKind::Layout, below(directory, std::string_view(text).substr(kLayout.size())),
            text};
  for (const std::string_view archive : kArchives) {
    if (text.starts_with(archive))
      return {ImageKind::Archive, below(directory, std::string_view(text).substr(archive.size())),
              text};
  }
  if (is_path_of_image(text)) return image_at(below(directory, text), text, facts);
  return {ImageKind::Registry, text, text};
}

std::string path_of(const Image& image) {
  switch (image.kind) {
    case ImageKind::Registry:
    case ImageKind::Other:
      return {};
    case ImageKind::Layout:
    case ImageKind::Archive:
      return without_tag(image.place);
    case ImageKind::File:
    case ImageKind::Squash:
    case ImageKind::Tree:
      return image.place;
  }
  return {};
}

std::string with_transport(const Image& image) {
  switch (image.kind) {
    case ImageKind::Registry:
      return std::string(kRegistry) + image.place;
    case ImageKind::Layout:
      return std::string(kLayout) + image.place;
    case ImageKind::Archive: {
      const std::string_view transport =
          image.said.starts_with(kArchives[1]) ? kArchives[1] : kArchives[0];
      return std::string(transport) + image.place;
    }
    case ImageKind::File:
    case ImageKind::Squash:
    case ImageKind::Tree:
    case ImageKind::Other:
      return image.place;
  }
  return image.place;
}

}  // namespace hpcbatch::pilot
