// What people mistype, in the words of other programs and of their own, and the sentence that
// helps.
#include "cli/parse/parse.hpp"
#include "cli/process/process.hpp"

#include <gmock/gmock.h>

#include <sstream>

namespace hpcbatch {
namespace {

using testing::HasSubstr;
using testing::Not;

struct Mistyped {
  const char* words;  ///< parted by blanks
  const char* sentence;
};

// clang-format off
constexpr Mistyped kTable[] = {
    {"submit -n fit -- true", "'-n' is no option of submit; did you mean --name?"},
    {"submit -n 4 -- true", "N tasks are --array 1-N"},
    {"submit -n4 -- true", "N tasks are --array 1-N"},
    {"submit -np 4 -- true", "the processes of MPI on them --ntasks N"},
    {"submit -N 4 -- true", "its nodes --nodes N"},
    {"run --tag --items a -- echo {}", "--tag needs a value behind it: --tag TAG; what GNU parallel calls --tag is --prefix"},
    {"submit --time --cpus 2 -- true", "--time needs a value behind it: --time DURATION"},
    {"run --delay 1 -- true", "--max-running N bounds how many run at once"},
    {"run --dry-run -- true", "`hpcbatch submit --dry-run` shows what would run"},
    {"cancel --all", "`hpcbatch engine stop --now` cancels all there is"},
    {"alloc add slurm", "there is no verb 'alloc': the engine asks the batch system"},
    {"allocations add", "`hpcbatch keep SHAPE --until TIME` keeps a pilot running"},
    {"run --items a b echo {}", "hpcbatch run --items A B -- COMMAND {}"},
    {"run --items a --tiem 5 -- echo {}", "did you mean --time?"},
    {"run --items a -j 4 -- echo {}", "did you mean --max-running?"},
    {"submit -J fit -- true", "did you mean --name?"},
    {"submit --job-name fit -- true", "did you mean --name?"},
    {"submit -c 4 -- true", "'-c' is no option of submit; did you mean --cpus?"},
    {"submit -c4 -- true", "did you mean --cpus?"},
    {"submit --cpu 4 -- true", "'--cpu' is no option of submit; did you mean --cpus?"},
    {"submit --cpu=4 -- true", "'--cpu' is no option of submit; did you mean --cpus?"},
    {"submit --cpus-per-task 4 -- true", "did you mean --cpus?"},
    {"submit --threads 4 -- true", "did you mean --cpus?"},
    {"submit --cores 4 -- true", "did you mean --cpus?"},
    {"submit --memory 8G -- true", "did you mean --mem?"},
    {"submit --mem-mb 8000 -- true", "did you mean --mem?"},
    {"submit -m 8G -- true", "did you mean --mem?"},
    {"submit --walltime 1h -- true", "did you mean --time?"},
    {"submit -t 10 -- true", "did you mean --time?"},
    {"submit --time-limit 10 -- true", "did you mean --time?"},
    {"submit --tiem 10 -- true", "did you mean --time?"},
    {"submit --gres gpu:1 -- true", "did you mean --gpus?"},
    {"submit --gpu 1 -- true", "did you mean --gpus?"},
    {"submit -a 1-10 -- true", "did you mean --"},
    {"submit --jobs 4 --array 1-9 -- true", "did you mean --max-running?"},
    {"submit -j4 --array 1-9 -- true", "did you mean --max-running?"},
    {"submit -o out -- true", "did you mean --stdout?"},
    {"submit --output-file x -- true", "'--output-file' is no option of submit"},
    {"submit -e err -- true", "did you mean --stderr?"},
    {"submit --queue long -- true", "did you mean --partition?"},
    {"submit -p long -- true", "did you mean --partition?"},
    {"submit -A lab -- true", "did you mean --account?"},
    {"submit -q long -- true", "did you mean --qos?"},
    {"submit -d 12 -- true", "did you mean --after?"},
    {"submit --dependency afterok:12 -- true", "did you mean --after?"},
    {"submit --workdir /tmp -- true", "did you mean --cwd?"},
    {"submit --chdir /tmp -- true", "did you mean --cwd?"},
    {"submit --retry 3 -- true", "did you mean --retries?"},
    {"submit --each-line list -- true", "did you mean --each?"},
    {"submit --colsep , --each x -- true", "did you mean --columns?"},
    {"submit --max-failures 3 --array 1-9 -- true", "did you mean --max-fails?"},
    {"submit --xyzzy -- true", "'--xyzzy' is no option of submit; see `hpcbatch submit --help`"},
    {"submit --cpus -- true", "--cpus needs a value behind it: --cpus N"},
    {"submit --name -- true", "--name needs a value behind it: --name NAME"},
    {"submit --array -- true", "--array needs a value behind it"},
    {"submit --cpus four -- true", "'four' is not a number, like 4 or 0.5"},
    {"submit --cpus=-1 -- true", "'-1' is not a number"},
    {"submit --cpus 0 -- true", "a task needs more than 0"},
    {"submit --cpus 1 --cpus 2 -- true", "--cpus is there twice; say it once"},
    {"submit --mem lots -- true", "'lots' is not a size, like 512M, 8G"},
    {"submit --mem 8 GB x -- true", "hpcbatch submit --"},
    {"submit --time 1h30 -- true", "'1h30' is not a duration, like 90s"},
    {"submit --time 1:30 -- true", "'1:30' is not a duration"},
    {"submit --time -5 -- true", "'-5' is not a duration"},
    {"submit --array 1..10 -- true", "arrays are like 1-100, 1-100:5 (step)"},
    {"submit --array 10-1 -- true", "is not an array"},
    {"submit --array 1-10% -- true", "is not an array"},
    {"submit --retries x -- true", "'x' is not a whole number from 0 to 1000"},
    {"submit --retries -1 -- true", "'-1' is not a whole number from 0 to 1000"},
    {"submit --retries 99999999999 -- true", "is not a whole number from 0 to 1000"},
    {"submit --retries 1.5 -- true", "'1.5' is not a whole number"},
    {"submit --priority high -- true", "'high' is not a whole number from -1000000 to 1000000"},
    {"submit --max-fails many --array 1-9 -- true", "'many' is not how many may fail"},
    {"submit --max-running 0 --array 1-9 -- true", "'0' is no number from 1 up"},
    {"submit --halt 3 --array 1-9 -- true", "write soon,fail=3, now,fail=10% or never"},
    {"submit --one-of cpus=1 -- true", "one --one-of leaves no choice"},
    {"submit --cpus 2 --one-of cpus=1 --one-of gpus=1 -- true", "stand in each --one-of"},
    {"submit --one-of gpus=1,cups=4 -- true", "'cups' is none of cpus, mem, disk, gpus, gpu-memory, gpu-capability"},
    {"submit --one-of gpus -- true", "write it as gpus=1,cpus=4"},
    {"submit --one-of time=5m,cpus=1 -- true", "said once"},
    {"submit --gpus a100:x -- true", "is not a number of GPUs; say 1, a100 or a100:2"},
    {"submit --after x -- true", "'x' is not an id; ids are like 12"},
    {"submit --env NOT_SET_ANYWHERE_HERE -- true", "is not set here; say --env NAME=VALUE"},
    {"submit --nodes all -- true", "'all' is not"},
    {"submit --param x=1 -- true", "--param belongs to --tool NAME"},
    {"submit --param x --tool t", "'x' is not what --param expects: NAME=VALUE"},
    {"submit --tool t -- true", "a tool or a command, not both"},
    {"submit --file t.yaml -- true", "--file says what its tasks run"},
    {"submit --columns , -- true", "belong to --each FILE or --items"},
    {"submit --site= -- true", "--site needs a value behind it: --site NAME"},
    {"submit", "there is no command; write it after `--`: hpcbatch submit -- echo hello"},
    {"submit --", "there is no command"},
    {"submit echo hi", "a command stands behind `--`: hpcbatch submit -- echo hi"},
    {"submit --each in.txt ./fit.sh {} out", "hpcbatch submit --each in.txt -- ./fit.sh {} out"},
    {"submit --cpus=2 --hold ./fit.sh {} out", "submit --cpus=2 --hold -- ./fit.sh {} out"},
    {"run ./fit.sh ::: a b c", "hpcbatch run --items ... -- ./fit.sh"},
    {"submit --mem=300M job.sh arg1", "hpcbatch submit --mem=300M job.sh -- arg1"},
    {"submit t.yaml", "t.yaml is no script; a file of tasks is `hpcbatch submit --file t.yaml`"},
    {"submit t.toml --dry-run", "`hpcbatch submit --file t.toml`"},
    {"submit --cpus 4 sort big.txt", "hpcbatch submit --cpus 4 -- sort big.txt"},
    {"run true", "a command stands behind `--`: hpcbatch run -- true"},
    {"run sort big.txt", "hpcbatch run -- sort big.txt"},
    {"run", "there is no command"},
    {"run --wait -- true", "'--wait' is no option of run"},
    {"run -k --items a -- echo {}", "did you mean --keep-order?"},
    {"run -c 4 -- true", "'-c' is no option of run; did you mean --cpus?"},
    {"run --resume --items a -- true", "say --key KEY"},
    {"list --state runing", "'runing' is not a state; did you mean 'running'?"},
    {"list --state", "--state needs a value behind it: --state STATE"},
    {"list --failure oom", "'oom' is not a failure; did you mean 'oom_task'?"},
    {"list --failure walltime", "did you mean 'pilot_walltime'?"},
    {"list --failure ok", "'ok' is not a failure"},
    {"retry 12 --failure timeout", "'timeout' is not a failure; did you mean 'time_task'?"},
    {"log 12 --failure memory", "did you mean 'oom_task'?"},
    {"list --state pending", "'pending' is not a state; did you mean 'waiting'?"},
    {"list --state completed", "did you mean 'done'?"},
    {"list 12 --failed", "did you mean --state failed?"},
    {"list --state COMPLETED", "did you mean 'done'?"},
    {"log 12 -n 5", "did you mean --tail?"},
    {"log 12 --fail", "did you mean --failed?"},
    {"log 12 --failed --attempt 1", "exclude each other"},
    {"submit -a 1-3 -- true", "did you mean --array?"},
    {"submit --wrap true", "hpcbatch submit -- sh -c 'LINE'"},
    {"submit --parsable -- true", "'--parsable' is no option of submit; see"},
    {"run --bar -- true", "`run` shows how far it is by itself"},
    {"run -- echo {} ::: a b c", "hpcbatch run --items A B -- COMMAND {}"},
    {"run --items a ::: c -- echo {}", "a second list is a second --items"},
    {"engine stat", "did you mean 'status'?"},
    {"list --limit 0", "'0' is no number from 1 up"},
    {"list -n x", "'x' is no number from 1 up"},
    {"list --since soon", "'soon' is neither a duration of some years at most, like 2h, 3d or 2w, nor a day: today"},
    {"list --user me", "did you mean --client?"},
    {"list --status failed", "did you mean --state?"},
    {"list x", "'x' is not an id"},
    {"list 12.1", "`hpcbatch show 12.1` shows that"},
    {"list 12,13", "several are written apart, 12 13 17"},
    {"list --tool x 12", "choose submissions"},
    {"lst", "there is no verb 'lst'; did you mean 'list'?"},
    {"ls", "did you mean 'list'?"},
    {"jobs", "did you mean 'list'?"},
    {"squeue", "did you mean 'list'?"},
    {"job list", "did you mean 'list'?"},
    {"status", "did you mean 'engine status'?"},
    {"stop", "did you mean 'engine stop'?"},
    {"start", "did you mean 'engine start'?"},
    {"server start", "did you mean 'engine'?"},
    {"kill 12", "did you mean 'cancel'?"},
    {"rm 12", "did you mean 'cancel'?"},
    {"scancel 12", "did you mean 'cancel'?"},
    {"sbatch job.sh", "did you mean 'submit'?"},
    {"cat 12", "did you mean 'log'?"},
    {"logs 12", "did you mean 'log'?"},
    {"info 12", "did you mean 'show'?"},
    {"rerun 12", "did you mean 'retry'?"},
    {"resume 12", "did you mean 'release'?"},
    {"--verison", "did you mean '--version'?"},
    {"-V", "did you mean '--version'?"},
    {"xyzzy", "there is no verb 'xyzzy'; `hpcbatch --help` lists them"},
    {"cancel", "which ones? Say ids, as 12 or 12.345, or last, or --name NAME"},
    {"cancel all", "--name '*' means all that you have submitted"},
    {"cancel 12,13", "several are written apart, 12 13 17"},
    {"cancel 15-12", "a range from low to high"},
    {"cancel 1-2000000", "a range holds a million at most"},
    {"cancel 12-14x", "'12-14x' is not an id"},
    {"cancel lats", "'lats' is not an id"},
    {"cancel -f 12", "'-f' is no option of cancel"},
    {"cancel --all", "'--all' is no option of cancel"},
    {"show", "which ones? Say ids"},
    {"show 12,13", "several are written apart, 12 13 17"},
    {"log", "which ones? Say ids"},
    {"log 13-12", "a range from low to high"},
    {"log --tail x 12", "'x' is no number from 1 up"},
    {"log --tail -5 12", "'-5' is no number from 1 up"},
    {"log --lines 5 12", "did you mean --tail?"},
    {"log --folow 12", "did you mean --follow?"},
    {"log --follow --tail 5 12", "exclude each other"},
    {"log --stdout --stderr 12", "exclude each other"},
    {"explain", "which ones? Say ids"},
    {"explain 12.x", "'12.x' is not an id"},
    {"wait all", "'all' is not an id"},
    {"wait --timeout soon 12", "'soon' is not a duration"},
    {"wait --timeout -5 12", "'-5' is not a duration"},
    {"wait", "which ones?"},
    {"retry", "which ones?"},
    {"retry --mem 12", "which ones?"},
    {"retry --memory 8G 12", "did you mean --mem?"},
    {"retry --cpus 0 12", "more than 0"},
    {"hold x", "'x' is not an id"},
    {"sites shwo", "there is no 'sites shwo'; did you mean 'show'?"},
    {"sites check", "NAME is missing: hpcbatch sites check NAME"},
    {"sites list", "there is no 'sites list'"},
    {"sites add", "NAME is missing"},
    {"sites add c", "--workspace is missing"},
    {"sites add c --workspace here", "'here' is not absolute"},
    {"sites show a b", "takes one at a time; leave out 'b'"},
    {"tools shw x", "there is no 'tools shw'; did you mean 'show'?"},
    {"engine", "engine does nothing alone; say start, stop, reload, restart, status, run"},
    {"engine strat", "there is no 'engine strat'; did you mean 'start'?"},
    {"engine restat", "did you mean 'restart'?"},
    {"engine stop --force", "did you mean --now?"},
    {"engine stop --now --drain", "exclude each other"},
    {"engine start --conifg x", "did you mean --config?"},
    {"top --json --x", "'--x' is no option of top"},
    {"top 5", "top takes no '5'"},
    {"dropbox --remove", "DIR is missing"},
    {"dropbox /a /b", "dropbox takes one at a time; leave out '/b'"},
    {"dropbox /a --var x", "NAME=VALUE"},
    {"backup", "FILE is missing: hpcbatch backup FILE"},
    {"backup a b", "takes one at a time"},
    {"web 5", "web takes no '5'"},
    {"slurm-commands", "DIR is missing: hpcbatch slurm-commands DIR"},
    {"pbs-commands", "DIR is missing: hpcbatch pbs-commands DIR"},
    {"fsck --x", "'--x' is no option of fsck"},
    {"doctor x", "doctor takes no 'x'"},
    {"snakemake-profile x", "snakemake-profile takes no 'x'"},
};
// clang-format on

std::vector<std::string> words_in(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

TEST(Mistyped, IsAnsweredWithWhatWasMeant) {
  for (const Mistyped& one : kTable) {
    const std::vector<std::string> words = words_in(one.words);
    std::string said = "it was taken";
    int code = 0;
    try {
      parse_command(words);
    } catch (const CommandError& error) {
      said = error.what();
      code = error.exit_code();
    }
    EXPECT_THAT(said, HasSubstr(one.sentence)) << one.words;
    EXPECT_EQ(code, words[0] == "run" ? kExitOwnFailure : kExitUsage) << one.words;
    // Words of the parser's library, and its way to write.
    for (const char* theirs : {"was not expected", "Could not convert", "is required",
                               "required but", "TEXT:", "subcommand", "?;", "excludes "})
      EXPECT_THAT(said, Not(HasSubstr(theirs))) << one.words;
  }
}

std::string help_of(std::vector<std::string> words) {
  words.emplace_back("--help");
  return std::get<ShowText>(parse_command(words)).text;
}

TEST(Help, FitsOnAScreenAndHasTwoExamples) {
  for (const char* verb : {"run",
                           "submit",
                           "wait",
                           "cancel",
                           "hold",
                           "release",
                           "retry",
                           "list",
                           "show",
                           "log",
                           "explain",
                           "top",
                           "sites",
                           "sites show",
                           "sites check",
                           "sites clean",
                           "allocations",
                           "allocations show",
                           "pilots",
                           "pilots show",
                           "tools",
                           "tools show",
                           "tools check",
                           "engine",
                           "engine start",
                           "engine stop",
                           "engine reload",
                           "engine restart",
                           "engine status",
                           "engine run",
                           "dropbox",
                           "backup",
                           "slurm-commands",
                           "pbs-commands",
                           "web",
                           "metrics",
                           "fsck",
                           "doctor",
                           "snakemake-profile"}) {
    const std::string text = help_of(words_in(verb));
    std::istringstream in(text);
    int examples = 0;
    bool are_examples = false;
    for (std::string line; std::getline(in, line);) {
      EXPECT_LE(line.size(), 80U) << verb << ": " << line;
      if (are_examples && line.starts_with("  ")) ++examples;
      if (line.starts_with("Examples:")) are_examples = true;
    }
    EXPECT_GE(examples, 2) << verb;
  }
  EXPECT_EQ(help_of({"submit"}), std::get<ShowText>(parse_command({"help", "submit"})).text);
}

}  // namespace
}  // namespace hpcbatch
