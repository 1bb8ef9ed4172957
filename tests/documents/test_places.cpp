// Where things lie, by environment.
#include "documents/state_paths.hpp"

#include <gtest/gtest.h>

namespace hpcbatch {
namespace {

TEST(Places, FollowTheHomeOfTheUser) {
  const auto places = find_places({{"HOME", "/home/a"}});
  ASSERT_TRUE(places);
  EXPECT_EQ(*places,
            (Places{"/home/a/.local/state/hpcbatch", "/home/a/.local/state/hpcbatch/socket",
                    "/home/a/.config/hpcbatch/config.yaml", false}));
}

TEST(Places, FollowXdg) {
  const auto places = find_places({{"HOME", "/home/a"},
                                   {"XDG_STATE_HOME", "/s"},
                                   {"XDG_RUNTIME_DIR", "/run/user/7"},
                                   {"XDG_CONFIG_HOME", "/c"}});
  ASSERT_TRUE(places);
  EXPECT_EQ(*places, (Places{"/s/hpcbatch", "/run/user/7/hpcbatch/socket",
                             "/c/hpcbatch/config.yaml", false}));
}

TEST(Places, OwnVariablesComeFirst) {
  const auto places = find_places({{"HPCBATCH_HOME", "/h/"},
                                   {"HPCBATCH_CONFIG", "/x.yaml"},
                                   {"XDG_STATE_HOME", "/s"},
                                   {"XDG_RUNTIME_DIR", "/run/user/7"}});
  ASSERT_TRUE(places);
  EXPECT_EQ(*places, (Places{"/h", "/h/socket", "/x.yaml", true}));
}

TEST(Places, IgnoreRelativeXdgValues) {
  const auto places =
      find_places({{"HOME", "/home/a"}, {"XDG_STATE_HOME", "s"}, {"XDG_RUNTIME_DIR", "r"}});
  ASSERT_TRUE(places);
  EXPECT_EQ(places->home, "/home/a/.local/state/hpcbatch");
  EXPECT_EQ(places->socket, "/home/a/.local/state/hpcbatch/socket");
}

TEST(Places, AHomeOfOursIsEnough) {
  const auto places = find_places({{"HPCBATCH_HOME", "/h"}});
  ASSERT_TRUE(places);
  EXPECT_EQ(places->configuration, "/h/config.yaml");
}

TEST(Places, RefuseWhatCannotBeMeant) {
  EXPECT_EQ(find_places({{"HOME", "/a"}, {"HPCBATCH_HOME", "here"}}).error().text,
            "cannot use HPCBATCH_HOME=here: it must be an absolute path");
  EXPECT_EQ(find_places({{"HOME", "/a"}, {"HPCBATCH_CONFIG", "c.yaml"}}).error().text,
            "cannot use HPCBATCH_CONFIG=c.yaml: it must be an absolute path");
  EXPECT_FALSE(find_places({}));
  EXPECT_FALSE(find_places({{"HOME", "relative"}}));
}

}  // namespace
}  // namespace hpcbatch
