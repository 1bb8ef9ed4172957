// hpcbatch-pilot files WORKSPACE: moves files between the engine and a site whose file system it does
// not see, as the engine's frames on one stream ask for it (wire/file_store.hpp).
#pragma once

#include "hpcbatch/result.hpp"
#include "wire/wire.pb.h"

#include <string>

namespace hpcbatch::pilot {

/// Does what the order says of small files and of the store, as much of it as there is time for.  May
/// be done twice.  An error where nothing could be done.
Result<wire::FilesReport> exchange_files(const std::string& workspace,
                                         const wire::FilesOrder& order);

/// Until `in` ends; the exit status.
int serve_files(const std::string& workspace, int in, int out);

}  // namespace hpcbatch::pilot
