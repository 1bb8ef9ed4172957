#include "remote_copy.hpp"

#include "checksum.hpp"
#include "local_file.hpp"
#include "remote_shell.hpp"

#include <algorithm>
#include <charconv>
#include <functional>
#include <optional>

namespace hpcbatch {
namespace {

constexpr std::size_t kPiece = 256u << 10;
// Tries in a row that moved nothing.
constexpr int kMostInVain = 3;

using ReadPiece = std::function<Result<std::string>(std::uint64_t offset, std::size_t length)>;

/// Waits for how much is there, then sends the rest.
class Sending final : public Question {
 public:
  Sending(const Frame& frame, const std::string& script, std::uint64_t size, ReadPiece read)
      : Question(frame, script), size_(size), read_(std::move(read)) {}

  std::string_view to_send() override {
    if (!script_is_sent()) return Question::to_send();
    if (!find_offset() || error_) return {};
    if (at_ == piece_.size() && offset_ < size_) {
      auto piece = read_(offset_, kPiece);
      if (!piece || piece->empty()) {
        error_ = piece ? Error{Error::Kind::Transient, "the file became shorter while it was sent"}
                       : piece.error();
        return {};
      }
      piece_ = std::move(*piece);
      at_ = 0;
      offset_ += piece_.size();
    }
    return std::string_view(piece_).substr(at_);
  }
  void sent(std::size_t bytes) override {
    if (!script_is_sent()) return Question::sent(bytes);
    at_ += bytes;
    moved_ += bytes;
  }
  bool all_sent() const override {
    return script_is_sent() &&
           (error_ || (has_offset_ && offset_ >= size_ && at_ == piece_.size()));
  }
  bool is_over() const override { return error_.has_value() || Question::is_over(); }

  std::uint64_t moved() const { return moved_; }
  const std::optional<Error>& error() const { return error_; }

 private:
  bool find_offset() {
    if (has_offset_) return true;
    const std::string& said = answer.kept(Stream::Output);
    if (said.find('\n') == std::string::npos) return false;
    std::uint64_t there = 0;
    std::from_chars(said.data(), said.data() + said.size(), there);
    offset_ = std::min(there, size_) / kBlock * kBlock;
    return has_offset_ = true;
  }

  std::uint64_t size_;
  ReadPiece read_;
  bool has_offset_{false};
  std::uint64_t offset_{0};
  std::string piece_;
  std::size_t at_{0};
  std::uint64_t moved_{0};
  std::optional<Error> error_;
};

std::chrono::milliseconds time_left(Deadline deadline) {
  return std::max(
      std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now()),
      std::chrono::milliseconds{0});
}

Error too_late(const std::string& what) {
  return {Error::Kind::Transient,
          what + ": its deadline passed; what has arrived is kept for the next try"};
}

/// One try; nothing where another one is worth it.
struct Try {
  std::optional<Result<void>> result;
  std::uint64_t moved{0};
  Error error;
};

Result<void> try_until_done(const std::function<Try()>& once, const std::string& what,
                            Deadline deadline) {
  for (int in_vain = 0;;) {
    if (std::chrono::steady_clock::now() >= deadline) return too_late(what);
    const Try done = once();
    if (done.result) return *done.result;
    in_vain = done.moved > 0 ? 0 : in_vain + 1;
    if (in_vain >= kMostInVain) return done.error;
  }
}

Try send_once(Login& login, const Copy& file, const Content& content, const ReadPiece& read,
              Deadline deadline) {
  const std::string what =
      "cannot copy " + (file.from.empty() ? "a text" : file.from) + " to " + file.to;
  const Frame frame = new_frame();
  const std::string script = framed(frame, receive_script(file, content), time_left(deadline));
  Sending sending(frame, script, content.size, read);
  const auto ended = login.exec(
      starter(script.size(), InputAfterScript::Yes, FarEnvironment::Minimal), sending, deadline);
  Try done{.result = {}, .moved = sending.moved(), .error = {}};
  if (sending.error()) {
    done.result = Result<void>(Error{sending.error()->kind, what + ": " + sending.error()->text});
  } else if (!ended) {
    done.error = ended.error();
    // Only what was interrupted is tried again: a login that fails has its own pauses.
    if (!sending.answer.has_begun()) done.result = Result<void>(ended.error());
  } else if (*ended == Ending::TimedOut) {
    done.result = Result<void>(too_late(what));
  } else if (!sending.answer.is_whole() || sending.answer.exit_code() == kCutOff) {
    done.error = {Error::Kind::Transient, what + ": the connection was cut"};
  } else if (sending.answer.exit_code() == kWrongContent) {
    done.error = {Error::Kind::Transient, what + ": what arrived has another checksum"};
    done.moved = 0;
  } else if (sending.answer.exit_code() != 0) {
    done.result = Result<void>(script_error(what, sending.answer.kept(Stream::Error)));
  } else {
    done.result = Result<void>();
  }
  return done;
}

/// Takes what is sent into the file that it is for.
class Receiving final : public Question {
 public:
  Receiving(const Frame& frame, const std::string& script, const Copy& file)
      : Question(frame, script, {},
                 [this](Stream stream, std::string_view bytes) { take(stream, bytes); }),
        file_(file) {}

