#include "program_login.hpp"

#include "../common/login.hpp"
#include "../common/process.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string_view>

#include <fcntl.h>
#include <sodium.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace hpcbatch {
namespace {

namespace words = login_errors;

/// What follows `before`, up to one of `ends`.
std::string after(const std::string& text, std::string_view before, std::string_view ends) {
  const auto at = text.find(before);
  if (at == std::string::npos) return {};
  const auto from = at + before.size();
  return text.substr(from, text.find_first_of(ends, from) - from);
}

std::string fingerprint_in(const std::string& text) {
  const std::string hash = after(text, "SHA256:", " \r\n.");
  return hash.empty() ? "" : "SHA256:" + hash;
}

/// What follows the line in which `at` is.
std::string after_line(const std::string& text, std::size_t at) {
  const auto end = text.find('\n', at);
  const auto next = end == std::string::npos ? end : text.find_first_not_of("\r\n", end);
  return next == std::string::npos ? "" : text.substr(next);
}

std::string last_line(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  return text.substr(text.rfind('\n') + 1);
}

/// Where a host on the way is what failed.
std::optional<Error> jump_error(const std::string& target, const std::string& said) {
  const auto says = [&](const char* text) { return said.find(text) != std::string::npos; };
  if (says("stdio forwarding failed"))
    return words::not_through_jump(target, after(said, "open failed: ", "\r\n"));
  // A command on the way (ProxyCommand, ProxyJump) has no peer with an address, and what it says is
  // not heard where the connection is kept.
  if (says("UNKNOWN port 65535")) return words::not_through_jump(target, {});
  return std::nullopt;
}

using Clock = std::chrono::steady_clock;

// ssh's own failures; a command that ends with it has said so before, in its frame.
constexpr int kFailureOfSsh = 255;
constexpr std::size_t kMostSaid = 64u << 10;
constexpr std::chrono::milliseconds kPatience{300};
constexpr std::chrono::seconds kGoodbye{3};

Error system_error(const std::string& what) {
  return {Error::Kind::Transient, what + ": " + std::strerror(errno)};
}

struct Ends {
  Fd ours;
  Fd theirs;
};

/// Unlike a pipe it can be written without a signal where nobody reads.
Result<Ends> make_socket_pair() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return system_error("cannot make a socket pair");
  return Ends{Fd(ends[0]), Fd(ends[1])};
}

/// One ssh that carries an exchange.
class Carrier {
 public:
  Carrier(Exchange& exchange, pid_t process, Fd input, Fd output, Fd error)
      : exchange_(exchange),
        child_(process),
        input_(std::move(input)),
        output_(std::move(output)),
        error_(std::move(error)) {}
  Carrier(const Carrier&) = delete;
  Carrier& operator=(const Carrier&) = delete;
  ~Carrier() {
    input_.reset();
    // What the command left running may hold the far ends open; it is not waited for.
    const auto patience = Clock::now() + kPatience;
    while (!timed_out_ && !child_.has_ended() && Clock::now() < patience) {
      drain(Stream::Output, output_);
      drain(Stream::Error, error_);
      wait(patience);
    }
    if (!child_.has_ended()) child_.kill(Child::Whom::ItselfAlone);
  }

  Ending carry(Deadline deadline) {
    for (;;) {
      const bool ended = child_.has_ended();
      feed();
      drain(Stream::Output, output_);
      drain(Stream::Error, error_);
      feed();
      if (exchange_.is_over()) return Ending::Over;
      if (ended) return Ending::Closed;
      if (Clock::now() >= deadline) {
        timed_out_ = true;
        return Ending::TimedOut;
      }
      wait(deadline);
    }
  }
  int exit_code() const { return child_.exit_code(); }
  const std::string& said() const { return said_; }
  bool has_output() const { return has_output_; }

