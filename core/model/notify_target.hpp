// Whom to tell when a submission has ended, as people write it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

namespace hpcbatch {

struct NotifyTarget {
  enum class Kind : std::uint8_t { Nobody, Mail, Program, Webhook };
  Kind kind{Kind::Nobody};
  std::string to;           ///< an address, the absolute path of a program, a URL
  bool only_failed{false};  ///< only where something failed
};

/// `mail:me@example.org`, `mail:` (the user's own mailbox on this machine), `command:/path/of/program`, `https://example.org/hook`, each with `failed:`
/// before it or without; `none`.  `http://` goes to this machine alone.  Else the sentence why not.
std::variant<NotifyTarget, std::string> parse_notify_target(std::string_view text);

/// For logs: of a URL, which may hold a secret, the host alone.
std::string show_target(const NotifyTarget& target);

}  // namespace hpcbatch
