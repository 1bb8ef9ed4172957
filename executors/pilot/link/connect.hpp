// Opens a socket to one address, without waiting and without looking up any name.
#pragma once

#include "posix/fd.hpp"
#include "wire/pilot_file.hpp"

#include "hpcbatch/result.hpp"

namespace hpcbatch::pilot {

/// Connected or about to be: the socket is writable when that is settled, and `connection_error`
/// says how.
Result<Fd> start_connecting(const wire::Address& address);

/// 0: connected.
int connection_error(int socket);

}  // namespace hpcbatch::pilot
