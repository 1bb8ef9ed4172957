#include "runtime/queue_watching.hpp"

#include "documents/state_paths.hpp"
#include "posix/files.hpp"

#include <algorithm>
#include <chrono>
#include <deque>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <utility>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace hpcbatch {
namespace {

using Ended = foresight::QueueWatch::Ended;

// More teach nothing: of a kind the newest count (wait_history.cpp).
constexpr std::size_t kMostKept = 5000;

/// Names come from others: what ends a field or a line is left out.
std::string field(const std::string& text) {
  std::string kept;
  for (const char c : text)
    if (c != '\t' && c != '\n' && c != '\r') kept += c;
  return kept;
}

std::string line_of(const Ended& ended) {
  std::ostringstream line;
  line << ended.limit << '\t' << ended.ran << '\t' << ended.cpus << '\t' << field(ended.user)
       << '\t' << field(ended.name) << '\n';
  return line.str();
}

/// False where it is none, as one that was cut.
bool read_line(const std::string& line, Ended& ended) {
  std::istringstream in(line);
  in >> ended.limit >> ended.ran >> ended.cpus;
  return in && in.get() == '\t' && std::getline(in, ended.user, '\t') && ended.limit > 0 &&
         ended.ran > 0 && ended.cpus > 0 && (std::getline(in, ended.name) || in.eof());
}

}  // namespace

void RunTimesFile::load_into(foresight::QueueWatch& watch) {
  if (std::exchange(is_loaded_, true)) return;
  std::ifstream in(path_, std::ios::binary);
  std::deque<Ended> all;
  for (std::string line; std::getline(in, line); ++lines_) {
    Ended ended;
    if (!read_line(line, ended)) continue;
    all.push_back(std::move(ended));
    if (all.size() > kMostKept) all.pop_front();
  }
  for (const Ended& ended : all) watch.learn(ended);
  if (lines_ < 2 * kMostKept) return;
  std::string text;
  for (const Ended& ended : all) text += line_of(ended);
  if (replace_file(AT_FDCWD, path_, text, {.sync = false}) == 0) lines_ = all.size();
}

void RunTimesFile::add(const std::vector<Ended>& ended) {
  if (ended.empty()) return;
  std::error_code ignored;
  std::filesystem::create_directories(std::filesystem::path(path_).parent_path(), ignored);
  std::string text;
  for (const Ended& one : ended) text += line_of(one);
  std::ofstream(path_, std::ios::binary | std::ios::app) << text;
  lines_ += ended.size();
}

namespace {

using namespace std::chrono_literals;

// A queue of tens of thousands on a slow machine.
constexpr std::chrono::milliseconds kLongestPlay = 30s;
constexpr int kNice = 10;
constexpr const char* kTooLong = "its queue is too long to be played in time";

/// On Linux a thread has a niceness of its own (sched(7)).
void be_nice() {
  (void)::setpriority(PRIO_PROCESS, static_cast<id_t>(::syscall(SYS_gettid)), kNice);
}

std::vector<Duration> durations(const std::vector<foresight::Seconds>& waits) {
  std::vector<Duration> durations;
  durations.reserve(waits.size());
  for (const foresight::Seconds wait : waits) durations.emplace_back(std::chrono::seconds(wait));
  return durations;
}

foresight::Wanted wanted_by(const Shape& shape, bool with_memory) {
  const double cpus = shape.capacity.get(kCpus).value();
  foresight::Wanted wanted{
      .partition = shape.partition,
      .cpus = std::max(1.0, cpus) * shape.nodes,
      .limit = std::chrono::duration_cast<std::chrono::seconds>(shape.walltime).count(),
      .nodes = shape.nodes};
  if (with_memory) wanted.memory = shape.capacity.get(kMemory).value() * shape.nodes;
  for (const auto& [name, amount] : shape.capacity.entries()) {
    if (!name.starts_with(kGpuPrefix)) continue;
    const std::string kind = name.substr(kGpuPrefix.size());
    wanted.gpus[kind == kGpuWithoutKind ? "" : kind] = amount.value() * shape.nodes;
  }
  return wanted;
}

LearnedWaits::Asked asked_by(const Shape& shape) {
  const foresight::Wanted wanted = wanted_by(shape, false);
  return {wanted.partition, wanted.cpus, shape.capacity.gpus().value() * shape.nodes, wanted.limit};
}

}  // namespace

