#include "api/api.hpp"

#include "api/answers/to_json.hpp"
#include "api/make/submitted_files.hpp"
#include "api/read/json_values.hpp"
#include "api/read/read_request.hpp"
#include "api/routes.hpp"
#include "documents/texts.hpp"
#include "loop/asio.hpp"
#include "sites/log_reader.hpp"

#include <fmt/format.h>

#include <array>

namespace hpcbatch {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;

// The log is walked from its end for each piece: few large ones.
constexpr std::size_t kPiece = std::size_t{8} << 20;
constexpr std::size_t kDefaultLimit = std::size_t{1} << 20;
constexpr std::size_t kLargestLimit = std::size_t{16} << 20;
constexpr std::size_t kUnreadLimit = std::size_t{8} << 20;
// What a running task has written comes in one go; after this silence that was all.
constexpr auto kQuiet = 150ms;
constexpr auto kLongest = 2s;

const char* name_of(std::uint32_t stream) {
  return stream == 2 ? "stderr" : "stdout";
}

json::object piece_json(const std::string& bytes, std::uint64_t offset, bool end, bool truncated,
                        const std::string& file) {
  json::object piece{
      {"offset", offset}, {"next", offset + bytes.size()}, {"end", end}, {"truncated", truncated}};
  if (!find_invalid_utf8(bytes)) {
    piece["text"] = bytes;
  } else {
    piece["base64"] = base64(bytes);
  }
  if (!file.empty()) piece["file"] = file;
  return piece;
}

struct FoundAttempt {
  bool is_task{false};
  std::optional<store::ResultRow> ended;
  std::string site;
  std::string known;  ///< the numbers of those that have ended
};

FoundAttempt find_attempt(store::Store& store, TaskId task, std::uint64_t number) {
  FoundAttempt found;
  const auto array = store.history().array(task.array);
  found.is_task = array && array->indices.contains(task.index);
  std::vector<store::ResultRow> ended;
  for (store::AttemptRow& row : store.history().attempts(task)) {
    ended.push_back({.array = task.array,
                     .indices = {task.index, task.index},
                     .attempt = row.attempt,
                     .epoch = row.epoch,
                     .outcome = std::move(row.outcome),
                     .pilot = std::move(row.pilot)});
  }
  if (auto result = store.history().result(task)) ended.push_back(std::move(*result));
  for (store::ResultRow& row : ended) {
    found.known += (found.known.empty() ? "" : ", ") + std::to_string(row.attempt);
    if (row.attempt == number) found.ended = std::move(row);
  }
  if (!found.ended) return found;
  const auto pilot = parse_pilot(found.ended->pilot);
  const auto allocation = pilot ? store.history().allocation(pilot->allocation.name) : std::nullopt;
  if (allocation) found.site = allocation->site;
  return found;
}

/// Answers itself where there is no end of one task to be read.
bool has_no_end(TaskId task, const TaskFacts& facts, const Runtime& runtime,
                const ReplyPtr& reply) {
  const bool is_unknown = !facts.array || (!facts.result && task.index != 0 &&
                                           !facts.array->indices.contains(task.index));
  if (is_unknown) {
    reply->error(404, fmt::format("there is no task {}", to_string(task)));
  } else if (!facts.result && facts.array->indices.contains(task.index)) {
    reply->error(503, fmt::format("task {} is over, but its end is not in the store yet: {}",
                                  to_string(task), runtime.store_trouble().value_or("it is slow")));
  } else if (!facts.result) {
    reply->error(400, fmt::format("{0} is an array; name one of its tasks, like {0}.{1}",
                                  task.array.value, facts.array->indices.ranges().back().first));
  }
  return !facts.array || !facts.result;
}

}  // namespace

void Logs::read(const store::ResultRow& result, const std::string& site, std::uint32_t stream,
                std::uint64_t offset, std::size_t limit,
                std::function<void(Result<std::string>)> answer) {
  if (result.outcome.log.file.empty()) return answer(std::string{});
  SiteClient* client = runtime_.site(site);
  if (!client) {
    return answer(
        Error{Error::Kind::Rejected,
              fmt::format("the output lies at the site {}, which is no longer configured", site)});
  }
  const AttemptId attempt{{result.array, result.indices.first}, result.attempt, result.epoch};
  hpcbatch::read_log(*client, result.outcome.log, attempt, stream, offset, limit,
                     std::move(answer));
}

