// hpcbatch-gpu list: the GPUs that this batch job was given, a JSON object a line.
// hpcbatch-gpu check [SECONDS [COMMAND]]: the same, and what is wrong with them ("trouble"); a shell
// runs the command for each that is good.
// hpcbatch-gpu watch: each second what they do, and what is wrong, until its standard input ends.
// hpcbatch-gpu kernel: runs a small kernel on the first one; what is wrong with it.
#include "gpu/devices/device.hpp"
#include "gpu/kernel_check.hpp"
#include "gpu/nvml.hpp"
#include "gpu/told_by_programs.hpp"
#include "posix/programs.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

using namespace hpcbatch;
using namespace hpcbatch::gpu;
namespace json = boost::json;
using std::chrono::milliseconds;
using namespace std::chrono_literals;

constexpr int kUsage = 2;
constexpr milliseconds kTelling = 10s;
constexpr long kCheckSeconds = 15;
constexpr milliseconds kTests = 60s;

std::optional<std::string_view> variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::nullopt : std::optional<std::string_view>(value);
}

std::string told_by(const std::vector<std::string>& argv) {
  const auto ran = run_in_time(argv, kTelling);
  return ran && ran->status == 0 ? ran->out : "";
}

/// Where nobody knows them: none.
std::vector<Device> devices_here(const Nvml* nvml) {
  const auto shown = variable("CUDA_VISIBLE_DEVICES");
  if (nvml != nullptr) return visible(nvml->devices(), shown);
  auto found = from_nvidia_smi(told_by({"nvidia-smi", std::string("--query-gpu=") + kNvidiaColumns,
                                        "--format=csv,noheader,nounits"}));
  if (!found.empty()) return visible(found, shown);
  found = from_rocm_smi(told_by(
      {"rocm-smi", "--showproductname", "--showuniqueid", "--showmeminfo", "vram", "--json"}));
  return visible(found, variable("ROCR_VISIBLE_DEVICES"));
}

json::object to_json(const Device& device) {
  json::object object{{"index", device.index}};
  const auto text = [&object](const char* key, const std::string& value) {
    if (!value.empty()) object[key] = value;
  };
  text("uuid", device.uuid);
  text("name", device.name);
  if (device.memory != 0) object["memory"] = device.memory;
  object["memory_used"] = device.memory_used;
  text("capability", device.capability);
  text("driver", device.driver);
  text("cuda", device.cuda);
  text("pci", device.pci);
  if (device.numa_node >= 0) object["numa_node"] = device.numa_node;
  if (device.is_slice) object["slice"] = true;
  if (!device.linked.empty())
    object["linked"] = json::array(device.linked.begin(), device.linked.end());
  if (device.broken_bits != 0) object["broken_bits"] = device.broken_bits;
  text("trouble", device.trouble);
  return object;
}

void print_line(const json::object& object) {
  std::puts(json::serialize(object).c_str());
  std::fflush(stdout);
}

bool is_nvidias(const Device& device) {
  return device.uuid.starts_with("GPU-") || device.uuid.starts_with("MIG-");
}

std::string last_line_of(std::string text) {
  while (text.ends_with('\n')) text.pop_back();
  return text.substr(text.find_last_of('\n') + 1);
}

/// Runs it for each that has no trouble yet, in a process of its own that sees that one alone; what
/// `judge` makes of how it ended is its trouble.
template <class Judge>
void try_each(std::vector<Device>& devices, const std::vector<std::string>& argv, milliseconds time,
              const std::string& what, Judge judge) {
  std::vector<Program> programs;
  std::vector<Device*> tried;
  for (Device& device : devices) {
    if (!device.trouble.empty() || !is_nvidias(device)) continue;
    programs.push_back({argv, {"CUDA_VISIBLE_DEVICES=" + device.uuid}});
    tried.push_back(&device);
  }
  const auto ran = run_in_time(programs, time);
  for (std::size_t i = 0; i < ran.size(); ++i) {
    std::string& trouble = tried[i]->trouble;
    if (!ran[i])
      trouble = what + " had not ended after " +
                std::to_string(std::chrono::duration_cast<std::chrono::seconds>(time).count()) +
                " s";
    else if (WIFSIGNALED(ran[i]->status))
      trouble = what + " ends by " + ::strsignal(WTERMSIG(ran[i]->status));
    else
      trouble = judge(*ran[i]);
  }
}