 private:
  void feed() {
    while (input_.get() >= 0) {
      const auto bytes = exchange_.to_send();
      is_full_ = false;
      if (bytes.empty()) {
        if (exchange_.all_sent()) input_.reset();
        return;
      }
      const ssize_t n =
          ::send(input_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (n >= 0) {
        exchange_.sent(static_cast<std::size_t>(n));
      } else if (errno == EAGAIN) {
        is_full_ = true;
        return;
      } else if (errno != EINTR) {
        input_.reset();
      }
    }
  }

  void drain(Stream stream, Fd& from) {
    std::array<char, 65536> buffer;
    while (from.get() >= 0) {
      const ssize_t n = ::read(from.get(), buffer.data(), buffer.size());
      if (n > 0) {
        const std::string_view bytes(buffer.data(), static_cast<std::size_t>(n));
        if (stream == Stream::Output) has_output_ = true;
        if (stream == Stream::Error && said_.size() < kMostSaid) said_.append(bytes);
        exchange_.received(stream, bytes);
        if (exchange_.is_over()) return;
      } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
        from.reset();
      } else if (errno == EAGAIN) {
        return;
      }
    }
  }

  void wait(Deadline until) {
    std::array<pollfd, 3> waits{{{output_.get(), POLLIN, 0},
                                 {error_.get(), POLLIN, 0},
                                 {is_full_ ? input_.get() : -1, POLLOUT, 0}}};
    child_.wait(until, waits);
  }

  Exchange& exchange_;
  Child child_;
  Fd input_;
  Fd output_;
  Fd error_;
  std::string said_;
  bool is_full_{false};
  bool has_output_{false};
  bool timed_out_{false};
};

bool send_all(int to, std::string_view bytes, Deadline deadline) {
  while (!bytes.empty()) {
    const ssize_t n = ::send(to, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(n));
    } else if (errno == EAGAIN && Clock::now() < deadline) {
      pollfd wait{to, POLLOUT, 0};
      ::poll(&wait, 1, milliseconds_until(deadline));
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

enum class Found : std::uint8_t { Yes, Ended, TooLate };

/// Takes what comes up to the end of `line`, and not a byte more.
Found skip_through(int from, const std::string& line, Deadline deadline) {
  std::string seen;
  std::array<char, 4096> buffer;
  while (Clock::now() < deadline) {
    const ssize_t n = ::recv(from, buffer.data(), buffer.size(), MSG_PEEK | MSG_DONTWAIT);
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) return Found::Ended;
    if (n < 0) {
      pollfd wait{from, POLLIN, 0};
      ::poll(&wait, 1, milliseconds_until(deadline));
      continue;
    }
    const std::size_t before = seen.size();
    seen.append(buffer.data(), static_cast<std::size_t>(n));
    const auto found = seen.find(line);
    const std::size_t taken =
        found == std::string::npos ? static_cast<std::size_t>(n) : found + line.size() - before;
    if (::recv(from, buffer.data(), taken, MSG_DONTWAIT) != static_cast<ssize_t>(taken))
      return Found::Ended;
    if (found != std::string::npos) return Found::Yes;
    seen.erase(0, seen.size() - std::min(seen.size(), line.size() - 1));
  }
  return Found::TooLate;
}

std::string text_of(int file) {
  std::string text(kMostSaid, '\0');
  const ssize_t n = ::pread(file, text.data(), text.size(), 0);
  text.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
  return text;
}

// An address of a socket has 108 bytes, of which ssh takes 17 for the name under which it is made.
constexpr std::size_t kLongestPath = 90;

std::string sha256_of(const std::string& text) {
  std::array<unsigned char, crypto_hash_sha256_BYTES> digest{};
  ::crypto_hash_sha256(digest.data(), reinterpret_cast<const unsigned char*>(text.data()),
                       text.size());
  std::string digits(2 * digest.size() + 1, '\0');
  ::sodium_bin2hex(digits.data(), digits.size(), digest.data(), digest.size());
  return digits;
}

}  // namespace

