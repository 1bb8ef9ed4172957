#include "pilot/tasks/followers.hpp"

#include "wire/log_pack.hpp"

#include <algorithm>

namespace hpcbatch::pilot {
namespace {

constexpr std::size_t kLargestChunk = std::size_t{64} << 10;

}  // namespace

void Followers::follow(const AttemptId& id, std::uint64_t out_offset, std::uint64_t err_offset) {
  followed_[id].sent = {out_offset, err_offset};
}

void Followers::ended(const AttemptId& id, const wire::LogPlace& log) {
  const auto at = followed_.find(id);
  if (at != followed_.end()) at->second.log = log;
}

std::string Followers::read(const AttemptId& id, const Followed& followed, unsigned stream,
                            std::size_t limit) {
  const std::uint64_t from = followed.sent[stream - 1];
  if (!followed.log) return read_(id, stream, from, limit).value_or(std::string());
  wire::Attempt attempt;
  to_wire(id, &attempt);
  const auto read_pack = [this](std::uint64_t place, std::size_t length) -> Result<std::string> {
    return pack_.read(place, length);
  };
  const std::uint64_t last = stream == 1 ? followed.log->last_out() : followed.log->last_err();
  const auto text = wire::read_log(read_pack, attempt, stream, last, from, limit);
  return text ? *text : std::string();
}

bool Followers::send(std::size_t room, const Send& send) {
  bool more = false;
  for (auto at = followed_.begin(); at != followed_.end();) {
    auto& [id, followed] = *at;
    bool all = true;
    for (const unsigned stream : {1U, 2U}) {
      for (;;) {
        if (room == 0) {
          all = false;
          more = true;
          break;
        }
        std::string bytes = read(id, followed, stream, std::min(room, kLargestChunk));
        if (bytes.empty()) break;
        wire::Chunk chunk;
        to_wire(id, chunk.mutable_attempt());
        chunk.set_stream(stream);
        chunk.set_offset(followed.sent[stream - 1]);
        followed.sent[stream - 1] += bytes.size();
        room -= bytes.size();
        chunk.set_data(std::move(bytes));
        send(std::move(chunk));
      }
    }
    if (!all || !followed.log) {
      ++at;
      continue;
    }
    wire::Chunk last;
    to_wire(id, last.mutable_attempt());
    last.set_end(true);
    send(std::move(last));
    at = followed_.erase(at);
  }
  return more;
}

}  // namespace hpcbatch::pilot
