# Writes the text of LICENSE and licenses/*.txt into a source file, so that one file to copy is enough.
# Called with -DOUTPUT=... -DOWN=LICENSE -DLICENSES="a.txt;b.txt".
file(READ ${OWN} own)
set(rows "    {\"trireme\", R\"license(${own})license\"},\n")
foreach(path ${LICENSES})
  file(READ ${path} text)
  get_filename_component(name ${path} NAME_WE)
  string(APPEND rows "    {\"${name}\", R\"license(${text})license\"},\n")
endforeach()
file(WRITE ${OUTPUT} "#include \"cli/libraries.h\"

namespace trireme {
namespace {
const LicenseText kLicenses[] = {
${rows}};
}  // namespace

std::span<const LicenseText> LicenseTexts() { return kLicenses; }

}  // namespace trireme
")