  std::string_view to_send() override {
    return script_is_sent() ? std::string_view(block_).substr(block_sent_) : Question::to_send();
  }
  void sent(std::size_t bytes) override {
    if (!script_is_sent()) return Question::sent(bytes);
    block_sent_ += bytes;
  }
  bool all_sent() const override {
    return script_is_sent() && !block_.empty() && block_sent_ == block_.size();
  }
  bool is_over() const override { return error_.has_value() || Question::is_over(); }

  std::optional<TargetFile>& target() { return target_; }
  const std::optional<Error>& error() const { return error_; }
  const std::string& said() const { return said_; }
  std::uint64_t moved() const { return moved_; }

 private:
  void take(Stream stream, std::string_view bytes) {
    if (stream == Stream::Error) {
      said_.append(bytes);
    } else if (target_) {
      keep(bytes);
    } else {
      head_.append(bytes);
      const auto line_end = head_.find('\n');
      if (line_end == std::string::npos) return;
      begin(head_.substr(0, line_end));
      if (target_) keep(std::string_view(head_).substr(line_end + 1));
    }
  }
  void begin(const std::string& size_and_time) {
    auto target = TargetFile::open(file_, file_.from + " " + size_and_time);
    if (!target) {
      error_ = target.error();
      return;
    }
    const std::uint64_t block = target->size() / kBlock;
    if (auto cut = target->cut(block * kBlock); !cut) error_ = cut.error();
    target_.emplace(std::move(*target));
    block_ = std::to_string(block) + "\n";
  }
  void keep(std::string_view bytes) {
    moved_ += bytes.size();
    if (auto kept = target_->append(bytes); !kept && !error_) error_ = kept.error();
  }

  const Copy& file_;
  std::string head_;
  std::string said_;
  std::string block_;
  std::size_t block_sent_{0};
  std::uint64_t moved_{0};
  std::optional<TargetFile> target_;
  std::optional<Error> error_;
};

Result<void> check_and_publish(Receiving& receiving, const std::string& what, Deadline deadline) {
  const auto content = receiving.target()->content(deadline);
  if (!content) return content.error();
  std::string theirs = receiving.said();
  while (theirs.ends_with('\n')) theirs.pop_back();
  if (theirs == content->sha256 || theirs == content->cksum) return receiving.target()->publish();
  receiving.target()->discard();
  return Error{Error::Kind::Transient,
               what + ": what arrived has another checksum; was it changed while it was read?"};
}

Try receive_once(Login& login, const Copy& file, Deadline deadline) {
  const std::string what = "cannot copy " + file.from + " from " + login.name() + " to " + file.to;
  const Frame frame = new_frame();
  const std::string script = framed(frame, send_script(file.from), time_left(deadline));
  Receiving receiving(frame, script, file);
  const auto ended = login.exec(
      starter(script.size(), InputAfterScript::Yes, FarEnvironment::Minimal), receiving, deadline);
  Try done{.result = {}, .moved = receiving.moved(), .error = {}};
  if (receiving.error()) {
    done.result = Result<void>(*receiving.error());
  } else if (!ended) {
    done.error = ended.error();
    if (!receiving.answer.has_begun()) done.result = Result<void>(ended.error());
  } else if (*ended == Ending::TimedOut) {
    done.result = Result<void>(too_late(what));
  } else if (!receiving.answer.is_whole()) {
    done.error = {Error::Kind::Transient, what + ": the connection was cut"};
  } else if (receiving.answer.exit_code() != 0 || !receiving.target()) {
    done.result = Result<void>(script_error(what, receiving.said()));
  } else {
    done.result = check_and_publish(receiving, what, deadline);
  }
  return done;
}

Result<void> send_content(Login& login, const Copy& file, const Content& content,
                          const ReadPiece& read, Deadline deadline) {
  return try_until_done(
      [&] { return send_once(login, file, content, read, deadline); },
      "cannot copy " + (file.from.empty() ? "a text" : file.from) + " to " + file.to, deadline);
}

}  // namespace

Result<void> send_file(Login& login, const Copy& file, Deadline deadline) {
  const auto source = SourceFile::open(file.from);
  if (!source) return source.error();
  const auto content = source->content(deadline);
  if (!content) return content.error();
  const auto read = [&](std::uint64_t offset, std::size_t length) {
    return source->read(offset, length);
  };
  auto sent = send_content(login, file, *content, read, deadline);
  // Said first: it is why the checksums differ.
  if (auto same = source->unchanged(); !same) return same;
  return sent;
}

Result<void> send_text(Login& login, const FileText& file, Deadline deadline) {
  Checksum checksum;
  checksum.add(file.text);
  Content content{.size = file.text.size(), .sha256 = {}, .cksum = checksum.cksum()};
  content.sha256 = checksum.sha256();
  const auto read = [&](std::uint64_t offset, std::size_t length) {
    return Result<std::string>(file.text.substr(offset, length));
  };
  return send_content(login, {"", file.path, file.mode}, content, read, deadline);
}

Result<void> receive_file(Login& login, const Copy& file, Deadline deadline) {
  return try_until_done([&] { return receive_once(login, file, deadline); },
                        "cannot copy " + file.from + " to " + file.to, deadline);
}

}  // namespace hpcbatch
