// How an image gets to where its runtime can run it: what is kept once for the whole site, what a
// node makes of it, and what it means that this failed.
#pragma once

#include "pilot/policy/container.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hpcbatch::pilot {

/// Kept for all nodes.
enum class Kept {
  Nothing,  // the image is a file or folder that runs as it is
  File,     // a SIF
  Archive,  // what a node's own store is filled from
  Tree      // a root file system
};
Kept kept_for(Runtime runtime, ImageKind kind);
/// Whether the node's runtime has to be given it, and calls it by a number from then on.
bool is_loaded(Runtime runtime, ImageKind kind);

/// Programs to run one after another, in which `to` is what is made.  A tree is unpacked from the
/// OCI layout that they leave at `to`.
std::vector<std::vector<std::string>> pull_commands(const FoundRuntime& runtime, const Image& image,
                                                    const std::string& to);

/// Brings the image into the node's store and prints what it is called there, last.
std::vector<std::string> load_command(const FoundRuntime& runtime, const Image& image,
                                      const std::string& archive);
/// The image's number in what that printed; empty: there is none.
std::string loaded_image(const std::string& printed);

/// The network or a busy registry: another try may go well.
bool is_transient_trouble(const std::string& printed);

struct KeptImage {
  std::string name;
  std::uint64_t bytes{};
  std::chrono::seconds unused{};  // since it was used last
};
/// What to remove so that the rest fits, what was unused longest first; nothing that somebody may
/// be using.
std::vector<std::string> images_to_remove(std::vector<KeptImage> kept, std::uint64_t limit);

// The little of JSON that the descriptions of images need: texts, lists and objects.

struct JsonText {
  std::string text;  // of a text; a number or a word as it is written
  std::vector<JsonText> list;
  std::map<std::string, JsonText> fields;

  /// Empty where there is no such field.
  const JsonText& at(const std::string& name) const;
};

/// Nothing where it is no JSON, or goes deeper than any such description.
std::optional<JsonText> read_json(std::string_view text);

}  // namespace hpcbatch::pilot
