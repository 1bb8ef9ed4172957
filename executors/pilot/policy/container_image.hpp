// What a task's container is made of, as its text says it and as the node sees it.
#pragma once

#include <string>

namespace hpcbatch::pilot {

enum class ImageKind {
  File,      // a SIF, or an image file of an earlier Singularity
  Squash,    // a SquashFS file
  Tree,      // a folder with a root file system
  Layout,    // a folder that is an OCI layout
  Archive,   // a tar file of Docker's or OCI's making
  Registry,  // a name that a registry knows
  Other      // what only Apptainer knows
};

struct Image {
  ImageKind kind{ImageKind::File};
  std::string place;  // path, perhaps with a tag behind it, or name in a registry
  std::string said;   // as it was asked for
};

/// Whether the text names a file or folder of the node: by a '/', '.' or '..' at its begin, or by
/// the ending of an image file.
bool is_path_of_image(const std::string& text);

/// What the node has at a path.
struct PathFacts {
  bool is_folder{false};
  bool is_layout{false};
};

/// `directory` is where relative paths begin.  `facts` are of the path, where it is one.
Image image_of(const std::string& text, const std::string& directory, const PathFacts& facts);

/// The file or folder that has to be there; empty: none.
std::string path_of(const Image& image);

/// As Podman, Docker, Apptainer and Skopeo take it.
std::string with_transport(const Image& image);

}  // namespace hpcbatch::pilot
