#include "gpu/nvml.hpp"

#include "gpu/devices/device.hpp"

#include <hpcbatch/text.hpp>

#include <algorithm>
#include <array>
#include <fstream>
#include <utility>

#include <dlfcn.h>

namespace hpcbatch::gpu {

Library::Library(std::initializer_list<const char*> names) {
  for (const char* name : names) {
    handle_ = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (handle_ != nullptr) return;
    if (why_not_.empty()) why_not_ = ::dlerror();
  }
}

Library::~Library() {
  if (handle_ != nullptr) ::dlclose(handle_);
}

void* Library::symbol(const char* name) const {
  return handle_ == nullptr ? nullptr : ::dlsym(handle_, name);
}

namespace {

// As the library has them; their order and sizes are its interface.
constexpr int kOk = 0;
constexpr unsigned kWord = 96;
constexpr unsigned kMostLinks = 18;
constexpr unsigned long long kXidEvent = 0x8;
// Hardware slowdown, thermal slowdown by software and by hardware.
constexpr unsigned long long kHot = 0x8 | 0x20 | 0x40;
constexpr int kUncorrected = 1;
constexpr int kSinceDriver = 0;

}  // namespace

using namespace nvml;  // NOLINT: of this file alone

struct Nvml::Functions {
  Library library{"libnvidia-ml.so.1", "libnvidia-ml.so"};

  int (*init)(){library.find<int()>("nvmlInit_v2")};
  int (*shutdown)(){library.find<int()>("nvmlShutdown")};
  const char* (*error)(int){library.find<const char*(int)>("nvmlErrorString")};
  int (*driver)(char*, unsigned){library.find<int(char*, unsigned)>("nvmlSystemGetDriverVersion")};
  int (*cuda)(int*){library.find<int(int*)>("nvmlSystemGetCudaDriverVersion_v2")};
  int (*count)(unsigned*){library.find<int(unsigned*)>("nvmlDeviceGetCount_v2")};
  int (*by_index)(unsigned,
                  Handle*){library.find<int(unsigned, Handle*)>("nvmlDeviceGetHandleByIndex_v2")};
  int (*by_uuid)(const char*,
                 Handle*){library.find<int(const char*, Handle*)>("nvmlDeviceGetHandleByUUID")};
  int (*name)(Handle, char*,
              unsigned){library.find<int(Handle, char*, unsigned)>("nvmlDeviceGetName")};
  int (*uuid)(Handle, char*,
              unsigned){library.find<int(Handle, char*, unsigned)>("nvmlDeviceGetUUID")};
  int (*memory)(Handle, Memory*){library.find<int(Handle, Memory*)>("nvmlDeviceGetMemoryInfo")};
  int (*capability)(Handle, int*, int*){
      library.find<int(Handle, int*, int*)>("nvmlDeviceGetCudaComputeCapability")};
  int (*pci)(Handle, Pci*){library.find<int(Handle, Pci*)>("nvmlDeviceGetPciInfo_v3")};
  int (*ecc)(Handle, int, int, unsigned long long*){
      library.find<int(Handle, int, int, unsigned long long*)>("nvmlDeviceGetTotalEccErrors")};
  int (*mig)(Handle, unsigned*,
             unsigned*){library.find<int(Handle, unsigned*, unsigned*)>("nvmlDeviceGetMigMode")};
  int (*slice_count)(Handle, unsigned*){
      library.find<int(Handle, unsigned*)>("nvmlDeviceGetMaxMigDeviceCount")};
  int (*slice)(Handle, unsigned, Handle*){
      library.find<int(Handle, unsigned, Handle*)>("nvmlDeviceGetMigDeviceHandleByIndex")};
  int (*link_state)(Handle, unsigned,
                    int*){library.find<int(Handle, unsigned, int*)>("nvmlDeviceGetNvLinkState")};
  int (*link_to)(Handle, unsigned, Pci*){
      library.find<int(Handle, unsigned, Pci*)>("nvmlDeviceGetNvLinkRemotePciInfo_v2")};
  int (*rates)(Handle, Rates*){library.find<int(Handle, Rates*)>("nvmlDeviceGetUtilizationRates")};
  int (*energy)(Handle, unsigned long long*){
      library.find<int(Handle, unsigned long long*)>("nvmlDeviceGetTotalEnergyConsumption")};
  int (*throttle)(Handle, unsigned long long*){
      library.find<int(Handle, unsigned long long*)>("nvmlDeviceGetCurrentClocksThrottleReasons")};
  int (*processes)(Handle, unsigned*,
                   ProcessInfo*){library.find<int(Handle, unsigned*, ProcessInfo*)>(
      "nvmlDeviceGetComputeRunningProcesses_v3")};
  int (*make_events)(Handle*){library.find<int(Handle*)>("nvmlEventSetCreate")};
  int (*free_events)(Handle){library.find<int(Handle)>("nvmlEventSetFree")};
  int (*wait)(Handle, EventData*,
              unsigned){library.find<int(Handle, EventData*, unsigned)>("nvmlEventSetWait_v2")};
  int (*register_events)(Handle, unsigned long long, Handle){
      library.find<int(Handle, unsigned long long, Handle)>("nvmlDeviceRegisterEvents")};