bool line_was_lost(const std::string& said) {
  static constexpr std::array kLost{"Connection to ", "closed by remote host", "Broken pipe",
                                    "reset by peer", "Timeout, server"};
  const std::string last = last_line(said);
  return std::any_of(kLost.begin(), kLost.end(),
                     [&](const char* text) { return last.find(text) != std::string::npos; });
}

Error program_error(const WhoAndHow& who, const std::string& said) {
  const auto says = [&](const char* text) { return said.find(text) != std::string::npos; };
  const std::string& target = who.target;
  if (says("REVOKED HOST KEY"))
    return words::revoked_host_key(target, fingerprint_in(said), after(said, "key file ", ":"));
  if (says("HOST IDENTIFICATION HAS CHANGED")) {
    // The line before names a file too, to which the new key is to be added.
    const auto offending = said.find("Offending");
    std::string file =
        after(said.substr(offending == std::string::npos ? 0 : offending), "key in ", "\r\n");
    return words::changed_host_key(target, fingerprint_in(said), file.substr(0, file.rfind(':')));
  }
  if (says("host key is known for") || says("Host key verification failed"))
    return words::unknown_host_key(target, fingerprint_in(said),
                                   who.by_hand + " (it shows the fingerprint and asks)");
  if (says("UNPROTECTED PRIVATE KEY FILE")) return words::key_too_open(after(said, " for '", "'"));
  // Then ssh tries a login of its own, and what follows is about that.
  constexpr std::string_view kFull = "Session open refused by peer";
  if (const auto full = said.find(kFull); full != std::string::npos) {
    const std::string rest = after_line(said, full);
    return rest.empty()
               ? words::channel_refused(target, std::string(kFull))
               : words::shared_is_full(target, std::string(kFull), program_error(who, rest));
  }
  if (auto jump = jump_error(target, said)) return *jump;
  if (says("open failed")) return words::channel_refused(target, last_line(said));
  if (says("Permission denied (") || says("Too many authentication failures")) {
    const std::string offered = after(said, "Permission denied (", ")");
    const std::string remedy =
        "look at 'user' and 'identity', or open the connection at a terminal: " + who.open_master;
    const bool asks = offered.find("keyboard-interactive") != std::string::npos ||
                      offered.find("password") != std::string::npos;
    if (asks) return words::needs_person(target, offered, remedy);
    return words::not_let_in(target, "the keys and agent that ssh knows of", offered, remedy);
  }
  if (says("Could not resolve hostname")) return words::name_not_known(target, {});
  if (says("Connection refused")) return words::refused(target);
  if (says("timed out")) return words::timed_out(target, "while connecting");
  if (says("No route to host") || says("Network is unreachable"))
    return words::no_route(target, {});
  if (says("Connection closed by") || says("Connection reset by") ||
      says("kex_exchange_identification"))
    return words::closed_by_server(target, last_line(said));
  Error error = words::other(target, last_line(said));
  static constexpr std::array kOursToMend{"Bad configuration option", "bad configuration option",
                                          "Bad owner or permissions", "Can't open user config",
                                          "unknown option",           "command-line line"};
  if (std::any_of(kOursToMend.begin(), kOursToMend.end(), says)) error.kind = Error::Kind::Rejected;
  return error;
}

ProgramLogin::~ProgramLogin() {
  reap();
  // They end when their stream is closed, which takes a round trip.
  const auto patience = Clock::now() + kGoodbye;
  for (const pid_t process : talking_) {
    Child child(process);
    child.wait(patience, {});
    if (!child.has_ended()) child.kill(Child::Whom::ItselfAlone);
  }
}

CommandLine ProgramLogin::command(const std::string& text) const {
  CommandLine command{.argv = settings_.argv, .environment = {}, .input = {}};
  command.argv.push_back(text);
  return command;
}

