// hpcbatch-fakegpu: GPUs that are not there, for who develops tools and tests for them.
#include "fakegpu/node.hpp"

#include <CLI/CLI.hpp>

#include <signal.h>
#include <unistd.h>
#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <thread>

namespace {

using namespace hpcbatch::fakegpu;
namespace fs = std::filesystem;
using namespace std::chrono_literals;

constexpr int kRefused = 2;
constexpr int kOutOfMemory = 1;
constexpr auto kStep = 20ms;

/// `a100:4` or `a100:4:40960:8.0`.
struct Many {
  std::string kind;
  unsigned count{1};
  std::uint64_t mebibytes{16'384};
  std::string capability{"8.0"};
};

template <class Number>
bool read_number(const std::string& text, Number& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size();
}

Many read_many(const std::string& text) {
  std::vector<std::string> words;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(':', at), text.size());
    words.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  Many many;
  many.kind = words.front();
  bool is_good = !many.kind.empty() && words.size() <= 4;
  if (words.size() > 1) is_good = is_good && read_number(words[1], many.count);
  if (words.size() > 2) is_good = is_good && read_number(words[2], many.mebibytes);
  if (words.size() > 3) many.capability = words[3];
  if (!is_good) throw std::invalid_argument(text);
  return many;
}

void make_node(const std::string& folder, const std::vector<std::string>& kinds) {
  fs::create_directories(folder + "/use");
  std::ofstream file(folder + "/gpus");
  unsigned number = 0;
  for (const std::string& text : kinds) {
    const Many many = read_many(text);
    for (unsigned i = 0; i < many.count; ++i) {
      char uuid[64];
      std::snprintf(uuid, sizeof uuid, "GPU-%08x-fa1e-4000-8000-%012x", number, number);
      ++number;
      file << uuid << ' ' << many.kind << ' ' << many.mebibytes << ' ' << many.capability << '\n';
    }
  }
  if (!file.flush()) throw std::runtime_error("cannot write " + folder + "/gpus");
}

/// Gives the device of that number these faults, in place of those that it had.
void set_faults(const std::string& folder, std::size_t number,
                const std::vector<std::string>& faults) {
  const Node node(folder);
  std::vector<Gpu> gpus = node.gpus();
  if (number >= gpus.size())
    throw std::runtime_error(folder + " has " + std::to_string(gpus.size()) + " GPUs");
  {
    std::ofstream file(folder + "/gpus.new");
    for (std::size_t i = 0; i < gpus.size(); ++i) {
      file << gpus[i].uuid << ' ' << gpus[i].kind << ' ' << (gpus[i].memory >> 20) << ' '
           << gpus[i].capability;
      if (i == number) {
        for (const std::string& fault : faults) file << ' ' << fault;
      } else {
        for (const auto& [name, value] : gpus[i].faults)
          file << ' ' << name << (value.empty() ? "" : "=") << value;
      }
      file << '\n';
    }
  }
  fs::rename(folder + "/gpus.new", folder + "/gpus");
}

void report_error(const std::string& folder, std::size_t number, unsigned long long xid) {
  const std::vector<Gpu> gpus = Node(folder).gpus();
  if (number >= gpus.size())
    throw std::runtime_error(folder + " has " + std::to_string(gpus.size()) + " GPUs");
  std::ofstream(folder + "/errors", std::ios::app) << gpus[number].uuid << ' ' << xid << '\n';
}

unsigned busy_of_others(const Node& node, const std::vector<Gpu>& gpus) {
  unsigned most = 0;
  for (const Gpu& gpu : gpus) {
    unsigned busy = 0;
    for (const User& user : node.users(gpu.uuid)) {
      if (user.pid != static_cast<std::uint32_t>(::getpid())) busy += user.busy;
    }
    most = std::max(most, busy);
  }
  return most;
}

bool has_room(const Node& node, const std::vector<Gpu>& gpus) {
  return std::all_of(gpus.begin(), gpus.end(), [&](const Gpu& gpu) {
    std::uint64_t used = gpu.value("taken") << 20;
    for (const User& user : node.users(gpu.uuid)) used += user.memory;
    return used <= gpu.memory;
  });
}

struct Work {
  Cost cost;
  double scale{1};
};

/// As long as it takes beside what else runs there.
int work(const Work& what) {
  const auto node = Node::here();
  if (!node) throw std::runtime_error("HPCBATCH_FAKEGPU names no folder of GPUs");
  const std::vector<Gpu> gpus = visible(*node);
  if (gpus.empty()) throw std::runtime_error("no GPU is to be seen");
  std::vector<std::string> uuids;
  uuids.reserve(gpus.size());
  for (const Gpu& gpu : gpus) uuids.push_back(gpu.uuid);
  node->use(uuids, what.cost.memory, what.cost.busy);
  if (!has_room(*node, gpus)) {
    node->use_no_more();
    std::fputs("CUDA error: out of memory\n", stderr);
    return kOutOfMemory;
  }
  using Clock = std::chrono::steady_clock;
  double left = what.cost.seconds * what.scale;
  for (Clock::time_point before = Clock::now(); left > 0;) {
    std::this_thread::sleep_for(
        std::min<std::chrono::duration<double>>(kStep, std::chrono::duration<double>(left)));
    const Clock::time_point now = Clock::now();
    double speed = speed_beside(what.cost.busy, busy_of_others(*node, gpus));
    for (const Gpu& gpu : node->gpus()) {
      const bool is_ours = std::find(uuids.begin(), uuids.end(), gpu.uuid) != uuids.end();
      if (!is_ours) continue;
      if (gpu.is("lost")) {
        node->use_no_more();
        std::fputs("CUDA error: unspecified launch failure\n", stderr);
        return kOutOfMemory;
      }
      if (gpu.is("slow")) speed /= std::max<double>(2, static_cast<double>(gpu.value("slow")));
    }
    left -= std::chrono::duration<double>(now - before).count() * speed;
    before = now;
  }
  node->use_no_more();
  std::printf("%s\n", gpus.front().kind.c_str());
  return 0;
}

Cost cost_of(const std::string& table, const std::string& of) {
  std::ifstream file(table);
  if (!file) throw std::runtime_error("cannot read " + table);
  const CostTable costs = read_costs(file);
  const auto node = Node::here();
  const std::vector<Gpu> gpus = node ? visible(*node) : std::vector<Gpu>();
  if (gpus.empty()) throw std::runtime_error("no GPU is to be seen");
  const auto found = costs.find({of, gpus.front().kind});
  if (found == costs.end())
    throw std::runtime_error(table + " has no line for " + of + " on " + gpus.front().kind);
  return found->second;
}

/// What pip installed has `libexec` in place of `lib`.  Looked for as the engine looks for its plugins.
fs::path libraries_of(const fs::path& prefix) {
  fs::path usual = prefix / "lib/hpcbatch/fakegpu";
  return fs::exists(usual) ? usual : prefix / "libexec/hpcbatch/fakegpu";
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{
      "GPUs that are not there: a folder of them, and work that behaves as if it used them.\n"
      "Programs see them with HPCBATCH_FAKEGPU=FOLDER and LD_LIBRARY_PATH=LIB, where LIB is\n"
      "what `hpcbatch-fakegpu libraries` prints."};
  app.require_subcommand(1);
  std::string folder, table, of;
  std::vector<std::string> words;
  std::size_t number = 0;
  unsigned long long xid = 0;
  Work what;
  std::uint64_t mebibytes = 0;

  CLI::App* make = app.add_subcommand("new", "make a folder of GPUs");
  make->add_option("FOLDER", folder)->required();
  make->add_option("KIND:COUNT[:MIB[:CAPABILITY]]", words)->required();
  CLI::App* fault = app.add_subcommand("fault", "what is wrong with one from now on");
  fault->add_option("FOLDER", folder)->required();
  fault->add_option("NUMBER", number, "from 0")->required();
  fault->add_option(
      "FAULT", words,
      "lost, wrong, fails, stuck, short, hot, taken=MIB, broken=N, slow=TIMES; none: all is well");
  CLI::App* error = app.add_subcommand("error", "the driver reports an error of one");
  error->add_option("FOLDER", folder)->required();
  error->add_option("NUMBER", number, "from 0")->required();
  error->add_option("XID", xid, "as NVIDIA numbers them: 79 is one that fell off the bus")
      ->required();
  CLI::App* use = app.add_subcommand("work", "use the GPUs that CUDA_VISIBLE_DEVICES names");
  use->add_option("--seconds", what.cost.seconds, "alone on it");
  use->add_option("--memory", mebibytes, "MiB");
  use->add_option("--busy", what.cost.busy, "percent (100)");
  use->add_option("--class", of, "of work: all three from a table");
  use->add_option("--table", table, "lines CLASS KIND SECONDS MIB BUSY-PERCENT");
  use->add_option("--scale", what.scale, "of the seconds (1)");
  CLI::App* libraries = app.add_subcommand("libraries", "where the libraries are");
  CLI11_PARSE(app, argc, argv);
  try {
    if (*make) make_node(folder, words);
    if (*fault) set_faults(folder, number, words);
    if (*error) report_error(folder, number, xid);
    if (*libraries)
      std::puts(
          libraries_of(fs::read_symlink("/proc/self/exe").parent_path().parent_path()).c_str());
    if (!*use) return 0;
    what.cost.memory = mebibytes << 20;
    if (!of.empty()) what.cost = cost_of(table, of);
    return work(what);
  } catch (const std::invalid_argument& error_of_words) {
    std::fprintf(stderr, "hpcbatch-fakegpu: '%s' is no KIND:COUNT[:MIB[:CAPABILITY]]\n",
                 error_of_words.what());
  } catch (const std::exception& trouble) {
    std::fprintf(stderr, "hpcbatch-fakegpu: %s\n", trouble.what());
  }
  return kRefused;
}
