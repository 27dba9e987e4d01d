// Installed like other programs: man pages, completions in three shells, licenses, what was built.
#include <filesystem>

#include "support/whole_test.h"

namespace trireme::whole {
namespace {

class InstalledTest : public WholeTest {
 protected:
  // Where the program is called trireme, as completions expect.
  void Install() {
    Shell(std::string(TRIREME_CMAKE) + " --install " TRIREME_BUILD_DIR " --prefix " + At("usr"));
    Succeed({"train", "--steps", "1", "--quiet", "--out", "runs/first"});
    ASSERT_TRUE(std::filesystem::exists(At("usr/bin/trireme")));
  }
  std::string PathTo() const { return "PATH=" + At("usr/bin") + ":$PATH; "; }
  // What bash makes of a line at whose end Tab is pressed, a candidate per line.
  std::string InBash(const std::string& line) {
    Write("ask.bash", PathTo() + "source " + At("usr/share/bash-completion/completions/trireme") +
                          "\nCOMP_LINE='" + line + "'; COMP_POINT=" + std::to_string(line.size()) +
                          "\n_trireme\nprintf '%s\\n' \"${COMPREPLY[@]}\"\n");
    return "\n" + Shell("bash ask.bash");
  }
  std::string InFish(const std::string& line) {
    Write("ask.fish", "set -x PATH " + At("usr/bin") + " $PATH\nsource " +
                          At("usr/share/fish/vendor_completions.d/trireme.fish") +
                          "\ncomplete -C '" + line + "'\n");
    return "\n" + Shell("HOME=" + At("") + " fish --no-config ask.fish");
  }
  void ExpectIn(const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << "no \"" << part << "\" in:\n" << text;
  }
};

TEST_F(InstalledTest, FilesLieWhereOthersLookForThem) {
  Install();
  for (const char* file :
       {"man/man1/trireme.1", "man/man1/trireme-bench-step.1", "man/man5/trireme-recipe.5",
        "zsh/site-functions/_trireme", "trireme/recipes/iris.toml", "doc/trireme/LICENSE",
        "doc/trireme/licenses.txt", "doc/trireme/docs/runs.md"}) {
    EXPECT_TRUE(std::filesystem::exists(At("usr/share/") + file)) << file;
  }
  Shell("env -i " + At("usr/bin/trireme") + " --version");
}

TEST_F(InstalledTest, ManPagesAreCorrect) {
  Succeed({"man", "--out", "man"});
  EXPECT_EQ(Shell("mandoc -Tlint -Wwarning man/man1/*.1 man/man5/*.5"), "");
  ExpectIn(Shell("mandoc -Tascii man/man1/trireme-train.1 | col -b"), "--strategy NAME");
  EXPECT_EQ(Succeed({"man", "bench", "step"}).out, Read("man/man1/trireme-bench-step.1"));
  Refuse({"man", "trian"}, 2, {"trireme-trian", "did you mean trireme-train"});
}

TEST_F(InstalledTest, BashCompletes) {
  Install();
  ExpectIn(InBash("trireme tra"), "\ntrain\n");
  ExpectIn(InBash("trireme train fashion-c"), "\nfashion-cnn\n");
  ExpectIn(InBash("trireme train --strategy "), "\neasgd\n");
  ExpectIn(InBash("trireme train --strategy=ea"), "\neasgd\n");  // behind the last =
  ExpectIn(InBash("trireme train --set strategy.name=ea"), "\neasgd\n");
  ExpectIn(InBash("trireme eval runs/"), "\nruns/first\n");
  ExpectIn(InBash("trireme eval "), "\nruns/first\n");
}

TEST_F(InstalledTest, FishCompletes) {
  Install();
  ExpectIn(InFish("trireme tra"), "\ntrain\t");
  ExpectIn(InFish("trireme train --strategy ea"), "\neasgd");
  ExpectIn(InFish("trireme train --set strategy.name=ea"), "\nstrategy.name=easgd");
  ExpectIn(InFish("trireme eval runs/f"), "\nruns/first");
}

// In a terminal that zsh makes: it has no other way to ask.
TEST_F(InstalledTest, ZshCompletes) {
  Install();
  Write(".zshrc",
        PathTo() + "fpath=(" + At("usr/share/zsh/site-functions") +
            " $fpath)\nautoload -U compinit && compinit -u -D\nsetopt no_beep\nPS1='ready> '\n");
  // Typed letters come back as they are; only a completion shows what is expected.
  Write("ask.zsh",
        "zmodload zsh/zpty\nzpty z env ZDOTDIR=$PWD TERM=dumb zsh -i\n"
        "expect() { local all; zpty -r z all \"*$1*\" || { print -r -- \"$all\"; exit 1; } }\n"
        "try() { zpty -w -n z \"trireme $1\"$'\\t'; expect \"$2\"; zpty -w -n z $'\\x15'; }\n"
        "expect 'ready> '\n"
        "try 'tra' 'train '\n"
        "try 'train fashion-c' 'fashion-cnn '\n"
        "try 'train --strategy eas' 'easgd'\n"
        "try 'train --set strategy.name=eas' 'strategy.name=easgd'\n"
        "try 'eval runs/f' 'runs/first'\n"
        "zpty -d z\n");
  Shell("zsh -f ask.zsh");
}

TEST_F(InstalledTest, TheProgramSaysWhatItIsMadeOf) {
  const std::string text = Succeed({"--version", "--long"}).out;
  for (const char* part : {"commit ", "compiler ", "glibc ", " or later; here ", "zlib 1."}) {
    ExpectIn(text, part);
  }
  const Json doctor = ParseJson(Succeed({"doctor", "--json"}).out, "doctor");
  Succeed({"train", "--steps", "1", "--quiet", "--out", "a"});
  const Json start = ParseJson(Read("a/starts.jsonl"), "starts");
  for (const Json* said : {&doctor, &start}) {
    const Json& build = said->At("build");
    EXPECT_FALSE(build.At("instruction_sets").Items().empty());
    EXPECT_FALSE(build.At("libraries").At("fmt").AsString().empty());
    ExpectIn(text, build.At("compiler").AsString());
    ExpectIn(text, build.At("glibc_wanted").AsString() + " or later");
    EXPECT_TRUE(build.At("glibc_wanted").AsString().starts_with("2."));
  }
  const std::string licenses = Succeed({"licenses"}).out;
  ExpectIn(licenses, "Independent JPEG Group");
  ExpectIn(licenses, "Apache License");
  ExpectIn(Succeed({"licenses", "zlib"}).out, "Jean-loup Gailly");
  Refuse({"licenses", "zlip"}, 2, {"zlip", "did you mean zlib"});
  for (const auto& [name, version] : doctor.At("build").At("libraries").Members()) {
    EXPECT_FALSE(Succeed({"licenses", name}).out.empty()) << name;
  }
}

}  // namespace
}  // namespace trireme::whole
