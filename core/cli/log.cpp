// `log`: what a task printed, so far or until it ends.
#include "cli/base64.hpp"
#include "cli/exit.hpp"
#include "cli/session.hpp"
#include "cli/values.hpp"

#include <boost/json/parse.hpp>

#include <cstdio>
#include <cstring>

#include <unistd.h>

namespace hpcbatch {
namespace {

namespace json = boost::json;

constexpr std::chrono::hours kForEver{24 * 365};
constexpr int kLogPage = 1 << 20;
// A task that goes on printing always has more.  A page may be cut short by a slow link, but one
// as short as this is what was printed just now.
constexpr int kTail = 1 << 16;

void write_out(bool is_error, std::string_view bytes) {
  const int error = write_all(is_error ? STDERR_FILENO : STDOUT_FILENO, bytes);
  if (error != 0)
    throw CommandError(kExitUsage, std::string("cannot write the output: ") + std::strerror(error));
}

std::string bytes_of(const json::object& piece) {
  if (!piece.contains("base64")) return text_at(piece, "text");
  const auto bytes = decode_base64(text_at(piece, "base64"));
  if (!bytes) throw CommandError(kExitNoEngine, "the engine sent output that is not base64");
  return *bytes;
}

void print_stream(EngineClient& client, const LogCommand& command, const char* stream) {
  const std::string attempt =
      command.attempt ? "&attempt=" + std::to_string(*command.attempt) : std::string();
  const std::string target = "/v1/tasks/" + command.id + "/log?stream=" + stream + attempt +
                             "&limit=" + std::to_string(kLogPage) + "&offset=";
  std::string offset = "0";
  for (;;) {
    json::object piece = client.get(target + offset);
    const std::string next = text_at(piece, "next");
    const bool is_empty = next.empty() || next == offset;
    const bool is_last = is_empty || flag_at(piece, "end") ||
                         number_at(piece, "next") - number_at(piece, "offset") < kTail;
    if (command.json) {
      if (!is_empty || offset == "0") {
        piece["stream"] = stream;
        print_json(piece);
      }
    } else {
      write_out(std::strcmp(stream, "stderr") == 0, bytes_of(piece));
    }
    if (is_last) {
      if (flag_at(piece, "truncated") && !command.json) {
        const std::string& id = command.id;
        const std::string why = flag_at(piece, "lost")
                                    ? "it could not be written to the workspace of its site"
                                    : "`hpcbatch show " + id + "` says how much is left out";
        std::fprintf(stderr, "hpcbatch: not all that task %s wrote was kept: %s\n", id.c_str(),
                     why.c_str());
      }
      return;
    }
    offset = next;
  }
}

int follow(EngineClient& client, const LogCommand& command) {
  const auto lines = client.http().follow("/v1/tasks/" + command.id + "/log?follow=1");
  for (;;) {
    const LineStream::Next next = lines->next(kForEver);
    if (next.kind == LineStream::Next::Kind::Idle) continue;
    if (next.kind == LineStream::Next::Kind::End) {
      throw CommandError(kExitNoEngine,
                         "the engine ended the stream before the task ended; this happens when its "
                         "output is read much slower than it comes");
    }
    if (next.kind == LineStream::Next::Kind::Failed) {
      object_of(next.failure);
      return kExitDone;
    }
    boost::system::error_code error;
    const json::value value = json::parse(next.line, error);
    if (error || !value.is_object())
      throw CommandError(kExitNoEngine, "the engine sent a line of output that is not JSON");
    const json::object& piece = value.get_object();
    const bool is_error = text_at(piece, "stream") == "stderr";
    const bool is_wanted =
        !piece.contains("stream") || (is_error ? command.standard_error : command.standard_output);
    if (command.json && is_wanted) {
      print(next.line + "\n");
      std::fflush(stdout);
    } else if (!command.json && is_wanted && piece.contains("stream")) {
      write_out(is_error, bytes_of(piece));
    }
    if (piece.contains("end")) return kExitDone;
  }
}

}  // namespace

int show_log(const LogCommand& command, const Session& session) {
  EngineClient client = session.client();
  if (command.follow) return follow(client, command);
  if (command.standard_output) print_stream(client, command, "stdout");
  if (command.standard_error) print_stream(client, command, "stderr");
  return kExitDone;
}

}  // namespace hpcbatch
