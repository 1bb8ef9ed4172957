#include "pilot/processes/oci_layout.hpp"

#include "pilot/base/remove_tree.hpp"
#include "pilot/policy/json_text.hpp"
#include "pilot/processes/run_program.hpp"
#include "posix/fd.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <sstream>

namespace hpcbatch::pilot {
namespace {

constexpr const char* kTagName = "org.opencontainers.image.ref.name";
constexpr std::string_view kRemoved = ".wh.";
constexpr std::string_view kEmptied = ".wh..wh..opq";

std::optional<JsonText> json_in(const std::string& path) {
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  return read_json(text);
}

/// Empty where it is no digest: it becomes a part of a path.
std::string blob_of(const std::string& layout, std::string digest) {
  const std::size_t colon = digest.find(':');
  if (colon == std::string::npos || digest.find_first_of("/.") != std::string::npos) return {};
  digest[colon] = '/';
  return layout + "/blobs/" + digest;
}

/// The folder in the tree, reached without following a link; empty where it is not there.
Fd folder_in(const std::string& tree, const std::string& path) {
  Fd folder(::open(tree.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  std::istringstream parts(path);
  for (std::string part; folder && std::getline(parts, part, '/');) {
    if (part.empty() || part == ".") continue;
    if (part == "..") return {};
    folder =
        Fd(::openat(folder.get(), part.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  }
  return folder;
}

void empty_folder(const std::string& tree, const std::string& path) {
  const std::size_t slash = path.rfind('/');
  const std::string name = slash == std::string::npos ? path : path.substr(slash + 1);
  const Fd parent =
      folder_in(tree, slash == std::string::npos ? std::string() : path.substr(0, slash));
  if (parent && remove_entry(parent.get(), name)) ::mkdirat(parent.get(), name.c_str(), 0755);
}

/// Takes away what this layer says that it has not of those below it.
void take_away(const std::string& tree, const std::string& listing) {
  std::istringstream lines(listing);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t slash = line.rfind('/');
    const std::string folder = slash == std::string::npos ? std::string() : line.substr(0, slash);
    const std::string name = slash == std::string::npos ? line : line.substr(slash + 1);
    if (name == kEmptied) {
      empty_folder(tree, folder);
    } else if (name.starts_with(kRemoved)) {
      if (const Fd parent = folder_in(tree, folder))
        remove_entry(parent.get(), name.substr(kRemoved.size()));
    }
  }
}

std::string unpack_layer(const std::string& blob, const std::string& tree) {
  const std::vector<std::string> environment{"PATH=/usr/local/bin:/usr/bin:/bin", "LC_ALL=C"};
  if (blob.empty()) return "a layer of the image cannot be named";
  const auto [listed, names] = run_program(
      {"sh", "-c", R"(tar -tf "$1" | grep -e '^\.wh\.' -e '/\.wh\.'; exit 0)", "sh", blob},
      environment);
  if (listed != 0) return "cannot read the layer " + blob + ": " + names;
  take_away(tree, names);
  const auto [status, said] =
      run_program({"tar", "-xf", blob, "-C", tree, "--exclude=.wh.*", "--no-same-owner",
                   "--exclude=./dev/*", "--exclude=dev/*"},
                  environment);
  return status == 0 ? std::string() : "cannot unpack the layer " + blob + ": " + said;
}

void write_environment(const JsonText& config, const std::string& tree) {
  ::mkdir((tree + "/ch").c_str(), 0755);
  std::ofstream file(tree + "/ch/environment");
  for (const JsonText& line : config.at("config").at("Env").list) {
    if (line.text.find('\n') == std::string::npos) file << line.text << '\n';
  }
}

/// At these Charliecloud shows what is the node's.
void make_usual_folders(const std::string& tree) {
  for (const char* name : {"/dev", "/proc", "/sys", "/tmp", "/etc", "/home", "/mnt", "/root"})
    ::mkdir((tree + name).c_str(), 0755);
  for (const char* name : {"/etc/passwd", "/etc/group", "/etc/hosts", "/etc/resolv.conf"})
    Fd(::open((tree + name).c_str(), O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644));
}

}  // namespace

std::string digest_in_layout(const std::string& layout, const std::string& tag) {
  const auto index = json_in(layout + "/index.json");
  if (!index) return {};
  for (const JsonText& manifest : index->at("manifests").list) {
    if (tag.empty() || manifest.at("annotations").at(kTagName).text == tag)
      return manifest.at("digest").text;
  }
  return {};
}

std::string unpack_layout(const std::string& layout, const std::string& tag,
                          const std::string& tree) {
  const std::string digest = digest_in_layout(layout, tag);
  if (digest.empty())
    return layout + " has no image" + (tag.empty() ? std::string() : " '" + tag + "'");
  const auto manifest = json_in(blob_of(layout, digest));
  if (!manifest || manifest->at("layers").list.empty())
    return "the image " + digest + " in " + layout + " cannot be read";
  if (::mkdir(tree.c_str(), 0755) != 0) return "cannot make " + tree + ": " + std::strerror(errno);
  for (const JsonText& layer : manifest->at("layers").list) {
    std::string trouble = unpack_layer(blob_of(layout, layer.at("digest").text), tree);
    if (!trouble.empty()) return trouble;
  }
  make_usual_folders(tree);
  const auto config = json_in(blob_of(layout, manifest->at("config").at("digest").text));
  if (config) write_environment(*config, tree);
  return {};
}

}  // namespace hpcbatch::pilot
