#include "dropbox/dropbox.hpp"

#include "documents/texts.hpp"
#include "dropbox/folder.hpp"
#include "dropbox/job_flow.hpp"
#include "dropbox/job_watch.hpp"

#include <fmt/format.h>

#include <mutex>
#include <set>
#include <thread>
#include <utility>

#include <sys/stat.h>

namespace hpcbatch {

// The thread of a drop box: waits for events, ends and times, and gives each to the watch or to the
// flow of a job.

namespace {

constexpr std::size_t kLargestJob = std::size_t{4} << 20;
/// Choosing whose turn it is costs as much for one as for many.
constexpr std::size_t kBatch = 256;
constexpr std::size_t kMostTold = 1000;

/// The watch needs a clock that only goes forwards; where it begins does not matter.
Time forward_clock() {
  return Time{
      std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now().time_since_epoch())};
}

std::string without(std::string_view name, std::string_view ending) {
  return std::string(name.substr(0, name.size() - ending.size()));
}

}  // namespace

class Dropbox::Worker {
 public:
  Worker(DropboxOptions options, Workspace workspace, DropboxFolder folder, SubmitPort& submit_port)
      : options_(std::move(options)),
        watch_({.quiet = options_.quiet, .grace = options_.grace}),
        flow_(options_, std::move(workspace), submit_port, [this] { events_.ring(); }) {
    use(std::move(folder));
    thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
  }
  ~Worker() {
    thread_.request_stop();
    events_.ring();
  }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  void task_ended(DropboxTaskEnd end) {
    {
      const std::lock_guard lock(mutex_);
      ends_.push_back(std::move(end));
    }
    events_.ring();
  }

 private:
  void run(const std::stop_token& stop) {
    resume();
    Time next_look = forward_clock();
    while (!stop.stop_requested()) {
      const Time now = forward_clock();
      if (now >= next_look) {
        look_at_all();
        next_look = forward_clock() + options_.look_every;
      }
      take_due(stop);
      const auto news = events_.wait(time_to_wait(next_look));
      for (const auto& change : news.changes) look_at(change.name, change.closed);
      if (news.look_at_all) next_look = forward_clock();
      flow_.go_on();
      tell_ends();
    }
  }

  std::size_t room() const {
    return options_.most_active - std::min(options_.most_active, flow_.active());
  }

  JobWatch::RoomOf room_of() const {
    return [this](std::uint32_t owner) { return flow_.room_of(owner); };
  }

  Duration time_to_wait(Time next_look) const {
    Time until = next_look;
    if (const auto due = watch_.next_due(room_of()); due && room() > 0)
      until = std::min(until, *due);
    return std::max(Duration{0}, until - forward_clock());
  }

  void use(DropboxFolder folder) {
    if (!events_.watch(options_.directory)) {
      warn(fmt::format(
          "its changes cannot be watched; it is looked at every {} s",
          std::chrono::duration_cast<std::chrono::seconds>(options_.look_every).count()));
    }
    flow_.use(std::move(folder));
  }

  void resume() {
    const auto entries = flow_.folder().list();
    if (!entries) return warn(entries.error().text);
    for (const auto& entry : *entries) {
      if (entry.name.ends_with(kSubmittedEnding)) flow_.resume(without(entry.name, ".submitted"));
    }
  }

  void look_at_all() {
    if (!flow_.folder().is_still(options_.directory)) {
      auto folder = DropboxFolder::open(options_.directory);
      if (!folder) return warn(folder.error().text);
      use(std::move(*folder));
    }
    const auto entries = flow_.folder().list();
    if (!entries) return warn(entries.error().text);
    std::vector<std::string> jobs;
    for (const auto& entry : *entries) {
      if (!entry.name.ends_with(kJobEnding)) continue;
      jobs.push_back(entry.name);
      see(entry.name, entry.stamp, false);
    }
    watch_.keep_only(jobs);
    flow_.look_after_all();
    flow_.deliver_again();
  }

  void look_at(const std::string& name, bool closed) {
    if (name.starts_with('.')) return;
    if (name.ends_with(kSubmittedEnding)) return flow_.look_after(without(name, ".submitted"));
    if (!name.ends_with(kJobEnding)) return;
    if (const auto stamp = flow_.folder().look(name)) {
      see(name, *stamp, closed);
    } else {
      watch_.forget(name);
    }
  }

  void see(const std::string& name, const FileStamp& stamp, bool closed) {
    if (!S_ISREG(stamp.mode))
      return warn(fmt::format("{} is not a regular file and is left alone", show_text(name)));
    watch_.seen(name, stamp, closed, forward_clock());
  }

