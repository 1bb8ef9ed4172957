// dropbox_runner BOX WORKSPACE TEMPLATES: a real drop box whose jobs run as children of this
// program, one after the other, until its standard input is closed.
#include "dropbox/dropbox.hpp"

#include <sys/wait.h>

#include <condition_variable>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <mutex>
#include <queue>
#include <thread>

namespace hpcbatch {
namespace {

class RunningDoor final : public SubmitPort {
 public:
  void submit(DropboxTask task) override {
    const std::lock_guard lock(mutex_);
    tasks_.push(std::move(task));
    asked_.notify_one();
  }
  void cancel(const std::string&) override {}  // its jobs are short

  void run(Dropbox& box, const std::stop_token& stop) {
    while (true) {
      std::unique_lock lock(mutex_);
      asked_.wait(lock, stop, [&] { return !tasks_.empty(); });
      if (tasks_.empty()) return;
      const DropboxTask task = std::move(tasks_.front());
      tasks_.pop();
      lock.unlock();
      box.task_ended(outcome(task));
    }
  }

 private:
  static std::string slurp(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  static DropboxTaskEnd outcome(const DropboxTask& task) {
    DropboxTaskEnd end;
    end.key = task.key;
    const auto* const argv = std::get_if<std::vector<std::string>>(&task.work);
    if (!argv) {
      end.message = "there is no tool '" + std::get<ToolCall>(task.work).tool + "'";
      return end;
    }
    std::string line;
    for (const std::string& word : *argv) line += "'" + word + "' ";
    line += "> '" + task.directory + "/stdout.txt' 2> '" + task.directory + "/stderr.txt'";
    end.start = std::chrono::time_point_cast<Duration>(std::chrono::system_clock::now());
    const int status = std::system(line.c_str());
    end.end = std::chrono::time_point_cast<Duration>(std::chrono::system_clock::now());
    end.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    end.failure = end.exit_code == 0 ? Failure::Ok : Failure::ToolFailed;
    end.standard_output = slurp(task.directory + "/stdout.txt");
    end.standard_error = slurp(task.directory + "/stderr.txt");
    return end;
  }

  std::mutex mutex_;
  std::condition_variable_any asked_;
  std::queue<DropboxTask> tasks_;
};

}  // namespace
}  // namespace hpcbatch

int main(int argc, char** argv) {
  using namespace hpcbatch;
  if (argc != 4) return 2;
  DropboxOptions options;
  options.directory = argv[1];
  options.workspace = argv[2];
  options.templates = {argv[3]};
  options.variables = {{"containers", "/containers"}};
  options.grace = std::chrono::milliseconds{500};
  options.quiet = std::chrono::milliseconds{50};
  options.look_every = std::chrono::milliseconds{500};
  options.warn = [](const std::string& text) { std::fprintf(stderr, "%s\n", text.c_str()); };
  RunningDoor door;
  auto box = Dropbox::start(options, door);
  if (!box) {
    std::fprintf(stderr, "%s\n", box.error().text.c_str());
    return 1;
  }
  const std::jthread runner([&](const std::stop_token& stop) { door.run(**box, stop); });
  while (std::getchar() != EOF) {
  }
  return 0;
}
