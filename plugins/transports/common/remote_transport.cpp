#include "remote_transport.hpp"

#include "environment.hpp"
#include "file_scripts.hpp"
#include "local_file.hpp"
#include "remote_copy.hpp"
#include "remote_shell.hpp"

#include "hpcbatch/answer_bounds.hpp"

#include <algorithm>

namespace hpcbatch {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// Up to this size a file goes in the script of many; above it one by one, and can be resumed.
constexpr std::uint64_t kSmallFile = 256u << 10;
constexpr std::uint64_t kMostInOneScript = 8u << 20;
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

Result<RemoteTransport::Answer> RemoteTransport::ask(const std::string& what,
                                                     const std::string& body, Deadline deadline) {
  if (Clock::now() >= deadline) return passing(what + ": its deadline passed before it was begun");
  const Frame frame = new_frame();
  const std::string script = framed(frame, body, left_until(deadline));
  Question question(frame, script);
  const auto ended = login_->exec(
      starter(script.size(), InputAfterScript::No, FarEnvironment::Minimal), question, deadline);
  if (!ended) return ended.error();
  if (*ended == Ending::TimedOut) {
    kill(question.answer.group(), deadline + kForTheKill);
    return passing(what + ": " + login_->name() + " did not answer before the deadline");
  }
  if (!question.answer.is_whole()) return no_answer(what, question.answer);
  return Answer{question.answer.exit_code(), std::move(question.answer.kept(Stream::Output)),
                std::move(question.answer.kept(Stream::Error))};
}

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
    return passing(
        script_error(what + ": the login shell did not answer", question.answer.kept(Stream::Error))
            .text +
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

Result<void> RemoteTransport::put(const std::vector<Copy>& files, Deadline deadline) {
  std::vector<FileText> small;
  std::vector<const Copy*> large;
  // All are opened before anything is sent.
  for (const Copy& file : files) {
    const auto source = SourceFile::open(file.from);
    if (!source) return source.error();
    if (source->size() > kSmallFile) {
      large.push_back(&file);
      continue;
    }
    auto text = source->read(0, kSmallFile + 1);
    if (!text) return text.error();
    if (auto same = source->unchanged(); !same) return same;
    small.push_back({file.to, std::move(*text), file.mode});
  }
  if (auto put = put_text(small, deadline); !put) return put;
  for (const Copy* file : large) {
    if (auto sent = send_file(*login_, *file, deadline); !sent) return sent;
  }
  return {};
}

Result<void> RemoteTransport::put_text(const std::vector<FileText>& files, Deadline deadline) {
  std::vector<FileText> together;
  std::uint64_t size = 0;
  const auto write_together = [&]() -> Result<void> {
    if (together.empty()) return {};
    const std::string what = "cannot write " + together.front().path +
                             (together.size() > 1 ? " and others" : "") + " on " + login_->name();
    auto answer = ask(what, write_script(together, new_frame().nonce), deadline);
    together.clear();
    size = 0;
    if (!answer) return answer.error();
    if (answer->exit_code != 0) return script_error(what, answer->standard_error);
    return {};
  };
  for (const FileText& file : files) {
    if (file.text.size() > kMostInOneScript) {
      if (auto sent = send_text(*login_, file, deadline); !sent) return sent;
      continue;
    }
    if (size + file.text.size() > kMostInOneScript) {
      if (auto written = write_together(); !written) return written;
    }
    together.push_back(file);
    size += file.text.size();
  }
  return write_together();
}

Result<void> RemoteTransport::get(const std::vector<Copy>& files, Deadline deadline) {
  for (const Copy& file : files) {
    if (auto got = receive_file(*login_, file, deadline); !got) return got;
  }
  return {};
}

Result<std::string> RemoteTransport::read(const std::string& path, std::uint64_t offset,
                                          std::uint64_t length, Deadline deadline) {
  const std::string what = "cannot read " + path + " on " + login_->name();
  auto answer = ask(what, read_script(path, offset, length), deadline);
  if (!answer) return answer.error();
  // The exit code is the last program's; the one that reads may have failed.
  if (answer->exit_code != 0 || !answer->standard_error.empty())
    return script_error(what, answer->standard_error);
  return std::move(answer->standard_output);
}

Result<std::vector<std::string>> RemoteTransport::list(const std::string& directory,
                                                       Deadline deadline) {
  const std::string what = "cannot list " + directory + " on " + login_->name();
  auto answer = ask(what, list_script(directory), deadline);
  if (!answer) return answer.error();
  if (answer->exit_code == 0) return read_list(answer->standard_output);
  if (answer->standard_error.find("No such file or directory") != std::string::npos)
    return read_list(answer->standard_output);
  return script_error(what, answer->standard_error);
}

Result<void> RemoteTransport::remove(const std::vector<std::string>& paths, Deadline deadline) {
  if (paths.empty()) return {};
  if (std::find(paths.begin(), paths.end(), "") != paths.end())
    return refused("cannot remove a file without a name");
  const std::string what = "cannot remove " + paths.front() +
                           (paths.size() > 1 ? " and others" : "") + " on " + login_->name();
  auto answer = ask(what, remove_script(paths), deadline);
  if (!answer) return answer.error();
  if (answer->exit_code != 0) return script_error(what, answer->standard_error);
  return {};
}

Result<ByteStream> RemoteTransport::open(const CommandLine& command, Deadline deadline) {
  if (command.argv.empty()) return refused("cannot run an empty command");
  auto environment = environment_of(command, deadline);
  if (!environment) return environment.error();
  const Frame frame = new_frame();
  const std::string script = stream_script(frame, command, *environment);
  return login_->open(starter(script.size(), InputAfterScript::Yes, FarEnvironment::Minimal),
                      script, frame.begin() + "\n", deadline);
}

}  // namespace hpcbatch
