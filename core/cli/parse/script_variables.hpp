// Variables of batch systems that a script relies on.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace hpcbatch {

struct BatchVariable {
  std::string name;
  std::size_t line{0};  ///< where it stands first; from 1
};

/// SLURM_*, PBS_*, LSB_* and SGE_* whose value the script takes: `$NAME`, `${NAME%.*}`, arithmetic,
/// `environ["NAME"]` and their like, each name once, in the order of the text.  Left out is what has
/// a default where it stands (`${NAME:-1}`, `getenv("NAME", "1")`), what the script gives a value
/// before, what it only asks whether it is there (`-n "$NAME"`), and comments.  Text in single
/// quotes counts: `trap 'rm -r $NAME' EXIT` uses it.
std::vector<BatchVariable> batch_variables_of(std::string_view text);

}  // namespace hpcbatch
