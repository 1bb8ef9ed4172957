// Lines `@revoked HOSTS TYPE KEY` of a file of known hosts (sshd(8), SSH_KNOWN_HOSTS FILE FORMAT),
// which libssh passes over.
#pragma once

#include <string_view>

namespace hpcbatch {

/// Whether the key, in base64, is revoked for anybody: what was stolen from one host is trusted at
/// none.
bool is_revoked(std::string_view known_hosts, std::string_view key);

}  // namespace hpcbatch
