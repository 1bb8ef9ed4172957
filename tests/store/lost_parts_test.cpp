// Parts of a store that are gone: the end of its file, blocks in the middle of its log, its mark, or
// all of it under the engine that uses it.
#include "store/file/mark.hpp"
#include "store/file/page_sums.hpp"
#include "store/salvage.hpp"
#include "store_in_folder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <set>

#include <sys/wait.h>
#include <unistd.h>

namespace hpcbatch::store {
namespace {

namespace fs = std::filesystem;

class LostParts : public StoreInFolder {
 protected:
  std::string file(const char* part = "") const { return folder + "/store.db" + part; }
  std::string into() const { return folder + "/saved.db"; }
  void submit(std::uint64_t first, std::uint64_t last) {
    for (std::uint64_t id = first; id <= last; ++id) save({array(id, IndexRange{1, 3})});
  }
  /// What a kill leaves lies in `folder` from then on.
  void kill() {
    const std::string aside = folder + "/aside";
    fs::create_directory(aside);
    for (const char* part : {"", "-wal", "-mark"}) {
      if (fs::exists(file(part))) fs::copy_file(file(part), aside + "/store.db" + part);
    }
    store.reset();
    for (const char* part : {"", "-wal", "-mark"}) {
      fs::remove(file(part));
      if (fs::exists(aside + "/store.db" + part))
        fs::rename(aside + "/store.db" + part, file(part));
    }
  }
  void overwrite(const char* part, std::size_t at, const std::string& bytes) const {
    std::fstream out(file(part), std::ios::binary | std::ios::in | std::ios::out);
    out.seekp(static_cast<std::streamoff>(at));
    out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }
  std::string bytes_of(const char* part) const {
    std::ifstream in(file(part), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  StoreReport salvaged() const {
    for (const char* part : {"", "-wal", "-mark"}) fs::remove(into() + part);
    auto report = salvage(file(), into(), [](const std::string&) { return false; });
    EXPECT_TRUE(report) << report.error().text;
    return report ? *report : StoreReport{};
  }
  /// Ids of what was saved and runs what it should; one that does not is a failure.
  std::set<std::uint64_t> saved() const {
    std::set<std::uint64_t> ids;
    auto opened = Store::open(into());
    if (!opened) {
      ADD_FAILURE() << opened.error().text;
      return ids;
    }
    (*opened)->begin();
    {
      const LiveArrays next = (*opened)->live_arrays();
      while (const LiveArray* live = next()) ids.insert(live->id.value);
    }
    for (const std::uint64_t id : ids)
      EXPECT_EQ((*opened)->history().recipe(ArrayId{id})->bytes, "recipe " + std::to_string(id));
    return ids;
  }
  static std::string all_of(const StoreReport& report) {
    std::string text;
    for (const std::string& fault : report.faults) text += fault + "\n";
    return text;
  }
  std::string refusal() const {
    const auto opened = Store::open(file());
    return opened ? "" : opened.error().text;
  }
};

TEST_F(LostParts, TheEndOfItsFileCostsWhatLayThereAlone) {
  submit(1, 400);
  store.reset();
  const auto whole = fs::file_size(file());
  for (const std::uintmax_t lost : {1UL, 8UL, 9UL, 4095UL, 4096UL, 3UL * 4096UL}) {
    const std::string was = bytes_of("");
    fs::resize_file(file(), whole - lost);
    const StoreReport report = salvaged();
    EXPECT_FALSE(report.is_good());
    // Of the sum at a page's end no row depends.
    EXPECT_EQ(saved().size() == 400, lost <= kSumSize) << lost << "\n" << all_of(report);
    EXPECT_GE(saved().size(), 400 - 70 * ((lost + 4095) / 4096))
        << lost << " bytes of " << whole << "\n"
        << all_of(report);
    std::ofstream(file(), std::ios::binary | std::ios::trunc) << was;
  }
}

TEST_F(LostParts, OfWhichNothingCanBeSavedAreNoSuccess) {
  submit(1, 10);
  store.reset();
  for (std::size_t page = 1; page < fs::file_size(file()) / kPageSize; ++page)
    overwrite("", page * kPageSize, std::string(kPageSize, '\0'));
  const auto report = salvage(file(), into(), [](const std::string&) { return false; });
  ASSERT_FALSE(report) << "an empty store is no salvage";
  EXPECT_NE(report.error().text.find("nothing"), std::string::npos) << report.error().text;
  EXPECT_FALSE(fs::exists(into()));
}

TEST_F(LostParts, ABlockOfItsLogCostsNothingThatLiesBehindIt) {
  constexpr std::uint64_t kArrays = 43;
  submit(1, 3);
  reopen();
  submit(4, kArrays);
  kill();
  const std::string log = bytes_of("-wal");
  const std::size_t blocks = log.size() / 4096;
  ASSERT_GT(blocks, 100U);
  for (std::size_t block = 0; block + 1 < blocks; block += 11) {
    overwrite("-wal", block * 4096, std::string(4096, '\0'));
    EXPECT_NE(refusal(), "") << "block " << block;
    const StoreReport report = salvaged();
    const std::set<std::uint64_t> ids = saved();
    EXPECT_TRUE(ids.contains(kArrays) || block + 12 > blocks)
        << "block " << block << " of " << blocks << "\n"
        << all_of(report);
    EXPECT_GE(ids.size(), kArrays - 3) << "block " << block << " of " << blocks << "\n"
                                       << all_of(report);
    for (std::uint64_t id = 1; id <= kArrays; ++id) {
      if (!ids.contains(id)) {
        EXPECT_NE(all_of(report).find("missing"), std::string::npos)
            << id << ", block " << block << "\n"
            << all_of(report);
      }
    }
    overwrite("-wal", 0, log);
  }
}

TEST_F(LostParts, AreNamedByTheirIds) {
  submit(1, 1000);
  store.reset();
  const std::string bytes = bytes_of("");
  const std::size_t at = bytes.find("recipe 500");
  ASSERT_NE(at, std::string::npos);
  overwrite("", at / kPageSize * kPageSize, std::string(kPageSize, '\0'));
  const std::string said = all_of(salvaged());
  const std::set<std::uint64_t> ids = saved();
  ASSERT_FALSE(ids.contains(500));
  std::uint64_t first = 500, last = 500;
  while (!ids.contains(first - 1)) --first;
  while (!ids.contains(last + 1)) ++last;
  EXPECT_NE(said.find(fmt::format("missing: {}-{}", first, last)), std::string::npos) << said;
}

TEST_F(LostParts, ItsMarkAloneIsMissed) {
  submit(1, 20);
  for (const bool closed : {false, true}) {
    if (closed)
      store.reset();
    else
      kill();
    const std::string mark = bytes_of("-mark");
    for (const std::string& other : {std::string(), std::string(512, 'x')}) {
      fs::remove(file("-mark"));
      if (!other.empty()) std::ofstream(file("-mark")) << other;
      EXPECT_NE(refusal().find("store.db-mark"), std::string::npos) << refusal();
      if (fs::exists(file("-wal"))) {
        const std::string log = bytes_of("-wal");
        fs::remove(file("-wal"));
        EXPECT_NE(refusal(), "") << "and its log";
        std::ofstream(file("-wal"), std::ios::binary) << log;
        fs::permissions(file("-wal"), fs::perms::owner_read | fs::perms::owner_write);
      }
    }
    std::ofstream(file("-mark")) << mark;
    reopen();
  }
}

TEST_F(LostParts, ACopyNeedsNoMark) {
  submit(1, 20);
  ASSERT_TRUE(store->begin_copy(into()));
  while (!*store->copy_more()) {
  }
  store.reset();
  EXPECT_EQ(saved().size(), 20U);
}

TEST_F(LostParts, OfAStoreThatIsJustBeingMadeAreNoDamage) {
  // Each step of its making as a kill leaves it: the mark first, then the database.
  store.reset();
  const std::string made = bytes_of("");
  for (const char* part : {"", "-wal", "-mark"}) fs::remove(file(part));
  std::ofstream(file("-mark")) << to_text(MarkText{});
  EXPECT_EQ(refusal(), "") << "a mark alone";
  for (const char* part : {"", "-wal"}) fs::remove(file(part));
  std::ofstream(file("-mark"), std::ios::trunc) << to_text(MarkText{});
  std::ofstream(file(), std::ios::binary) << made;
  fs::permissions(file(), fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_EQ(refusal(), "") << "and a database";
}

TEST_F(LostParts, StatisticsThatAreLostAreSaid) {
  submit(1, 20);
  save({result(1, 1, Failure::Ok), result(2, 1, Failure::Ok)});
  while (store->learn(1000)) {
  }
  store.reset();
  {
    sqlite::Connection db(file());
    db.execute("PRAGMA locking_mode=EXCLUSIVE");
    for (int day = 1; day < 2000; ++day)
      db.execute(fmt::format(
          "INSERT OR REPLACE INTO profiles(kind,touched,bytes) VALUES(CAST('kind{}' AS BLOB),{},"
          "zeroblob(100))",
          day, day));
  }
  const std::string bytes = bytes_of("");
  const std::size_t at = bytes.find("kind1000");
  ASSERT_NE(at, std::string::npos);
  overwrite("", at / kPageSize * kPageSize, std::string(kPageSize, '\0'));
  const std::string said = all_of(salvaged());
  EXPECT_NE(said.find("statistics"), std::string::npos) << said;
  EXPECT_EQ(saved().size(), 20U);
}

TEST_F(LostParts, UnderItsEngineAreMissed) {
  submit(1, 5);
  EXPECT_EQ(store->missing_part(), "");
  for (const char* part : {"", "-wal", "-mark"}) {
    const std::string aside = folder + "/aside";
    fs::rename(file(part), aside);
    EXPECT_EQ(store->missing_part(), file(part));
    std::ofstream(file(part)) << "another";
    EXPECT_EQ(store->missing_part(), file(part)) << "and another in its place";
    fs::rename(aside, file(part));
    EXPECT_EQ(store->missing_part(), "");
  }
}

TEST_F(LostParts, ALivingStoreIsInUseAndNotDamaged) {
  submit(1, 5);
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t other = ::fork();
  if (other == 0) {
    const auto opened = Store::open(file());
    const std::string said = opened ? "opened" : opened.error().text;
    (void)!::write(ends[1], said.data(), said.size());
    ::_exit(0);
  }
  ::close(ends[1]);
  std::string said(4096, '\0');
  said.resize(static_cast<std::size_t>(std::max<ssize_t>(::read(ends[0], said.data(), 4096), 0)));
  ::close(ends[0]);
  int status = 0;
  ::waitpid(other, &status, 0);
  EXPECT_EQ(said.find("cannot be used"), std::string::npos) << said;
  EXPECT_NE(said.find(fmt::format("process {}", ::getpid())), std::string::npos) << said;
}

TEST(ChangedBit, IsFoundWhereverItIs) {
  std::string bytes(4096, '\0');
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 7 + i / 256);
  const Sum before{3, 4};
  for (const Words words : {Words::Little, Words::Big}) {
    const Sum right = sum_of(before, bytes, words);
    for (std::size_t bit = 0; bit < bytes.size() * 8; bit += 37) {
      bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << (bit % 8)));
      const auto found = changed_bit(bytes, sum_of(before, bytes, words), right, words);
      bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << (bit % 8)));
      if (found)
        ASSERT_EQ(found, bit);
      else
        EXPECT_GE((words == Words::Little ? bit : bit ^ 24) % 32, 22U) << bit;
    }
  }
  EXPECT_FALSE(changed_bit(bytes, Sum{1, 2}, Sum{55, 66}, Words::Little));
}

}  // namespace
}  // namespace hpcbatch::store
