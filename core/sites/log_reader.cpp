#include "sites/log_reader.hpp"

#include "sites/workspace_files.hpp"
#include "wire/log_pack.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

namespace hpcbatch {

bool lies_in_workspace(const std::string& file) {
  const std::filesystem::path path(file);
  return path.is_relative() && std::find(path.begin(), path.end(), "..") == path.end();
}

void read_log(SiteClient& site, const LogPlace& log, const AttemptId& attempt, std::uint32_t stream,
              std::uint64_t from, std::size_t limit,
              std::function<void(Result<std::string>)> answer) {
  const std::uint64_t last = stream == 2 ? log.last_err : log.last_out;
  const std::uint64_t size = stream == 2 ? log.err_bytes : log.out_bytes;
  if (log.file.empty() || last == 0 || from >= size) return answer(std::string{});
  // What a store holds may be from before pilots were held to their own logs.
  if (!lies_in_workspace(log.file)) {
    return answer(Error{Error::Kind::Rejected,
                        fmt::format("its pilot said that its output lies in '{}', which is outside "
                                    "the workspace",
                                    log.file)});
  }
  auto found = std::make_shared<Result<std::string>>(Error{Error::Kind::Transient, "no answer"});
  site.with_transport(
      [found, attempt, stream, last, from, limit, path = site.site().workspace + "/" + log.file](
          Transport& transport, Deadline deadline) {
        const wire::ReadAt read = [&](std::uint64_t at, std::size_t length) {
          return read_part(transport, path, at, length, deadline);
        };
        wire::Attempt wanted;
        to_wire(attempt, &wanted);
        *found = wire::read_log(read, wanted, stream, last, from, limit);
      },
      [found, answer = std::move(answer)](bool given_up) {
        if (given_up)
          return answer(
              Error{Error::Kind::Transient, "the site's workspace did not answer in time"});
        answer(std::move(*found));
      });
}

}  // namespace hpcbatch