/// Where nobody has chosen: chacha20-poly1305, ssh's own first choice, costs both ends of a transfer
/// twice as much as AES where processors know that.
void ProgramLogin::choose_cipher(Deadline deadline) {
  if (has_chosen_ || is_connected()) return;
  has_chosen_ = true;
#ifdef __x86_64__
  if (!__builtin_cpu_supports("aes")) return;
#endif
  CommandLine asked{.argv = settings_.argv, .environment = {}, .input = {}};
  asked.argv.insert(asked.argv.begin() + 1, "-G");
  const auto said = run_process(asked, settings_.environment,
                                std::min<Deadline>(deadline, Clock::now() + kGoodbye));
  constexpr std::string_view kOwnChoice =
      "\nciphers chacha20-poly1305@openssh.com,aes128-ctr,aes192-ctr,aes256-ctr,"
      "aes128-gcm@openssh.com,aes256-gcm@openssh.com\n";
  if (!said || said->standard_output.find(kOwnChoice) == std::string::npos) return;
  constexpr const char* kAesFirst =
      "Ciphers=aes128-gcm@openssh.com,aes256-gcm@openssh.com,chacha20-poly1305@openssh.com,"
      "aes128-ctr,aes192-ctr,aes256-ctr";
  settings_.argv.insert(settings_.argv.end() - 1, {"-o", kAesFirst});
}

std::optional<Error> ProgramLogin::obstacle() {
  // Who tidies up /tmp takes an empty directory too, and without it every call is a new login.
  try {
    check_control_directory(settings_.control_directory);
  } catch (const std::runtime_error& e) {
    return Error{Error::Kind::Transient, e.what()};
  }
  // A person has opened the connection.
  if (needs_person_ && ::access(settings_.control_socket.c_str(), F_OK) == 0) {
    needs_person_ = false;
    return std::nullopt;
  }
  return back_off_.pause(Clock::now());
}

Error ProgramLogin::failed(const std::string& standard_error) {
  Error error = program_error(settings_.who, standard_error);
  needs_person_ = error.kind == Error::Kind::Rejected;
  back_off_.failed(error, Clock::now());
  return error;
}

bool ProgramLogin::is_connected() const {
  return ::access(settings_.control_socket.c_str(), F_OK) == 0;
}

std::string ProgramLogin::mark_of_ours() const {
  return settings_.control_socket + ".ours";
}