  bool are_all_there() const {
    return init != nullptr && shutdown != nullptr && count != nullptr && by_index != nullptr &&
           name != nullptr && uuid != nullptr && memory != nullptr;
  }
  std::string in_words(int code) const {
    const char* text = error == nullptr ? nullptr : error(code);
    return text == nullptr ? "NVML error " + std::to_string(code) : text;
  }
  static std::string text(int (*function)(Handle, char*, unsigned), Handle handle) {
    std::array<char, kWord> word{};
    return function(handle, word.data(), kWord) == kOk ? word.data() : "";
  }
};

namespace {

/// Of a device whose node the kernel knows (Documentation/ABI/testing/sysfs-bus-pci).
int numa_node_of(const std::string& pci) {
  std::string place = lower_case(pci);
  // The library has eight digits for the domain, the kernel four.
  if (place.size() > 12) place.erase(0, place.size() - 12);
  int node = -1;
  std::ifstream("/sys/bus/pci/devices/" + place + "/numa_node") >> node;
  return node;
}

Device describe(const Nvml::Functions& call, Handle handle, unsigned index) {
  Device device;
  device.index = index;
  device.uuid = Nvml::Functions::text(call.uuid, handle);
  device.name = Nvml::Functions::text(call.name, handle);
  Memory memory{};
  if (const int code = call.memory(handle, &memory); code == kOk) {
    device.memory = memory.total;
    device.memory_used = memory.used;
  } else {
    device.trouble = "it cannot be asked for its memory: " + call.in_words(code);
  }
  int major = 0, minor = 0;
  if (call.capability != nullptr && call.capability(handle, &major, &minor) == kOk)
    device.capability = std::to_string(major) + "." + std::to_string(minor);
  Pci pci{};
  if (call.pci != nullptr && call.pci(handle, &pci) == kOk) {
    device.pci = pci.bus_id;
    device.numa_node = numa_node_of(device.pci);
  }
  unsigned long long broken = 0;
  if (call.ecc != nullptr && call.ecc(handle, kUncorrected, kSinceDriver, &broken) == kOk)
    device.broken_bits = broken;
  return device;
}

bool is_split(const Nvml::Functions& call, Handle handle) {
  unsigned now = 0, next = 0;
  return call.mig != nullptr && call.mig(handle, &now, &next) == kOk && now == 1;
}

std::vector<Device> slices_of(const Nvml::Functions& call, Handle handle, const Device& whole) {
  std::vector<Device> slices;
  unsigned most = 0;
  if (call.slice_count == nullptr || call.slice == nullptr ||
      call.slice_count(handle, &most) != kOk)
    return slices;
  for (unsigned i = 0; i < most; ++i) {
    Handle slice = nullptr;
    if (call.slice(handle, i, &slice) != kOk) continue;
    Device device = describe(call, slice, whole.index);
    device.is_slice = true;
    device.capability = whole.capability;
    device.pci = whole.pci;
    device.numa_node = whole.numa_node;
    slices.push_back(std::move(device));
  }
  return slices;
}

void find_links(const Nvml::Functions& call, std::vector<std::pair<Handle, Device>>& all) {
  if (call.link_state == nullptr || call.link_to == nullptr) return;
  for (auto& [handle, device] : all) {
    for (unsigned link = 0; link < kMostLinks; ++link) {
      int is_up = 0;
      Pci there{};
      if (call.link_state(handle, link, &is_up) != kOk || is_up == 0 ||
          call.link_to(handle, link, &there) != kOk)
        continue;
      for (const auto& [other, theirs] : all) {
        const bool is_new = std::find(device.linked.begin(), device.linked.end(), theirs.index) ==
                            device.linked.end();
        if (other != handle && theirs.pci == there.bus_id && is_new)
          device.linked.push_back(theirs.index);
      }
    }
  }
}

}  // namespace

std::unique_ptr<Nvml> Nvml::open(std::string& why) {
  auto functions = std::make_unique<Functions>();
  if (!functions->library) {
    why = functions->library.why_not();
    return nullptr;
  }
  if (!functions->are_all_there()) {
    why = "libnvidia-ml.so.1 lacks functions that are there since driver 450";
    return nullptr;
  }
  if (const int code = functions->init(); code != kOk) {
    why = "NVML does not start: " + functions->in_words(code);
    return nullptr;
  }
  return std::unique_ptr<Nvml>(new Nvml(std::move(functions)));
}

Nvml::Nvml(std::unique_ptr<Functions> functions) : call_(std::move(functions)) {}

Nvml::~Nvml() {
  if (events_ != nullptr && call_->free_events != nullptr) call_->free_events(events_);
  call_->shutdown();
}

std::vector<Device> Nvml::devices() const {
  unsigned count = 0;
  if (call_->count(&count) != kOk) return {};
  int cuda = 0;
  if (call_->cuda != nullptr) call_->cuda(&cuda);
  std::array<char, kWord> driver{};
  if (call_->driver != nullptr) call_->driver(driver.data(), kWord);
  std::vector<std::pair<Handle, Device>> all;
  for (unsigned i = 0; i < count; ++i) {
    Handle handle = nullptr;
    if (const int code = call_->by_index(i, &handle); code != kOk) {
      Device device;
      device.index = i;
      device.trouble = "the driver does not give it: " + call_->in_words(code);
      all.emplace_back(nullptr, std::move(device));
      continue;
    }
    all.emplace_back(handle, describe(*call_, handle, i));
  }
  find_links(*call_, all);
  std::vector<Device> devices;
  for (auto& [handle, device] : all) {
    device.driver = driver.data();
    if (cuda > 0)
      device.cuda = std::to_string(cuda / 1000) + "." + std::to_string(cuda % 1000 / 10);
    std::vector<Device> slices;
    if (handle != nullptr && is_split(*call_, handle)) slices = slices_of(*call_, handle, device);
    if (slices.empty()) devices.push_back(std::move(device));
    for (Device& slice : slices) devices.push_back(std::move(slice));
  }
  return devices;
}

void* Nvml::handle_of(const Device& device) const {
  Handle handle = nullptr;
  const bool is_found = (call_->by_uuid != nullptr && !device.uuid.empty() &&
                         call_->by_uuid(device.uuid.c_str(), &handle) == kOk) ||
                        (!device.is_slice && call_->by_index(device.index, &handle) == kOk);
  return is_found ? handle : nullptr;
}

Sample Nvml::sample(const Device& device) const {
  Sample sample;
  const Handle handle = handle_of(device);
  if (handle == nullptr) {
    sample.trouble = "the driver does not know it any more";
    return sample;
  }
  Memory memory{};
  if (const int code = call_->memory(handle, &memory); code != kOk) {
    sample.trouble = "it cannot be asked any more: " + call_->in_words(code);
    return sample;
  }
  sample.memory = memory.used;
  Rates rates{};
  if (call_->rates != nullptr && call_->rates(handle, &rates) == kOk) sample.busy = rates.gpu;
  unsigned long long number = 0;
  if (call_->energy != nullptr && call_->energy(handle, &number) == kOk) sample.energy_mj = number;
  if (call_->ecc != nullptr && call_->ecc(handle, kUncorrected, kSinceDriver, &number) == kOk)
    sample.broken_bits = number;
  if (call_->throttle != nullptr && call_->throttle(handle, &number) == kOk)
    sample.is_hot = (number & kHot) != 0;
  std::array<ProcessInfo, 256> found{};
  auto count = static_cast<unsigned>(found.size());
  if (call_->processes != nullptr && call_->processes(handle, &count, found.data()) == kOk) {
    for (unsigned i = 0; i < count; ++i) {
      // All bits: the driver does not tell.
      const bool is_told = found[i].memory != ~0ULL;
      sample.processes.push_back({found[i].pid, is_told ? found[i].memory : 0});
    }
  }
  return sample;
}

bool Nvml::listen() {
  if (call_->make_events == nullptr || call_->wait == nullptr || call_->register_events == nullptr)
    return false;
  if (call_->make_events(&events_) != kOk) {
    events_ = nullptr;
    return false;
  }
  unsigned count = 0;
  call_->count(&count);
  bool any = false;
  for (unsigned i = 0; i < count; ++i) {
    Handle handle = nullptr;
    any = (call_->by_index(i, &handle) == kOk &&
           call_->register_events(handle, kXidEvent, events_) == kOk) ||
          any;
  }
  return any;
}

std::optional<Nvml::Xid> Nvml::next_error(std::chrono::milliseconds time) {
  EventData event{};
  if (events_ == nullptr ||
      call_->wait(events_, &event, static_cast<unsigned>(time.count())) != kOk ||
      event.type != kXidEvent)
    return std::nullopt;
  return Xid{Functions::text(call_->uuid, event.device), event.data};
}

bool is_fault_of_device(std::uint64_t xid) {
  constexpr std::array<std::uint64_t, 12> kFaults{48, 61, 62, 64,  74,  79,
                                                  92, 94, 95, 119, 120, 140};
  return std::find(kFaults.begin(), kFaults.end(), xid) != kFaults.end();
}

std::string xid_in_words(std::uint64_t xid) {
  std::string number = "Xid " + std::to_string(xid);
  switch (xid) {
    case 48:
      return number + ": an error in its memory that ECC could not mend";
    case 61:
    case 62:
      return number + ": its own controller has stopped";
    case 64:
      return number + ": a broken part of its memory could not be set aside";
    case 74:
      return number + ": NVLink has failed";
    case 79:
      return number + ": it has fallen off the bus";
    case 92:
      return number + ": its memory has too many errors";
    case 94:
    case 95:
      return number + ": an error in its memory that ECC could not mend";
    case 119:
    case 120:
      return number + ": its system processor does not answer";
    default:
      return number;
  }
}

}  // namespace hpcbatch::gpu
