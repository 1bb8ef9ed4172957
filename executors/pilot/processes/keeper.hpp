// The process above the pilot: if the pilot is killed so that it cannot clean up, this one ends all
// that the pilot's tasks have left, so that nothing runs on without a pilot.
#pragma once

#include <functional>

namespace hpcbatch::pilot {

/// Runs `pilot` in a child that gets `pilot_signal` when this process dies, hands SIGTERM and
/// SIGINT on to it, and returns what to exit with once the child and all its descendants are gone.
/// In the child it does not return.
int keep(const std::function<int()>& pilot, int pilot_signal);

}  // namespace hpcbatch::pilot
