#include "pilot/site/relay_listener.hpp"

#include "pilot/base/socket_address.hpp"
#include "wire/node_addresses.hpp"
#include "wire/pilot_file.hpp"
#include "wire/relay.hpp"
#include "wire/whole_file.hpp"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cerrno>
#include <cstring>
#include <map>
#include <optional>
#include <utility>

namespace hpcbatch::pilot {
namespace {

constexpr int kWaitingPilots = 128;

Result<std::pair<Fd, std::uint16_t>> listen_on(const std::string& address, std::uint16_t wanted) {
  for (const std::uint16_t port : {wanted, std::uint16_t{0}}) {
    const auto place = numeric_address(address, port);
    if (!place) return Error{Error::Kind::Rejected, "'" + address + "' is no address in numbers"};
    Fd socket(::socket(place->bytes.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!socket) break;
    const int on = 1;
    ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (place->bytes.ss_family == AF_INET6)
      ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
    if (::bind(socket.get(), place->get(), place->length) == 0 &&
        ::listen(socket.get(), kWaitingPilots) == 0) {
      sockaddr_storage bound{};
      socklen_t length = sizeof bound;
      ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&bound), &length);
      const std::uint16_t taken = place->bytes.ss_family == AF_INET
                                      ? reinterpret_cast<const sockaddr_in&>(bound).sin_port
                                      : reinterpret_cast<const sockaddr_in6&>(bound).sin6_port;
      return std::pair{std::move(socket), ntohs(taken)};
    }
    if (wanted == 0) break;
  }
  return Error{Error::Kind::Transient,
               "cannot listen for pilots on " + address + ": " + std::strerror(errno) +
                   "; name another address of the login node as the site's 'relay_interface'"};
}

std::map<std::string, std::uint16_t> ports_before(const std::string& file) {
  std::map<std::string, std::uint16_t> ports;
  const auto text = wire::read_file(file, wire::Readers::OwnerOnly);
  if (!text) return ports;
  const auto addresses = wire::parse_relay_file(*text, file);
  if (!addresses) return ports;
  for (const wire::Address& address : *addresses) ports[address.place] = address.port;
  return ports;
}

}  // namespace

RelayListener::RelayListener(std::string file, std::vector<Fd> listeners, std::string text)
    : file_(std::move(file)), listeners_(std::move(listeners)), text_(std::move(text)) {}

Result<RelayListener> RelayListener::open(const std::string& workspace,
                                          const std::string& address) {
  const std::string file = wire::relay_file(workspace);
  const auto before = ports_before(file);
  const std::vector<std::string> wanted =
      address.empty() ? wire::addresses_for_others(wire::own_addresses()) : std::vector{address};
  if (wanted.empty())
    return Error{
        Error::Kind::Rejected,
        "this node has no address that others reach; name one as the site's 'relay_interface'"};
  std::vector<Fd> listeners;
  std::string text;
  std::optional<Error> refused;
  for (const std::string& one : wanted) {
    const auto port = before.find(one);
    auto listener = listen_on(one, port == before.end() ? std::uint16_t{0} : port->second);
    if (!listener) {
      refused = listener.error();
      continue;
    }
    listeners.push_back(std::move(listener->first));
    text +=
        "address " + to_text(wire::Address{wire::Address::Kind::Tcp, one, listener->second}) + "\n";
  }
  if (listeners.empty()) return *refused;
  if (auto written = wire::replace_file(file, text, wire::Readers::OwnerOnly); !written)
    return written.error();
  return RelayListener(file, std::move(listeners), std::move(text));
}

void RelayListener::keep_file() const {
  const auto now = wire::read_file(file_, wire::Readers::OwnerOnly);
  if (!now || *now != text_) (void)wire::replace_file(file_, text_, wire::Readers::OwnerOnly);
}

RelayListener::~RelayListener() {
  if (listeners_.empty()) return;
  const auto now = wire::read_file(file_, wire::Readers::OwnerOnly);
  if (now && *now == text_) ::unlink(file_.c_str());
}

}  // namespace hpcbatch::pilot
