// Whole blocks of a store that a disk gives back as something else: what lies on the others is
// saved, and nothing that is saved runs as something that nobody asked for.
#include "store/salvage.hpp"
#include "store/file/page_sums.hpp"
#include "store_in_folder.hpp"

#include <fmt/format.h>

#include <gmock/gmock.h>

#include <fstream>
#include <iterator>
#include <random>
#include <set>

#include <unistd.h>

namespace hpcbatch::store {
namespace {

namespace fs = std::filesystem;

class BadBlocks : public StoreInFolder {
 protected:
  static constexpr std::uint64_t kArrays = 3000;
  static constexpr std::uint64_t kTasks = 3;

  static std::string text_of(std::uint64_t id, std::uint64_t index) {
    return fmt::format("text {} of {}", index, id);
  }
  static Write with_items(std::uint64_t id) {
    Write write = array(id, IndexRange{1, kTasks});
    for (std::uint64_t i = 1; i <= kTasks; ++i)
      write.recipes.front().words.edit().items.push_back(text_of(id, i));
    return write;
  }
  static bool has_items(const std::string& recipe) { return recipe.starts_with("recipe"); }

  /// All of it is in the database, and nobody uses it.
  void fill() {
    for (std::uint64_t id = 1; id <= kArrays;) {
      std::vector<Write> writes;
      for (int i = 0; i < 100; ++i, ++id) {
        writes.push_back(with_items(id));
        if (id % 2 == 0) writes.push_back(result(id, 1, Failure::Ok));
      }
      save(writes);
    }
    store->begin();
    store.reset();
  }
  std::string file() const { return folder + "/store.db"; }
  std::string into() const { return folder + "/saved.db"; }
  std::uint64_t pages() const { return fs::file_size(file()) / kPageSize; }
  std::string page(std::uint64_t number) const {
    std::ifstream in(file(), std::ios::binary);
    in.seekg(static_cast<std::streamoff>((number - 1) * kPageSize));
    std::string bytes(kPageSize, '\0');
    in.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    return bytes;
  }
  void put(std::uint64_t number, const std::string& bytes) const {
    std::fstream out(file(), std::ios::binary | std::ios::in | std::ios::out);
    out.seekp(static_cast<std::streamoff>((number - 1) * kPageSize));
    out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }
  /// From the first to the last page with rows in which `text` is found; of the tables' description
  /// none, which all is lost with.
  std::vector<std::uint64_t> leaves_with(const std::string& text) const {
    constexpr char kTableLeaf = 0x0d, kIndexLeaf = 0x0a;  // SQLite's file format, section 1.6
    std::vector<std::uint64_t> found;
    for (std::uint64_t number = 2; number <= pages(); ++number) {
      const std::string bytes = page(number);
      if ((bytes[0] == kTableLeaf || bytes[0] == kIndexLeaf) &&
          bytes.find(text) != std::string::npos && bytes.find("CREATE ") == std::string::npos)
        found.push_back(number);
    }
    return found;
  }
  /// One letter of the description of a table, under a sum that is right.
  void damage_name(const std::string& table, const std::string& column) const {
    for (std::uint64_t number = 1; number <= pages(); ++number) {
      std::string bytes = page(number);
      const std::size_t description = bytes.find("CREATE TABLE " + table + "(");
      if (description == std::string::npos) continue;
      bytes[bytes.find(column, description) + 1] = 'H';
      put_sum(bytes, number);
      put(number, bytes);
    }
  }
  /// As a drive gives back a block that it cannot read.
  void lose(std::uint64_t number) const { put(number, std::string(kPageSize, '\0')); }

