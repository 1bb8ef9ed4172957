// The configuration file: what it becomes, and what each mistake in it is told.
#include "documents/configuration.hpp"

#include <gtest/gtest.h>

namespace hpcbatch {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view kFull = R"(sites:
  - name: cluster
    scheduler: {plugin: slurm, sbatch: /opt/bin/sbatch, retries: 3}
    transport: shared_fs
    link: direct
    interface: 10.0.0.5
    workspace: /scratch/me/hpcbatch
    store: 50G
    keep_for: 2d
    keep_limit: 5G
    scratch: /local
    setup: [module load python]
    options: [--account=abc]
    choices: {account: [lab1, lab2], qos: any, reservation: course}
    output_limit: 10M
    max_queued: 5
    max_running: 17
    idle_after: 2m
    poll_every: 500ms
    settle_after: 4s
    lost_after: 1h
    shapes:
      - {name: cpu, partition: short, nodes: 2, cpus: 32, memory: 120G, walltime: 4h}
      - name: a100
        cpus: 16
        memory: 60G
        disk: 1T
        gpus: {a100: 2}
        walltime: "2:00:00"
        tags: [big, amp, big, constraint=avx512]
        resources: {licences/x: 1.5}
        max_queued: 1
        max_running: 2
  - {name: here, scheduler: local}
plugin_path: [/opt/plugins]
tool_path: [/opt/tools]
tools:
  segmenter: {parameters: {python: /opt/venv/bin/python, level: 6}}
dropboxes:
  - directory: /srv/drop
    workspace: /scratch/drop
    allow: [/srv/out]
    templates: [/srv/templates]
    variables: {containers: /srv/sif}
)";

std::string cluster_with(const std::string& more) {
  return "sites:\n  - {name: c, scheduler: slurm, workspace: /w, " + more + "}\n";
}

std::string told_of_cluster(const std::string& more) {
  try {
    parse_configuration(cluster_with(more), "c.yaml");
  } catch (const DocumentError& error) {
    return error.what();
  }
  return "";
}

TEST(Configuration, ASiteMayHaveNoShapesYet) {
  EXPECT_TRUE(parse_configuration(cluster_with("max_queued: 2"), "c.yaml").sites[0].shapes.empty());
  EXPECT_TRUE(parse_configuration(cluster_with("shapes: []"), "c.yaml").sites[0].shapes.empty());
}

TEST(Configuration, OptionsDoNotContradictShapes) {
  const std::string shapes =
      ", shapes: [{name: s, partition: p, cpus: 1, memory: 1G, walltime: 1h}]";
  EXPECT_EQ(told_of_cluster("options: [--time=2h]" + shapes),
            "c.yaml:2: '--time=2h' contradicts the shapes, which say it with 'walltime'");
  for (const char* wrong :
       {"-t10", "-p long", "--partition=long", "--mem=4G", "-c, '4'", "-N1", "--job-name=x",
        "-o, /x", "--array=1-3", "--gres=gpu:2", "--gres, 'gpu:a100:1'", "'--gres=scratch:1,gpu:2'",
        "--gpus-per-task=1", "--gpus-per-node=2", "--cpus-per-gpu=4", "--ntasks-per-node=2"})
    EXPECT_NE(told_of_cluster("options: [" + std::string(wrong) + "]" + shapes), "") << wrong;
  for (const char* right : {"--account=abc", "--exclusive", "--mem-bind=local", "--time-min=10",
                            "--constraint=avx", "-A, lab", "--gres=scratch:10", "--nodelist=n1"})
    EXPECT_EQ(told_of_cluster("options: [" + std::string(right) + "]" + shapes), "") << right;
  EXPECT_EQ(told_of_cluster("options: [-p, long], shapes: [{name: s, cpus: 1, memory: 1G, "
                            "walltime: 1h}]"),
            "")
      << "no shape names one";
}

TEST(Configuration, GpusOfNoKindStandAlone) {
  const auto with = [](const std::string& gpus) {
    return "shapes: [{name: s, cpus: 1, memory: 1G, walltime: 1h, gpus: " + gpus + "}]";
  };
  EXPECT_EQ(told_of_cluster(with("{gpu: 2}")), "");
  EXPECT_EQ(told_of_cluster(with("{a100: 2, h100: 1}")), "");
  EXPECT_NE(told_of_cluster(with("{gpu: 2, a100: 1}")).find("a shape of its own"),
            std::string::npos);
}

