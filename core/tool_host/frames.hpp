// Texts on a socket, one after another: four bytes of length, the most significant first, and the
// text.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace hpcbatch::tool_host {

using FrameDeadline = std::chrono::steady_clock::time_point;

/// A list of a hundred thousand inputs has room.
inline constexpr std::size_t kLongestFrame = std::size_t{64} << 20U;

/// False: the other side is gone, does not read in time, or the text is longer than may be.
bool send_frame(int socket, std::string_view text, std::optional<FrameDeadline> deadline = {});
/// Nothing: the other side is gone, sent nothing whole in time, or no frame.
std::optional<std::string> receive_frame(int socket, std::optional<FrameDeadline> deadline = {});

}  // namespace hpcbatch::tool_host
