#include "wire/file_store.hpp"

#include <algorithm>

namespace hpcbatch::wire {
namespace {

constexpr std::string_view kFiles = "files/";
constexpr std::string_view kIncoming = "files/incoming/";
constexpr std::size_t kLongestEnding = 40;

bool is_control(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte < 0x20 || byte == 0x7F;
}

/// A cut never goes through the middle of a letter of UTF-8.
std::size_t cut_at(std::string_view text, std::size_t most) {
  if (text.size() <= most) return text.size();
  std::size_t at = most;
  while (at > 0 && at + 4 > most && (static_cast<unsigned char>(text[at]) & 0xC0U) == 0x80U) --at;
  return (static_cast<unsigned char>(text[at]) & 0xC0U) == 0x80U ? most : at;
}

bool is_hash(std::string_view text) {
  return text.size() == kHashDigits && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

}  // namespace

std::string stored_name(std::string_view path) {
  std::string name(path.substr(path.find_last_of('/') + 1));
  std::replace_if(name.begin(), name.end(), is_control, '_');
  if (name.size() > kLongestStoredName) {
    // All that follows the last few dots, such as .tar.gz.
    const std::size_t dot = name.find('.', name.size() - kLongestEnding);
    const std::string ending = dot == std::string::npos ? "" : name.substr(dot);
    name.resize(cut_at(name, kLongestStoredName - ending.size()));
    name += ending;
  }
  if (name.empty() || name == "." || name == "..") return "_";
  // A command would take it for an option.
  if (name.front() == '-') name.front() = '_';
  return name;
}

std::string store_key(std::string_view hash, std::string_view name) {
  return std::string(hash) + '/' + std::string(name);
}

bool is_store_key(std::string_view key) {
  if (key.size() <= kHashDigits + 1 || key[kHashDigits] != '/') return false;
  const std::string_view name = key.substr(kHashDigits + 1);
  return is_hash(key.substr(0, kHashDigits)) && name.find('/') == std::string_view::npos &&
         stored_name(name) == name;
}

std::string folder_of_key(std::string_view key) {
  return std::string(kFiles) + std::string(key.substr(0, 2)) + '/' +
         std::string(key.substr(0, kHashDigits));
}

std::string place_of_key(std::string_view key) {
  return std::string(kFiles) + std::string(key.substr(0, 2)) + '/' + std::string(key);
}

std::string incoming_of_key(std::string_view key) {
  return std::string(kIncoming) + std::string(key);
}

std::string incoming_folder_of_key(std::string_view key) {
  return std::string(kIncoming) + std::string(key.substr(0, kHashDigits));
}

std::string key_of_place(std::string_view place) {
  if (place.size() < kFiles.size() + 3 || !place.starts_with(kFiles)) return {};
  const std::string_view key = place.substr(kFiles.size() + 3);
  return is_store_key(key) && place_of_key(key) == place ? std::string(key) : std::string();
}

bool is_plain_path(std::string_view path) {
  if (path.empty() || path.find('\0') != std::string_view::npos) return false;
  for (std::size_t at = 0; at <= path.size();) {
    const std::size_t end = std::min(path.find('/', at), path.size());
    const std::string_view step = path.substr(at, end - at);
    if (step.empty() || step == "." || step == "..") return false;
    at = end + 1;
  }
  return true;
}

bool may_be_dropped(std::string_view path) {
  return is_plain_path(path) && (path.starts_with(kFiles) || path.starts_with("out/"));
}

}  // namespace hpcbatch::wire
