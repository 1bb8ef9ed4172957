# find_package(hpcbatch 1): the target hpcbatch::sdk and the function hpcbatch_add_plugin.
include(${CMAKE_CURRENT_LIST_DIR}/hpcbatchTargets.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/hpcbatch_add_plugin.cmake)
