// hpcbatch-pilot files WORKSPACE: one exchange of files between the engine and a site whose file
// system it does not see.
#pragma once

#include "wire/wire.pb.h"

#include "hpcbatch/result.hpp"

#include <string>

namespace hpcbatch::pilot {

/// Does what the order says, as much of it as there is time for.  May be done twice.  An error
/// where nothing could be done.
Result<wire::FilesReport> exchange_files(const std::string& workspace,
                                         const wire::FilesOrder& order);

/// The same as a command: an order on standard input, a report on standard output.
int files_by_standard_streams(const std::string& workspace);

}  // namespace hpcbatch::pilot
