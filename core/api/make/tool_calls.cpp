#include "api/make/tool_calls.hpp"

#include "tools/input_facts.hpp"

#include <fmt/format.h>

#include <exception>
#include <utility>

namespace hpcbatch {
namespace {

using namespace std::chrono_literals;

/// Before whoever submits gives up and never hears what became of it.
constexpr std::chrono::minutes kLongest{5};

}  // namespace

struct ToolCalls::Rendered {
  std::vector<RenderingAsked> asked;
  std::function<void(const Renderings&)> then;
  std::chrono::steady_clock::time_point until;
  Renderings made{};
  std::size_t next{0};
};

void ToolCalls::render(std::vector<RenderingAsked> asked,
                       std::function<void(const Renderings&)> then) {
  if (asked.empty()) return then({});
  render_next(std::make_shared<Rendered>(
      Rendered{std::move(asked), std::move(then), std::chrono::steady_clock::now() + kLongest}));
}

void ToolCalls::render_next(const std::shared_ptr<Rendered>& all) {
  // One at a time: others have their turns in between, and an engine that ends waits for one alone.
  lane_.run([this, &loop = loop_, all] {
    const RenderingAsked& one = all->asked[all->next];
    auto task = std::chrono::steady_clock::now() < all->until ? one.preparation() : too_slow(*all);
    const bool is_last = !task || ++all->next == all->asked.size();
    all->made.emplace(one.place, Rendering{one.preparation.directory, std::move(task)});
    asio::post(loop, [this, all, is_last] {
      if (is_last)
        all->then(all->made);
      else
        render_next(all);
    });
  });
}

Result<RenderedTask> ToolCalls::too_slow(const Rendered& all) {
  return Error{Error::Kind::Rejected,
               fmt::format("the plugin of tool {} takes too long: of {} tasks {} were made in {} "
                           "minutes; submit fewer at once",
                           all.asked[all.next].preparation.call.tool, all.asked.size(), all.next,
                           kLongest.count())};
}

void ToolCalls::check(std::shared_ptr<const ToolFile> file,
                      std::shared_ptr<const BlockingTool> tool,
                      std::function<void(const Result<void>&)> then) {
  lane_.run([&loop = loop_, file = std::move(file), tool = std::move(tool),
             then = std::move(then)]() mutable {
    Result<void> found;
    try {
      (void)tool->describe();
      check_facts(*file, *tool);
    } catch (const std::exception& error) {
      found = Error{Error::Kind::Rejected, error.what()};
    }
    asio::post(loop, [found, then = std::move(then)] { then(found); });
  });
}

}  // namespace hpcbatch
