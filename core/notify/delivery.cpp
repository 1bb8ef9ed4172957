#include "notify/delivery.hpp"

#include "documents/texts.hpp"
#include "posix/programs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace hpcbatch {
namespace {

using namespace std::chrono_literals;

constexpr auto kLookAgain = 50ms;
constexpr std::size_t kLastWords = 400;

/// That text, to be read from its start.
Fd file_of(const std::string& text) {
  Fd file(::memfd_create("notice", MFD_CLOEXEC));
  if (!file || write_all(file.get(), text) != 0 || ::lseek(file.get(), 0, SEEK_SET) != 0) return {};
  return file;
}

/// Ours, but for what the parcel says.
std::vector<std::string> environment_of(const Parcel& parcel) {
  std::vector<std::string> lines = parcel.variables;
  const auto says = [&](std::string_view line) {
    const std::string_view name = line.substr(0, line.find('=') + 1);
    for (const std::string& variable : parcel.variables)
      if (variable.starts_with(name)) return true;
    return false;
  };
  for (char** line = ::environ; line && *line; ++line)
    if (!says(*line)) lines.emplace_back(*line);
  return lines;
}

}  // namespace

Delivery::~Delivery() {
  leave();
}

void Delivery::leave() {
  then_ = nullptr;
  timer_.cancel();
  if (process_ <= 0) return;
  // One that hangs in the kernel ends later, and is then whoever adopts it to collect.
  ::kill(-process_, SIGKILL);
  ::waitpid(std::exchange(process_, 0), nullptr, WNOHANG);
}

void Delivery::start(const Parcel& parcel, std::chrono::seconds longest, Then then) {
  then_ = std::move(then);
  longest_ = longest;
  until_ = std::chrono::steady_clock::now() + longest;
  if (auto why = spawn(parcel)) {
    // Never before the caller has gone on.
    asio::post(timer_.get_executor(), [self = shared_from_this(), why = std::move(*why)] {
      if (self->then_) std::exchange(self->then_, nullptr)(why);
    });
    return;
  }
  look_soon();
}

void Delivery::look_soon() {
  timer_.expires_after(kLookAgain);
  timer_.async_wait([self = shared_from_this()](const boost::system::error_code& error) {
    if (!error) self->look();
  });
}

std::optional<std::string> Delivery::spawn(const Parcel& parcel) {
  const Fd input = file_of(parcel.input), handed_over = file_of(parcel.handed_over);
  std::array<int, 2> pipe{-1, -1};
  if (!input || !handed_over || ::pipe2(pipe.data(), O_CLOEXEC) != 0)
    return std::string("it cannot be given what to tell: ") + std::strerror(errno);
  said_ = Fd(pipe[0]);
  const Fd says(pipe[1]);
  ::fcntl(said_.get(), F_SETFL, O_NONBLOCK);
  const std::vector<std::string> environment = environment_of(parcel);
  // We wait until the program is there (posix_spawn(3)), and it may lie on a file system that hangs:
  // a shell is there at once, and waits in our place.  Systems keep sendmail where few look.
  std::vector<std::string> argv{"/bin/sh", "-c", R"(PATH="$PATH:/usr/sbin:/usr/lib"; exec "$@")",
                                "sh"};
  argv.insert(argv.end(), parcel.argv.begin(), parcel.argv.end());
  const int error = spawn_program(argv,
                                  {.environment = &environment,
                                   .input = input.get(),
                                   .output = says.get(),
                                   .error = says.get(),
                                   .handed_over = handed_over.get(),
                                   .own_group = true,
                                   .as_from_a_shell = true},
                                  process_);
  if (error == 0) return std::nullopt;
  process_ = 0;
  return fmt::format("no shell can be run: {}", std::strerror(error));
}

void Delivery::look() {
  int status = 0;
  const pid_t ended = ::waitpid(process_, &status, WNOHANG);
  listen();
  if (ended == 0 && std::chrono::steady_clock::now() < until_) return look_soon();
  std::optional<std::string> why;
  if (ended == 0) {
    ::kill(-process_, SIGKILL);
    why = fmt::format("it had not ended after {} s, and was killed", longest_.count());
    // It may hang in the kernel: what is left is to collect it.
    look_soon();
  } else {
    process_ = 0;
    if (const int code = ended < 0 ? 127 : shell_code_of(status); code != 0)
      why = fmt::format("it ended with exit code {}{}{}", code, words_.empty() ? "" : ": ",
                        show_text(words_, kLastWords));
  }
  if (then_) std::exchange(then_, nullptr)(std::move(why));
}

/// What it says is taken as it comes, for a full pipe would hold it up, and only its end is kept.
void Delivery::listen() {
  std::array<char, 4096> some{};
  for (int i = 0; i < 16; ++i) {
    const ssize_t size = ::read(said_.get(), some.data(), some.size());
    if (size <= 0) return;
    words_.append(some.data(), static_cast<std::size_t>(size));
    if (words_.size() > kLastWords) words_.erase(0, words_.size() - kLastWords);
  }
}

}  // namespace hpcbatch
