// What a task runs survives the store as it was.
#include "links/recipe.hpp"
#include "store/store.hpp"
#include "wire/wire.pb.h"

#include <gtest/gtest.h>

namespace hpcbatch {
namespace {

TEST(Recipe, ComesBackAsItWas) {
  wire::Start start;
  for (const char* word : {"sh", "-c", "echo \xc3\xa9 $(true)", ""}) start.add_argv(word);
  add_variables(start, {{"A", "1"}, {"B", ""}});
  add_output(start, "o", "staged", "/dest", true);
  start.set_umask(0);
  set_container(start, "docker://a",
                {.binds = {{"/a", "/b", true}}, .gpus = false, .variables = {{"A", "b"}}});
  set_service(start, {.kind = TaskService::Kind::Answer, .name = "s", .argv = {"x"}, .batch = 7});
  const std::string bytes = to_bytes(start, Filled::Rows);
  const wire::Start back = start_from_bytes(bytes);
  EXPECT_EQ(filled_in(bytes), Filled::Rows);
  EXPECT_EQ(back.SerializeAsString(), start.SerializeAsString());
  EXPECT_EQ(back.argv(2), "echo \xc3\xa9 $(true)");
  EXPECT_TRUE(back.has_umask());
  EXPECT_FALSE(back.container_terms().gpus());
  EXPECT_EQ(back.service().batch(), 7U);
  EXPECT_FALSE(start_from_bytes(to_bytes({}, Filled::Nothing)).has_umask());
}

TEST(Recipe, AContainerThatIsRunAsUsualHasNoTerms) {
  wire::Start start;
  set_container(start, "docker://a", {.runtime = "podman"});
  set_container(start, "docker://b", {});
  EXPECT_FALSE(start.has_container_terms());
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
  EXPECT_EQ(start.standard_error(), "/{x}{}") << "a doubled brace is one";
  EXPECT_EQ(start.inputs(0), "/i.3");
  EXPECT_EQ(start.links(0).target(), "/i.3");
  EXPECT_EQ(start.outputs(0).destination(), "/o.7.3");
  fill(items, Filled::Items, {ArrayId{7}, 3}, [] { return "{id}"; });
  EXPECT_EQ(items.argv(0), "{id} {index}");
  EXPECT_EQ(items.standard_output(), "/out.{id}.3.7.3");
}

TEST(Recipe, OfATaskAloneOnlyTheIdIsPutInAndOnlyIntoFilesOfItsStreams) {
  wire::Start start;
  start.set_standard_output("/out.{id}");
  start.set_standard_input("/in.{id}");
  start.add_inputs("/a{}b");
  fill(start, Filled::Paths, {ArrayId{7}, 0}, [] { return ""; });
  EXPECT_EQ(start.standard_output(), "/out.7");
  EXPECT_EQ(start.standard_input(), "/in.7");
  EXPECT_EQ(start.inputs(0), "/a{}b") << "a file may be called that";
}

TEST(Recipe, ATaskThatIsNumberedFindsItsNumber) {
  wire::Start start;
  start.set_from_zero(true);
  set_numbered(start, *parse_index_set("1-10:3,20"));
  start.set_standard_output("/o.{array_number}_{index:3}.{number}");
  wire::Start last = start, gone = start;
  fill(start, Filled::Paths, {ArrayId{7}, 4}, [] { return ""; });
  EXPECT_EQ(start.standard_output(), "/o.2000000007_003.2000000008");
  ASSERT_EQ(start.variables_size(), 1);
  EXPECT_EQ(start.variables(0).name(), "HPCBATCH_BATCH_NUMBER");
  EXPECT_EQ(start.variables(0).value(), "2000000008");
  fill(last, Filled::Paths, {ArrayId{7}, 20}, [] { return ""; });
  EXPECT_EQ(last.variables(0).value(), "2000000011");
  fill(gone, Filled::Paths, {ArrayId{7}, 5}, [] { return ""; });
  EXPECT_EQ(gone.variables_size(), 0);
}

TEST(Recipe, ATaskAloneThatIsNumberedReadsAFileOfThatNumber) {
  wire::Start start;
  set_numbered(start, IndexRange{0, 0});
  start.set_standard_input("/in_{number}_{array_number}");
  start.add_inputs("/a{number}b");
  fill(start, Filled::Paths, {ArrayId{7}, 0}, [] { return ""; });
  EXPECT_EQ(start.standard_input(), "/in_2000000007_2000000007");
  EXPECT_EQ(start.inputs(0), "/a{number}b") << "a file may be called that";
}

TEST(Recipe, ADoubledBraceIsOneThatStands) {
  wire::Start start;
  start.set_directory("/{{id}}");
  start.set_standard_output("/{{id}}/{id}}}");
  wire::Start one = start;
  fill(start, Filled::Paths, {ArrayId{7}, 3}, [] { return ""; });
  EXPECT_EQ(start.directory(), "/{id}");
  EXPECT_EQ(start.standard_output(), "/{id}/7.3}");
  fill(one, Filled::Paths, {ArrayId{7}, 0}, [] { return ""; });
  EXPECT_EQ(one.directory(), "/{{id}}") << "of a task alone it is as it is called";
  EXPECT_EQ(one.standard_output(), "/{id}/7}");
}

TEST(Recipe, ThePilotKnowsWhereItsNodesNameBelongs) {
  wire::Start start;
  set_numbered(start, IndexRange{1, 2});
  start.set_standard_output("/d/{node}");
  start.set_standard_error("/d/e");
  wire::Start odd = start;
  fill(start, Filled::Paths, {ArrayId{7}, 1}, [] { return ""; });
  EXPECT_EQ(start.standard_output(), "/d/{node}");
  EXPECT_EQ(start.node_place(), "");
  odd.set_standard_error("/{{node}}/e");
  fill(odd, Filled::Paths, {ArrayId{7}, 1}, [] { return ""; });
  EXPECT_EQ(odd.standard_error(), "/{node}/e");
  EXPECT_EQ(odd.standard_output(), "/d/" + odd.node_place());
  EXPECT_NE(odd.node_place(), "");
}

TEST(Recipe, IsRefusedWhereAPilotCouldNotBeSentIt) {
  const std::string large(kLargestPart / 2, 'x');
  wire::Start start;
  start.add_argv("echo");
  start.add_argv(large);
  store::Recipe stored{.bytes = to_bytes(start, Filled::Nothing),
                       .environment = std::make_shared<const std::string>(large)};
  EXPECT_FALSE(refusal_of_size(stored));
  stored.environment = std::make_shared<const std::string>(large + large + large);
  EXPECT_NE(refusal_of_size(stored).value_or("").find("the environment has"), std::string::npos);
  stored.environment.reset();
  start.add_argv(large);
  stored.bytes = to_bytes(start, Filled::Nothing);
  EXPECT_NE(refusal_of_size(stored).value_or("").find("put large texts in files"),
            std::string::npos);

  start.clear_argv();
  start.add_argv("{} {} {}");
  stored.bytes = to_bytes(start, Filled::Items);
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
