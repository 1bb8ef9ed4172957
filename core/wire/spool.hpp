// A link that is carried by files, for clusters in which nothing may connect to anything: each
// direction of each connection is a folder of numbered pieces, written aside and renamed.  The
// pilot and the program that the engine runs on the site (spool_exchange) meet there.
// docs/formats.md has the bytes.
#pragma once

#include "wire/encrypted_link.hpp"

#include "hpcbatch/result.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace hpcbatch::wire {

/// Bytes of one piece.
constexpr std::size_t kLargestPiece = std::size_t{1} << 20;
/// Pieces of one direction that the other end has not taken yet.
constexpr std::uint64_t kPiecesUnderWay = 8;

/// "spool" in the workspace.
std::string spool_folder(const std::string& workspace);
/// "NAME.RANK.RANDOM": the folder of one connection of a pilot.
std::string spool_connection(const PilotName& pilot, std::uint64_t random);

/// The name of a piece in its folder; numbers count from 1.
std::string piece_name(std::uint64_t number);
/// 0: no piece.
std::uint64_t piece_number(std::string_view name);

/// A piece as it stands in its file.
std::string sealed_piece(std::uint64_t number, std::string_view bytes);
/// Transient: it is not there as a whole yet.
hpcbatch::Result<std::string> opened_piece(std::uint64_t number, std::string_view file);

/// What one exchange is told and answers, as it goes through a command's standard input and output;
/// a serialized SpoolOrder or SpoolReport.
std::string sealed_exchange(std::string_view message);
hpcbatch::Result<std::string> opened_exchange(std::string_view bytes);

}  // namespace hpcbatch::wire
