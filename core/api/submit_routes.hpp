// A submit on its way to the engine: tools are looked up, inputs looked at, commands rendered.
#pragma once

#include "api/make/make_submission.hpp"
#include "api/read/read_request.hpp"
#include "api/routes.hpp"
#include "loop/lane.hpp"
#include "runtime/runtime.hpp"
#include "tools/tool_registry.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <variant>
#include <vector>

namespace hpcbatch {

class SubmitRoutes {
 public:
  /// `umask`: for tasks whose client names none; `notify`: for what people submit and say nobody.
  SubmitRoutes(Runtime& runtime, ToolRegistry& tools, ToolCalls& calls, std::uint32_t umask,
               std::vector<std::string> notify)
      : runtime_(runtime),
        tools_(tools),
        calls_(calls),
        umask_(umask),
        notify_(std::move(notify)) {}
  void add_to(Routes& routes);

 private:
  using Prepared = std::function<void(Submission submission)>;
  using Answer = std::function<void(const std::variant<std::vector<ArrayId>, SubmitRefusal>& said,
                                    const std::vector<std::string>& advice)>;
  using Refuse = std::function<void(SubmitRefusal refusal)>;
  void post(std::string body, const ReplyPtr& reply);
  void post_several(const HttpRequest& request, const ReplyPtr& reply);
  void try_out(std::string body, const ReplyPtr& reply);
  void ids_of_key(const HttpRequest& request, const ReplyPtr& reply);
  /// Turns tasks as asked for into what the engine takes; `answer` on the loop.
  void submit(SubmitRequest request, std::uint64_t content, Answer answer);
  /// Looks up what runs before used, where that is wanted, and makes it; one of both is called, on
  /// the loop.
  void prepare(SubmitRequest request, std::uint64_t content, Prepared prepared, Refuse refuse);
  /// Looks at files, finds tools and renders.
  void make(SubmitRequest request, std::uint64_t content, Prepared prepared, Refuse refuse);
  struct Made;
  /// Finds what is rendered elsewhere, and goes on when that is there.
  void render(const std::shared_ptr<Made>& made);
  void put_together(Made& made, const Renderings& rendered);

  Runtime& runtime_;
  ToolRegistry& tools_;
  ToolCalls& calls_;
  std::uint32_t umask_;
  std::vector<std::string> notify_;
  Lane files_;  ///< looks at input files, which may lie on file systems that hang
};

}  // namespace hpcbatch
