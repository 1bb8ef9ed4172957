// Shell texts that write, read, list and remove files on another machine.  Pure.
#pragma once

#include "hpcbatch/transport.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace hpcbatch {

/// All of them or an error; each written aside, synced and renamed.
std::string write_script(const std::vector<FileText>& files, const std::string& nonce);
std::string read_script(const std::string& path, std::uint64_t offset, std::uint64_t length);
std::string list_script(const std::string& directory);
std::vector<std::string> read_list(const std::string& output);
std::string remove_script(const std::vector<std::string>& paths);

// A transfer goes in blocks, and goes on where an earlier one ended; the scripts know this too.
constexpr std::uint64_t kBlock = 65536;
// Exit codes of `receive_script`.
constexpr int kCutOff = 92;
constexpr int kWrongContent = 91;

/// Says `BYTES PROGRAM`, how many are there and what makes the checksum; takes the rest from its
/// input (from the block in which they end), says the checksum of all, and renames when it is told
/// `same`.  The sum is made while bytes flow.  They are written to where they belong, so that
/// another sender of the same file, which `mark` tells from others, does no harm.  Cut off it ends
/// with `kCutOff` and says nothing on standard error.
std::string receive_script(const Copy& file, std::uint64_t size, const std::string& mark);
/// Says `SIZE MTIME PROGRAM`, reads the number of the block to begin with, sends from there, and
/// says `sum CHECKSUM` of all on standard error.
std::string send_script(const std::string& path);

/// The error of a script that failed, by what its programs said.
Error script_error(const std::string& what, const std::string& standard_error);

}  // namespace hpcbatch
