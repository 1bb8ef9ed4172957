// What a login that failed is called: the same words whichever program tried it.
#pragma once

#include "hpcbatch/result.hpp"

#include <string>

namespace hpcbatch::login_errors {

/// `target` is USER@HOST or HOST; what is unknown of the rest is empty.
Error unknown_host_key(const std::string& target, const std::string& fingerprint,
                       const std::string& remedy);
Error changed_host_key(const std::string& target, const std::string& fingerprint,
                       const std::string& file);
Error revoked_host_key(const std::string& target, const std::string& fingerprint,
                       const std::string& file);
Error not_let_in(const std::string& target, const std::string& tried, const std::string& offered,
                 const std::string& remedy);
Error needs_person(const std::string& target, const std::string& offered,
                   const std::string& remedy);
Error key_too_open(const std::string& file);
Error name_not_known(const std::string& target, const std::string& why);
Error refused(const std::string& target);
Error timed_out(const std::string& target, const std::string& while_doing);
Error no_route(const std::string& target, const std::string& why);
Error closed_by_server(const std::string& target, const std::string& why);
Error channel_refused(const std::string& target, const std::string& why);
/// `own`: why the login that was tried in its place failed.
Error shared_is_full(const std::string& target, const std::string& why, const Error& own);
Error not_through_jump(const std::string& target, const std::string& why);
Error lost(const std::string& target, const std::string& why);
Error other(const std::string& target, const std::string& why);

}  // namespace hpcbatch::login_errors
