// A store that was damaged on its disk: all that was acknowledged is there, or the store is refused
// and its bytes stay as they are.
#include "store/file/mark.hpp"
#include "store/file/page_sums.hpp"
#include "store/salvage.hpp"
#include "store_in_folder.hpp"

#include <sqlite3.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <future>
#include <iterator>
#include <random>

#include <unistd.h>

namespace hpcbatch::store {
namespace {

namespace fs = std::filesystem;

std::string bytes_of(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void write_bytes(const std::string& file, const std::string& bytes) {
  std::ofstream(file, std::ios::binary | std::ios::trunc) << bytes;
  fs::permissions(file, fs::perms::owner_read | fs::perms::owner_write);
}

class DamagedStore : public StoreInFolder {
 protected:
  static constexpr std::uint64_t kArrays = 120;
  static constexpr const char* kParts[] = {"", "-wal", "-mark"};

  /// Half of them have been moved into the database, the other half is in its log.
  void fill() {
    for (std::uint64_t id = 1; id <= kArrays; ++id) {
      if (id == kArrays / 2) reopen();
      save({array(id, IndexRange{1, 3})});
      save({{SaveLeases{pilot(), {attempt(id, 1)}}, {}}}, false);
      save({result(id, 1, Failure::Ok)});
    }
  }
  /// The files as a kill leaves them; returns the name of the store's copy.
  std::string killed() {
    std::string copy = folder + "/copy.db";
    for (const char* part : kParts) {
      fs::remove(copy + part);
      if (fs::exists(folder + "/store.db" + part))
        fs::copy_file(folder + "/store.db" + part, copy + part);
    }
    return copy;
  }
  /// What an engine would find there; empty: all of it, or it would not start.
  static std::string missing(const std::string& file) {
    auto opened = Store::open(file);
    if (!opened) {
      const std::string& text = opened.error().text;
      return text.find("hpcbatch fsck") == std::string::npos ? "no advice: " + text : "";
    }
    try {
      Store& found = **opened;
      const Snapshot snapshot = found.begin();
      std::uint64_t count = 0;
      const LiveArrays next = found.live_arrays();
      while (const LiveArray* live = next()) {
        const std::uint64_t id = ++count;
        if (live->id.value != id || live->array.indices.size() != 3 || live->ok.size() != 1)
          return "array " + std::to_string(id) + " is not as it was";
        if (found.history().recipe(live->id)->bytes != "recipe " + std::to_string(id))
          return "array " + std::to_string(id) + " would run something else";
      }
      if (count != kArrays) return "only " + std::to_string(count) + " arrays";
      if (snapshot.next_array != kArrays + 1) return "an id would be given again";
      return "";
    } catch (const std::exception& e) {
      return "";  // it says so and ends
    }
  }
  static int flips() { return std::getenv("HPCBATCH_LONG") ? 6000 : 150; }
  /// One bit in that file of a store that was just killed.
  void flip_bits_of(const char* part) {
    fill();
    std::mt19937_64 draw(20);
    const std::string whole = bytes_of(killed() + part);
    ASSERT_GT(whole.size(), 40'000U);
    int lost = 0;
    std::string first;
    for (int i = 0; i < flips(); ++i) {
      const std::string copy = killed();
      std::string flipped = whole;
      const std::size_t at = draw() % whole.size();
      const int bit = static_cast<int>(draw() % 8);
      flipped[at] = static_cast<char>(flipped[at] ^ (1 << bit));
      write_bytes(copy + part, flipped);
      const std::string wrong = missing(copy);
      if (wrong.empty()) continue;
      if (lost++ == 0) first = "byte " + std::to_string(at) + ": " + wrong;
    }
    EXPECT_EQ(lost, 0) << "of " << flips() << "; the first, " << first;
  }
};

TEST_F(DamagedStore, ABitOfItsLogIsNeverLostInSilence) {
  flip_bits_of("-wal");
}

TEST_F(DamagedStore, ABitOfItsDatabaseIsNeverLostInSilence) {
  flip_bits_of("");
}

TEST_F(DamagedStore, ALogThatIsGoneIsMissed) {
  fill();
  const std::string copy = killed();
  fs::remove(copy + "-wal");
  EXPECT_EQ(missing(copy), "");
  EXPECT_FALSE(Store::open(copy));
  write_bytes(copy + "-wal", "");
  EXPECT_FALSE(Store::open(copy)) << "or is empty";
}

TEST_F(DamagedStore, ADatabaseThatIsGoneIsMissed) {
  fill();
  std::string copy = killed();
  fs::remove(copy);
  EXPECT_FALSE(Store::open(copy));
  EXPECT_FALSE(fs::exists(copy)) << "nothing was put in its place";
  store.reset();
  copy = killed();
  write_bytes(copy, "");
  EXPECT_FALSE(Store::open(copy)) << "or is empty";
}

class TornStore : public DamagedStore {
 protected:
  /// The machine has been started anew since, or has not.
  static void write_mark_of(const std::string& copy, const std::string& boot) {
    auto mark = parse_mark(bytes_of(copy + "-mark"));
    ASSERT_TRUE(mark);
    mark->boot = boot;
    write_bytes(copy + "-mark", to_text(*mark));
  }
  static void spoil_end_of_log(const std::string& copy, std::size_t frames) {
    std::string log = bytes_of(copy + "-wal");
    log[log.size() - frames * 4120 + 100] ^= 1;
    write_bytes(copy + "-wal", log);
  }
};

TEST_F(TornStore, StartsByItselfAfterThePowerWentWithWhatWasNotOnTheDisk) {
  fill();
  const auto synced = fs::file_size(folder + "/store.db-wal");
  save({{SaveLeases{pilot(), {attempt(3, 2), attempt(4, 2)}}, {}}}, false);
  ASSERT_GT(fs::file_size(folder + "/store.db-wal"), synced);
  std::string copy = killed();
  spoil_end_of_log(copy, 1);
  EXPECT_FALSE(Store::open(copy)) << "a kill tears nothing";
  copy = killed();
  spoil_end_of_log(copy, 1);
  write_mark_of(copy, "another-start-of-the-machine");
  auto opened = Store::open(copy);
  ASSERT_TRUE(opened) << opened.error().text;
  opened->reset();
  EXPECT_EQ(missing(copy), "");

  copy = killed();
  write_mark_of(copy, "another-start-of-the-machine");
  spoil_end_of_log(copy, 12);
  EXPECT_FALSE(Store::open(copy)) << "that was on the disk, and acknowledged";
}

TEST_F(TornStore, ALogThatBeginsAnewIsNoDamage) {
  for (std::uint64_t id = 1; id <= 2500; ++id) save({array(id, IndexRange{1, 3})}, id % 100 == 0);
  for (const char* boot : {"", "another-start-of-the-machine"}) {
    const std::string copy = killed();
    if (*boot != 0) write_mark_of(copy, boot);
    auto opened = Store::open(copy);
    ASSERT_TRUE(opened) << opened.error().text;
    EXPECT_EQ((*opened)->begin().next_array, 2501U);
  }
}

TEST_F(DamagedStore, APutBackCopyGivesNoNumberAgain) {
  fill();
  const std::string saved = folder + "/saved.db";
  ASSERT_TRUE(store->begin_copy(saved));
  EXPECT_FALSE(store->begin_copy(folder + "/other.db")) << "one at a time";
  for (std::uint64_t id = kArrays + 1; id <= kArrays + 40; ++id) {
    save({array(id, IndexRange{1, 3})});
    const auto whole = store->copy_more();
    ASSERT_TRUE(whole) << whole.error().text;
    if (*whole) break;
  }
  EXPECT_FALSE(store->begin_copy(saved)) << "what is there stays";
  for (std::uint64_t id = kArrays + 41; id <= kArrays + 50; ++id)
    save({array(id, IndexRange{1, 3})});
  const std::uint64_t starts = store->begin().engine_start;
  store.reset();
  EXPECT_EQ(sqlite::Connection(saved).quick_check(), "");
  fs::copy_file(saved, folder + "/store.db", fs::copy_options::overwrite_existing);
  reopen();
  ASSERT_TRUE(store);
  const Snapshot snapshot = store->begin();
  EXPECT_EQ(snapshot.next_array, kArrays + 51);
  EXPECT_EQ(snapshot.engine_start, starts + 1);
  EXPECT_GE(live_arrays().size(), kArrays);
}

TEST_F(DamagedStore, AnOlderDatabaseInItsPlaceIsRefused) {
  save({array(1, IndexRange{1, 3})});
  reopen();
  store.reset();
  const std::string old = bytes_of(folder + "/store.db");
  reopen();
  save({array(2, IndexRange{1, 3})});
  store.reset();
  write_bytes(folder + "/store.db", old);
  auto opened = Store::open(folder + "/store.db");
  ASSERT_FALSE(opened);
  EXPECT_NE(opened.error().text.find("older"), std::string::npos) << opened.error().text;
}

TEST_F(DamagedStore, AStoreWithoutSumsIsTakenOverAndHasSomeFromThenOn) {
  fill();
  store.reset();
  const std::string made = folder + "/store.db", plain = folder + "/plain.db";
  {
    sqlite3* db = nullptr;
    ASSERT_EQ(sqlite3_open(plain.c_str(), &db), SQLITE_OK);
    const auto run = [&](const std::string& text) {
      EXPECT_EQ(sqlite3_exec(db, text.c_str(), nullptr, nullptr, nullptr), SQLITE_OK)
          << sqlite3_errmsg(db);
    };
    run("ATTACH '" + made + "' AS made");
    std::vector<std::string> texts;
    sqlite3_exec(
        db, "SELECT sql FROM made.sqlite_master WHERE sql IS NOT NULL AND name<>'sqlite_sequence'",
        [](void* into, int, char** values, char**) {
          static_cast<std::vector<std::string>*>(into)->emplace_back(values[0]);
          return 0;
        },
        &texts, nullptr);
    for (const std::string& text : texts) run(text);
    for (const char* table : {"meta", "environments", "arrays", "dependencies", "items", "attempts",
                              "results", "leases", "allocations"})
      run(std::string("INSERT INTO ") + table + " SELECT * FROM made." + table);
    run("DROP INDEX arrays_that_give_up");
    run("ALTER TABLE arrays DROP COLUMN give_up_at");
    run("ALTER TABLE arrays DROP COLUMN gives_up_running");
    run("UPDATE meta SET value=CAST('5' AS BLOB) WHERE key=CAST('version' AS BLOB)");
    run("DETACH made; PRAGMA journal_mode=WAL");
    sqlite3_close(db);
  }
  fs::remove(made + "-mark");
  fs::rename(plain, made);
  fs::permissions(made, fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_EQ(bytes_of(made)[20], 0);
  EXPECT_EQ(missing(made), "");
  EXPECT_TRUE(has_its_sum(bytes_of(made).substr(0, kPageSize), 1));
  ASSERT_TRUE(Store::open(made));
  std::string bytes = bytes_of(made);
  const auto at = bytes.find("recipe 7");
  ASSERT_NE(at, std::string::npos);
  bytes[at + 7] ^= 1;
  write_bytes(made, bytes);
  EXPECT_FALSE(Store::open(made));
}

TEST_F(DamagedStore, ALargeStoreIsLookedThroughBesideItsUse) {
  for (std::uint64_t id = 1; id <= 48; ++id) {
    Write write = array(id, IndexRange{1, 3});
    write.recipes.front().bytes = std::string(1 << 20, static_cast<char>('A' + id));
    save({write});
  }
  store.reset();
  const std::string file = folder + "/store.db";
  std::string bytes = bytes_of(file);
  bytes[bytes.size() / 2] ^= 8;
  write_bytes(file, bytes);
  reopen();
  ASSERT_TRUE(store);
  std::promise<std::string> found;
  store->check_beside([&](const std::string& text) { found.set_value(text); });
  save({array(100, IndexRange{1, 3})});
  auto told = found.get_future();
  ASSERT_EQ(told.wait_for(std::chrono::seconds{60}), std::future_status::ready);
  store->note_damage(told.get());
  store.reset();
  EXPECT_TRUE(fs::exists(file + "-wal")) << "nothing is moved any more";
  auto again = Store::open(file);
  ASSERT_FALSE(again) << "it is looked through first now";
  bytes[bytes.size() / 2] ^= 8;
}

TEST_F(DamagedStore, WhatOneBitWasWrongOfIsSalvagedWhole) {
  fill();
  store->begin();
  std::mt19937_64 draw(4);
  int all = 0;
  const int tries = std::getenv("HPCBATCH_LONG") ? 300 : 12;
  for (int i = 0; i < tries; ++i) {
    const std::string copy = killed(), into = folder + "/into.db";
    const std::string file = copy + (i % 2 == 0 ? "-wal" : "");
    std::string bytes = bytes_of(file);
    const std::size_t at = draw() % bytes.size();
    bytes[at] = static_cast<char>(bytes[at] ^ (1 << (draw() % 8)));
    write_bytes(file, bytes);
    fs::remove(into);
    fs::remove(into + "-mark");
    const auto report = salvage(copy, into, [](const std::string&) { return false; });
    ASSERT_TRUE(report) << report.error().text;
    EXPECT_EQ(bytes_of(file), bytes);
    auto opened = Store::open(into);
    ASSERT_TRUE(opened) << opened.error().text;
    opened->reset();
    const std::string wrong = missing(into);
    all += wrong.empty() ? 1 : 0;
    EXPECT_TRUE(wrong.empty() || !report->is_good()) << wrong;
    EXPECT_EQ(wrong.find("something else"), std::string::npos) << wrong;
    fs::remove(into + "-wal");
  }
  // A bit in the last frame of the log has nothing behind it that tells.
  EXPECT_GE(all, tries - 1);
}

}  // namespace
}  // namespace hpcbatch::store
