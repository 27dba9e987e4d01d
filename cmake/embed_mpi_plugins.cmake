# Writes a source file that holds compiled plugins, by the assembler: their bytes as they are. Called
# with -DOUTPUT=... -DPLUGINS="openmpi=a.so;mpich=b.so", which may be empty.
set(bytes "")
set(rows "")
foreach(pair ${PLUGINS})
  string(REGEX MATCH "^([^=]+)=(.*)$" pair ${pair})
  set(name trireme_mpi_inside_${CMAKE_MATCH_1})
  string(APPEND bytes "extern \"C\" const char ${name}[], ${name}_end[];
asm(\".section .rodata\\n\"
    \".global ${name}\\n${name}:\\n.incbin \\\"${CMAKE_MATCH_2}\\\"\\n\"
    \".global ${name}_end\\n${name}_end:\\n.byte 0\\n.previous\\n\");
")
  string(APPEND rows "      {\"${CMAKE_MATCH_1}\", {${name}, size_t(${name}_end - ${name})}},\n")
endforeach()
if(rows)
  set(body "  static const BuiltInMpiPlugin kPlugins[] = {\n${rows}  };\n  return kPlugins;\n")
else()
  set(body "  return {};\n")
endif()
file(WRITE ${OUTPUT} "#include \"transport/mpi/built_in.h\"

${bytes}
namespace trireme {

std::span<const BuiltInMpiPlugin> BuiltInMpiPlugins() {
${body}}

}  // namespace trireme
")
