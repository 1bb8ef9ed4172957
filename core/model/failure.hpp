// What each end of a task means for retries.
#pragma once

#include "failure/failure.hpp"

namespace hpcbatch {

/// Whether the task cannot be blamed: it is then retried without asking and without using up a
/// retry of the user's.
bool is_not_the_tasks_fault(Failure failure);

/// Whether it counts where an array is given up after so many: not what its user has ended, and not
/// what never started because of another's failure.
bool is_a_failure_of_its_own(Failure failure);

}  // namespace hpcbatch
