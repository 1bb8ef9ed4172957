#include "pilot/tasks/images.hpp"

#include "pilot/base/clock.hpp"
#include "pilot/base/log_line.hpp"

#include <unistd.h>
#include <chrono>
#include <utility>

namespace hpcbatch::pilot {
namespace {

using namespace std::chrono_literals;

constexpr Duration kAskAgain =
    30s;  // after a failure: the tasks behind it need not all wait for it
constexpr Duration kSayUsed = 10min;

}  // namespace

/// A file may have been removed meanwhile; of what a runtime has been given it knows itself.
bool Images::holds(const Wanted& wanted, Time now) {
  if (!wanted.answer) return false;
  const ImageAnswer& answer = *wanted.answer;
  if (answer.said != ImageAnswer::Said::Ready) return now - wanted.answered_at < kAskAgain;
  return !answer.text.starts_with('/') || ::access(answer.text.c_str(), R_OK) == 0;
}

std::optional<ImageAnswer> Images::want(const AttemptId& id, const ImageOrder& order, Time now) {
  const std::string key = name_of(order.runtime.runtime) + (" " + with_transport(order.image));
  Wanted& wanted = wanted_[key];
  if (holds(wanted, now)) return wanted.answer;
  wanted.answer.reset();
  wanted.waiting.push_back(id);
  if (wanted.waiting.size() > 1) return std::nullopt;
  log_line("prepares the image " + order.image.said + " for " + name_of(order.runtime.runtime));
  helpers_.start([order] { return to_text(prepare_image(order)); },
                 "transient the process that prepared the image died",
                 [this, key](const std::string& text) { take_answer(key, image_answer(text)); });
  return std::nullopt;
}

void Images::take_answer(const std::string& key, const ImageAnswer& answer) {
  Wanted& wanted = wanted_[key];
  wanted.answer = answer;
  wanted.answered_at = clock_now();
  if (answer.said != ImageAnswer::Said::Ready) log_line(answer.text);
  for (const AttemptId& id : std::exchange(wanted.waiting, {})) answered_(id, answer);
}

void Images::forget(const AttemptId& id) {
  for (auto& [key, wanted] : wanted_) std::erase(wanted.waiting, id);
}

void Images::tick(Time now) {
  if (now < say_at_) return;
  say_at_ = now + kSayUsed;
  for (const auto& [key, wanted] : wanted_) {
    if (wanted.answer && wanted.answer->text.starts_with('/')) say_used(wanted.answer->text);
  }
}

}  // namespace hpcbatch::pilot