TEST(Configuration, AMisspeltKeyThatMustBeThereIsKnown) {
  try {
    parse_configuration("sites:\n  - {name: c, schedular: slurm, workspace: /w}\n", "c.yaml");
    FAIL();
  } catch (const DocumentError& error) {
    EXPECT_NE(std::string(error.what()).find("did you mean 'scheduler'?"), std::string::npos)
        << error.what();
  }
}

TEST(Configuration, ReadsEverything) {
  const Configuration c = parse_configuration(kFull, "c.yaml");
  ASSERT_EQ(c.sites.size(), 2U);
  const Site& site = c.sites[0];
  EXPECT_EQ(site.name, "cluster");
  EXPECT_EQ(site.scheduler, "slurm");
  EXPECT_NE(site.scheduler_config.find("/opt/bin/sbatch"), std::string::npos);
  EXPECT_EQ(site.scheduler_config.find("plugin"), std::string::npos);
  EXPECT_EQ(site.transport, "shared_fs");
  EXPECT_EQ(site.transport_config, "");
  EXPECT_EQ(site.link, LinkKind::Direct);
  EXPECT_EQ(site.interface, "10.0.0.5");
  EXPECT_EQ(site.workspace, "/scratch/me/hpcbatch");
  EXPECT_EQ(site.store_limit, std::uint64_t{50} << 30);
  EXPECT_EQ(c.sites[1].store_limit, std::uint64_t{100} << 30);
  EXPECT_EQ(site.keep_for, Duration(48h));
  EXPECT_EQ(site.keep_limit, std::uint64_t{5} << 30);
  EXPECT_EQ(c.sites[1].keep_for, Duration(30 * 24h));
  EXPECT_EQ(c.sites[1].keep_limit, std::uint64_t{20} << 30);
  EXPECT_EQ(site.output_limit, std::uint64_t{10} << 20);
  EXPECT_EQ(c.sites[1].output_limit, kOutputLimit);
  EXPECT_EQ(site.scratch, "/local");
  EXPECT_EQ(site.setup, std::vector<std::string>{"module load python"});
  EXPECT_EQ(site.options, std::vector<std::string>{"--account=abc"});
  const std::map<std::string, std::vector<std::string>> choices{
      {"account", {"lab1", "lab2"}}, {"qos", {}}, {"reservation", {"course"}}};
  EXPECT_EQ(site.choices, choices);
  EXPECT_FALSE(c.sites[1].choices) << "what the batch system has a word for";
  EXPECT_EQ(site.max_queued, 5U);
  EXPECT_EQ(site.max_running, 17U);
  EXPECT_EQ(site.idle_after, Duration(2min));
  EXPECT_EQ(site.poll_every, Duration(500ms));
  EXPECT_EQ(site.settle_after, Duration(4s));
  EXPECT_EQ(site.lost_after, Duration(1h));
  ASSERT_EQ(site.shapes.size(), 2U);
  EXPECT_EQ(site.shapes[0].nodes, 2U);
  EXPECT_EQ(site.shapes[0].capacity.get(kCpus), Amount::of(32));
  EXPECT_EQ(site.shapes[0].walltime, Duration(4h));
  EXPECT_EQ(show(site.shapes[1].capacity), "16 cpus, 1T disk, 2 a100, 1.5 licences/x, 60G memory");
  EXPECT_EQ(site.shapes[1].tags, (std::vector<std::string>{"amp", "big", "constraint=avx512"}));
  EXPECT_EQ(site.shapes[1].max_queued, 1U);
  EXPECT_EQ(site.shapes[1].max_running, 2U);
  EXPECT_EQ(c.lines[0], (SiteLines{2, 3, 4}));
  EXPECT_EQ(c.sites[1].transport, "shared_fs");
  EXPECT_EQ(c.plugin_path, std::vector<std::string>{"/opt/plugins"});
  EXPECT_EQ(c.tool_path, std::vector<std::string>{"/opt/tools"});
  EXPECT_EQ(c.tool_parameters.at("segmenter").at("level"), "6");
  ASSERT_EQ(c.dropboxes.size(), 1U);
  EXPECT_EQ(c.dropboxes[0], (DropboxSettings{"/srv/drop",
                                             "/scratch/drop",
                                             {"/srv/out"},
                                             {"/srv/templates"},
                                             {{"containers", "/srv/sif"}}}));
}

TEST(Configuration, TheLogIsTextUnlessJsonIsAskedFor) {
  EXPECT_EQ(parse_configuration("{}", "c.yaml").log, LogFormat::Text);
  EXPECT_EQ(parse_configuration("log: json\n", "c.yaml").log, LogFormat::Json);
  EXPECT_THROW(parse_configuration("log: xml\n", "c.yaml"), DocumentError);
}