  StoreReport salvaged() {
    fs::remove(into());
    auto report = salvage(file(), into(), has_items);
    EXPECT_TRUE(report) << report.error().text;
    return report ? *report : StoreReport{};
  }
  struct Found {
    std::set<std::uint64_t> arrays;
    std::uint64_t not_held{0};
    std::uint64_t results{0};
    std::string wrong;
  };
  Found found() {
    Found all;
    auto opened = Store::open(into());
    if (!opened) return {{}, 0, 0, opened.error().text};
    (*opened)->begin();
    {
      const LiveArrays next = (*opened)->live_arrays();
      while (const LiveArray* live = next()) {
        all.arrays.insert(live->id.value);
        all.results += live->ok.size();
        if (live->held.size() != kTasks) ++all.not_held;
        if (live->array.indices.size() != kTasks) all.wrong = "it has other tasks";
      }
    }
    for (const std::uint64_t id : all.arrays) {
      const auto recipe = (*opened)->history().recipe(ArrayId{id});
      if (recipe->bytes != "recipe " + std::to_string(id)) all.wrong = "it runs something else";
      if ((*opened)->history().environment(recipe->environment) != "shared surroundings")
        all.wrong = "in other surroundings";
      for (std::uint32_t i = 1; i <= kTasks; ++i) {
        if ((*opened)->history().item({ArrayId{id}, i}) != text_of(id, i))
          all.wrong = "with another text";
      }
    }
    for (const char* part : {"-wal", "-mark"}) fs::remove(into() + part);
    return all;
  }
  static std::string all_of(const StoreReport& report) {
    std::string text;
    for (const std::string& fault : report.faults) text += fault + "\n";
    return text;
  }
};

TEST_F(BadBlocks, CostWhatLiesOnThemAlone) {
  fill();
  const std::vector<std::uint64_t> leaves = leaves_with("recipe ");
  ASSERT_GT(leaves.size(), 30U);
  lose(leaves.at(leaves.size() / 4));
  lose(leaves.at(leaves.size() / 4 * 3));
  const StoreReport report = salvaged();
  EXPECT_FALSE(report.is_good());
  const Found saved = found();
  EXPECT_EQ(saved.wrong, "");
  EXPECT_GT(saved.arrays.size(), kArrays - 160);
  EXPECT_LT(saved.arrays.size(), kArrays);
  EXPECT_TRUE(saved.arrays.contains(kArrays / 2)) << "between the two";
  EXPECT_GT(saved.results, kArrays / 2 - 100);
}

TEST_F(BadBlocks, AtBothEndsOfATableCostNoMore) {
  fill();
  const std::vector<std::uint64_t> leaves = leaves_with("recipe ");
  lose(leaves.front());
  lose(leaves.back());
  salvaged();
  const Found saved = found();
  EXPECT_EQ(saved.wrong, "");
  EXPECT_GT(saved.arrays.size(), kArrays - 160);
}

TEST_F(BadBlocks, LetNothingRunWithoutItsText) {
  fill();
  const std::vector<std::uint64_t> leaves = leaves_with("text 2 of ");
  ASSERT_GT(leaves.size(), 20U);
  lose(leaves.at(leaves.size() / 2));
  const StoreReport report = salvaged();
  const Found saved = found();
  EXPECT_EQ(saved.wrong, "");
  EXPECT_GT(saved.arrays.size(), kArrays - 100);
  EXPECT_LT(saved.arrays.size(), kArrays);
  EXPECT_NE(all_of(report).find("left out"), std::string::npos) << all_of(report);
}

TEST_F(BadBlocks, LetNothingRunInOtherSurroundings) {
  fill();
  for (const std::uint64_t number : leaves_with("shared surroundings")) lose(number);
  const StoreReport report = salvaged();
  const Found saved = found();
  EXPECT_EQ(saved.wrong, "");
  EXPECT_EQ(saved.arrays.size(), 0U);
  EXPECT_NE(all_of(report).find("left out"), std::string::npos) << all_of(report);
}

TEST_F(BadBlocks, LetNothingRunBeforeSomebodyHasLooked) {
  fill();
  const std::vector<std::uint64_t> results = leaves_with("node7");
  ASSERT_GT(results.size(), 4U);
  lose(results.at(results.size() / 2));
  const StoreReport report = salvaged();
  const Found saved = found();
  EXPECT_EQ(saved.arrays.size(), kArrays);
  EXPECT_EQ(saved.not_held, 0U) << "what has ended may be among them";
  EXPECT_NE(all_of(report).find("hpcbatch release"), std::string::npos) << all_of(report);
}

TEST_F(BadBlocks, OfNothingHoldNothing) {
  fill();
  const StoreReport report = salvaged();
  EXPECT_TRUE(report.is_good()) << all_of(report);
  const Found saved = found();
  EXPECT_EQ(saved.wrong, "");
  EXPECT_EQ(saved.arrays.size(), kArrays);
  EXPECT_EQ(saved.not_held, kArrays);
}

/// With sums that are right: no disk does that, but a fault in memory may.
TEST_F(BadBlocks, AColumnWhoseNameIsDamagedIsNamedAndItsRowsAreSaved) {
  fill();
  damage_name("arrays", "environment");
  damage_name("results", "sequence");
  const auto looked = look_through(file(), folder);
  ASSERT_TRUE(looked) << looked.error().text;
  EXPECT_THAT(looked->faults,
              testing::UnorderedElementsAre(
                  "the description of the table 'arrays' is damaged: it has no environment",
                  "the description of the table 'results' is damaged: it has no sequence"));
  EXPECT_FALSE(salvaged().is_good());
  const Found all = found();
  EXPECT_EQ(all.wrong, "");
  EXPECT_EQ(all.arrays.size(), kArrays);
  EXPECT_EQ(all.results, kArrays / 2);
  EXPECT_EQ(all.not_held, 0U) << "what has not ended waits for somebody to look";
}

TEST_F(BadBlocks, OfWhatIsOnlyShownHoldNothing) {
  fill();
  damage_name("metrics", "json");
  const auto looked = look_through(file(), folder);
  ASSERT_TRUE(looked) << looked.error().text;
  EXPECT_EQ(looked->faults.size(), 1U);
  EXPECT_TRUE(salvaged().is_good());
  EXPECT_EQ(found().not_held, kArrays);
}

TEST_F(BadBlocks, AnywhereNeverMakeAWrongTask) {
  fill();
  std::mt19937_64 draw(11);
  const int tries = std::getenv("HPCBATCH_LONG") ? 200 : 8;
  std::uint64_t all = 0;
  for (int i = 0; i < tries; ++i) {
    const std::uint64_t number = draw() % pages() + 1;
    const std::string was = page(number);
    lose(number);
    fs::remove(into());
    if (const auto report = salvage(file(), into(), has_items)) {
      const Found saved = found();
      EXPECT_EQ(saved.wrong, "") << "page " << number;
      all += saved.arrays.size();
      if (saved.arrays.size() < kArrays) {
        EXPECT_FALSE(report->is_good());
      }
    } else {
      EXPECT_FALSE(fs::exists(into()));
    }
    put(number, was);
  }
  EXPECT_GT(all, kArrays * static_cast<std::uint64_t>(tries) * 3 / 4);
}

TEST_F(BadBlocks, AreLookedForWithoutFollowingWhatOthersLaidThere) {
  fill();
  const std::string others = folder + "/others";
  std::ofstream(others) << "theirs";
  for (const char* part : {".part", ".made"}) fs::create_symlink(others, into() + part);
  const std::string guessed = folder + fmt::format("/hpcbatch-fsck-{}.db", ::getpid());
  fs::create_symlink(others, guessed);
  const auto report = look_through(file(), folder);
  ASSERT_TRUE(report) << report.error().text;
  EXPECT_TRUE(report->is_good()) << all_of(*report);
  EXPECT_TRUE(fs::is_symlink(guessed));
  salvaged();
  EXPECT_EQ(found().arrays.size(), kArrays);
  std::string text;
  std::ifstream(others) >> text;
  EXPECT_EQ(text, "theirs");
}

}  // namespace
}  // namespace hpcbatch::store
