// Who may see the page and ask through it: decided from a request's head alone.  Pure.
#pragma once

#include <string>
#include <string_view>

namespace hpcbatch::web {

/// What counts of a request's head; each empty where the request has no such line.
struct Asked {
  std::string method;
  std::string target;  ///< path and query, as it was sent
  std::string host;
  std::string origin;
  std::string cookies;
  std::string
      mark;  ///< of `X-Hpcbatch`: a page of another origin cannot send it unasked (Fetch, 3.2)
  std::string authorization{};
};

struct Decision {
  enum class Kind {
    File,    ///< of the page; `text` is its name
    Live,    ///< the stream of what changes
    Engine,  ///< the engine is asked `text`
    Admit,   ///< to `/`, with `text` as the cookie
    Refuse,  ///< with `status`, and `text` as the sentence
  };
  Kind kind{Kind::Refuse};
  int status{0};
  std::string text;
};

/// One page server's secrets and rules.  One thread at a time.
class Gate {
 public:
  enum class Door {
    Loopback,  ///< any process of this machine can connect: a cookie is wanted
    Socket,    ///< a Unix socket of this user's, behind a proxy that knows him
  };
  /// `token` lets in once; `session` is what the cookie then holds: letters and digits both.
  /// `metrics_token` lets a monitoring system see `/metrics`, each time anew; empty: none does.
  Gate(Door door, bool may_change, std::string token, std::string session,
       std::string metrics_token = {})
      : door_(door),
        may_change_(may_change),
        token_(std::move(token)),
        session_(std::move(session)),
        metrics_token_(std::move(metrics_token)) {}

  Decision decide(const Asked& asked);
  bool may_change() const { return may_change_; }

 private:
  Decision admit(std::string_view token);
  bool knows(std::string_view cookies) const;

  Door door_;
  bool may_change_;
  std::string token_;  ///< empty once it was used
  std::string session_;
  std::string metrics_token_;
};

/// Letters and digits with 256 bits of chance.
std::string secret();

}  // namespace hpcbatch::web
