#include "store/file/page_sums.hpp"

#include <sqlite3.h>

#include <bit>
#include <cstring>
#include <new>

namespace hpcbatch::store {
namespace {

template <bool Swapped>
Sum added(Sum sum, std::string_view bytes) {
  for (std::size_t at = 0; at + 8 <= bytes.size(); at += 8) {
    std::uint32_t word[2];
    std::memcpy(word, bytes.data() + at, sizeof word);
    if constexpr (Swapped) {
      word[0] = __builtin_bswap32(word[0]);
      word[1] = __builtin_bswap32(word[1]);
    }
    // In this order one addition waits for the one before it, not two: half the time.
    sum.first = (sum.first + word[0]) + sum.second;
    sum.second = (sum.second + word[1]) + sum.first;
  }
  return sum;
}

}  // namespace

Sum sum_of(Sum before, std::string_view bytes, Words words) {
  const bool native = (words == Words::Little) == (std::endian::native == std::endian::little);
  return native ? added<false>(before, bytes) : added<true>(before, bytes);
}

std::optional<std::size_t> changed_bit(std::string_view bytes, Sum is, Sum wanted, Words words) {
  const Sum off{wanted.first - is.first, wanted.second - is.second};
  // What one more in the first and in the second word of a pair adds to the sum: from the last pair to
  // the first, each of which all pairs behind it have carried on.
  Sum of_word[2] = {{1, 1}, {0, 1}};
  std::optional<std::size_t> found;
  for (std::size_t at = bytes.size() / 8 * 8; at >= 8; at -= 8) {
    for (std::size_t word = 0; word < 2; ++word) {
      Sum& one = of_word[word];
      for (std::size_t bit = 0; bit < 32; ++bit) {
        const std::size_t place =
            (at - 8 + word * 4 + (words == Words::Little ? bit / 8 : 3 - bit / 8)) * 8 + bit % 8;
        const bool is_set = (static_cast<unsigned char>(bytes[place / 8]) >> (place % 8) & 1) != 0;
        const std::uint32_t by = is_set ? 0 - (1U << bit) : 1U << bit;
        if (one.first * by != off.first || one.second * by != off.second) continue;
        if (found) return std::nullopt;
        found = place;
      }
      one = {one.first + one.second, one.first + 2 * one.second};
    }
  }
  return found;
}

std::uint32_t big_endian(const char* bytes) {
  std::uint32_t value = 0;
  for (int i = 0; i < 4; ++i) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

void put_big_endian(char* bytes, std::uint32_t value) {
  for (int i = 3; i >= 0; --i, value >>= 8) bytes[i] = static_cast<char>(value & 0xFF);
}

namespace {

constexpr std::size_t kReserved = 20;  // in the first page: bytes left alone at the end of each
// SQLite leaves file controls above 100 to applications.
constexpr int kSetSums = 0x4842;
constexpr int kAskSums = 0x4843;

sqlite3_vfs* below() {
  static sqlite3_vfs* const system = sqlite3_vfs_find(nullptr);
  return system;
}

Sum sum_of_page(const char* page, std::uint64_t number) {
  const Sum seed{static_cast<std::uint32_t>(number), 0x68706362};
  return sum_of(seed, {page, kPageSize - kSumSize});
}

/// A database's file; SQLite's own lies behind it in the same piece of memory.
struct SummedFile {
  sqlite3_file base;
  bool has_sums;
  sqlite3_file* inner() { return reinterpret_cast<sqlite3_file*>(this + 1); }
};

SummedFile* ours(sqlite3_file* file) {
  return reinterpret_cast<SummedFile*>(file);
}
sqlite3_file* inner(sqlite3_file* file) {
  return ours(file)->inner();
}
const sqlite3_io_methods* of(sqlite3_file* file) {
  return inner(file)->pMethods;
}

bool is_page(int size, sqlite3_int64 offset) {
  return size == static_cast<int>(kPageSize) && offset % static_cast<sqlite3_int64>(kPageSize) == 0;
}
std::uint64_t number_of(sqlite3_int64 offset) {
  return static_cast<std::uint64_t>(offset) / kPageSize + 1;
}

int read_page(sqlite3_file* file, void* bytes, int size, sqlite3_int64 offset) {
  const int code = of(file)->xRead(inner(file), bytes, size, offset);
  if (code != SQLITE_OK || !ours(file)->has_sums || !is_page(size, offset)) return code;
  return has_its_sum({static_cast<const char*>(bytes), kPageSize}, number_of(offset))
             ? SQLITE_OK
             : SQLITE_IOERR_DATA;
}

int write_page(sqlite3_file* file, const void* bytes, int size, sqlite3_int64 offset) {
  if (!is_page(size, offset)) return of(file)->xWrite(inner(file), bytes, size, offset);
  const char* page = static_cast<const char*>(bytes);
  if (offset == 0) ours(file)->has_sums = page[kReserved] == static_cast<char>(kSumSize);
  if (!ours(file)->has_sums) return of(file)->xWrite(inner(file), bytes, size, offset);
  char with_sum[kPageSize];
  std::memcpy(with_sum, page, kPageSize);
  const Sum sum = sum_of_page(with_sum, number_of(offset));
  put_big_endian(with_sum + kPageSize - 8, sum.first);
  put_big_endian(with_sum + kPageSize - 4, sum.second);
  return of(file)->xWrite(inner(file), with_sum, size, offset);
}

int control(sqlite3_file* file, int what, void* argument) {
  if (what == kSetSums) {
    ours(file)->has_sums = *static_cast<const Sums*>(argument) == Sums::Always;
    return SQLITE_OK;
  }
  if (what == kAskSums) {
    *static_cast<bool*>(argument) = ours(file)->has_sums;
    return SQLITE_OK;
  }
  return of(file)->xFileControl(inner(file), what, argument);
}

int close_file(sqlite3_file* file) {
  const int code = of(file)->xClose(inner(file));
  file->pMethods = nullptr;
  return code;
}

// No shared memory and no mapping: the store has one user, who reads and writes.
const sqlite3_io_methods kMethods{
    .iVersion = 1,
    .xClose = close_file,
    .xRead = read_page,
    .xWrite = write_page,
    .xTruncate = [](sqlite3_file* f,
                    sqlite3_int64 size) { return of(f)->xTruncate(inner(f), size); },
    .xSync = [](sqlite3_file* f, int flags) { return of(f)->xSync(inner(f), flags); },
    .xFileSize = [](sqlite3_file* f, sqlite3_int64* n) { return of(f)->xFileSize(inner(f), n); },
    .xLock = [](sqlite3_file* f, int level) { return of(f)->xLock(inner(f), level); },
    .xUnlock = [](sqlite3_file* f, int level) { return of(f)->xUnlock(inner(f), level); },
    .xCheckReservedLock = [](sqlite3_file* f,
                             int* is) { return of(f)->xCheckReservedLock(inner(f), is); },
    .xFileControl = control,
    .xSectorSize = [](sqlite3_file* f) { return of(f)->xSectorSize(inner(f)); },
    .xDeviceCharacteristics =
        [](sqlite3_file* f) { return of(f)->xDeviceCharacteristics(inner(f)); },
    .xShmMap = nullptr,
    .xShmLock = nullptr,
    .xShmBarrier = nullptr,
    .xShmUnmap = nullptr,
    .xFetch = nullptr,
    .xUnfetch = nullptr};

int open_file(sqlite3_vfs*, const char* name, sqlite3_file* file, int flags, int* out_flags) {
  if ((flags & SQLITE_OPEN_MAIN_DB) == 0)
    return below()->xOpen(below(), name, file, flags, out_flags);
  auto* opened = new (file) SummedFile{};
  const int code = below()->xOpen(below(), name, opened->inner(), flags, out_flags);
  // SQLite closes what has methods, also where opening it has failed.
  if (opened->inner()->pMethods != nullptr) file->pMethods = &kMethods;
  if (code != SQLITE_OK) return code;
  sqlite3_int64 size = 0;
  char head[kReserved + 1] = {};
  opened->has_sums = (of(file)->xFileSize(opened->inner(), &size) == SQLITE_OK && size == 0) ||
                     (of(file)->xRead(opened->inner(), head, sizeof head, 0) == SQLITE_OK &&
                      head[kReserved] == static_cast<char>(kSumSize));
  return SQLITE_OK;
}

}  // namespace

const char* page_sums() {
  static sqlite3_vfs layer = [] {
    sqlite3_vfs made = *below();
    made.zName = "hpcbatch";
    made.pNext = nullptr;
    made.szOsFile += static_cast<int>(sizeof(SummedFile));
    made.xOpen = open_file;
    return made;
  }();
  static const int registered = sqlite3_vfs_register(&layer, 0);
  return registered == SQLITE_OK ? layer.zName : nullptr;
}

bool leaves_room_for_sums(std::string_view first_page) {
  return first_page.size() > kReserved && first_page[kReserved] == static_cast<char>(kSumSize);
}

bool has_its_sum(std::string_view page, std::uint64_t number) {
  if (page.size() != kPageSize) return false;
  const Sum sum = sum_of_page(page.data(), number);
  if (big_endian(page.data() + kPageSize - 8) == sum.first &&
      big_endian(page.data() + kPageSize - 4) == sum.second)
    return true;
  // One that is free may never have been written; in use, it is found to be no page of a table.
  return page.find_first_not_of('\0') == std::string_view::npos;
}

bool mend_page(std::string& page, std::uint64_t number) {
  const char* sum_at = page.data() + kPageSize - kSumSize;
  const Sum wanted{big_endian(sum_at), big_endian(sum_at + 4)};
  const Sum is = sum_of_page(page.data(), number);
  if (std::popcount(wanted.first ^ is.first) + std::popcount(wanted.second ^ is.second) == 1) {
    put_sum(page, number);
    return true;
  }
  const std::string_view summed(page.data(), kPageSize - kSumSize);
  const auto bit = changed_bit(summed, is, wanted);
  if (!bit) return false;
  page[*bit / 8] = static_cast<char>(page[*bit / 8] ^ (1 << (*bit % 8)));
  return true;
}

void put_sum(std::string& page, std::uint64_t number) {
  const Sum sum = sum_of_page(page.data(), number);
  put_big_endian(page.data() + kPageSize - 8, sum.first);
  put_big_endian(page.data() + kPageSize - 4, sum.second);
}

void set_sums(sqlite3* connection, Sums sums) {
  sqlite3_file_control(connection, "main", kSetSums, &sums);
}

bool has_sums(sqlite3* connection) {
  bool has = false;
  sqlite3_file_control(connection, "main", kAskSums, &has);
  return has;
}

void leave_room_for_sums(sqlite3* connection) {
  int bytes = static_cast<int>(kSumSize);
  sqlite3_file_control(connection, "main", SQLITE_FCNTL_RESERVE_BYTES, &bytes);
}

}  // namespace hpcbatch::store