void check(std::vector<Device>& devices, milliseconds time, const std::string& command) {
  try_each(devices, {"/proc/self/exe", "kernel"}, time, "a small kernel",
           [](const Ran& ran) { return ran.out.substr(0, ran.out.find('\n')); });
  if (command.empty()) return;
  try_each(devices, {"/bin/sh", "-c", command}, kTests, "the site's test", [](const Ran& ran) {
    if (ran.status == 0) return std::string();
    const std::string said = last_line_of(ran.out);
    return "the site's test exits " + std::to_string(WEXITSTATUS(ran.status)) +
           (said.empty() ? "" : ": " + said);
  });
}

json::object to_json(const Device& device, const Sample& sample) {
  json::object object{{"index", device.index},
                      {"uuid", device.uuid},
                      {"busy", sample.busy},
                      {"memory", sample.memory}};
  if (sample.energy_mj) object["energy_mj"] = *sample.energy_mj;
  json::array processes;
  for (const Process& process : sample.processes)
    processes.push_back(json::object{{"pid", process.pid}, {"memory", process.memory}});
  object["processes"] = std::move(processes);
  return object;
}

constexpr milliseconds kHearsWithin{200};

enum class Wish { None, LookNow, End };

/// A byte asks for a look at once; the end of the input is ours.
Wish wish_within(milliseconds time) {
  pollfd input{STDIN_FILENO, POLLIN, 0};
  if (::poll(&input, 1, static_cast<int>(time.count())) <= 0) return Wish::None;
  char bytes[256];
  return ::read(STDIN_FILENO, bytes, sizeof bytes) > 0 ? Wish::LookNow : Wish::End;
}

using Watched = std::vector<std::pair<Device, Judge>>;

void look(const Nvml& nvml, Watched& watched, Wish wish) {
  for (auto& [device, judge] : watched) {
    const Sample sample = nvml.sample(device);
    json::object line = to_json(device, sample);
    if (const auto why = judge.look(sample, wish == Wish::None)) line["trouble"] = *why;
    if (wish == Wish::LookNow) line["asked"] = "yes";
    const bool says_something = sample.busy != 0 || !sample.processes.empty() ||
                                line.contains("trouble") || line.contains("asked");
    if (says_something) print_line(line);
  }
}

/// A second at most, in which the driver's errors are told.
Wish wait_for_wish(Nvml& nvml, bool is_told) {
  const auto until = std::chrono::steady_clock::now() + 1s;
  Wish wish = Wish::None;
  for (auto left = milliseconds{1000}; left > 0ms && wish == Wish::None;
       left = std::chrono::duration_cast<milliseconds>(until - std::chrono::steady_clock::now())) {
    // The driver's events are no descriptor that could be waited for together with the input.
    const auto begun = std::chrono::steady_clock::now();
    const auto error = is_told ? nvml.next_error(std::min(left, kHearsWithin)) : std::nullopt;
    // A driver that has lost a GPU answers at once, and would do so for ever.
    const bool has_waited = std::chrono::steady_clock::now() - begun > kHearsWithin / 2;
    wish = wish_within(error || has_waited ? 0ms : std::min(left, kHearsWithin));
    if (error && is_fault_of_device(error->number))
      print_line({{"uuid", error->uuid}, {"trouble", xid_in_words(error->number)}});
  }
  return wish;
}

int watch(Nvml& nvml) {
  Watched watched;
  for (Device& device : devices_here(&nvml)) {
    const std::uint64_t broken = device.broken_bits;
    watched.emplace_back(std::move(device), Judge(broken));
  }
  const bool is_told = nvml.listen();
  for (Wish wish = wish_within(0ms); wish != Wish::End; wish = wait_for_wish(nvml, is_told))
    look(nvml, watched, wish);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view verb = argc >= 2 ? argv[1] : "";
  if (verb == "kernel" && argc == 2) {
    std::puts(check_kernel().c_str());
    std::fflush(stdout);
    // Whatever the driver would do at the end has been seen.
    ::_exit(0);
  }
  const bool is_known = (verb == "list" && argc == 2) || (verb == "watch" && argc == 2) ||
                        (verb == "check" && argc <= 4);
  if (!is_known) {
    std::fputs("usage: hpcbatch-gpu list | check [SECONDS [COMMAND]] | watch\n", stderr);
    return kUsage;
  }
  std::string why;
  const auto nvml = Nvml::open(why);
  if (verb == "watch") {
    if (nvml) return watch(*nvml);
    std::fprintf(stderr, "hpcbatch-gpu: %s\n", why.c_str());
    return 1;
  }
  std::vector<Device> devices = devices_here(nvml.get());
  if (verb == "check") {
    const long seconds = argc >= 3 ? std::strtol(argv[2], nullptr, 10) : kCheckSeconds;
    check(devices, std::chrono::seconds(seconds > 0 ? seconds : kCheckSeconds),
          argc == 4 ? argv[3] : "");
  }
  for (const Device& device : devices) print_line(to_json(device));
  return 0;
}
