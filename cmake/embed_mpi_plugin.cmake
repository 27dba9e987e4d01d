# Writes the text of the MPI plugin into a source file, so that one file to copy is enough.
# Called with -DOUTPUT=... -DHEADER=plugin.h -DCODE=plugin.c.
file(READ ${HEADER} header)
file(READ ${CODE} code)
file(WRITE ${OUTPUT} "#include \"transport/mpi/library.h\"

namespace trireme {

MpiPluginSource GetMpiPluginSource() {
  return {R\"plugin(${header})plugin\", R\"plugin(${code})plugin\"};
}

}  // namespace trireme
")
