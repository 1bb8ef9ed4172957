#include "api/api.hpp"

#include "api/answers/metrics_text.hpp"
#include "api/metrics.hpp"
#include "api/read/json_values.hpp"

#include <utility>

namespace hpcbatch {
namespace {

/// Whoever looks while the store is in trouble is told so with the answer, which may be old.
class ToldOfTrouble final : public HttpReply {
 public:
  ToldOfTrouble(ReplyPtr reply, std::string trouble)
      : reply_(std::move(reply)), trouble_(std::move(trouble)) {}
  void answer(int status, const boost::json::value& body) override {
    boost::json::value told = body;
    if (status == 200 && told.is_object()) told.get_object()["trouble"] = trouble_;
    reply_->answer(status, told);
  }
  void text(std::string_view type, const std::string& body) override { reply_->text(type, body); }
  void line(const boost::json::value& object) override { reply_->line(object); }
  void finish() override { reply_->finish(); }
  std::size_t unsent() const override { return reply_->unsent(); }
  void when_sent(std::function<void()> then) override { reply_->when_sent(std::move(then)); }
  void on_gone(std::function<void()> then) override { reply_->on_gone(std::move(then)); }

 private:
  ReplyPtr reply_;
  std::string trouble_;
};

}  // namespace

Api::Api(Runtime& runtime, ToolRegistry& tools, EngineFacts facts, StayOrGo stay_or_go)
    : runtime_(runtime),
      facts_(std::move(facts)),
      submissions_(runtime),
      tasks_(runtime, submissions_),
      runs_(runtime),
      logs_(runtime, tasks_),
      tool_calls_(runtime.loop()),
      submits_(runtime, tools, tool_calls_, facts_.umask, facts_.notify),
      waits_(runtime),
      changes_(runtime),
      sites_(runtime),
      listings_(runtime, tools, tool_calls_),
      reports_(runtime),
      engine_(runtime, facts_, std::move(stay_or_go)) {
  submissions_.add_to(routes_);
  tasks_.add_to(routes_);
  runs_.add_to(routes_);
  logs_.add_to(routes_);
  submits_.add_to(routes_);
  waits_.add_to(routes_);
  // Its `tasks/*` is for words that nobody before has taken.
  changes_.add_to(routes_);
  sites_.add_to(routes_);
  add_queue_waits(routes_, runtime_);
  add_keeps(routes_, runtime_);
  add_readers(routes_, [this](const std::string& reader, bool is_there) {
    runtime_.requests().reader_heard(reader, is_there);
  });
  listings_.add_to(routes_);
  reports_.add_to(routes_);
  engine_.add_to(routes_);
  routes_.add("GET", "metrics", [this](HttpRequest&, const ReplyPtr& reply) {
    reply->text(kMetricsType, metrics_text(runtime_, facts_, requests_));
  });
}

void Api::handle(HttpRequest request, ReplyPtr reply) {
  ++requests_;
  try {
    if (const auto trouble = runtime_.store_trouble(); trouble && request.method == "GET")
      reply = std::make_shared<ToldOfTrouble>(std::move(reply), *trouble);
    routes_.handle(request, reply);
  } catch (const BadRequest& e) {
    reply->error(400, e.what());
  }
}

}  // namespace hpcbatch
