// The store of files on a site without our file system: where a file lies there, by its content and
// name.  docs/formats.md has the layout and the exchange.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace hpcbatch::wire {

/// Digits of a BLAKE2b-256.
constexpr std::size_t kHashDigits = 64;
/// Bytes of a name in the store.
constexpr std::size_t kLongestStoredName = 200;

/// FilesReport::Done::trouble.
enum class FileTrouble : std::uint32_t { None, Absent, DiskFull, Quota, Refused, Other };

/// The base name of `path` as it stands in the store: no bytes that harm, its ending kept.
std::string stored_name(std::string_view path);
/// "HASH/NAME".
std::string store_key(std::string_view hash, std::string_view name);
/// Whether it is what store_key makes of some hash and stored name.
bool is_store_key(std::string_view key);

// All relative to the workspace.
std::string place_of_key(std::string_view key);     ///< files/AB/HASH/NAME
std::string folder_of_key(std::string_view key);    ///< files/AB/HASH
std::string incoming_of_key(std::string_view key);  ///< files/incoming/HASH/NAME
std::string incoming_folder_of_key(std::string_view key);
/// Nothing where it is no place in the store.
std::string key_of_place(std::string_view place);

/// Whether `path` names something below `files` or `out` by plain steps.
bool may_be_dropped(std::string_view path);
/// Not empty, not absolute, no `.`, `..` or empty step.
bool is_plain_path(std::string_view path);

}  // namespace hpcbatch::wire
