#include "remote_transport.hpp"

#include "process.hpp"
#include "remote_shell.hpp"

#include "hpcbatch/answer_bounds.hpp"

#include <algorithm>

namespace hpcbatch {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// How long a user's own start files may take.
constexpr milliseconds kStartFiles{30'000};
constexpr milliseconds kForTheKill{900};

milliseconds left_until(Deadline deadline) {
  return std::max(std::chrono::ceil<milliseconds>(deadline - Clock::now()), milliseconds{0});
}

Error refused(const std::string& text) {
  return {Error::Kind::Rejected, text};
}
Error passing(const std::string& text) {
  return {Error::Kind::Transient, text};
}

std::string output_tail(const FramedAnswer& answer) {
  std::string said = answer.around(Stream::Error) + answer.around(Stream::Output);
  while (said.ends_with('\n') || said.ends_with('\r')) said.pop_back();
  std::replace(said.begin(), said.end(), '\n', ' ');
  return said.size() > 300 ? said.substr(said.size() - 300) : said;
}

/// The far side ended and did not say how.
Error no_answer(const std::string& what, const FramedAnswer& answer) {
  if (answer.has_begun())
    return passing(what + ": it was killed there before it could say how it ended");
  const std::string said = output_tail(answer);
  return passing(what + ": the login shell there did not run it" +
                 (said.empty() ? "" : "; it said: " + said));
}

/// A command's output, up to what may be kept.
class Running final : public Question {
 public:
  Running(const Frame& frame, std::string_view script, std::string_view input)
      : Question(frame, script, input) {}
  bool is_over() const override { return Question::is_over() || too_much_; }
  void received(Stream stream, std::string_view bytes) override {
    Question::received(stream, bytes);
    too_much_ = too_much_ || answer.kept(stream).size() > kMostOutput;
  }
  bool too_much() const { return too_much_; }

 private:
  bool too_much_{false};
};

}  // namespace

Result<CommandOutput> RemoteTransport::run(const CommandLine& command, Deadline deadline) {
  if (command.argv.empty()) return refused("cannot run an empty command");
  const std::string what = "cannot run " + command.argv.front() + " on " + login_->name();
  auto environment = environment_of(command, deadline);
  if (!environment) return environment.error();
  const milliseconds left = left_until(deadline);
  if (left == milliseconds{0}) return passing(what + ": its deadline passed before it was begun");
  const Frame frame = new_frame();
  const std::string script = command_script(frame, command, *environment, left);
  Running running(frame, script, command.input);
  const auto ended = login_->exec(
      starter(script.size(), InputAfterScript::Yes, FarEnvironment::Minimal), running, deadline);
  if (!ended) return ended.error();
  FramedAnswer& answer = running.answer;
  if (running.too_much()) {
    kill(answer.group(), Clock::now() + kForTheKill);
    return passing(command.argv.front() + " was killed: it printed more than 64 MB");
  }
  if (*ended == Ending::TimedOut) kill(answer.group(), deadline + kForTheKill);
  if (*ended == Ending::Closed && !answer.is_whole()) return no_answer(what, answer);
  // A program that is not found may have moved with a new version since its path was learned.
  if (answer.is_whole() && (answer.exit_code() == 126 || answer.exit_code() == 127))
    learned_at_ = 0;
  return CommandOutput{.exit_code = answer.is_whole() ? answer.exit_code() : -1,
                       .timed_out = !answer.is_whole(),
                       .standard_output = std::move(answer.kept(Stream::Output)),
                       .standard_error = std::move(answer.kept(Stream::Error))};
}

/// The watcher there kills it too, a second later, should this not get through.
void RemoteTransport::kill(int group, Deadline deadline) {
  if (group <= 1) return;
  const Frame frame = new_frame();
  const std::string script = kill_script(frame, group, left_until(deadline));
  Question question(frame, script);
  (void)login_->exec(starter(script.size(), InputAfterScript::No, FarEnvironment::Minimal),
                     question, deadline);
}

Result<void> RemoteTransport::learn_environment(Deadline deadline) {
  // Who says where programs are found has said all that a login shell could.
  if (configured_.contains("PATH")) return {};
  if (learned_at_ != 0 && learned_at_ == login_->number()) return {};
  const std::string what = "cannot learn the environment of " + login_->name();
  const std::string mend = "; set PATH under 'environment' of the site's transport";
  const Frame frame = new_frame();
  const Deadline until = std::min(deadline, Clock::now() + kStartFiles);
  const std::string script = environment_script(frame, left_until(until));
  Question question(frame, script);
  const auto ended = login_->exec(
      starter(script.size(), InputAfterScript::No, FarEnvironment::Users), question, until);
  if (!ended) return ended.error();
  if (*ended == Ending::TimedOut) {
    kill(question.answer.group(), until + kForTheKill);
    return passing(what + ": the login shell's start files did not end in time" + mend);
  }
  if (!question.answer.is_whole()) return no_answer(what, question.answer);
  auto environment = read_environment(frame, question.answer.kept(Stream::Output));
  if (!environment) {
    const std::string said = output_tail(question.answer);
    return passing(what + ": the login shell did not answer" + (said.empty() ? "" : ": " + said) +
                   mend);
  }
  learned_ = std::move(*environment);
  learned_at_ = login_->number();
  return {};
}

Result<Environment> RemoteTransport::environment_of(const CommandLine& command, Deadline deadline) {
  for (const auto& [name, value] : command.environment) {
    if (!is_variable_name(name))
      return refused("cannot set '" + name + "': it is no name of a variable");
  }
  if (Clock::now() >= deadline)
    return passing("cannot run " + command.argv.front() +
                   ": its deadline passed before it was begun");
  if (auto learned = learn_environment(deadline); !learned) return learned.error();
  Environment environment = command.environment;
  environment.insert(configured_.begin(), configured_.end());
  environment.insert(learned_.begin(), learned_.end());
  return environment;
}

Result<int> RemoteTransport::open(const CommandLine& command, Deadline deadline) {
  if (command.argv.empty()) return refused("cannot run an empty command");
  auto environment = environment_of(command, deadline);
  if (!environment) return environment.error();
  const Frame frame = new_frame();
  const std::string script = stream_script(frame, command, *environment);
  return login_->open(starter(script.size(), InputAfterScript::Yes, FarEnvironment::Minimal),
                      script, frame.begin() + "\n", deadline);
}

}  // namespace hpcbatch
