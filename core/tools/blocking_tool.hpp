// A tool whose calls wait for somebody else: never on a thread that has other duties.
#pragma once

#include "hpcbatch/tool.hpp"

namespace hpcbatch {

class BlockingTool : public Tool {};

}  // namespace hpcbatch
