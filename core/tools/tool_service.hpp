// The service of a tool's file: what is dear to start and stays for the tasks that come.
#pragma once

#include "documents/view.hpp"
#include "model/task_service.hpp"

#include <map>
#include <string>

namespace hpcbatch {

/// Named like its tool.  Throws DocumentError.
TaskService parse_service(const View& view, const std::string& tool);

/// With the request's values in the places of its command.
TaskService filled_service(TaskService service, const std::map<std::string, std::string>& values);

}  // namespace hpcbatch
