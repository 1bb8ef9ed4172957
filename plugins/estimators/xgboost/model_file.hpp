// A model as bytes: the names of its columns, and xgboost's own bytes under a sum, because xgboost
// believes what it reads.
#pragma once

#include <string>
#include <vector>

namespace hpcbatch::xgboost {

struct ModelFile {
  std::vector<std::string> features;
  std::string trees;  ///< as xgboost writes them
};

/// No name may have a line's end in it.
std::string to_bytes(const ModelFile& file);
/// Throws std::runtime_error with one sentence where not every bit is as `to_bytes` has made it.
ModelFile model_file_of(const std::string& bytes);

}  // namespace hpcbatch::xgboost
