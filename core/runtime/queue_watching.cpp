#include "runtime/queue_watching.hpp"

#include "documents/state_paths.hpp"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace hpcbatch {
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

foresight::Wanted wanted_by(const Shape& shape) {
  const double cpus = shape.capacity.get(kCpus).value();
  return {.partition = shape.partition,
          .cpus = std::max(1.0, cpus) * shape.nodes,
          .limit = std::chrono::duration_cast<std::chrono::seconds>(shape.walltime).count(),
          .has_gpus = shape.capacity.gpus() != Amount{}};
}

LearnedWaits::Asked asked_by(const Shape& shape) {
  const foresight::Wanted wanted = wanted_by(shape);
  return {wanted.partition, wanted.cpus, shape.capacity.gpus().value() * shape.nodes, wanted.limit};
}

}  // namespace

QueueWatching::QueueWatching(asio::io_context& loop, const PluginHost& plugins, std::string home)
    : plugins_(plugins), home_(std::move(home)), lane_(loop, kLongestPlay, [this] {
        // What hangs may still use them.
        watches_.clear();
        return true;
      }) {}

void QueueWatching::look(SiteClient& site, Ours ours, Time now, Answer answer) {
  Question question{site.site().name, site.site().shapes, std::move(ours), now};
  std::erase_if(question.shapes, [](const Shape& shape) { return shape.walltime == Duration{}; });
  site.look_at_queue([this, question = std::move(question), answer = std::move(answer)](
                         Result<std::optional<WatchedQueue>> seen) mutable {
    if (seen && *seen) return foresee(std::move(question), std::move(**seen), std::move(answer));
    QueueForeseen nothing{
        .site = question.site, .looked = question.now, .shapes = {}, .queued = {}};
    nothing.is_impossible = static_cast<bool>(seen);
    if (!seen) nothing.trouble = seen.error().text;
    answer(std::move(nothing));
  });
}

void QueueWatching::foresee(Question question, WatchedQueue queue, Answer answer) {
  auto& watch = watches_[question.site];
  if (!watch)
    watch = std::make_shared<Watch>(
        Watch{{}, LearnedWaits(plugins_, wait_model_path(home_, question.site))});
  auto foreseen = std::make_shared<QueueForeseen>();
  foreseen->site = question.site;
  foreseen->looked = question.now;
  auto work = [watch, foreseen, question = std::move(question),
               queue = std::move(queue)](const Deadline& deadline) {
    be_nice();
    const auto now = std::chrono::floor<std::chrono::seconds>(question.now.time_since_epoch());
    watch->queue.see(queue, now.count());
    watch->learned.see(queue, question.ours.all, now.count());
    foreseen->model_waits = watch->learned.learned_from();
    for (const Shape& shape : question.shapes) {
      if (std::chrono::steady_clock::now() >= deadline) {
        foreseen->trouble = kTooLong;
        return;
      }
      const foresight::Foreseen seen = watch->queue.foresee(wanted_by(shape), question.ours.queued);
      foreseen->shapes[shape.name] = {durations(seen.next), seen.by_limits, seen.blind,
                                      durations(watch->learned.waits(asked_by(shape)))};
      // Of one that may run in several partitions the earliest counts.
      for (const auto& [name, waits] : seen.queued) {
        QueueForeseen::Start& start = foreseen->queued[name];
        QueueForeseen::Start here{durations(waits), seen.by_limits, {}, {}};
        if (start.waits.empty() || here.waits.back() < start.waits.back()) start = std::move(here);
      }
    }
    foreseen->model_trouble = watch->learned.trouble();
  };
  lane_.call(
      kLongestPlay, [work = std::move(work)]() -> CallLane::Work { return work; },
      [foreseen, answer = std::move(answer)](bool given_up) {
        if (given_up) {
          answer({.site = foreseen->site, .trouble = kTooLong});
        } else {
          answer(*foreseen);
        }
      });
}

}  // namespace hpcbatch
