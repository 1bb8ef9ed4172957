// The tables of the store's file, and what older programs made of them.
#pragma once

#include "store/file/sqlite.hpp"

#include <cstdint>
#include <string>

/// Of the table of arrays, as read_array takes them.
#define ARRAY_COLUMNS                                                                            \
  "id,client,name,tool,indices,needs,priority,retries,max_running,after,submitted,ended,recipe," \
  "give_up_at,gives_up_running"

namespace hpcbatch::store {

/// With the version that they have; nothing else is in them.
void make_tables(sqlite::Connection& db);
/// Whether this program, or an older one, made them.
bool is_known(sqlite::Connection& db);
/// Tables of an older version become today's.  Throws where a later program made them.
void take_over(sqlite::Connection& db);
/// Those that older programs did not make, and pass over.  Reads whole tables where they are missing.
void add_indexes(sqlite::Connection& db);
/// Of the table `meta`; empty where there is none of that key.
std::string meta_of(sqlite::Connection& db, const char* key);
/// The highest id that an array has taken: its own, but for one that is numbered.
std::uint64_t last_id_of(sqlite::Connection& db, std::uint64_t array);
/// Of all arrays that are there; 0: there are none.
std::uint64_t highest_id(sqlite::Connection& db);

}  // namespace hpcbatch::store

namespace hpcbatch::store {

// Which tables the store has: what an engine asks before it opens one.

// 7: arrays say after how many failures they are given up; a program that knows 6 would go on.
inline constexpr const char* kLayoutVersion = "7";

}  // namespace hpcbatch::store