void Logs::add_to(Routes& routes) {
  routes.add("GET", "tasks/*/log", [this](HttpRequest& request, const ReplyPtr& reply) {
    const TaskId task = parse_task(request.path[2]);
    if (text_in(request, "follow") == "1") return follow(task, reply);
    answer_piece(task, request, reply);
  });
}

void Logs::answer_piece(TaskId task, const HttpRequest& request, const ReplyPtr& reply) {
  Range range;
  if (const auto at = request.query.find("stream"); at != request.query.end()) {
    if (at->second != "stdout" && at->second != "stderr")
      throw BadRequest("'stream' must be stdout or stderr");
    range.stream = at->second == "stderr" ? 2 : 1;
  }
  // Of a task that has ended: so many bytes from the end, instead of from an offset.
  range.tail = bytes_in(request, "tail", 0);
  range.offset = bytes_in(request, "offset", 0);
  range.limit = std::min<std::size_t>(bytes_in(request, "limit", kDefaultLimit), kLargestLimit);
  if (request.query.contains("attempt"))
    return of_attempt(task, bytes_in(request, "attempt", 0), range, reply);
  tasks_.read_facts(task, [this, task, range, reply](const TaskFacts& facts) mutable {
    if (facts.array) {
      const OutputFiles files = output_files(facts.array->recipe, task, facts.item);
      range.file = range.stream == 2 ? files.err : files.out;
    }
    if (runtime_.engine().state_of(task)) return of_running(task, range, reply);
    if (has_no_end(task, facts, runtime_, reply)) return;
    of_ended(*facts.result, facts.allocation ? facts.allocation->site : "", range, reply);
  });
}

/// Of one that has ended, also where the task goes on.
void Logs::of_attempt(TaskId task, std::uint64_t number, const Range& range,
                      const ReplyPtr& reply) {
  runtime_.look([task, number](store::Store& store) { return find_attempt(store, task, number); },
                [this, task, number, range, reply](const FoundAttempt& found) {
                  if (!found.is_task)
                    return reply->error(404, fmt::format("there is no task {}", to_string(task)));
                  if (found.ended) return of_ended(*found.ended, found.site, range, reply);
                  const std::string what =
                      found.known.empty()
                          ? fmt::format("no attempt of task {} has ended yet", to_string(task))
                          : fmt::format("task {} has no attempt {} that has ended; there are: {}",
                                        to_string(task), number, found.known);
                  reply->error(404, what);
                });
}

void Logs::of_ended(const store::ResultRow& ended, const std::string& site, const Range& range,
                    const ReplyPtr& reply) {
  const LogPlace& log = ended.outcome.log;
  const std::uint64_t size = range.stream == 2 ? log.err_bytes : log.out_bytes;
  const std::uint64_t offset = range.tail == 0 ? range.offset : size - std::min(size, range.tail);
  read(ended, site, range.stream, offset, range.limit,
       [reply, offset, size, log, file = range.file](const Result<std::string>& bytes) {
         if (!bytes) return reply->error(503, "cannot read the output: " + bytes.error().text);
         json::object piece =
             piece_json(*bytes, offset, offset + bytes->size() >= size, log.truncated, file);
         if (log.lost) piece["lost"] = true;
         reply->answer(200, std::move(piece));
       });
}

/// Reads along for as long as what is there keeps coming, then answers with it.
void Logs::of_running(TaskId task, const Range& range, const ReplyPtr& reply) {
  const std::uint32_t stream = range.stream;
  const std::uint64_t offset = range.offset;
  const std::size_t limit = range.limit;
  // What waits has nothing to say.
  if (!runtime_.engine().pilots().lease(task))
    return reply->answer(200, piece_json("", offset, false, false, range.file));
  struct Gathering {
    std::string bytes;  // from `offset` on
    std::unique_ptr<asio::steady_timer> timer;
    std::chrono::steady_clock::time_point until{std::chrono::steady_clock::now() + kLongest};
    FollowerId follower{0};
    bool done{false};
  };
  auto gathering = std::make_shared<Gathering>();
  gathering->timer = std::make_unique<asio::steady_timer>(runtime_.loop());
  const auto finish = [this, gathering, reply, offset, limit, file = range.file](bool end) {
    if (std::exchange(gathering->done, true)) return;
    gathering->timer->cancel();
    runtime_.links().unfollow(gathering->follower);
    reply->answer(200, piece_json(gathering->bytes.substr(0, limit), offset, end, false, file));
  };
  const auto wait = [gathering, finish] {
    gathering->timer->expires_at(
        std::min(gathering->until, std::chrono::steady_clock::now() + kQuiet));
    gathering->timer->async_wait([finish](const boost::system::error_code& error) {
      if (!error) finish(false);
    });
  };
  wait();
  Follower follower{.task = task,
                    .output =
                        [this, gathering, stream, limit, wait, finish](std::uint32_t from,
                                                                       const std::string& bytes) {
                          if (gathering->done || from != stream) return;
                          gathering->bytes += bytes;
                          if (gathering->bytes.size() < limit) return wait();
                          // Not from within the telling of followers, which this ends.
                          asio::post(runtime_.loop(), [finish] { finish(false); });
                        },
                    .ended = [finish] { finish(false); }};
  if (const Lease* lease = runtime_.engine().pilots().lease(task)) {
    follower.attempt = lease->attempt;
    follower.seen.fill(UINT64_MAX);  // nothing of the other stream
    follower.seen[stream] = offset;
  }
  gathering->follower = runtime_.links().follow(std::move(follower));
}

