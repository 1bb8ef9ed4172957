#include "api/readers.hpp"

#include "api/query.hpp"
#include "api/read/bad_request.hpp"

#include <list>
#include <memory>
#include <utility>

namespace hpcbatch {
namespace {

struct OpenRequests {
  HearReader heard;
  std::list<ReplyPtr> replies;
};

}  // namespace

void add_readers(Routes& routes, HearReader heard) {
  const auto open = std::make_shared<OpenRequests>(OpenRequests{std::move(heard), {}});
  routes.add("GET", "readers", [open](const HttpRequest& request, const ReplyPtr& reply) {
    const std::string reader = text_in(request, "reader");
    if (reader.empty()) throw BadRequest("'reader' is missing: the one that submits have named");
    const auto at = open->replies.insert(open->replies.end(), reply);
    open->heard(reader, true);
    // A reply that is dropped while the engine ends hangs up, and is no news of the reader then.
    reply->on_gone([weak = std::weak_ptr(open), at, reader] {
      const auto still_open = weak.lock();
      if (!still_open) return;
      const ReplyPtr gone = std::move(*at);
      still_open->replies.erase(at);
      still_open->heard(reader, false);
    });
  });
}

}  // namespace hpcbatch
