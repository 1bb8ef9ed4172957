// Where a text must not be put into a command: whatever reads it there would run it.
#include "programs/program_words.hpp"
#include "model/item.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hpcbatch {
namespace {

using Why = MisplacedText::Why;
using Words = std::vector<std::string>;

std::optional<MisplacedText> asked(const Words& command) {
  Words marked;
  for (const std::string& word : command)
    marked.push_back(with_places_marked(word, Item(std::string("$(id)"))));
  return misplaced_text(marked);
}

std::string shown(const Words& command) {
  std::string line;
  for (const std::string& word : command) line += "<" + word + ">";
  return line;
}

TEST(ProgramWords, WhatAnyShellReadsIsAProgram) {
  for (const char* shell : {"sh",
                            "/bin/sh",
                            "bash",
                            "bash5.2",
                            "/usr/local/bin/bash-5",
                            "dash",
                            "zsh",
                            "ksh",
                            "ksh93",
                            "mksh",
                            "lksh",
                            "pdksh",
                            "yash",
                            "posh",
                            "ash",
                            "fish",
                            "csh",
                            "tcsh",
                            "rbash",
                            "rksh",
                            "osh",
                            "ysh",
                            "elvish",
                            "nu",
                            "xonsh",
                            "rc",
                            "es",
                            "pwsh",
                            "powershell.exe",
                            "bash-static",
                            "oksh",
                            "tclsh"}) {
    for (const Words& end : {Words{"-c", "cat {}"},
                             {"-c", "{}"},
                             {"-lc", "cat {}"},
                             {"-xec", "cat {/.}"},
                             {"-c{}"},
                             {"-c", "-x", "cat {}"},
                             {"--command", "cat {}"},
                             {"--command=cat {}"},
                             {"-x", "-c", "cat {}"}}) {
      Words command{shell};
      command.insert(command.end(), end.begin(), end.end());
      const auto found = asked(command);
      ASSERT_TRUE(found) << shown(command);
      EXPECT_EQ(found->why, Why::InProgram) << shown(command);
    }
  }
  EXPECT_TRUE(asked({"bash", "-o", "pipefail", "-c", "cat {}"}));
  EXPECT_TRUE(asked({"fish", "-C", "echo {}", "-c", "true"}));
  EXPECT_TRUE(asked({"fish", "-c", "true", "-C", "echo {}"}));
  EXPECT_TRUE(asked({"{}", "-c", "{}"})) << "who knows what that is";
}

TEST(ProgramWords, NoProgramBeforeAShellHidesIt) {
  for (const Words& before : {Words{"nice"},
                              {"timeout", "5"},
                              {"env"},
                              {"/usr/bin/env", "A=b"},
                              {"sudo", "-u", "me"},
                              {"busybox"},
                              {"xargs", "-n1"},
                              {"srun", "-n1"},
                              {"stdbuf", "-oL"},
                              {"nohup"},
                              {"setsid", "-w"},
                              {"taskset", "-c", "0"},
                              {"time"},
                              {"chroot", "/x"},
                              {"find", ".", "-exec"},
                              {"some-launcher"},
                              {"docker", "run", "--rm", "image"}}) {
    Words command = before;
    command.insert(command.end(), {"sh", "-c", "cat {}"});
    EXPECT_TRUE(asked(command)) << shown(command);
  }
}

TEST(ProgramWords, OthersHandTextToAShell) {
  for (const Words& command : {Words{"su", "root", "-c", "{}"},
                               {"su", "-", "me", "--command={}"},
                               {"runuser", "-u", "me", "-c", "{}"},
                               {"script", "-qc", "cat {}", "/dev/null"},
                               {"flock", "f", "-c", "{}"},
                               {"sg", "staff", "-c", "{}"},
                               {"env", "-S", "sh -c 'cat {}'"},
                               {"env", "-vS", "cat {}"},
                               {"env", "--split-string=cat {}"},
                               {"ssh", "host", "cat", "{}"},
                               {"ssh", "-p", "22", "host", "cat {}"},
                               {"timeout", "5", "ssh", "h", "{}"},
                               {"ssh", "-o", "ProxyCommand=nc {} 22", "host"},
                               {"parallel", "gzip {}", ":::", "a"},
                               {"parallel", "gzip", "{}"},
                               {"watch", "ls", "{}"},
                               {"watch", "-n", "1", "ls {}"},
                               {"sbatch", "--wrap=cat {}"},
                               {"sbatch", "--wrap", "{}"},
                               {"rsync", "-e", "ssh -p {}", "a", "b"},
                               {"git", "-c", "alias.x=!cat {}", "x"},
                               {"tar", "--to-command=cat {}", "-xf", "a"}}) {
    EXPECT_TRUE(asked(command)) << shown(command);
  }
}

TEST(ProgramWords, InterpretersReadProgramsToo) {
  for (const Words& command : {Words{"python3", "-c", "print('{}')"},
                               {"python3.11", "-Ic", "{}"},
                               {"pypy3", "-c", "{}"},
                               {"python3", "-W", "error", "-c", "{}"},
                               {"perl", "-e", "print {}"},
                               {"perl", "-ne", "{}"},
                               {"perl", "-eprint{}"},
                               {"perl", "-Mstrict", "-E", "{}"},
                               {"ruby", "-e", "{}"},
                               {"node", "-e", "{}"},
                               {"node", "--eval={}"},
                               {"node", "-p", "{}"},
                               {"php", "-r", "{}"},
                               {"lua5.4", "-e", "{}"},
                               {"Rscript", "-e", "{}"},
                               {"R", "--slave", "-e", "{}"},
                               {"julia", "-E", "{}"},
                               {"awk", "{print \"{}\"}", "f"},
                               {"awk", "-F", ":", "/{}/", "f"},
                               {"gawk", "-e", "{}"},
                               {"nice", "mawk", "/{}/"},
                               {"sed", "s/x/{}/", "f"},
                               {"sed", "-i", "-e", "s/x/{}/", "f"},
                               {"jq", ".{}", "f"},
                               {"vim", "-c", "{}"},
                               {"gdb", "-ex", "run {}"},
                               {"psql", "-c", "select '{}'"},
                               {"unknown", "-e", "say {}"},
                               {"unknown", "x=$(cat {})"},
                               {"unknown", "cat {} > x"},
                               {"unknown", "cat \"{}\""}}) {
    EXPECT_TRUE(asked(command)) << shown(command);
  }
}

TEST(ProgramWords, AnArgumentIsNoProgram) {
  for (const Words& command : {Words{"cat", "{}"},
                               {"tool", "--in={}", "out/{/.}.txt"},
                               {"sh", "-c", "cat \"$1\"", "sh", "{}"},
                               {"sh", "{}"},
                               {"bash", "--norc", "{}"},
                               {"bash", "-x", "script.sh", "-c", "{}"},
                               {"fish", "-c", "cat $argv", "{}"},
                               {"echo", "-c", "{}"},
                               {"echo", "hello {}, how are you?"},
                               {"wc", "-c", "{}"},
                               {"grep", "-e", "{}", "f"},
                               {"env", "A={}", "tool", "{}"},
                               {"python3", "script.py", "-c", "{}"},
                               {"python3", "-c", "import sys", "{}"},
                               {"python3", "-m", "tool", "-c", "{}"},
                               {"perl", "script.pl", "{}"},
                               {"awk", "{print}", "{}"},
                               {"awk", "-v", "name={}", "{print name}"},
                               {"awk", "-f", "prog.awk", "{}"},
                               {"sed", "-n", "1p", "{}"},
                               {"grep", "ssh", "{}"},
                               {"grep", "sed", "{}"},
                               {"ssh", "{}", "uptime"},
                               {"parallel", "gzip", ":::", "{}"},
                               {"watch", "-x", "ls", "{}"},
                               {"git", "push", "{}"},
                               {"blockMesh", "-case", "{}"},
                               {"curl", "https://host/x?id={}&y=1"},
                               {"{}", "--version"},
                               {"nice", "tool", "{}"},
                               {"convert", "{}", "-resize", "50%", "{/.}.png"}}) {
    EXPECT_FALSE(asked(command)) << shown(command);
  }
}

TEST(ProgramWords, QuotesHelpWhereShTakesThem) {
  for (const Words& command : {Words{"sh", "-c", "cat {:q} > {/.:q}.txt"},
                               {"bash", "-c", "grep 'a b' {:q}; # done"},
                               {"ssh", "host", "cat", "{:q}"},
                               {"sh", "-c", "sed -n 1p {:q} | awk '{print}' > out.sh"},
                               {"su", "me", "-c", "cat {1:q}"}}) {
    EXPECT_FALSE(asked(command)) << shown(command);
  }
  for (const Words& command : {Words{"sh", "-c", "cat '{:q}'"},
                               {"sh", "-c", "cat \"{:q}\""},
                               {"sh", "-c", "cat \"a $(cat {:q})\""},
                               {"sh", "-c", "cat `ls {:q}`"},
                               {"sh", "-c", "cat <<X\n{:q}\nX"},
                               {"sh", "-c", "# {:q}"},
                               {"sh", "-c", "cat \\{:q}"},
                               {"sh", "-c", "echo $'\\' {:q}"},
                               {"sh", "-c", "eval cat {:q}"},
                               {"sh", "-c", "ssh host cat {:q}"},
                               {"sh", "-c", "bash -c 'cat '{:q}"},
                               {"fish", "-c", "cat {:q}"},
                               {"csh", "-c", "cat {:q}"},
                               {"python3", "-c", "print({:q})"},
                               {"awk", "/{:q}/"},
                               {"env", "-S", "cat {:q}"}}) {
    const auto found = asked(command);
    ASSERT_TRUE(found) << shown(command);
    EXPECT_EQ(found->why, Why::Quoted) << shown(command);
  }
}

TEST(ProgramWords, WhatOnlyLooksLikeAProgramCanBeMeant) {
  EXPECT_EQ(asked({"bcftools", "view", "-i", "QUAL > {}"})->why, Why::Suspect);
  EXPECT_FALSE(asked({"bcftools", "view", "-i", "QUAL > {:raw}"}));
  EXPECT_EQ(asked({"sh", "-c", "cat {:raw}"})->why, Why::InProgram);
}

TEST(ProgramWords, LongCommandsCostLinearTime) {
  Words command(20'000, "sh");
  command.emplace_back("-c");
  command.emplace_back("{}");
  EXPECT_TRUE(asked(command));
  EXPECT_FALSE(asked({"echo", std::string(1 << 20, '{') + "{}"}));
  EXPECT_FALSE(asked(Words(20'000, "-c")));
  for (const Words& repeated : {Words{"su"}, {"perl", "-e"}, {"fish", "-c"}, {"env", "ssh"}}) {
    Words many;
    while (many.size() < 20'000) many.insert(many.end(), repeated.begin(), repeated.end());
    many.emplace_back("{}");
    EXPECT_TRUE(asked(many));
  }
  Words options(20'000, "-o");
  options.front() = "perl";
  options.emplace_back("{}");
  EXPECT_FALSE(asked(options));
}

TEST(ProgramWords, TheFormsOfPlaces) {
  const Item item(std::string("a'b $(id)"));
  EXPECT_EQ(with_item("{} {:q} {:raw}", item), "a'b $(id) 'a'\\''b $(id)' a'b $(id)");
  EXPECT_EQ(with_item("{/.:q}", Item(std::string("x/a b.txt"))), "'a b'");
  EXPECT_EQ(with_item("{:x} {q} ${a:q}", item), "{:x} {q} ${a:q}");
  EXPECT_EQ(fill_braces("{a} {b:q} {c} {",
                        [](std::string_view name, char form) {
                          return name == "c" ? std::nullopt
                                             : std::optional(std::string(name) +
                                                             (form == kQuotedPlace ? "!" : ""));
                        }),
            "a b! {c} {");
}

}  // namespace
}  // namespace hpcbatch