/// The mark tells it from one that a person has opened, to whoever ends it, perhaps a later engine.
void ProgramLogin::note_ours(bool was_connected) {
  if (was_connected) return;
  if (is_connected()) {
    const Fd made(::open(mark_of_ours().c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  } else {
    ::unlink(mark_of_ours().c_str());
  }
}

void ProgramLogin::end_connection(Deadline deadline) {
  reap();
  if (!is_connected() || ::access(mark_of_ours().c_str(), F_OK) != 0) return;
  CommandLine command{.argv = settings_.argv, .environment = {}, .input = {}};
  command.argv.insert(command.argv.begin() + 1, {"-O", "exit"});
  (void)run_process(command, settings_.environment, deadline);
  if (!is_connected()) ::unlink(mark_of_ours().c_str());
}

void ProgramLogin::reap() {
  std::erase_if(talking_, [](pid_t process) { return ::waitpid(process, nullptr, WNOHANG) != 0; });
}

Result<Ending> ProgramLogin::exec(const std::string& text, Exchange& exchange, Deadline deadline) {
  reap();
  if (auto obstacle = this->obstacle()) return *obstacle;
  choose_cipher(deadline);
  const bool was_connected = is_connected();
  auto input = make_socket_pair();
  auto output = make_pipe();
  auto error = make_pipe();
  if (!input || !output || !error) return system_error("cannot make pipes for ssh");
  const auto process = start_process(command(text), settings_.environment,
                                     {input->theirs.get(), output->write.get(), error->write.get()},
                                     AtOurDeath::Dies);
  if (!process) return process.error();
  input->theirs.reset();
  output->write.reset();
  error->write.reset();
  Carrier carrier(exchange, *process, std::move(input->ours), std::move(output->read),
                  std::move(error->read));
  const Ending ending = carrier.carry(deadline);
  if (ending == Ending::Closed && carrier.exit_code() == kFailureOfSsh) {
    // The command begins with a word on its output: without one nothing has run.
    if (carrier.has_output()) return login_errors::lost(name(), "ssh ended in the middle");
    Error why = failed(carrier.said());
    // Files that the far shell starts with may have said anything; ssh says its own last.
    if (line_was_lost(carrier.said())) why.kind = Error::Kind::Transient;
    return why;
  }
  note_ours(was_connected);
  if (ending != Ending::TimedOut) back_off_.succeeded();
  return ending;
}

Result<int> ProgramLogin::open(const std::string& text, const std::string& input,
                               const std::string& line, Deadline deadline) {
  reap();
  if (auto obstacle = this->obstacle()) return *obstacle;
  choose_cipher(deadline);
  const bool was_connected = is_connected();
  auto ends = make_socket_pair();
  if (!ends) return ends.error();
  const Fd said(::memfd_create("said", MFD_CLOEXEC));
  if (said.get() < 0) return system_error("cannot keep what ssh says");
  const auto process =
      start_process(command(text), settings_.environment,
                    {ends->theirs.get(), ends->theirs.get(), said.get()}, AtOurDeath::Lives);
  if (!process) return process.error();
  ends->theirs.reset();
  const Found found = send_all(ends->ours.get(), input, deadline)
                          ? skip_through(ends->ours.get(), line, deadline)
                          : Found::Ended;
  note_ours(was_connected);
  if (found == Found::Yes) {
    back_off_.succeeded();
    talking_.push_back(*process);
    return ends->ours.release();
  }
  ends->ours.reset();
  Child child(*process);
  if (found == Found::Ended) child.wait(Clock::now() + kPatience, {});
  if (!child.has_ended()) child.kill(Child::Whom::ItselfAlone);
  if (found == Found::TooLate)
    return Error{Error::Kind::Transient,
                 "cannot open a stream to " + name() + ": it did not answer before the deadline"};
  if (child.exit_code() == kFailureOfSsh) return failed(text_of(said.get()));
  return Error{Error::Kind::Transient, "cannot open a stream to " + name() +
                                           ": the login shell there did not run it; it said: " +
                                           text_of(said.get()).substr(0, 300)};
}

std::string default_control_directory() {
  const char* runtime = std::getenv("XDG_RUNTIME_DIR");
  if (runtime != nullptr && *runtime == '/') return std::string(runtime) + "/hpcbatch-ssh";
  return "/tmp/hpcbatch-ssh-" + std::to_string(::geteuid());
}

void check_control_directory(const std::string& directory) {
  // ssh would expand a per cent sign.
  if (directory.find_first_of("%$ \"'\\") != std::string::npos)
    throw std::runtime_error("the control directory " + directory + " must have a plain name");
  struct stat facts {};
  if (::mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST)
    throw std::runtime_error("cannot make " + directory + ": " + std::strerror(errno));
  if (::lstat(directory.c_str(), &facts) != 0)
    throw std::runtime_error("cannot look at " + directory + ": " + std::strerror(errno));
  if (!S_ISDIR(facts.st_mode) || facts.st_uid != ::geteuid() || (facts.st_mode & 077) != 0) {
    throw std::runtime_error(directory +
                             " must be a directory of yours that nobody else may enter; run: "
                             "chmod 700 " +
                             directory + ", or set control_dir");
  }
}

std::string control_socket(const std::string& directory, const std::string& identity) {
  std::string path = directory + "/" + sha256_of(identity).substr(0, 16);
  if (path.size() > kLongestPath)
    throw std::runtime_error("the path of the control socket " + path +
                             " is too long; set control_dir to a shorter one");
  return path;
}

}  // namespace hpcbatch
