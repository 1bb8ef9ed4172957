// The guard of trusted paths, tried with the table that its Python twin is tried with too.
#include "trusted_path_cases.hpp"

namespace hpcbatch {
namespace {

TEST(TrustedPath, JudgesEveryCaseOfTheTable) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  const TrustedPathCases table(TRUSTED_PATHS);
  for (const auto& one : table.cases()) {
    const TrustedBase base;
    table.lay_out(one, base.path());
    PathFacts facts =
        walk_path(base.path() + "/" + std::string(one.at("path").as_string()), table.user("self"));
    table.add_accounts(facts);
    TrustedPathCases::expect(
        one, base.path(),
        distrust(facts, TrustedPathCases::wanted(one), TrustedPathCases::trust_group(one)));
  }
}

TEST(TrustedPath, SaysWhoseItIsWhatCouldBeDoneAndWhatHelps) {
  PathFacts facts{
      .user = 1000,
      .parts = {{.path = "/p", .owner = 0, .group = 50, .mode = 02775, .group_writes = true}},
      .is_whole = false,
      .accounts = {{0, {"root", 0}}},
      .groups = {{50, {"proj", {"a", "b"}}}}};
  EXPECT_EQ(distrust(facts, Wanted::Folder, "")->text,
            "/p (of user 0 (root), mode 2775): the members of group proj could rename what lies in "
            "it and put something else there; run: chmod g-w /p");
  EXPECT_EQ(distrust(facts, Wanted::Folder, "")->group_hint,
            ", or trust them: 'trust_group: proj'");
  facts.parts[0].others_write = true;
  EXPECT_NE(distrust(facts, Wanted::Folder, "proj")->text.find("chmod o-w /p"), std::string::npos);
}

TEST(TrustedPath, ATrustedGroupThatIsNotThereIsRefused) {
  const auto found = distrust(PathFacts{}, Wanted::Folder, "typo");
  ASSERT_TRUE(found && found->is_refusal);
  EXPECT_NE(found->text.find("no group 'typo'"), std::string::npos) << found->text;
}

TEST(TrustedPath, APathThatIsNotAbsoluteIsRefused) {
  for (const char* path : {"", "a/b"}) {
    const auto found = distrust(walk_path(path, 1), Wanted::Folder, "");
    EXPECT_TRUE(found && found->is_refusal) << path;
  }
}

TEST(TrustedPath, AnAclOfOddLengthIsNotReadBeyondItsEnd) {
  for (std::size_t size = 0; size < 30; ++size)
    EXPECT_EQ(parse_acl(std::string(size, '\2')).size(), size < 4 ? 0U : (size - 4) / 8);
}

}  // namespace
}  // namespace hpcbatch