TEST(Configuration, WhoIsToldOfEndsIsCheckedWithItsLine) {
  EXPECT_EQ(parse_configuration("notify: [mail:me@x.org, 'failed:command:/a']\n", "c.yaml").notify,
            (std::vector<std::string>{"mail:me@x.org", "failed:command:/a"}));
  EXPECT_THROW(parse_configuration("notify: [me@x.org]\n", "c.yaml"), DocumentError);
}

TEST(Configuration, ATrustedGroupIsTheSitesOwnOrElseThatOfAll) {
  const Configuration c = parse_configuration(
      "trust_group: lab\nsites:\n"
      "  - {name: a, scheduler: slurm, workspace: /w, trust_group: proj}\n"
      "  - {name: b, scheduler: slurm, workspace: /v}\n"
      "dropboxes:\n  - {directory: /d, input_limit: 2G, jobs_limit: 3}\n  - {directory: /e}\n",
      "c.yaml");
  EXPECT_EQ(c.trust_group, "lab");
  EXPECT_EQ(c.sites[0].trust_group, "proj");
  EXPECT_EQ(c.sites[1].trust_group, "lab");
  EXPECT_EQ(c.dropboxes[0].trust_group, "lab");
  EXPECT_EQ(c.dropboxes[0].input_limit, std::uint64_t{2} << 30);
  EXPECT_EQ(c.dropboxes[0].jobs_limit, 3U);
  EXPECT_EQ(c.dropboxes[1].jobs_limit, 1000U);
}

TEST(Configuration, AnEmptyFileIsOne) {
  EXPECT_TRUE(parse_configuration("", "c.yaml").sites.empty());
}

std::string refusal(const std::string& text) {
  try {
    parse_configuration(text, "c.yaml");
  } catch (const DocumentError& e) {
    return e.what();
  }
  return "accepted";
}

std::string site_with(const std::string& line) {
  return "sites:\n  - name: s\n    scheduler: slurm\n    workspace: /w\n    shapes: [{name: a, "
         "cpus: 1, "
         "memory: 1G, walltime: 1h}]\n    " +
         line + "\n";
}

std::string shape_with(const std::string& rest) {
  return "sites:\n  - name: s\n    scheduler: slurm\n    workspace: /w\n    shapes:\n      - "
         "{name: a, " +
         rest + "}\n";
}

struct Bad {
  const char* name;
  std::string text;
  std::string says;
};

class BadConfiguration : public testing::TestWithParam<Bad> {};

TEST_P(BadConfiguration, IsToldWhere) {
  EXPECT_EQ(refusal(GetParam().text), GetParam().says);
}

