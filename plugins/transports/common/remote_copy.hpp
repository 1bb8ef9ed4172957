// One file from here to another machine or back, in as many tries as its deadline allows: each
// goes on where the last one ended.
#pragma once

#include "login.hpp"

namespace hpcbatch {

Result<void> send_file(Login& login, const Copy& file, Deadline deadline);
/// A text too large to stand in a script.
Result<void> send_text(Login& login, const FileText& file, Deadline deadline);
Result<void> receive_file(Login& login, const Copy& file, Deadline deadline);

}  // namespace hpcbatch
