# The plugin of cards gives its table and nothing else, so none of its symbols meets one of the
# program's, and the program needs no library of CUDA. -D NM, OBJDUMP, PROGRAM, PLUGIN.
execute_process(COMMAND ${NM} -D --defined-only --format=posix ${PLUGIN}
  OUTPUT_VARIABLE symbols OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
if(NOT symbols MATCHES "^trireme_cuda_table [^\n]*$")
  message(FATAL_ERROR "${PLUGIN} gives more than trireme_cuda_table:\n${symbols}")
endif()
foreach(file ${PROGRAM} ${PLUGIN})
  execute_process(COMMAND ${OBJDUMP} -p ${file} OUTPUT_VARIABLE headers COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCHALL "NEEDED +[^\n]+" needed "${headers}")
  if(NOT needed)
    message(FATAL_ERROR "${file} needs no library at all: ${OBJDUMP} was not understood")
  endif()
  # The plugin opens its libraries itself, to say which is missing; the runtime is inside.
  if(needed MATCHES "cuda|cudnn|cublas|nccl|nvrtc")
    message(FATAL_ERROR "${file} links to a library of CUDA: ${needed}")
  endif()
endforeach()