INSTANTIATE_TEST_SUITE_P(
    Table, BadConfiguration,
    testing::Values(
        Bad{"List", "- a\n",
            "c.yaml:1: 'the configuration' must be a map (key: value), not a list"},
        Bad{"ATagWithABlank", shape_with("cpus: 1, memory: 1G, walltime: 1h, tags: ['a b']"),
            "c.yaml:6: 'tags[0]' must be a tag: a name, or KEY=VALUE without blanks and '+', not "
            "'a b'"},
        Bad{"ChoicesAsAList", site_with("choices: [account]"),
            "c.yaml:6: 'choices' must be a map from what tasks may choose to its values or 'any', "
            "such as {account: any}, not a list"},
        Bad{"AChoiceOfNothing", site_with("choices: {account: []}"),
            "c.yaml:6: 'account' must be values; leave it out where none may be chosen, not a "
            "list"},
        Bad{"UnknownTopKey", "site: []\n",
            "c.yaml:1: unknown key 'site' in the configuration; did you mean 'sites'?"},
        Bad{"UnknownSiteKey", site_with("max_runing: 3"),
            "c.yaml:6: unknown key 'max_runing' in sites[0]; did you mean 'max_running'?"},
        Bad{"UnknownShapeKey", shape_with("cpus: 1, memory: 1G, walltime: 1h, mem: 3"),
            "c.yaml:6: unknown key 'mem' in shapes[0]; did you mean 'memory'?"},
        Bad{"FarShapeKey", shape_with("cpus: 1, memory: 1G, walltime: 1h, zzz: 3"),
            "c.yaml:6: unknown key 'zzz' in shapes[0]; known are name, partition, nodes, cpus, "
            "memory, disk, gpus, resources, walltime, tags, max_queued, max_running"},
        Bad{"NoName", "sites: [{scheduler: slurm}]", "c.yaml:1: 'name' is missing in sites[0]"},
        Bad{"BadName", "sites: [{name: a b}]",
            "c.yaml:1: 'name' must be a name of at most 64 letters, digits, '_', '.', '-', a "
            "letter or digit "
            "first, not 'a b'"},
        Bad{"SameSite",
            "sites:\n  - {name: a, scheduler: local}\n  - {name: a, scheduler: local}\n",
            "c.yaml:3: a second site is named 'a' (the first is in line 2)"},
        Bad{"SameShape",
            site_with("").substr(0, site_with("").find("shapes")) +
                "shapes: [{name: a, cpus: 1, memory: 1G, walltime: 1h}, {name: a, cpus: 1, memory: "
                "1G, walltime: 1h}]\n",
            "c.yaml:5: a second shape of this site is named 'a'"},
        Bad{"RelativeWorkspace", "sites:\n  - {name: a, scheduler: slurm, workspace: w}\n",
            "c.yaml:2: 'workspace' must be an absolute path (beginning with '/'), not 'w'"},
        Bad{"NoWorkspace", "sites:\n  - {name: a, scheduler: slurm}\n",
            "c.yaml:2: 'workspace' is missing in sites[0]"},
        Bad{"LittleStore", site_with("store: 100k"),
            "c.yaml:6: 'store' must be a size of at least 1M, not '100k'"},
        Bad{"BadLink", site_with("link: tcp"),
            "c.yaml:6: 'link' must be one of auto, unix, direct, relay, spool, not 'tcp'"},
        Bad{"OtherCluster", site_with("options: [--account=a, --clusters=far]"),
            "c.yaml:6: '--clusters=far' cannot be used: batch jobs are listed and cancelled on the "
            "default cluster alone; run hpcbatch on a login node of that cluster"},
        Bad{"BadInterface", site_with("interface: eth0"),
            "c.yaml:6: 'interface' must be a numeric address of this machine, such as 10.0.0.5, "
            "not 'eth0'"},
        Bad{"PluginWithoutName", "sites:\n  - name: a\n    scheduler: {x: 1}\n",
            "c.yaml:3: 'plugin' is missing in scheduler"},
        Bad{"NoMemory", shape_with("cpus: 1, walltime: 1h"),
            "c.yaml:6: 'memory' is missing in shapes[0]"},
        Bad{"LittleMemory", shape_with("cpus: 1, memory: 1M, walltime: 1h"),
            "c.yaml:6: 'memory' must be a size of at least 256M (the pilot itself keeps 100M), not "
            "'1M'"},
        Bad{"ShortWalltime", shape_with("cpus: 1, memory: 1G, walltime: 5s"),
            "c.yaml:6: 'walltime' must be a duration of at least 10s (a tenth of it is the pilot's "
            "margin), "
            "not '5s'"},
        Bad{"GpusWithoutKind", shape_with("cpus: 1, memory: 1G, gpus: 2, walltime: 1h"),
            "c.yaml:6: 'gpus' must be a map from the kind of GPU to how many, such as {a100: 2}, "
            "not '2'"},
        Bad{"OddGpuKind", shape_with("cpus: 1, memory: 1G, gpus: {\"a b\": 2}, walltime: 1h"),
            "c.yaml:6: a kind of GPU must be a name such as a100, not 'a b'"},
        Bad{"KnownAmount", shape_with("cpus: 1, memory: 1G, resources: {disk: 2}, walltime: 1h"),
            "c.yaml:6: 'disk' has a key of its own in a shape; write it there, not under "
            "'resources'"},
        Bad{"NegativeCpus", shape_with("cpus: -1, memory: 1G, walltime: 1h"),
            "c.yaml:6: 'cpus' must be a whole number from 1 to 65536, not '-1'"},
        Bad{"RelativePluginPath", "plugin_path: [plugins]",
            "c.yaml:1: 'plugin_path[0]' must be an absolute path (beginning with '/'), not "
            "'plugins'"},
        Bad{"ToolSettings", "tools: {a: {params: {}}}",
            "c.yaml:1: unknown key 'params' in a; known are parameters"},
        Bad{"SameDropbox", "dropboxes:\n  - directory: /d\n  - directory: /d\n",
            "c.yaml:3: the drop box /d is named twice"},
        Bad{"DuplicateKey", "sites: []\nsites: []\n",
            "c.yaml:2: the key 'sites' stands here a second time"}),
    [](const auto& row) { return row.param.name; });

}  // namespace
}  // namespace hpcbatch