  void take_due(const std::stop_token& stop) {
    for (const std::string& name :
         watch_.due(forward_clock(), std::min(kBatch, room()), room_of())) {
      // Ends and the program's end do not wait for the whole batch.
      flow_.go_on();
      tell_ends();
      if (stop.stop_requested()) return;
      const auto content = flow_.folder().read(name, kLargestJob);
      if (!content) {
        if (!flow_.folder().look(name)) {
          watch_.forget(name);
        } else {
          refuse_in_time(name, content.error().text);
        }
        continue;
      }
      const bool is_news = watch_.seen(name, content->stamp, false, forward_clock());
      if (is_news || !content->is_steady) continue;
      const auto taking = flow_.take(name, *content);
      switch (taking.taken) {
        case JobFlow::Taken::Yes:
          watch_.forget(name);
          break;
        case JobFlow::Taken::NotYet:
          refuse_in_time(name, taking.why);
          break;
        case JobFlow::Taken::NobodysWord:
          flow_.refuse(name, taking.why, false);
          watch_.forget(name);
          break;
        case JobFlow::Taken::Later:
          warn(fmt::format("{} waits: {}", show_text(name), taking.why));
          watch_.forget(name);  // the next look at all finds it again
          break;
      }
    }
  }

  void refuse_in_time(const std::string& name, const std::string& why) {
    if (watch_.not_yet(name, forward_clock()) == JobWatch::Verdict::Wait) return;
    flow_.refuse(name, why, true);
    watch_.forget(name);
  }

  void tell_ends() {
    std::vector<DropboxTaskEnd> ends;
    {
      const std::lock_guard lock(mutex_);
      ends.swap(ends_);
    }
    for (const DropboxTaskEnd& end : ends) flow_.ended(end);
  }

  void warn(const std::string& text) {
    if (told_.size() > kMostTold) told_.clear();
    if (!options_.warn || !told_.insert(text).second) return;
    options_.warn(fmt::format("drop box {}: {}", options_.directory, text));
  }

  const DropboxOptions options_;
  FolderEvents events_;
  JobWatch watch_;
  JobFlow flow_;
  std::set<std::string> told_;  // what is looked at again and again is told once
  std::mutex mutex_;
  std::vector<DropboxTaskEnd> ends_;
  std::jthread thread_;
};

Dropbox::Dropbox(std::unique_ptr<Worker> worker) : worker_(std::move(worker)) {}
Dropbox::~Dropbox() = default;

void Dropbox::task_ended(DropboxTaskEnd end) {
  worker_->task_ended(std::move(end));
}

Result<std::unique_ptr<Dropbox>> Dropbox::start(DropboxOptions options, SubmitPort& submit_port) {
  auto folder = DropboxFolder::open(options.directory);
  if (!folder) return folder.error();
  auto workspace = Workspace::open(options.workspace, options.trust_group);
  if (!workspace) return workspace.error();
  auto worker = std::make_unique<Worker>(std::move(options), std::move(*workspace),
                                         std::move(*folder), submit_port);
  return std::unique_ptr<Dropbox>(new Dropbox(std::move(worker)));
}

OwnerLanes::~OwnerLanes() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  news_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void OwnerLanes::post(std::uint32_t owner, std::function<void()> work) {
  const std::lock_guard lock(mutex_);
  const auto [at, is_new] = waiting_.try_emplace(owner);
  at->second.push_back(std::move(work));
  if (!is_new) return;  // he waits for his turn already, or is being served
  turns_.push_back(owner);
  if (turns_.size() > idle_ && threads_.size() < most_) threads_.emplace_back([this] { serve(); });
  news_.notify_one();
}

void OwnerLanes::serve() {
  std::unique_lock lock(mutex_);
  while (true) {
    ++idle_;
    news_.wait(lock, [this] { return !turns_.empty() || ends_; });
    --idle_;
    if (turns_.empty()) return;
    const std::uint32_t owner = turns_.front();
    turns_.pop_front();
    const auto at = waiting_.find(owner);
    const std::function<void()> work = std::move(at->second.front());
    at->second.pop_front();
    lock.unlock();
    work();
    lock.lock();
    // Behind the others, who may have come meanwhile.
    if (at->second.empty()) {
      waiting_.erase(at);
    } else {
      turns_.push_back(owner);
      news_.notify_one();
    }
  }
}

}  // namespace hpcbatch
