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

// hpcbatch-pilot spool WORKSPACE: one exchange with pilots whose links are files.

// hpcbatch-pilot spool WORKSPACE: one exchange between the engine and the pilots whose links are
// carried by files.  The engine runs it on the site whenever it wants to say or to hear something.

/// Puts the order's pieces there, removes those that were taken, and takes along what the pilots
/// have said.  May be done twice.
/// An error where the folder cannot be seen: then nothing is concluded of who is gone.
Result<wire::SpoolReport> exchange(const std::string& spool, const wire::SpoolOrder& order);

/// The same as a command: an order on standard input, a report on standard output.
int exchange_by_standard_streams(const std::string& workspace);

}  // namespace hpcbatch::pilot
