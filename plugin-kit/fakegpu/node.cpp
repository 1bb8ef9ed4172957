#include "fakegpu/node.hpp"

#include "gpu/devices/device.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <utility>

#include <signal.h>
#include <unistd.h>

namespace hpcbatch::fakegpu {
namespace {

namespace fs = std::filesystem;
constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

bool lives(std::uint32_t pid) {
  return ::kill(static_cast<pid_t>(pid), 0) == 0 || errno == EPERM;
}

std::string file_of(const std::string& folder, pid_t pid) {
  return folder + "/use/" + std::to_string(pid);
}

}  // namespace

std::uint64_t Gpu::value(const std::string& fault) const {
  const auto found = faults.find(fault);
  return found == faults.end() ? 0 : std::strtoull(found->second.c_str(), nullptr, 10);
}

std::optional<Node> Node::here() {
  const char* folder = std::getenv("HPCBATCH_FAKEGPU");
  return folder == nullptr || *folder == '\0' ? std::nullopt : std::optional(Node(folder));
}

std::vector<Gpu> Node::gpus() const {
  std::vector<Gpu> gpus;
  std::ifstream file(folder_ + "/gpus");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    Gpu gpu;
    std::uint64_t mebibytes = 0;
    if (!(words >> gpu.uuid >> gpu.kind >> mebibytes >> gpu.capability)) continue;
    gpu.memory = mebibytes * kMiB;
    for (std::string fault; words >> fault;) {
      const std::size_t equals = std::min(fault.find('='), fault.size());
      gpu.faults[fault.substr(0, equals)] = fault.substr(std::min(equals + 1, fault.size()));
    }
    gpus.push_back(std::move(gpu));
  }
  return gpus;
}

std::vector<User> Node::users(const std::string& uuid) const {
  std::vector<User> users;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder_ + "/use", error)) {
    const auto pid =
        static_cast<std::uint32_t>(std::strtoul(entry.path().filename().c_str(), nullptr, 10));
    if (pid == 0 || !lives(pid)) continue;
    std::ifstream file(entry.path());
    std::string of;
    for (std::uint64_t mebibytes = 0, busy = 0; file >> of >> mebibytes >> busy;) {
      if (of == uuid) users.push_back({pid, mebibytes * kMiB, static_cast<unsigned>(busy)});
    }
  }
  return users;
}

std::vector<std::pair<std::string, std::uint64_t>> Node::errors(std::size_t from) const {
  std::vector<std::pair<std::string, std::uint64_t>> errors;
  std::ifstream file(folder_ + "/errors");
  std::string uuid;
  for (std::uint64_t number = 0; file >> uuid >> number;) errors.emplace_back(uuid, number);
  errors.erase(errors.begin(),
               errors.begin() + static_cast<std::ptrdiff_t>(std::min(from, errors.size())));
  return errors;
}

void Node::use(const std::vector<std::string>& uuids, std::uint64_t memory, unsigned busy) const {
  const std::string path = file_of(folder_, ::getpid());
  std::error_code error;
  fs::create_directories(folder_ + "/use", error);
  {
    std::ofstream file(path + ".new");
    for (const std::string& uuid : uuids)
      file << uuid << ' ' << memory / kMiB << ' ' << busy << '\n';
    if (!file.flush()) throw std::runtime_error("cannot write " + path);
  }
  // Whoever reads it finds it whole.
  fs::rename(path + ".new", path);
}

void Node::use_no_more() const {
  std::error_code error;
  fs::remove(file_of(folder_, ::getpid()), error);
}

std::vector<Gpu> visible(const Node& node) {
  const std::vector<Gpu> all = node.gpus();
  std::vector<gpu::Device> devices;
  for (const Gpu& one : all) {
    gpu::Device device;
    device.index = static_cast<unsigned>(devices.size());
    device.uuid = one.uuid;
    devices.push_back(std::move(device));
  }
  const char* said = std::getenv("CUDA_VISIBLE_DEVICES");
  std::vector<Gpu> found;
  for (const gpu::Device& device : gpu::visible(
           devices, said == nullptr ? std::nullopt : std::optional<std::string_view>(said)))
    found.push_back(all[device.index]);
  return found;
}

CostTable read_costs(std::istream& text) {
  CostTable table;
  int number = 0;
  for (std::string line; std::getline(text, line);) {
    ++number;
    std::istringstream words(line.substr(0, line.find('#')));
    std::string of, kind;
    if (!(words >> of)) continue;
    Cost cost;
    std::uint64_t mebibytes = 0;
    if (!(words >> kind >> cost.seconds >> mebibytes >> cost.busy) || cost.seconds < 0)
      throw std::invalid_argument("line " + std::to_string(number) +
                                  ": expected CLASS KIND SECONDS MIB BUSY-PERCENT");
    cost.memory = mebibytes << 20;
    table[{of, kind}] = cost;
  }
  return table;
}

double speed_beside(unsigned own, unsigned others) {
  constexpr double kTurns = 0.95;
  if (others == 0 || own == 0) return 1;
  const double wanted = own + others;
  return kTurns * std::min(1.0, 100 / wanted);
}

}  // namespace hpcbatch::fakegpu
