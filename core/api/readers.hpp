// `/v1/readers`: programs that wait for what they have submitted say that they are there.
#pragma once

#include "api/routes.hpp"

#include <functional>
#include <string>

namespace hpcbatch {

/// Called when a reader is there once more than before, or once less.
using HearReader = std::function<void(const std::string& reader, bool is_there)>;

/// A reader is there while such a request of it is open.  The request has no answer and no time
/// limit: a program that is busy or stopped for hours could not ask again.  The kernel closes the
/// connection of a program that was killed.  `heard` is called on the loop's thread, and never once
/// `routes` is gone.
void add_readers(Routes& routes, HearReader heard);

}  // namespace hpcbatch
