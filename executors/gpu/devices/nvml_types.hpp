// The types of NVIDIA's management library (NVML API Reference Guide), as far as we use it: their
// order and sizes are its interface.
#pragma once

namespace hpcbatch::gpu::nvml {

using Handle = void*;
struct Memory {
  unsigned long long total, free, used;
};
struct Rates {
  unsigned gpu, memory;
};
struct Pci {
  char legacy[16];
  unsigned domain, bus, device, device_id, subsystem;
  char bus_id[32];
};
struct ProcessInfo {
  unsigned pid;
  unsigned long long memory;
  unsigned instance, compute_instance;
};
struct EventData {
  Handle device;
  unsigned long long type, data;
  unsigned instance, compute_instance;
};

}  // namespace hpcbatch::gpu::nvml
