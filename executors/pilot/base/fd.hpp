// The pilot's descriptors are closed by their owner's end.
#pragma once

#include "wire/fd.hpp"

namespace hpcbatch::pilot {

using wire::Fd;

}  // namespace hpcbatch::pilot
