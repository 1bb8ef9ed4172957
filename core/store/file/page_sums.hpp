// Each page of the database ends with a sum of what is on it, so that a bit that has changed on the
// disk is an error where it is read and never a task.  A layer below SQLite: pages get their sums
// on their way into the file, and are compared on their way out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

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
