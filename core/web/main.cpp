// The program `hpcbatch-web`: a page of this user's engine, for browsers of this machine.
#include "cli/client/engine_client.hpp"
#include "cli/process/process.hpp"
#include "documents/state_paths.hpp"
#include "posix/files.hpp"
#include "web/page_server.hpp"

#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>

#include <fcntl.h>
#include <pwd.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

namespace {

using namespace hpcbatch;
namespace json = boost::json;

std::string name_of_user() {
  const passwd* entry = ::getpwuid(::geteuid());
  return entry ? entry->pw_name : std::to_string(::geteuid());
}

std::string name_of_host() {
  char name[256]{};
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "HOST";
}

/// From another machine a browser comes by ssh.
std::string tunnel(std::uint16_t port) {
  const std::string number = std::to_string(port);
  return "ssh -L " + number + ":127.0.0.1:" + number + " " + name_of_user() + "@" + name_of_host();
}

void tell(const std::string& link, std::uint16_t port, bool as_json) {
  if (as_json) {
    const json::object said{{"link", link}, {"port", port}, {"tunnel", tunnel(port)}};
    std::printf("%s\n", json::serialize(said).c_str());
  } else {
    std::printf("%s\n", link.c_str());
    if (std::getenv("SSH_CONNECTION"))
      std::printf("From your own machine, first run: %s\n", tunnel(port).c_str());
    std::printf("The link works once. Ctrl-C ends the page.\n");
  }
  std::fflush(stdout);
}

/// Goes on when its terminal is closed; the caller's shell has its prompt back.
void leave_terminal() {
  const pid_t child = ::fork();
  if (child < 0)
    throw std::runtime_error(std::string("cannot leave the terminal: fork: ") +
                             std::strerror(errno) + "; the page has ended");
  if (child != 0) std::_Exit(kExitDone);
  ::setsid();
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (!std::freopen("/dev/null", descriptor == STDIN_FILENO ? "r" : "w",
                      descriptor == STDIN_FILENO    ? stdin
                      : descriptor == STDOUT_FILENO ? stdout
                                                    : stderr))
      return;
}

/// Throws CommandError where others could know it, or guess it.
std::string token_in(const std::string& file) {
  if (file.empty()) return {};
  constexpr std::size_t kShortest = 16;
  const auto fail = [&](const std::string& why) -> CommandError {
    return {kExitUsage, "cannot take the token for metrics from " + file + ": " + why};
  };
  auto read = read_regular(AT_FDCWD, file, 4096, Links::Followed);
  if (!read) throw fail(why_not_regular(read.error));
  if (read.facts.st_uid != ::geteuid() && read.facts.st_uid != 0)
    throw fail("it belongs to another user");
  if ((read.facts.st_mode & (S_IRWXG | S_IRWXO)) != 0)
    throw fail("other users may use it; run chmod 600 " + file);
  std::string token = std::move(read.text);
  while (!token.empty() && (token.back() == '\n' || token.back() == '\r')) token.pop_back();
  // What a header may hold as a token: RFC 6750, 2.1.
  if (token.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
                              "-._~+/=") != token.npos)
    throw fail(
        "it must hold one line of letters, digits and -._~+/=, e.g. of openssl rand -hex 32");
  if (token.size() < kShortest) throw fail("a token has at least 16 characters");
  return token;
}

int serve(const json::object& asked) {
  const auto places = find_places(own_environment());
  if (!places) throw CommandError(kExitUsage, places.error().text);
  std::string metrics_token = token_in(std::string(asked.at("metrics_token").as_string()));
  Interrupt interrupt;  // before anybody can know that we are there
  const std::string socket(asked.at("socket").as_string());
  const bool is_for_proxy = !socket.empty();
  const auto listening = is_for_proxy
                             ? web::listen_on_socket(socket)
                             : web::listen_on_loopback(asked.at("port").to_number<std::uint16_t>());
  const std::string token = web::secret();
  if (!is_for_proxy)
    tell("http://127.0.0.1:" + std::to_string(listening.port) + "/?token=" + token, listening.port,
         asked.at("json").as_bool());
  if (asked.at("stay").as_bool()) leave_terminal();
  web::Gate gate(is_for_proxy ? web::Gate::Door::Socket : web::Gate::Door::Loopback,
                 !asked.at("view").as_bool(), token, web::secret(), std::move(metrics_token));
  const auto engine = sockets_of(*places);
  {
    web::Watcher watcher(engine, gate.may_change(), interrupt.descriptor());
    web::serve_pages(listening.descriptor, gate, watcher, engine, interrupt.descriptor());
  }
  if (is_for_proxy) ::unlink(socket.c_str());
  interrupt.take();  // it would end us once it is let through again
  return kExitDone;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc != 2)
      throw std::invalid_argument("this program is a part of hpcbatch: say hpcbatch web");
    return serve(json::parse(argv[1]).as_object());
  } catch (const CommandError& error) {
    std::fprintf(stderr, "hpcbatch: %s\n", error.what());
    return error.exit_code();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "hpcbatch: %s\n", error.what());
    return kExitUsage;
  }
}
