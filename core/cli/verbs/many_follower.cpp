#include "cli/verbs/many_follower.hpp"

#include "cli/process/exit.hpp"
#include "cli/show/task_table.hpp"
#include "cli/show/values.hpp"
#include "cli/verbs/task_output.hpp"
#include "documents/text_check.hpp"

#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>

#include <cstdio>

namespace hpcbatch {
namespace {

namespace json = boost::json;

/// How long the engine is asked to wait for ends: short where somebody watches.
constexpr std::chrono::seconds kWatchedFeed{1};
constexpr std::chrono::seconds kUnwatchedFeed{20};
constexpr std::chrono::seconds kMarginForEnds{30};

}  // namespace

void ManyFollower::begin(const std::string& client) {
  feed_ = "/v1/events?client=" + encode_part(client);
  cursor_ = text_at(engine_.get(feed_ + "&after=now"), "cursor");
}

void ManyFollower::follow_these(const std::string& id) {
  id_ = id;
  const auto all = parse_index_set(text_at(engine_.get("/v1/arrays/" + id_), "indices"));
  if (!all) throw CommandError(kExitNoEngine, "the engine named no indices of " + id_);
  open_ = unprinted_ = *all;
}

IndexSet ManyFollower::in_state(const char* state) {
  return indices_where([this](const std::string& target) { return engine_.get(target); }, id_,
                       std::string("state=") + state);
}

void ManyFollower::take_up_ended() {
  if (options_.log.failed_only)
    open_.remove(in_state("done"));
  else
    has_ended(in_state("done"));
  for (const char* state : {"failed", "cancelled"}) has_ended(in_state(state));
}

IndexSet ManyFollower::leave_out_done() {
  skipped_ = in_state("done");
  open_.remove(skipped_);
  unprinted_.remove(skipped_);
  return skipped_;
}

void ManyFollower::has_ended(const IndexSet& indices) {
  IndexSet news = indices.intersection(open_);
  // Those ended while we looked at what had ended before.
  const IndexSet late = indices.intersection(skipped_);
  skipped_.remove(late);
  unprinted_.add(late);
  news.add(late);
  open_.remove(indices);
  if (!news.empty()) ended_.push_back(std::move(news));
}

void ManyFollower::take_ends() {
  const std::chrono::seconds wait =
      status_.is_visible() || is_quiet_ ? kWatchedFeed : kUnwatchedFeed;
  const json::object feed = engine_.get(
      feed_ + "&after=" + cursor_ + "&wait=" + std::to_string(wait.count()), wait + kMarginForEnds);
  cursor_ = text_at(feed, "cursor");
  if (flag_at(feed, "pruned")) return take_up_ended();
  const json::array* events = array_at(feed, "events");
  if (events == nullptr) return;
  for (const json::value& event : *events) {
    if (!event.is_object()) continue;
    const auto indices = indices_of(text_at(event.get_object(), "id"), id_);
    if (!indices) continue;
    tell_trouble(event.get_object());
    const bool is_left_out =
        options_.log.failed_only && text_at(event.get_object(), "failure") == "ok";
    if (is_left_out)
      open_.remove(*indices);
    else
      has_ended(*indices);
  }
}

/// A command that ended with an exit code has said itself why.
void ManyFollower::tell_trouble(const json::object& event) const {
  const std::string failure = text_at(event, "failure"), message = text_at(event, "message");
  if (failure == "ok" || is_quiet_) return;
  const bool has_said_it = message.empty() || message.starts_with("exit ");
  if (failure == "tool_failed" && has_said_it && !options_.tells_exits) return;
  const std::string id = text_at(event, "id");
  const bool is_one = id.find_first_of("-,") == std::string::npos;
  std::fprintf(stderr, "hpcbatch: %s %s ended: %s%s\n", is_one ? "task" : "tasks", id.c_str(),
               failure.c_str(), message.empty() ? "" : (": " + show_lines(message)).c_str());
}

std::optional<std::uint32_t> ManyFollower::next_to_print() {
  if (!options_.keep_order) {
    if (ended_.empty()) return std::nullopt;
    const std::uint32_t index = ended_.front().ranges().back().first;
    ended_.front().remove(IndexRange{index, index});
    if (ended_.front().empty()) ended_.pop_front();
    return index;
  }
  if (unprinted_.empty()) return std::nullopt;
  const std::uint32_t index = unprinted_.ranges().back().first;
  if (open_.contains(index)) return std::nullopt;
  unprinted_.remove(IndexRange{index, index});
  return index;
}

void ManyFollower::print_all_that_can_be() {
  while (const auto index = next_to_print()) {
    print(*index);
    show_progress();
  }
  std::fflush(stdout);
}

void ManyFollower::print(std::uint32_t index) {
  const std::string task = id_ + "." + std::to_string(index);
  status_.clear();
  print_task([this](const std::string& target) { return engine_.get(target); },
             {options_.log, task, true});
  if (options_.printed) options_.printed(index, engine_.get("/v1/tasks/" + task));
}

json::object ManyFollower::counts() {
  return engine_.post("/v1/tasks/wait",
                      json::serialize(json::object{{"ids", json::array{id_}}, {"timeout", 0}}));
}

void ManyFollower::show_progress() {
  if (!status_.is_visible() || is_quiet_ || Clock::now() - shown_ < kWatchedFeed) return;
  shown_ = Clock::now();
  view_.progress(counts());
}

ManyFollower::Why ManyFollower::follow(std::optional<Clock::time_point> until) {
  if (until) engine_.give_up_at(*until);
  try {
    print_all_that_can_be();
    while (!open_.empty() && (!until || Clock::now() < *until)) {
      take_ends();
      print_all_that_can_be();
      show_progress();
    }
    status_.clear();
    return Why::Ended;
  } catch (const OutputClosed& closed) {
    status_.clear();
    if (!closed.is_pipe()) trouble_ = closed.what();
    return Why::OutputClosed;
  } catch (const InterruptedByUser&) {
    status_.clear();
    return Why::Interrupted;
  }
}

}  // namespace hpcbatch