QueueWatching::QueueWatching(asio::io_context& loop, const PluginHost& plugins, std::string home)
    : plugins_(plugins), home_(std::move(home)), renewal_(home_), lane_(loop, kLongestPlay, [this] {
        // What hangs may still use them.
        watches_.clear();
        return true;
      }) {}

void QueueWatching::look(SiteClient& site, Ours ours, Time now, Answer answer) {
  Question question{
      site.site().name,    site.site().shapes, std::move(ours), now, site.site().asks_for_memory,
      site.site().retrains};
  std::erase_if(question.shapes, [](const Shape& shape) { return shape.walltime == Duration{}; });
  site.look_at_queue([this, question = std::move(question), answer = std::move(answer)](
                         Result<std::optional<SiteClient::QueueSeen>> seen) mutable {
    if (seen && *seen) return foresee(std::move(question), std::move(**seen), std::move(answer));
    QueueForeseen nothing{
        .site = question.site, .looked = question.now, .shapes = {}, .queued = {}};
    nothing.is_impossible = static_cast<bool>(seen);
    if (!seen) nothing.trouble = seen.error().text;
    answer(std::move(nothing));
  });
}

void QueueWatching::foresee(Question question, SiteClient::QueueSeen seen, Answer answer) {
  auto& watch = watches_[question.site];
  if (!watch)
    watch =
        std::make_shared<Watch>(Watch{{},
                                      LearnedWaits(plugins_, wait_model_path(home_, question.site)),
                                      RunTimesFile(run_times_path(home_, question.site))});
  auto foreseen = std::make_shared<QueueForeseen>();
  foreseen->site = question.site;
  foreseen->looked = question.now;
  auto learned = std::make_shared<foresight::WaitModelFacts>();
  const bool retrains = question.retrains;
  auto work = [watch, foreseen, learned, question = std::move(question),
               seen = std::move(seen)](const Deadline& deadline) {
    be_nice();
    const auto now = std::chrono::floor<std::chrono::seconds>(question.now.time_since_epoch());
    watch->run_times.load_into(watch->queue);
    watch->queue.see(seen.queue, now.count(), seen.room);
    watch->run_times.add(watch->queue.newly_ended());
    watch->learned.see(seen.queue, seen.room, question.ours.all, now.count());
    foreseen->model_waits = watch->learned.learned_from();
    for (const Shape& shape : question.shapes) {
      if (std::chrono::steady_clock::now() >= deadline) {
        foreseen->trouble = kTooLong;
        return;
      }
      const foresight::Foreseen found =
          watch->queue.foresee(wanted_by(shape, question.asks_for_memory), question.ours.queued);
      foreseen->shapes[shape.name] = {durations(found.next), found.by_limits, found.blind,
                                      durations(watch->learned.waits(asked_by(shape))),
                                      found.is_closed};
      // Of one that may run in several partitions the earliest counts.
      for (const auto& [name, waits] : found.queued) {
        QueueForeseen::Start& start = foreseen->queued[name];
        QueueForeseen::Start here{durations(waits), found.by_limits, {}, {}};
        if (start.waits.empty() || here.waits.back() < start.waits.back()) start = std::move(here);
      }
    }
    foreseen->model_trouble = watch->learned.trouble();
    *learned = watch->learned.facts();
  };
  lane_.call(
      kLongestPlay, [work = std::move(work)]() -> CallLane::Work { return work; },
      [this, foreseen, learned, retrains, answer = std::move(answer)](bool given_up) {
        if (given_up) return answer({.site = foreseen->site, .trouble = kTooLong});
        if (retrains) renewal_.consider(foreseen->site, *learned, foreseen->looked);
        answer(*foreseen);
      });
}

}  // namespace hpcbatch
