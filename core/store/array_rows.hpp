// Columns of the table of arrays.
#pragma once

#define ARRAY_COLUMNS                                                                            \
  "id,client,name,tool,indices,needs,priority,retries,max_running,after,submitted,ended,recipe," \
  "give_up_at,gives_up_running"
