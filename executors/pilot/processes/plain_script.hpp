// A script that names no interpreter is run by sh, as every shell and execvp do it.
#pragma once

#include <vector>

namespace hpcbatch::pilot {

/// Of `argv`, which ends with a null: sh, room for the script's path, and the arguments.
std::vector<char*> plain_script_argv(const std::vector<char*>& argv);

/// After execve has said ENOEXEC of `path`.  `shell_argv` is of `plain_script_argv`; the path is
/// put into it.  Returns with errno ENOEXEC where it is no script: empty, or a program of another
/// machine (a NUL within its first bytes, as POSIX lets shells tell it).  System calls only.
void become_plain_script(const char* path, char** shell_argv, char* const* environment);

}  // namespace hpcbatch::pilot
