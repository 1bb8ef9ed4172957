// What a task runs survives the store as it was.
#include "runtime/recipe.hpp"
#include "store/store.hpp"
#include "wire/wire.pb.h"

#include <gtest/gtest.h>

namespace hpcbatch {
namespace {

TEST(Recipe, ComesBackAsItWas) {
  Recipe recipe;
  recipe.argv = {"sh", "-c", "echo \xc3\xa9 $(true)", ""};
  recipe.variables = {{"A", "1"}, {"B", ""}};
  recipe.directory = "/somewhere";
  recipe.outputs = {{"o", "staged", "/dest", 1000}, {"p", "other", "/dest2", std::nullopt, true}};
  recipe.inputs = {"/in"};
  recipe.stream_input = true;
  recipe.umask = 0;
  const Recipe back = recipe_from_bytes(to_bytes(recipe));
  EXPECT_EQ(back.argv, recipe.argv);
  EXPECT_EQ(back.variables, recipe.variables);
  EXPECT_EQ(back.directory, recipe.directory);
  ASSERT_EQ(back.outputs.size(), 2U);
  EXPECT_EQ(back.outputs[0].owner, 1000U);
  EXPECT_FALSE(back.outputs[1].owner);
  EXPECT_FALSE(back.outputs[0].optional);
  EXPECT_TRUE(back.outputs[1].optional);
  EXPECT_EQ(back.inputs, recipe.inputs);
  EXPECT_TRUE(back.stream_input);
  EXPECT_EQ(back.umask, 0U);
  EXPECT_FALSE(recipe_from_bytes(to_bytes(Recipe{})).umask);
}

TEST(Recipe, PutsAnItemInOnceAndDoesNotLookAtItAgain) {
  wire::Start start;
  start.add_argv("cp");
  start.add_argv("{}");
  start.add_argv("{}.bak-{}");
  put_item(start, "a{}b");
  EXPECT_EQ(start.argv(0), "cp");
  EXPECT_EQ(start.argv(1), "a{}b");
  EXPECT_EQ(start.argv(2), "a{}b.bak-a{}b");
}

TEST(Recipe, IsRefusedWhereAPilotCouldNotBeSentIt) {
  const std::string large(kLargestPart / 2, 'x');
  Recipe recipe;
  recipe.argv = {"echo", large};
  store::Recipe stored{.bytes = to_bytes(recipe),
                       .environment = std::make_shared<const std::string>(large)};
  EXPECT_FALSE(refusal_of_size(stored));
  stored.environment = std::make_shared<const std::string>(large + large + large);
  EXPECT_NE(refusal_of_size(stored).value_or("").find("the environment has"), std::string::npos);
  stored.environment.reset();
  recipe.argv.push_back(large);
  stored.bytes = to_bytes(recipe);
  EXPECT_NE(refusal_of_size(stored).value_or("").find("put large texts in files"),
            std::string::npos);

  recipe.argv = {"echo", "{} {} {}"};
  recipe.has_items = true;
  stored.bytes = to_bytes(recipe);
  stored.items = {"small", std::string(kLargestPart / 4, 'x'), "small"};
  EXPECT_FALSE(refusal_of_size(stored));
  stored.items[1] = large;
  EXPECT_TRUE(refusal_of_size(stored)) << "each place takes a copy of the item";
}

TEST(Recipe, SameEnvironmentGivesSameBytes) {
  EXPECT_EQ(environment_bytes({{"A", "1"}, {"B", "2"}}),
            environment_bytes({{"B", "2"}, {"A", "1"}}));
  EXPECT_NE(environment_bytes({{"A", "1"}}), environment_bytes({{"A", "2"}}));
}

}  // namespace
}  // namespace hpcbatch