/// Where a client stands that reads along.
struct Logs::Reader {
  TaskId task;
  ReplyPtr reply;
  FollowerId follower{0};
  AttemptId attempt;
  std::array<std::uint64_t, 3> seen{};
  bool paused{false};
};

void Logs::follow(TaskId task, const ReplyPtr& reply) {
  auto reader = std::make_shared<Reader>();
  reader->task = task;
  reader->reply = reply;
  reply->on_gone([this, reader] { runtime_.links().unfollow(reader->follower); });
  read_along(reader);
}

void Logs::read_along(const std::shared_ptr<Reader>& reader) {
  reader->paused = false;
  if (!runtime_.engine().state_of(reader->task))
    return finish_follow(reader->task, reader->seen, reader->attempt, reader->reply);
  const auto remember = [this, reader] {
    if (const Follower* follower = runtime_.links().follower(reader->follower)) {
      reader->attempt = follower->attempt;
      reader->seen = follower->seen;
    }
  };
  reader->follower = runtime_.links().follow(
      {.task = reader->task,
       .output =
           [this, reader, remember](std::uint32_t stream, const std::string& bytes) {
             reader->reply->line({{"stream", name_of(stream)}, {"base64", base64(bytes)}});
             if (reader->reply->unsent() <= kUnreadLimit || std::exchange(reader->paused, true))
               return;
             // A client that reads slowly does not fill the engine: the rest waits in the pilot's
             // log.
             asio::post(runtime_.loop(), [this, reader, remember] {
               remember();
               runtime_.links().unfollow(reader->follower);
               reader->reply->when_sent([this, reader] { read_along(reader); });
             });
           },
       .ended =
           [this, reader, remember] {
             remember();
             if (!reader->paused)
               finish_follow(reader->task, reader->seen, reader->attempt, reader->reply);
           },
       .attempt = reader->attempt,
       .seen = reader->seen});
}

/// Sends what was not seen while it ran, then how the task ended.
void Logs::finish_follow(TaskId task, std::array<std::uint64_t, 3> seen, AttemptId attempt,
                         const ReplyPtr& reply) {
  tasks_.read_facts(task, [this, task, seen, attempt, reply](const TaskFacts& facts) {
    if (has_no_end(task, facts, runtime_, reply)) return;
    const std::string site = facts.allocation ? facts.allocation->site : "";
    const bool same = attempt.number == facts.result->attempt;
    struct Rest {
      std::array<std::uint64_t, 3> at{};
    };
    auto rest = std::make_shared<Rest>();
    if (same) rest->at = seen;
    auto step = std::make_shared<std::function<void(std::uint32_t)>>();
    const std::weak_ptr<std::function<void(std::uint32_t)>> weak = step;
    *step = [this, task, facts, site, rest, reply, weak](std::uint32_t stream) {
      const auto self = weak.lock();
      if (stream == 3) {
        reply->line({{"end", tasks_.task_json(task, facts)}});
        reply->finish();
        return;
      }
      read(*facts.result, site, stream, rest->at[stream], kPiece,
           [rest, reply, stream, self](const Result<std::string>& bytes) {
             if (!bytes) {
               reply->line({{"stream", "stderr"},
                            {"base64", base64("hpcbatch: the rest of the output cannot be read: " +
                                              bytes.error().text + "\n")}});
               (*self)(3);
             } else if (bytes->empty()) {
               (*self)(stream + 1);
             } else {
               rest->at[stream] += bytes->size();
               reply->line({{"stream", name_of(stream)}, {"base64", base64(*bytes)}});
               reply->when_sent([self, stream] { (*self)(stream); });
             }
           });
    };
    (*step)(1);
  });
}

}  // namespace hpcbatch
