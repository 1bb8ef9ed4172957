// Files of a drop box: jobs, the documents that we write beside them, templates.
#include "documents/view.hpp"
#include "dropbox/job_file.hpp"
#include "dropbox/job_rights.hpp"
#include "dropbox/written_documents.hpp"
#include "fuzz/harness.hpp"

#include <stdexcept>

namespace hpcbatch::fuzz {
namespace {

void job(std::string_view bytes) {
  JobFile file;
  try {
    file = parse_job(bytes, "/box/x.job");
  } catch (const DocumentError&) {
    return;
  }
  for (const auto& [name, path] : file.outputs) why_no_destination(path);
  const Submitted submitted{.document = file.document,
                            .key = job_key("x.job", 1, 2, bytes),
                            .workspace = "/w/x",
                            .owner = 1000,
                            .inputs = file.inputs,
                            .outputs = file.outputs};
  const ReadSubmitted read = parse_submitted(submitted_document(submitted), "again");
  check(read.job.key == submitted.key && read.job.owner == 1000 && !read.is_finished,
        "a submitted job is read as it was written");
  check(python_yaml(read.job.document) == python_yaml(file.document),
        "a client's document stays as it was");
  JobResult result{.ok = true, .message = std::string(bytes), .reason = "", .exit_code = 0};
  result.standard_output = std::string(bytes);
  const std::string finished = finished_document(submitted, result);
  check(parse_submitted(finished, "finished").is_finished, "a finished job is read as one");
  check(submitter_in(finished, "finished") == 1000U, "whose job it was stays");
}

void submitted(std::string_view bytes) {
  submitter_in(bytes, "/box/x.job.submitted");
  try {
    const ReadSubmitted read = parse_submitted(bytes, "/box/x.job.submitted");
    check(read.job.workspace.starts_with('/'), "a workspace is absolute");
  } catch (const DocumentError&) {
  }
}

void a_template(std::string_view value, std::string_view text) {
  const bool is_safe = is_safe_in_shell(value);
  bool is_taken = true;
  try {
    const auto rendered =
        render_template(text, {{"mine", {"a b", true}}, {"theirs", {std::string(value), false}}});
    check(rendered.text.size() <= text.size() * (value.size() + 4), "a place holds one value");
  } catch (const std::invalid_argument&) {
    is_taken = false;
  }
  check(is_taken || !is_safe, "what is safe is let in");
  check(!is_taken || is_safe || text.find("<<theirs>>") == std::string_view::npos,
        "what is not safe is not let in");
}

}  // namespace
}  // namespace hpcbatch::fuzz

HPCBATCH_HARNESS(job, bytes) {
  Input input(bytes);
  const std::size_t which = input.number() % 3;
  if (which == 0) job(input.rest());
  if (which == 1) submitted(input.rest());
  if (which == 2) {
    const std::string_view value = input.part();
    a_template(value, input.rest());
  }
}
