#include "cli/top/asker.hpp"

#include "cli/client/engine_client.hpp"
#include "cli/process/process.hpp"
#include "cli/show/changes.hpp"
#include "cli/show/values.hpp"

#include <boost/json/serialize.hpp>

#include <chrono>
#include <cstdint>
#include <utility>

#include <sys/eventfd.h>
#include <unistd.h>

namespace hpcbatch::top {
namespace {

namespace json = boost::json;

/// Longer than that, an engine is as good as gone for whoever watches.
constexpr std::chrono::seconds kAnswerIn{10};
constexpr std::chrono::seconds kChangeIn{60};

void signal_event(const Fd& event) {
  const std::uint64_t one = 1;
  // An event that counts already is readable without this one.
  (void)!::write(event.get(), &one, sizeof one);
}

}  // namespace

Asker::Asker(std::vector<std::string> sockets)
    : end_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      heard_event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      engine_(std::move(sockets), end_.get()),
      thread_([this] { run(); }) {}

Asker::~Asker() {
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
  }
  wanted_.notify_all();
  signal_event(end_);
  thread_.join();
}

void Asker::ask(std::vector<Question> questions, std::optional<Order> order) {
  {
    const std::lock_guard lock(mutex_);
    if (is_busy_) return;
    questions_ = std::move(questions);
    order_ = std::move(order);
    is_busy_ = true;
  }
  wanted_.notify_all();
}

bool Asker::is_busy() const {
  const std::lock_guard lock(mutex_);
  return is_busy_;
}

std::vector<Heard> Asker::take() {
  std::uint64_t count = 0;
  (void)!::read(heard_event_.get(), &count, sizeof count);
  const std::lock_guard lock(mutex_);
  return std::exchange(heard_, {});
}

void Asker::put(Heard heard) {
  {
    const std::lock_guard lock(mutex_);
    heard_.push_back(std::move(heard));
  }
  signal_event(heard_event_);
}

void Asker::run() {
  for (;;) {
    std::vector<Question> questions;
    std::optional<Order> order;
    {
      std::unique_lock lock(mutex_);
      wanted_.wait(lock, [&] { return is_ending_ || is_busy_; });
      if (is_ending_) return;
      questions = std::exchange(questions_, {});
      order = std::exchange(order_, std::nullopt);
    }
    if (order) put(done(std::move(*order)));
    for (const Question& question : questions) {
      Reply reply = asked(question);
      const bool is_lost = reply.is_lost;
      put(std::move(reply));
      if (is_lost) break;
    }
    const std::lock_guard lock(mutex_);
    is_busy_ = false;
    signal_event(heard_event_);
  }
}

Reply Asker::asked(const Question& question) {
  Reply reply{question};
  const Answer answer = engine_.request("GET", question.target, {}, kAnswerIn);
  reply.is_lost = answer.outcome != Exchange::Answered;
  // What comes late belongs to no later question.
  if (reply.is_lost) engine_.disconnect();
  try {
    reply.value = object_of(answer);
    if (question.about == About::Output) bytes_of(*reply.value);
  } catch (const CommandError& error) {
    reply.trouble = error.what();
    reply.value.reset();
  } catch (const InterruptedByUser&) {
    reply.trouble = "interrupted";
  }
  return reply;
}

Done Asker::done(Order order) {
  Done done{std::move(order)};
  const std::string target = std::string("/v1/tasks/") + verb_of(done.order.change);
  const Answer answer =
      engine_.request("POST", target, json::serialize(done.order.body), kChangeIn);
  if (answer.outcome != Exchange::Answered) engine_.disconnect();
  try {
    done.answer = object_of(answer);
  } catch (const CommandError& error) {
    done.trouble = error.what();
  } catch (const InterruptedByUser&) {
    done.trouble = "interrupted";
  }
  return done;
}

}  // namespace hpcbatch::top
