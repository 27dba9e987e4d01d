# Writes the text of recipes/*.toml into a source file, so that one file to copy is enough.
# Called with -DOUTPUT=... -DRECIPES="a.toml;b.toml".
set(rows "")
foreach(path ${RECIPES})
  file(READ ${path} text)
  get_filename_component(name ${path} NAME_WE)
  string(APPEND rows "    {\"${name}\", R\"toml(${text})toml\"},\n")
endforeach()
file(WRITE ${OUTPUT} "#include \"recipe/recipe.h\"

namespace trireme {
namespace {
const BuiltInRecipe kRecipes[] = {
${rows}};
}  // namespace

std::span<const BuiltInRecipe> BuiltInRecipes() { return kRecipes; }

}  // namespace trireme
")
