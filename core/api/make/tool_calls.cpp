#include "api/make/tool_calls.hpp"

#include <exception>
#include <utility>

namespace hpcbatch {

void ToolCalls::render(std::vector<RenderingAsked> asked,
                       std::function<void(const Renderings&)> then) {
  if (asked.empty()) return then({});
  lane_.run([&loop = loop_, asked = std::move(asked), then = std::move(then)]() mutable {
    auto made = std::make_shared<Renderings>();
    for (const RenderingAsked& one : asked) {
      auto task = one.preparation();
      const bool failed = !task;
      made->emplace(one.place, Rendering{one.preparation.directory, std::move(task)});
      if (failed) break;
    }
    asio::post(loop, [made, then = std::move(then)] { then(*made); });
  });
}

void ToolCalls::check(std::shared_ptr<const BlockingTool> tool,
                      std::function<void(const Result<void>&)> then) {
  lane_.run([&loop = loop_, tool = std::move(tool), then = std::move(then)]() mutable {
    Result<void> found;
    try {
      (void)tool->describe();
    } catch (const std::exception& error) {
      found = Error{Error::Kind::Rejected, error.what()};
    }
    asio::post(loop, [found, then = std::move(then)] { then(found); });
  });
}

}  // namespace hpcbatch
