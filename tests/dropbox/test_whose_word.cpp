// Whose word a job file is: every combination of folder, file and engine, written out.
#include "dropbox/job_rights.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

namespace hpcbatch {
namespace {

using testing::HasSubstr;

constexpr std::uint32_t kRoot = 0;
constexpr std::uint32_t kEngine = 900;   // the engine's user where that is not root
constexpr std::uint32_t kWorker = 1001;  // who submits
constexpr std::uint32_t kThird = 1002;   // somebody else

/// Who can write: the owner alone; him alone, sticky; others, too; others, too, sticky.
enum Mode { Closed, ClosedSticky, Open, OpenSticky };
const std::array kFolderModes = {
    std::vector<std::uint32_t>{0700, 0711, 0755, 02755},
    std::vector<std::uint32_t>{01700, 01755, 03755},
    std::vector<std::uint32_t>{0720, 0775, 02770, 0757, 0777, 02777, 0702},
    std::vector<std::uint32_t>{01770, 01775, 03770, 01757, 01777, 03777},
};

/// Whether a file of root, of the engine's user and of Bob is heard.
struct Row {
  std::uint32_t us;
  std::uint32_t folder;
  Mode mode;
  bool root;
  bool engine;
  bool bob;
};

// In a folder that only root and we can write, each is heard; where others can put files, nobody
// whose word is worth more than theirs; where they can rename what is not theirs, nobody at all.
constexpr std::array kWords = {
    // engine of  folder of  mode          root   engine bob
    Row{kRoot, kRoot, Closed, true, true, true},
    Row{kRoot, kRoot, ClosedSticky, true, true, true},
    Row{kRoot, kRoot, Open, false, false, false},
    Row{kRoot, kRoot, OpenSticky, false, true, true},
    Row{kRoot, kEngine, Closed, false, true, false},
    Row{kRoot, kEngine, ClosedSticky, false, true, false},
    Row{kRoot, kEngine, Open, false, false, false},
    Row{kRoot, kEngine, OpenSticky, false, true, false},
    Row{kRoot, kWorker, Closed, false, false, true},
    Row{kRoot, kWorker, ClosedSticky, false, false, true},
    Row{kRoot, kWorker, Open, false, false, false},
    Row{kRoot, kWorker, OpenSticky, false, false, true},
    Row{kRoot, kThird, Closed, false, false, false},
    Row{kRoot, kThird, ClosedSticky, false, false, false},
    Row{kRoot, kThird, Open, false, false, false},
    Row{kRoot, kThird, OpenSticky, false, false, false},
    Row{kEngine, kRoot, Closed, true, true, true},
    Row{kEngine, kRoot, ClosedSticky, true, true, true},
    Row{kEngine, kRoot, Open, false, false, false},
    Row{kEngine, kRoot, OpenSticky, false, false, false},  // it cannot take what is not its own
    Row{kEngine, kEngine, Closed, true, true, true},
    Row{kEngine, kEngine, ClosedSticky, true, true, true},
    Row{kEngine, kEngine, Open, false, false, false},
    Row{kEngine, kEngine, OpenSticky, false, false, true},
    Row{kEngine, kWorker, Closed, false, false, true},
    Row{kEngine, kWorker, ClosedSticky, false, false, true},
    Row{kEngine, kWorker, Open, false, false, false},
    Row{kEngine, kWorker, OpenSticky, false, false, false},
    Row{kEngine, kThird, Closed, false, false, false},
    Row{kEngine, kThird, ClosedSticky, false, false, false},
    Row{kEngine, kThird, Open, false, false, false},
    Row{kEngine, kThird, OpenSticky, false, false, false},
};

template <class See>
void for_each_row(const See& see) {
  for (const Row& row : kWords) {
    for (const std::uint32_t mode : kFolderModes.at(row.mode)) {
      const FolderFacts folder{.owner = row.folder, .mode = 040000 | mode, .can_be_swapped = false};
      see(row, folder, kRoot, row.root);
      see(row, folder, kEngine, row.engine);
      see(row, folder, kWorker, row.bob);
    }
  }
}

std::string shown(const Row& row, const FolderFacts& folder, std::uint32_t file) {
  return testing::PrintToString(row.us) + "'s engine, folder of " +
         testing::PrintToString(row.folder) + " mode 0o" +
         [&] {
           std::array<char, 16> text{};
           std::snprintf(text.data(), text.size(), "%o", folder.mode & 07777U);
           return std::string(text.data());
         }() +
         ", file of " + testing::PrintToString(file);
}

TEST(WhoseWord, EveryFolderAndOwner) {
  for_each_row([](const Row& row, const FolderFacts& folder, std::uint32_t owner, bool is_heard) {
    for (const std::uint32_t mode : {0100400U, 0100600U, 0100640U, 0100644U, 0100755U}) {
      const std::string why = why_nobodys_word(
          folder, {.owner = owner, .mode = mode, .links = 1, .is_known = false}, row.us);
      EXPECT_EQ(why.empty(), is_heard) << shown(row, folder, owner) << ": " << why;
    }
  });
}

TEST(WhoseWord, NowhereAFileThatOthersCanWriteThatHasTwoNamesOrThatIsKnown) {
  for_each_row([](const Row& row, const FolderFacts& folder, std::uint32_t owner, bool) {
    const JobFacts good{.owner = owner, .mode = 0100644, .links = 1, .is_known = false};
    std::vector<JobFacts> bad;
    for (const std::uint32_t mode : {0100664U, 0100660U, 0100646U, 0100666U, 0100602U}) {
      bad.push_back(good);
      bad.back().mode = mode;
    }
    bad.push_back(good);
    bad.back().links = 2;
    bad.push_back(good);
    bad.back().is_known = true;
    for (const JobFacts& file : bad)
      EXPECT_NE(why_nobodys_word(folder, file, row.us), "") << shown(row, folder, owner);
  });
}

TEST(WhoseWord, WhereTheFolderCanBeSwappedNobodyCommandsTheEngine) {
  for_each_row([](const Row& row, FolderFacts folder, std::uint32_t owner, bool is_heard) {
    folder.can_be_swapped = true;
    const JobFacts file{.owner = owner, .mode = 0100644, .links = 1, .is_known = false};
    EXPECT_EQ(why_nobodys_word(folder, file, row.us).empty(),
              is_heard && owner != row.us && owner != kRoot)
        << shown(row, folder, owner);
  });
}

TEST(WhoseWord, AFolderInWhichOthersRenameIsNoDropBox) {
  for_each_row([](const Row& row, const FolderFacts& folder, std::uint32_t owner, bool) {
    const bool cannot_take = row.mode == OpenSticky && row.us != kRoot && row.folder != row.us;
    EXPECT_EQ(why_no_dropbox(folder, row.us).empty(), row.mode != Open && !cannot_take)
        << shown(row, folder, owner);
  });
}

TEST(WhoseWord, SaysWhatToDo) {
  const FolderFacts open{.owner = kEngine, .mode = 040775, .can_be_swapped = false};
  EXPECT_THAT(why_no_dropbox(open, kEngine), HasSubstr("chmod +t"));
  const FolderFacts shared{.owner = kEngine, .mode = 041777, .can_be_swapped = false};
  const auto why = [&](const JobFacts& file) { return why_nobodys_word(shared, file, kEngine); };
  EXPECT_THAT(why({.owner = kEngine, .mode = 0100644, .links = 1, .is_known = false}),
              HasSubstr("a drop box of their own"));
  EXPECT_THAT(why({.owner = kWorker, .mode = 0100664, .links = 1, .is_known = false}),
              HasSubstr("chmod go-w"));
  EXPECT_THAT(why({.owner = kWorker, .mode = 0100644, .links = 2, .is_known = false}),
              HasSubstr("hard link"));
  EXPECT_THAT(why_no_dropbox({.owner = kRoot, .mode = 041777, .can_be_swapped = false}, kEngine),
              HasSubstr("must belong to that user"));
}

}  // namespace
}  // namespace hpcbatch
