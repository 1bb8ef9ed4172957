#include "estimate/training.hpp"

#include "plugin_host/guarded.hpp"
#include "posix/files.hpp"
#include "posix/programs.hpp"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <vector>

#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace hpcbatch::estimate {
namespace {

void put(std::string& bytes, std::string_view text) {
  const std::uint64_t size = text.size();
  bytes.append(reinterpret_cast<const char*>(&size), sizeof size).append(text);
}
template <class Number>
void put(std::string& bytes, const std::vector<Number>& numbers) {
  put(bytes, std::string_view(reinterpret_cast<const char*>(numbers.data()),
                              numbers.size() * sizeof(Number)));
}

std::string_view taken(std::string_view& bytes) {
  std::uint64_t size = 0;
  if (bytes.size() < sizeof size) throw std::invalid_argument("the table to learn from is cut off");
  std::memcpy(&size, bytes.data(), sizeof size);
  bytes.remove_prefix(sizeof size);
  if (bytes.size() < size) throw std::invalid_argument("the table to learn from is cut off");
  const std::string_view text = bytes.substr(0, size);
  bytes.remove_prefix(size);
  return text;
}
template <class Number>
std::vector<Number> taken_numbers(std::string_view& bytes) {
  const std::string_view text = taken(bytes);
  std::vector<Number> numbers(text.size() / sizeof(Number));
  if (!numbers.empty()) std::memcpy(numbers.data(), text.data(), numbers.size() * sizeof(Number));
  return numbers;
}

}  // namespace

std::string to_bytes(const Lesson& lesson) {
  const TrainingTable& table = lesson.table;
  std::string bytes;
  put(bytes, lesson.config_yaml);
  put(bytes, std::to_string(table.inputs.features.size()));
  for (const std::string& name : table.inputs.features) put(bytes, name);
  put(bytes, table.inputs.values);
  put(bytes, table.waited);
  put(bytes, table.weights);
  put(bytes, table.is_pending);
  return bytes;
}

Lesson lesson_of(std::string_view bytes) {
  Lesson lesson;
  lesson.config_yaml = taken(bytes);
  std::size_t columns = std::stoul(std::string(taken(bytes)));
  for (; columns > 0; --columns) lesson.table.inputs.features.emplace_back(taken(bytes));
  lesson.table.inputs.values = taken_numbers<float>(bytes);
  lesson.table.waited = taken_numbers<double>(bytes);
  lesson.table.weights = taken_numbers<float>(bytes);
  lesson.table.is_pending = taken_numbers<std::uint8_t>(bytes);
  if (!bytes.empty()) throw std::invalid_argument("behind the table to learn from stands more");
  return lesson;
}

namespace {

constexpr int kLowestPriority = 19;
constexpr std::size_t kMostSaid = 500;

Error failed(std::string_view tried, int error) {
  return {Error::Kind::Transient, fmt::format("cannot {}: {}", tried, std::strerror(error))};
}

std::string read_whole(int descriptor) {
  std::string text;
  if (const int error = read_all(descriptor, text))
    throw std::runtime_error(std::string("cannot read: ") + std::strerror(error));
  return text;
}

std::string read_from_start(int descriptor) {
  ::lseek(descriptor, 0, SEEK_SET);
  return read_whole(descriptor);
}

/// Files in memory, not pipes: neither side waits for the other, however much there is.
struct Streams {
  Fd in{::memfd_create("lesson", MFD_CLOEXEC)};
  Fd out{::memfd_create("model", MFD_CLOEXEC)};
  Fd error{::memfd_create("said", MFD_CLOEXEC)};
};

Result<pid_t> spawn(const TrainingProcess& process, const Streams& streams) {
  pid_t child = 0;
  const int error =
      spawn_program({"hpcbatch-estimate", "train", process.estimator, std::to_string(::getpid())},
                    {.program = process.program,
                     .input = streams.in.get(),
                     .output = streams.out.get(),
                     .error = streams.error.get()},
                    child);
  if (error != 0) return failed("start " + process.program + " to train a model", error);
  return child;
}

/// Its status; nothing where it had to be killed.
std::optional<int> wait_for(pid_t child, std::chrono::milliseconds longest) {
  // glibc 2.36 declares pidfd_open without extern "C".
  const Fd end(static_cast<int>(::syscall(SYS_pidfd_open, child, 0)));
  const auto until = std::chrono::steady_clock::now() + longest;
  bool has_ended = false;
  for (;;) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    pollfd wait{end.get(), POLLIN, 0};
    const int count = left.count() <= 0 ? 0 : ::poll(&wait, 1, static_cast<int>(left.count()));
    if (count < 0 && errno == EINTR) continue;
    has_ended = count > 0;
    break;
  }
  if (!has_ended) ::kill(child, SIGKILL);
  const int status = wait_for_end(child);
  return has_ended ? std::optional(status) : std::nullopt;
}

Error died(const TrainingProcess& process, std::optional<int> status, std::string said) {
  said = said.substr(0, std::min(said.find('\n'), kMostSaid));
  if (!status)
    return {Error::Kind::Transient, fmt::format("training with {} took over {} s and was ended",
                                                process.estimator, process.longest.count())};
  if (WIFSIGNALED(*status))
    return {Error::Kind::Transient,
            fmt::format("training with {} was ended by SIG{}", process.estimator,
                        ::sigabbrev_np(WTERMSIG(*status)))};
  return {Error::Kind::Rejected, said.empty() ? "training ended without a model" : said};
}

}  // namespace

Result<std::string> train_apart(const TrainingProcess& process, const Lesson& lesson) {
  const Streams streams;
  if (!streams.in || !streams.out || !streams.error)
    return failed("make room to train a model", errno);
  if (const int error = write_all(streams.in.get(), to_bytes(lesson)))
    return failed("hand over what a model is to learn", error);
  ::lseek(streams.in.get(), 0, SEEK_SET);
  const auto child = spawn(process, streams);
  if (!child) return child.error();
  const auto status = wait_for(*child, process.longest);
  if (!status || !WIFEXITED(*status) || WEXITSTATUS(*status) != 0)
    return died(process, status, read_from_start(streams.error.get()));
  return read_from_start(streams.out.get());
}

int train_here(const PluginHost& plugins, const std::string& estimator) {
  ::setpriority(PRIO_PROCESS, 0, kLowestPriority);
  const auto fail = [](const std::string& why) {
    std::fprintf(stderr, "%s\n", why.c_str());
    return 1;
  };
  try {
    const Lesson lesson = lesson_of(read_whole(STDIN_FILENO));
    const auto plugin = plugins.estimator(estimator, lesson.config_yaml);
    if (!plugin) return fail(plugin.error().text);
    const auto model = guarded(estimator, [&] { return (*plugin)->train(lesson.table); });
    if (!model) return fail(model.error().text);
    const int error = write_all(STDOUT_FILENO, *model);
    return error == 0 ? 0 : fail(std::string("cannot write the model: ") + std::strerror(error));
  } catch (const std::exception& error) {
    return fail(error.what());
  }
}

}  // namespace hpcbatch::estimate
