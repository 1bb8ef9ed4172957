#include "cli/verbs/input_forwarder.hpp"

#include "cli/client/cancel_now.hpp"
#include "cli/client/engine_client.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

namespace hpcbatch {
namespace {

/// A task may wait for days before it takes its input.
constexpr std::chrono::hours kNoEnd{24 * 365};
constexpr std::chrono::milliseconds kLookAgain{500};
/// An engine that is being restarted is back by then.
constexpr std::chrono::seconds kInputAway{60};
constexpr std::chrono::milliseconds kSendInputEvery{200};
constexpr std::chrono::seconds kCancelTime{2};
using Clock = std::chrono::steady_clock;

bool is_in_foreground(int terminal) {
  return ::tcgetpgrp(terminal) == ::getpgrp();
}

bool is_dev_null(const struct stat& what) {
  return S_ISCHR(what.st_mode) && what.st_rdev == makedev(1, 3);
}

std::string path_of(int descriptor, const struct stat& what) {
  std::array<char, 4096> path{};
  const std::string link = "/proc/self/fd/" + std::to_string(descriptor);
  const ssize_t size = ::readlink(link.c_str(), path.data(), path.size() - 1);
  if (size <= 0) return "";
  struct stat there {};
  // A deleted file, such as a shell's here-document, has no name any more.
  const bool is_it = ::stat(path.data(), &there) == 0 && there.st_ino == what.st_ino &&
                     there.st_dev == what.st_dev;
  return is_it ? path.data() : "";
}

/// Waits until there is something to read; false where it is time to stop.
bool wait_for_input(int source, int stop) {
  for (;;) {
    // Reading a terminal from the background would stop this process.
    const bool may_read = ::isatty(source) == 0 || is_in_foreground(source);
    pollfd waits[] = {{stop, POLLIN, 0}, {may_read ? source : -1, POLLIN, 0}};
    const int count = ::poll(waits, 2, may_read ? -1 : static_cast<int>(kLookAgain.count()));
    if (count < 0 && errno != EINTR) return false;
    if (count <= 0) continue;
    if (waits[0].revents != 0) return false;
    if (waits[1].revents != 0) return true;
  }
}

enum class Sent { Taken, NotWanted, Stopped, EngineAway };

/// Over restarts of the engine: the offset in the target lets it skip what the task was given
/// before.
Sent send(HttpClient& client, const std::string& target, std::string_view body, int stop) {
  auto until = Clock::now() + kInputAway;
  for (;;) {
    const auto asked = Clock::now();
    const Answer answer = client.request("POST", target, body, kNoEnd);
    switch (answer.outcome) {
      case Exchange::Answered:
        return answer.status == 200 ? Sent::Taken : Sent::NotWanted;
      case Exchange::Interrupted:
        return Sent::Stopped;
      case Exchange::Refused:
      case Exchange::TimedOut:
        return Sent::EngineAway;
      case Exchange::Lost:
        // It may have waited for hours until the task would take more.
        if (Clock::now() - asked > kSendInputEvery) until = Clock::now() + kInputAway;
        break;
      case Exchange::NoEngine:
        break;
    }
    if (Clock::now() >= until) return Sent::EngineAway;
    pollfd stopped{stop, POLLIN, 0};
    if (::poll(&stopped, 1, static_cast<int>(kSendInputEvery.count())) > 0) return Sent::Stopped;
  }
}

/// A task that waits for the rest of its input would wait for ever.
void give_up(const Places& places, const std::string& id) {
  const bool is_cancelled = cancel_now(places, {id}, kCancelTime);
  std::fprintf(
      stderr, "hpcbatch: the engine is away and the rest of the input is lost: %s\n",
      is_cancelled
          ? ("task " + id + " is cancelled").c_str()
          : ("once an engine runs again, end it with `hpcbatch cancel " + id + "`").c_str());
}

void forward(const Places& places, const std::string& id, int source, int stop) {
  HttpClient client(sockets_of(places), stop);
  const std::string input = "/v1/tasks/" + id + "/input?";
  // What the task never asks for stays with whoever reads on behind it, as in `while read`.
  const Sent asked = send(client, input + "ask=1", "", stop);
  if (asked == Sent::EngineAway) return give_up(places, id);
  if (asked != Sent::Taken) return;
  const std::string target = input + "offset=";
  std::uint64_t offset = 0;
  std::array<char, 65'536> piece;
  while (wait_for_input(source, stop)) {
    const ssize_t size = ::read(source, piece.data(), piece.size());
    if (size < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    const bool is_end = size <= 0;
    const std::string_view body(piece.data(), is_end ? 0 : static_cast<std::size_t>(size));
    const Sent sent =
        send(client, target + std::to_string(offset) + (is_end ? "&end=1" : "&end=0"), body, stop);
    if (sent == Sent::EngineAway) return give_up(places, id);
    // Whoever follows the task's output hears what became of it; here it only matters that it takes
    // no more.
    if (is_end || sent != Sent::Taken) return;
    offset += body.size();
  }
}

}  // namespace

OwnInput look_at_input(int descriptor) {
  struct stat what {};
  if (::fstat(descriptor, &what) != 0 || is_dev_null(what) || S_ISDIR(what.st_mode)) return {};
  if (::isatty(descriptor) == 1)
    return {is_in_foreground(descriptor) ? OwnInput::Kind::Stream : OwnInput::Kind::None, ""};
  if (S_ISREG(what.st_mode) && ::lseek(descriptor, 0, SEEK_CUR) == 0) {
    if (std::string path = path_of(descriptor, what); !path.empty())
      return {OwnInput::Kind::File, std::move(path)};
  }
  return {OwnInput::Kind::Stream, ""};
}

InputForwarder::InputForwarder(const Places& places, const std::string& id, int source)
    : stop_(::eventfd(0, EFD_CLOEXEC)),
      thread_([places, id, source, stop = stop_.get()] { forward(places, id, source, stop); }) {}

InputForwarder::~InputForwarder() {
  const std::uint64_t one = 1;
  // Only a full counter could refuse, and this is its first.
  [[maybe_unused]] const ssize_t written = ::write(stop_.get(), &one, sizeof one);
  thread_.join();
}

}  // namespace hpcbatch
