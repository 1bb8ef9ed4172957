// What a task runs survives the store as it was.
#include "links/recipe.hpp"
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
  recipe.output_limit = 5000;
  recipe.container = "docker://a";
  recipe.container_terms = {.binds = {{"/a", "/b", true}},
                            .no_network = true,
                            .gpus = false,
                            .keeps_entrypoint = true,
                            .variables = {{"A", "b"}},
                            .runtime = "podman"};
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
  EXPECT_EQ(back.output_limit, 5000U);
  EXPECT_EQ(back.container, recipe.container);
  EXPECT_EQ(back.container_terms, recipe.container_terms);
  EXPECT_FALSE(recipe_from_bytes(to_bytes(Recipe{})).umask);
}

TEST(Recipe, PutsAnItemInOnceAndDoesNotLookAtItAgain) {
  wire::Start start;
  start.add_argv("cp");
  start.add_argv("{}");
  start.add_argv("{}.bak-{}");
  fill(start, Filled::Items, {ArrayId{1}, 1}, [] { return "a{}b"; });
  EXPECT_EQ(start.argv(0), "cp");
  EXPECT_EQ(start.argv(1), "a{}b");
  EXPECT_EQ(start.argv(2), "a{}b.bak-a{}b");
}

TEST(Recipe, FillsEveryPathOfATaskOfAnArray) {
  wire::Start start;
  start.add_argv("{} {index}");
  start.set_directory("/run.{index}");
  start.set_standard_input("/in.{}");
  start.set_standard_output("/out.{}.{index}.{id}");
  start.set_standard_error("/{x}{{}}");
  start.add_inputs("/i.{}");
  start.add_links()->set_target("/i.{}");
  start.add_outputs()->set_destination("/o.{id}");
  wire::Start items = start;
  fill(start, Filled::Paths, {ArrayId{7}, 3}, [] { return "not asked for"; });
  EXPECT_EQ(start.argv(0), "{} {index}") << "find and awk have their own use for it";
  EXPECT_EQ(start.directory(), "/run.3");
  EXPECT_EQ(start.standard_input(), "/in.3");
  EXPECT_EQ(start.standard_output(), "/out.3.3.7.3");
  EXPECT_EQ(start.standard_error(), "/{x}{3}");
  EXPECT_EQ(start.inputs(0), "/i.3");
  EXPECT_EQ(start.links(0).target(), "/i.3");
  EXPECT_EQ(start.outputs(0).destination(), "/o.7.3");
  fill(items, Filled::Items, {ArrayId{7}, 3}, [] { return "{id}"; });
  EXPECT_EQ(items.argv(0), "{id} {index}");
  EXPECT_EQ(items.standard_output(), "/out.{id}.3.7.3");
}

TEST(Recipe, OfATaskAloneOnlyTheIdIsPutInAndOnlyWhereItsOutputGoes) {
  wire::Start start;
  start.set_standard_output("/out.{id}");
  start.set_standard_input("/in.{id}");
  start.add_inputs("/a{}b");
  fill(start, Filled::Paths, {ArrayId{7}, 0}, [] { return ""; });
  EXPECT_EQ(start.standard_output(), "/out.7");
  EXPECT_EQ(start.standard_input(), "/in.{id}");
  EXPECT_EQ(start.inputs(0), "/a{}b") << "a file may be called that";
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
  recipe.filled = Filled::Items;
  stored.bytes = to_bytes(recipe);
  stored.words.edit().items = {"small", std::string(kLargestPart / 4, 'x'), "small"};
  EXPECT_FALSE(refusal_of_size(stored));
  stored.words.edit().items[1] = large;
  EXPECT_TRUE(refusal_of_size(stored)) << "each place takes a copy of the item";
}

TEST(Recipe, SameEnvironmentGivesSameBytes) {
  EXPECT_EQ(environment_bytes({{"A", "1"}, {"B", "2"}}),
            environment_bytes({{"B", "2"}, {"A", "1"}}));
  EXPECT_NE(environment_bytes({{"A", "1"}}), environment_bytes({{"A", "2"}}));
}

}  // namespace
}  // namespace hpcbatch
