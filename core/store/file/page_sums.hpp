// Each page of the database ends with a sum of what is on it, so that a bit that has changed on the
// disk is an error where it is read and never a task.  A layer below SQLite: pages get their sums
// on their way into the file, and are compared on their way out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hpcbatch::store {

// The sum that finds changed bits: that of SQLite's write-ahead log, which must be read here too
// (sqlite.org/fileformat2.html, section 4.2), and of our own blocks.

struct Sum {
  std::uint32_t first{0}, second{0};
  friend bool operator==(const Sum&, const Sum&) = default;
};

enum class Words : std::uint8_t { Little, Big };

/// `bytes`, a multiple of 8 of them, behind what `before` is the sum of.
Sum sum_of(Sum before, std::string_view bytes, Words words = Words::Little);

/// The one bit, counted from 0, without whose change the sum of these would be `wanted` instead of
/// `is`; nothing where none explains it, or more than one: of the upper eight bits of a word many do.
/// Takes one walk over them.
std::optional<std::size_t> changed_bit(std::string_view bytes, Sum is, Sum wanted,
                                       Words words = Words::Little);

std::uint32_t big_endian(const char* bytes);
void put_big_endian(char* bytes, std::uint32_t value);

}  // namespace hpcbatch::store

struct sqlite3;

namespace hpcbatch::store {

inline constexpr std::size_t kPageSize = 4096;
/// At the end of a page, which SQLite is told to leave alone.
inline constexpr std::size_t kSumSize = 8;

/// The name of the layer, for sqlite3_open_v2; any thread.
const char* page_sums();

/// `number` from 1: a page in another's place is as bad as a changed one.
bool has_its_sum(std::string_view page, std::uint64_t number);
/// Puts its one changed bit right, if that is what is wrong with it; false: it is not.
bool mend_page(std::string& page, std::uint64_t number);
void put_sum(std::string& page, std::uint64_t number);

/// Of the main database of a connection; without it, what the file's head says goes.
enum class Sums : std::uint8_t { Always, Never };
void set_sums(sqlite3* connection, Sums sums);
bool has_sums(sqlite3* connection);
/// Whether the pages of a database that begins with this one end with sums.
bool leaves_room_for_sums(std::string_view first_page);
/// A new file, or what VACUUM INTO makes, leaves room for them.
void leave_room_for_sums(sqlite3* connection);

}  // namespace hpcbatch::store
