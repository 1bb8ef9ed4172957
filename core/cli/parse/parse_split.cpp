// `split`: a data set as tasks of some files each, and one result.
#include "cli/parse/flags.hpp"
#include "cli/parse/parse.hpp"
#include "cli/parse/spelled.hpp"

#include <CLI/Validators.hpp>

#include <memory>

namespace hpcbatch::detail {
namespace {

void add_data_set(CLI::App& verb, SplitOptions& split) {
  verb.option_defaults()->group("Data set");
  verb.add_option("--inputs", split.inputs, "the files, one path a line; - is standard input")
      ->type_name("FILE");
  verb.add_option("--files-per-task", split.files_per_task, "so many of them at most in a part (1)")
      ->type_name("N")
      ->check(above_zero());
  add_value(
      verb, "--bytes-per-task", "SIZE",
      [&split](const std::string& text) { split.bytes_per_task = checked_size(text); },
      "and so many bytes of them at most, but for one that is larger alone (no bound)");
  verb.add_option("--reuse", split.reuse, "files that every part gets too, one path a line (none)")
      ->type_name("FILE");
  verb.add_option("--recording", split.recording,
                  "a recording, which the tool cuts where it is silent")
      ->type_name("FILE");
  verb.add_option("--pieces", split.pieces, "into so many pieces")
      ->type_name("N")
      ->check(CLI::Range(1U, 10'000U));
  add_value(
      verb, "--piece-length", "DURATION",
      [&split](const std::string& text) { split.piece_length = checked_duration(text); },
      "into pieces of about that length");
}

void add_result(CLI::App& verb, SplitOptions& split) {
  verb.option_defaults()->group("Result");
  verb.add_option("--result", split.result, "where the merged result goes; of no merge, the folder")
      ->type_name("FILE")
      ->required();
  verb.add_option("--merge", split.merge,
                  "what a shell makes of the parts' results, {parts}, in their order: 'cat {parts} "
                  "> {out}' (a tool's own; else nothing is merged)")
      ->type_name("TEXT");
  verb.add_option("--merge-at-once", split.merge_at_once,
                  "results that one merge takes; of more, merges are merged (100)")
      ->type_name("N")
      ->check(CLI::Range(2U, 1'000U));
  verb.add_option("--parts", split.parts, "the folder of the parts' results (RESULT.parts)")
      ->type_name("DIR");
  verb.add_flag("--keep-parts", split.keep_parts, "leave them there");
}

}  // namespace

void add_split_verb(CLI::App& app, Command& into) {
  auto made = std::make_shared<SplitCommand>();
  CLI::App* verb = app.add_subcommand("split",
                                      "run a data set as parts of some files each, and merge what "
                                      "they give. In the command {files} "
                                      "are a part's files, {list} is a file that lists them, "
                                      "{reuse} what every part gets, {out} the "
                                      "file for its result. A part that is too large for its time, "
                                      "memory or disk is cut in two. The "
                                      "same command again goes on where it was");
  add_work_options(*verb, made->work);
  add_data_set(*verb, made->split);
  add_result(*verb, made->split);
  verb->option_defaults()->group("Options");
  add_json_flag(*verb, made->split.json);
  verb->footer(
      "Examples:\n  hpcbatch split --inputs list.txt --files-per-task 20 --merge 'cat {parts} > "
      "{out}' \\\n    --result counts.txt -- sh -c 'out=$1; shift; wc -l \"$@\" > \"$out\"' sh "
      "{out} {files}\n"
      "  hpcbatch split --tool ina_speech_segmenter --recording tape.wav --pieces 24 --result "
      "tape.tsv");
  verb->callback([made, &into] { into = *made; });
}

}  // namespace hpcbatch::detail
