#include "pilot/policy/image_pull.hpp"

#include <boost/json.hpp>

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

namespace hpcbatch::pilot {
namespace {

using namespace std::chrono_literals;

// A pilot says twice in that time what it uses.
constexpr auto kInUse = std::chrono::seconds(30min);
constexpr std::size_t kLeastDigits = 12;

constexpr std::array<std::string_view, 17> kTransientWords = {"timeout",
                                                              "timed out",
                                                              "connection refused",
                                                              "connection reset",
                                                              "no such host",
                                                              "no route to host",
                                                              "temporary failure",
                                                              "network is unreachable",
                                                              "unexpected eof",
                                                              "too many requests",
                                                              "toomanyrequests",
                                                              "status code 429",
                                                              "status code 5",
                                                              "500 internal server error",
                                                              "502 bad gateway",
                                                              "503 service unavailable",
                                                              "504 gateway time"};

// Unlike Podman it looks for its registries where it is told to alone.
constexpr const char* kSkopeo =
    R"(exec skopeo ${CONTAINERS_REGISTRIES_CONF:+--registries-conf "$CONTAINERS_REGISTRIES_CONF"} \
copy --quiet "$1" "$2")";

bool is_of_registry(ImageKind kind) {
  return kind == ImageKind::Registry;
}

}  // namespace

Kept kept_for(Runtime runtime, ImageKind kind) {
  switch (runtime) {
    case Runtime::Apptainer:
    case Runtime::Singularity:
      return is_of_registry(kind) || kind == ImageKind::Layout || kind == ImageKind::Archive
                 ? Kept::File
                 : Kept::Nothing;
    case Runtime::Podman:
    case Runtime::Docker:
      return is_of_registry(kind) ? Kept::Archive : Kept::Nothing;
    case Runtime::Charliecloud:
      return is_of_registry(kind) || kind == ImageKind::Layout ? Kept::Tree : Kept::Nothing;
  }
  return Kept::Nothing;
}

bool is_loaded(Runtime runtime, ImageKind kind) {
  return (runtime == Runtime::Podman || runtime == Runtime::Docker) && kind != ImageKind::Tree;
}

std::vector<std::vector<std::string>> pull_commands(const FoundRuntime& runtime, const Image& image,
                                                    const std::string& to) {
  const std::string from = with_transport(image);
  switch (runtime.runtime) {
    case Runtime::Apptainer:
    case Runtime::Singularity:
      return {{runtime.program, "build", "--disable-cache", to, from}};
    case Runtime::Podman:
      return {{runtime.program, "pull", "--quiet", from},
              {runtime.program, "save", "--quiet", "--format", "oci-archive", "--output", to,
               image.place}};
    case Runtime::Docker:
      return {{runtime.program, "pull", "--quiet", image.place},
              {runtime.program, "save", "--output", to, image.place}};
    case Runtime::Charliecloud:
      if (!is_of_registry(image.kind)) return {};
      return {{"sh", "-c", kSkopeo, "sh", from, "oci:" + to + ":image"}};
  }
  return {};
}

std::vector<std::string> load_command(const FoundRuntime& runtime, const Image& image,
                                      const std::string& archive) {
  if (runtime.runtime == Runtime::Docker)
    return {runtime.program, "load", "--quiet", "--input",
            archive.empty() ? path_of(image) : archive};
  const std::string from = archive.empty() ? with_transport(image) : "oci-archive:" + archive;
  return {runtime.program, "pull", "--quiet", from};
}

std::string loaded_image(const std::string& printed) {
  const std::size_t end = printed.find_last_not_of(" \n\r\t");
  if (end == std::string::npos) return {};
  const std::size_t begin = printed.find_last_of(" \n", end);
  std::string word =
      printed.substr(begin == std::string::npos ? 0 : begin + 1, end - (begin + 1) + 1);
  constexpr std::string_view kDigest = "sha256:";
  if (word.starts_with(kDigest)) word.erase(0, kDigest.size());
  const bool is_number =
      word.size() >= kLeastDigits &&
      std::all_of(word.begin(), word.end(), [](unsigned char c) { return std::isxdigit(c) != 0; });
  // Docker says by which name it knows what it loaded.
  const bool is_name = printed.find("Loaded image") != std::string::npos;
  return is_number || is_name ? word : std::string();
}

bool is_transient_trouble(const std::string& printed) {
  std::string text = printed;
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return std::any_of(kTransientWords.begin(), kTransientWords.end(),
                     [&](std::string_view word) { return text.find(word) != std::string::npos; });
}

std::vector<std::string> images_to_remove(std::vector<KeptImage> kept, std::uint64_t limit) {
  std::sort(kept.begin(), kept.end(),
            [](const KeptImage& a, const KeptImage& b) { return a.unused > b.unused; });
  std::uint64_t bytes = 0;
  for (const KeptImage& image : kept) bytes += image.bytes;
  std::vector<std::string> names;
  for (const KeptImage& image : kept) {
    if (bytes <= limit || image.unused < kInUse) break;
    names.push_back(image.name);
    bytes -= image.bytes;
  }
  return names;
}

namespace {

namespace json = boost::json;

// The library goes no deeper than 32, so that this does not either.
// NOLINTNEXTLINE(misc-no-recursion)
JsonText text_of_value(const json::value& value) {
  JsonText text;
  if (const json::object* object = value.if_object()) {
    for (const auto& [name, field] : *object) text.fields[std::string(name)] = text_of_value(field);
  } else if (const json::array* list = value.if_array()) {
    for (const json::value& one : *list) text.list.push_back(text_of_value(one));
  } else {
    text.text = value.is_string() ? std::string(value.get_string()) : json::serialize(value);
  }
  return text;
}

}  // namespace

const JsonText& JsonText::at(const std::string& name) const {
  static const JsonText nothing;
  const auto field = fields.find(name);
  return field == fields.end() ? nothing : field->second;
}

std::optional<JsonText> read_json(std::string_view text) {
  json::error_code error;
  const json::value value = json::parse({text.data(), text.size()}, error);
  if (error) return std::nullopt;
  return text_of_value(value);
}

}  // namespace hpcbatch::pilot
