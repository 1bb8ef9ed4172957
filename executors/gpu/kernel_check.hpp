// Whether the one GPU that this process sees computes right: CUDA's driver interface alone (CUDA
// Driver API), so that nothing of CUDA is needed to build this or on the node.
#pragma once

#include <string>

namespace hpcbatch::gpu {

/// Empty where all is well; else what is wrong with it.  Takes memory and runs a kernel: in a
/// process of its own, which a broken driver may hold for ever.
std::string check_kernel();

}  // namespace hpcbatch::gpu
