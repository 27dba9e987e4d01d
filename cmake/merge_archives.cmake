# One archive of several: OUTPUT holds what ARCHIVES hold, and OBJECT in place of the member INSTEAD_OF.
#   cmake -DAR=ar -DOUTPUT=FILE -DARCHIVES=a.a;b.a -DOBJECT=c.o -DINSTEAD_OF=d.o -P cmake/merge_archives.cmake
cmake_minimum_required(VERSION 3.25)
get_filename_component(folder ${OUTPUT} DIRECTORY)
get_filename_component(name ${OUTPUT} NAME)
# Below the folder and relative to it: a script of ar takes few letters in a path.
set(script "CREATE ${name}.new\n")
foreach(archive ${ARCHIVES})
  file(RELATIVE_PATH archive ${folder} ${archive})
  string(APPEND script "ADDLIB ${archive}\n")
endforeach()
file(RELATIVE_PATH object ${folder} ${OBJECT})
string(APPEND script "DELETE ${INSTEAD_OF}\nADDMOD ${object}\nSAVE\nEND\n")
file(WRITE ${OUTPUT}.mri "${script}")
execute_process(COMMAND ${AR} -M INPUT_FILE ${OUTPUT}.mri WORKING_DIRECTORY ${folder}
  COMMAND_ERROR_IS_FATAL ANY)
file(RENAME ${OUTPUT}.new ${OUTPUT})
file(REMOVE ${OUTPUT}.mri)
