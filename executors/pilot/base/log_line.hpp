// One line on standard error per notable event: the batch system keeps it in its log of the batch
// job.
#pragma once

#include <string>
#include <string_view>

namespace hpcbatch::pilot {

/// Who speaks; set once, before the first line.
void set_log_name(std::string_view name);
void log_line(std::string_view text);

/// Text of others, with control bytes made visible and at most 200 bytes of it.
std::string shown(std::string_view text);

}  // namespace hpcbatch::pilot
