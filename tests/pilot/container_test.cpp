// How a task's container is runtime_chosen, started and judged.
#include "pilot/policy/container.hpp"
#include "pilot/policy/image_pull.hpp"
#include "pilot/policy/verdict.hpp"
#include "pilot/processes/contained.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/stat.h>
#include <csignal>
#include <cstdlib>

namespace hpcbatch::pilot {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsSupersetOf;
using testing::Not;

Image image(const std::string& text, PathFacts facts = {}) {
  return image_of(text, "/work", facts);
}

const std::vector<FoundRuntime> kAll = {{Runtime::Apptainer, "/bin/apptainer"},
                                        {Runtime::Podman, "/bin/podman"},
                                        {Runtime::Charliecloud, "/bin/ch-run"},
                                        {Runtime::Docker, "/bin/docker"}};

std::string runtime_chosen(const Image& image, const std::vector<FoundRuntime>& found,
                           const std::string& rule = "", const ContainerWish& wish = {}) {
  const auto choice = choose_runtime(image, wish, container_rule(rule), found);
  const auto* runtime = std::get_if<FoundRuntime>(&choice);
  return runtime == nullptr ? std::get<std::string>(choice) : name_of(runtime->runtime);
}

std::vector<FoundRuntime> without_apptainer() {
  return {kAll.begin() + 1, kAll.end()};
}

TEST(ContainerImage, IsAPathOrANameInARegistry) {
  EXPECT_EQ(image("/img/a.sif").kind, ImageKind::File);
  EXPECT_EQ(image("a.sif").place, "/work/a.sif");
  EXPECT_EQ(image("./a.sqfs").kind, ImageKind::Squash);
  EXPECT_EQ(image("/img/tree", {.is_folder = true}).kind, ImageKind::Tree);
  EXPECT_EQ(image("/img/oci", {.is_folder = true, .is_layout = true}).kind, ImageKind::Layout);
  EXPECT_EQ(image("oci:/img/oci:latest").kind, ImageKind::Layout);
  EXPECT_EQ(path_of(image("oci:/img/o.ci:latest")), "/img/o.ci");
  EXPECT_EQ(with_transport(image("oci:img:1")), "oci:/work/img:1");
  EXPECT_EQ(with_transport(image("oci-archive:a.tar")), "oci-archive:/work/a.tar");
  EXPECT_EQ(with_transport(image("/img/a.tar")), "docker-archive:/img/a.tar");
  EXPECT_EQ(image("docker://debian:12").kind, ImageKind::Registry);
  EXPECT_EQ(image("debian:12").place, "debian:12");
  EXPECT_EQ(with_transport(image("quay.io/a/b@sha256:12")), "docker://quay.io/a/b@sha256:12");
  EXPECT_EQ(path_of(image("debian:12")), "");
  EXPECT_EQ(image("library://a/b").kind, ImageKind::Other);
}

TEST(ContainerChoice, TakesTheFirstThatCan) {
  EXPECT_EQ(runtime_chosen(image("debian"), kAll), "apptainer");
  EXPECT_EQ(runtime_chosen(image("debian"), without_apptainer()), "podman");
  EXPECT_EQ(runtime_chosen(image("debian"), kAll, "podman,apptainer"), "podman");
  EXPECT_EQ(runtime_chosen(image("/a.sif"), kAll, "podman apptainer"), "apptainer");
  const Image tree = image("/tree", {.is_folder = true});
  EXPECT_EQ(runtime_chosen(tree, kAll, "", {.runtime = "charliecloud"}), "charliecloud");
  EXPECT_EQ(runtime_chosen(tree, kAll, "charliecloud podman", {.no_network = true}), "podman");
  EXPECT_EQ(runtime_chosen(tree, kAll, "charliecloud podman", {.has_read_only_binds = true}),
            "podman");
}

TEST(ContainerChoice, SaysInOneSentenceWhyNothingCan) {
  EXPECT_EQ(runtime_chosen(image("/a.sif"), without_apptainer()),
            "nothing here can run the image /a.sif: podman runs no image files, charliecloud runs "
            "no image files, docker runs no image files");
  EXPECT_EQ(runtime_chosen(image("debian"), {}),
            "this node has no container runtime (apptainer, singularity, podman, charliecloud, "
            "docker)");
  EXPECT_EQ(runtime_chosen(image("debian"), kAll, "podman", {.runtime = "docker"}),
            "this site runs no containers with docker, only with podman");
  EXPECT_EQ(runtime_chosen(image("debian"), kAll, "podmann"),
            "HPCBATCH_CONTAINERS of this site names 'podmann', which is none of apptainer, "
            "singularity, podman, charliecloud, docker");
  EXPECT_THAT(
      runtime_chosen(image("/t", {.is_folder = true}), kAll, "charliecloud", {.no_network = true}),
      HasSubstr("charliecloud cannot take the network away"));
}

ContainerPlan plan(Runtime runtime, Image image) {
  ContainerPlan plan;
  plan.runtime = {runtime, std::string("/bin/") + program_of(runtime)};
  plan.image = std::move(image);
  plan.name = "hpcbatch-1";
  plan.directory = "/work";
  plan.binds = {{"/work", "/work"}, {"/in", "/in", true}};
  plan.variables = {{"OWN", "x y"}};
  plan.umask = 027;
  plan.open_files = {10, 20};
  plan.processes = {30, 40};
  plan.user = 1000;
  plan.group = 100;
  plan.temporary = "/tmp/slot";
  plan.inside = "/.inside";
  plan.report = "/tmp/slot/report";
  return plan;
}

std::vector<std::string> words(const ContainerPlan& plan) {
  return container_argv(plan, {"echo", "hi"},
                        {"PATH", "FOO", "OWN", "LD_PRELOAD", "BASH_FUNC_x%%"});
}

TEST(ContainerCommand, OfApptainer) {
  EXPECT_THAT(
      words(plan(Runtime::Apptainer, image("/a.sif"))),
      ElementsAre("/bin/apptainer", "exec", "--bind", "/work", "--bind", "/in:/in:ro", "--pwd",
                  "/work", "/a.sif", "/.inside", "inside", "/tmp/slot/report", "echo", "hi"));
  EXPECT_EQ(runtime_variables(plan(Runtime::Apptainer, {})).at("APPTAINERENV_OWN"), "x y");
}

TEST(ContainerCommand, OfPodman) {
  ContainerPlan podman = plan(Runtime::Podman, image("/tree", {.is_folder = true}));
  podman.has_network = false;
  const auto argv = words(podman);
  EXPECT_THAT(argv, IsSupersetOf({"--rm", "-i", "none", "disabled", "0027", "nofile=10:20",
                                  "nproc=30:40", "0:0", "keep-groups", "FOO", "OWN=x y",
                                  "/work:/work", "/in:/in:ro", "/tree:O", "/.inside"}));
  EXPECT_THAT(argv, Not(testing::Contains("PATH")));
  EXPECT_THAT(removal_argv(podman.runtime, "n"),
              ElementsAre("/bin/podman", "rm", "--force", "--ignore", "--time", "0", "n"));
}

TEST(ContainerCommand, OfDockerHasItsOwnLimits) {
  ContainerPlan docker = plan(Runtime::Docker, image("debian:12"));
  docker.memory = 1000;
  docker.gpus = GpuMaker::Nvidia;
  const auto argv = words(docker);
  EXPECT_THAT(argv, IsSupersetOf({"--memory", "1000", "--memory-swap", "1000:100", "--gpus", "all",
                                  "never", "debian:12"}));
}

TEST(ContainerCommand, OfCharliecloud) {
  const ContainerPlan cloud = plan(Runtime::Charliecloud, image("/tree", {.is_folder = true}));
  EXPECT_THAT(words(cloud),
              ElementsAre("/bin/ch-run", "--env-no-expand", "--unset-env=LD_LIBRARY_PATH",
                          "--unset-env=LD_PRELOAD", "--set-env=TMPDIR=/tmp/slot",
                          "--set-env=OWN=x y", "--bind=/work:/work", "--bind=/in:/in", "--cd=/work",
                          "/tree", "--", "/.inside", "inside", "/tmp/slot/report", "echo", "hi"));
  EXPECT_EQ(runtime_variables(cloud).at("TMPDIR"), "/tmp");
}

TEST(ContainerCommand, KeepsAnEntrypoint) {
  ContainerPlan kept = plan(Runtime::Podman, image("debian"));
  kept.keeps_entrypoint = true;
  const auto argv = words(kept);
  EXPECT_THAT(argv, Not(testing::Contains("--entrypoint")));
  EXPECT_THAT(argv, Not(testing::Contains("inside")));
  EXPECT_EQ(argv.back(), "hi");
}

// --- how an image gets there

TEST(ImagePull, IsKeptForTheSiteAsItsRuntimeTakesIt) {
  EXPECT_EQ(kept_for(Runtime::Apptainer, ImageKind::Registry), Kept::File);
  EXPECT_EQ(kept_for(Runtime::Apptainer, ImageKind::File), Kept::Nothing);
  EXPECT_EQ(kept_for(Runtime::Podman, ImageKind::Registry), Kept::Archive);
  EXPECT_EQ(kept_for(Runtime::Podman, ImageKind::Layout), Kept::Nothing);
  EXPECT_TRUE(is_loaded(Runtime::Podman, ImageKind::Layout));
  EXPECT_FALSE(is_loaded(Runtime::Podman, ImageKind::Tree));
  EXPECT_EQ(kept_for(Runtime::Charliecloud, ImageKind::Layout), Kept::Tree);
  EXPECT_EQ(kept_for(Runtime::Charliecloud, ImageKind::Tree), Kept::Nothing);
  EXPECT_THAT(pull_commands({Runtime::Apptainer, "/bin/apptainer"}, image("debian:12"), "/to.sif"),
              ElementsAre(ElementsAre("/bin/apptainer", "build", "--disable-cache", "/to.sif",
                                      "docker://debian:12")));
}

TEST(ImagePull, KnowsANumberFromWhatElseIsPrinted) {
  const std::string number = "888332082a0c7c7d492700cff2c1e9048f1fa601a6aab7c12c4be9ee729dbfeb";
  EXPECT_EQ(loaded_image("a warning\n" + number + "\n"), number);
  EXPECT_EQ(loaded_image("sha256:" + number), number);
  EXPECT_EQ(loaded_image("Loaded image: debian:12\n"), "debian:12");
  EXPECT_EQ(loaded_image("it went wrong"), "");
  EXPECT_EQ(loaded_image(""), "");
}

TEST(ImagePull, TellsTheNetworkFromAnImageThatIsNotThere) {
  for (const char* said :
       {"dial tcp: lookup r on 10.0.0.1:53: no such host", "connect: connection refused",
        "toomanyrequests: You have reached your pull rate limit", "503 Service Unavailable",
        "net/http: TLS handshake timeout",
        "received unexpected HTTP status: 500 Internal Server Error"})
    EXPECT_TRUE(is_transient_trouble(said)) << said;
  for (const char* said :
       {"manifest unknown", "unauthorized: authentication required",
        "requested access to the resource is denied", "invalid reference format"})
    EXPECT_FALSE(is_transient_trouble(said)) << said;
}

TEST(ImageCache, LosesWhatWasUnusedLongestAndNothingThatMayBeUsed) {
  const auto hour = std::chrono::hours(1);
  EXPECT_THAT(images_to_remove({{"new", 5, {}}, {"old", 5, 3 * hour}, {"older", 5, 9 * hour}}, 10),
              ElementsAre("older"));
  EXPECT_THAT(images_to_remove({{"new", 50, {}}, {"old", 5, 3 * hour}}, 10), ElementsAre("old"));
  EXPECT_THAT(images_to_remove({{"a", 5, hour}}, 10), ElementsAre());
}

TEST(JsonOfImages, IsReadAsFarAsItIsUsed) {
  const auto read = read_json(R"( {"a": [1, {"b": "x\n\u0041"}, []], "c": null, "d": {}} )");
  ASSERT_TRUE(read);
  EXPECT_EQ(read->at("a").list[1].at("b").text, "x\nA");
  EXPECT_EQ(read->at("none").at("none").text, "");
  for (const char* wrong : {"", "{", "[1", R"({"a" 1})", R"({"a": 1} x)", R"("a)", R"(["\u00)"})
    EXPECT_FALSE(read_json(wrong)) << wrong;
  EXPECT_FALSE(read_json(std::string(100, '[')));
}

// --- ends

using Said = ContainerReport::Said;

Verdict verdict(int status, ContainerReport report, bool reports = true) {
  EndFacts facts;
  facts.status = status;
  facts.container = ContainerEnd{"podman", reports, report};
  facts.program = "tool";
  return verdict_of(facts);
}

constexpr int exited(int code) {
  return code << 8;
}

TEST(ContainerEnd, IsThatOfTheProgramInIt) {
  EXPECT_EQ(verdict(exited(0), {Said::Exited, 0}).failure, Failure::Ok);
  const Verdict code = verdict(exited(125), {Said::Exited, 125});
  EXPECT_EQ(code.failure, Failure::ToolFailed);
  EXPECT_EQ(code.exit_code, 125);
  const Verdict signal = verdict(exited(139), {Said::Signalled, SIGSEGV});
  EXPECT_EQ(signal.failure, Failure::ToolSignal);
  EXPECT_EQ(signal.signal, SIGSEGV);
  const Verdict absent = verdict(exited(127), {Said::CannotRun, ENOENT});
  EXPECT_EQ(absent.failure, Failure::ToolFailed);
  EXPECT_EQ(absent.exit_code, 127);
  EXPECT_THAT(absent.message, HasSubstr("cannot run 'tool': No such file or directory"));
}

TEST(ContainerEnd, IsNoSuccessWhereNothingRanInIt) {
  const Verdict silent = verdict(exited(0), {});
  EXPECT_EQ(silent.failure, Failure::ContainerFailed);
  EXPECT_EQ(silent.message,
            "podman ended with exit 0 before the task's program began in the container: see the "
            "end of its standard error");
  EXPECT_EQ(verdict(exited(125), {}).failure, Failure::ContainerFailed);
  EXPECT_EQ(verdict(SIGKILL, {}).failure, Failure::ContainerFailed);
  EXPECT_EQ(verdict(exited(0), {Said::Begun, 0}).failure, Failure::ContainerFailed);
}

TEST(ContainerEnd, OfAProgramThatWasKilledWithItsContainer) {
  const Verdict killed = verdict(exited(137), {Said::Begun, 0});
  EXPECT_EQ(killed.failure, Failure::ToolSignal);
  EXPECT_EQ(killed.signal, SIGKILL);
  EXPECT_EQ(verdict(SIGKILL, {Said::Begun, 0}).signal, SIGKILL);
}

TEST(ContainerEnd, OfAnEntrypointIsKnownByTheRuntimesCodeAlone) {
  EXPECT_EQ(verdict(exited(0), {}, false).failure, Failure::Ok);
  EXPECT_EQ(verdict(exited(125), {}, false).failure, Failure::ContainerFailed);
  EXPECT_EQ(verdict(exited(255), {}, false).failure, Failure::ContainerFailed);
  EXPECT_EQ(verdict(exited(3), {}, false).failure, Failure::ToolFailed);
}

TEST(ContainerEnd, GivesWayToWhyTheTaskWasEnded) {
  EndFacts facts;
  facts.status = exited(137);
  facts.container = ContainerEnd{"podman", true, {Said::Begun, 0}};
  facts.stopped_for = Failure::TimeTask;
  EXPECT_EQ(verdict_of(facts).failure, Failure::TimeTask);
  facts.stopped_for.reset();
  facts.memory_kills = 1;
  EXPECT_EQ(verdict_of(facts).failure, Failure::OomTask);
}

TEST(ContainerReport, IsReadAsItIsWritten) {
  const std::string text = to_text({Said::Signalled, 9});
  EXPECT_EQ(text.size(), to_text({Said::Begun, 0}).size());
  EXPECT_EQ(container_report(text).said, Said::Signalled);
  EXPECT_EQ(container_report(text).value, 9);
  EXPECT_EQ(container_report("").said, Said::Nothing);
  EXPECT_EQ(container_report(text.substr(3)).said, Said::Nothing);
}

// --- where an image shows what is the node's

TEST(MountPoint, IsMadeInTheImageAndNeverOutside) {
  char name[] = "/tmp/hpcbatch-mount-XXXXXX";
  const std::string root = ::mkdtemp(name);
  const std::string tree = root + "/tree";
  const auto is_there = [&](const std::string& path) {
    struct stat info {};
    return ::lstat(path.c_str(), &info) == 0;
  };
  ASSERT_EQ(::mkdir(tree.c_str(), 0755), 0);
  EXPECT_TRUE(make_mount_point(tree, "/a/b/c", true));
  EXPECT_TRUE(is_there(tree + "/a/b/c"));
  EXPECT_TRUE(make_mount_point(tree, "/a/file", false));
  EXPECT_TRUE(is_there(tree + "/a/file"));
  ASSERT_EQ(::symlink(root.c_str(), (tree + "/out").c_str()), 0);
  EXPECT_TRUE(make_mount_point(tree, "/out/escaped", true)) << "left to the runtime";
  EXPECT_FALSE(is_there(root + "/escaped"));
  EXPECT_FALSE(make_mount_point(tree, "/a/../../escaped", true));
  EXPECT_FALSE(is_there(root + "/escaped"));
  EXPECT_FALSE(make_mount_point(root + "/none", "/a", true));
  [[maybe_unused]] const int removed = std::system(("rm -r " + root).c_str());
}

}  // namespace
}  // namespace hpcbatch::pilot
