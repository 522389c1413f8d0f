// Tests the readers of dpkg's files: whole ones, damaged ones and hostile ones.
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "src/app/sbom/dpkg_files.h"
#include "src/base/file.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr const char* kStatus =
    "Package: libc6\n"
    "Status: install ok installed\n"
    "Source: glibc\n"
    "Version: 2.36-9+deb12u10\n"
    "Architecture: amd64\n"
    "Description: GNU C Library\n"
    " Package: not-a-field\n"
    "\n"
    "Package: libgcc-s1\n"
    "Status: install ok installed\n"
    "Source: gcc-12 (12.2.0-14)\n"
    "Version: 1:12.2.0-14+b1\n"
    "Architecture: amd64\n"
    "\n"
    "Package: gone\n"
    "Status: deinstall ok config-files\n"
    "Version: 1\n"
    "Architecture: all\n"
    "\n"
    "Package: bash\n"
    "Status: install ok installed\n"
    "Version: 5.2.15-2\n"
    "Architecture: amd64";  // the last line has no end

TEST(DpkgStatus, HasTheInstalledPackages) {
  const auto packages = parse_dpkg_status(kStatus);
  ASSERT_EQ(packages.size(), 3U);
  EXPECT_EQ(packages[0].name, "libc6");
  EXPECT_EQ(packages[0].version, "2.36-9+deb12u10");
  EXPECT_EQ(packages[0].architecture, "amd64");
  EXPECT_EQ(packages[0].source, "glibc");
  EXPECT_EQ(packages[0].source_version, packages[0].version);
  EXPECT_EQ(packages[1].source, "gcc-12");
  EXPECT_EQ(packages[1].source_version, "12.2.0-14");
  EXPECT_EQ(packages[2].source, "bash");
  EXPECT_EQ(packages[2].source_version, "5.2.15-2");
}

std::string paragraph(const std::string& name, const std::string& version,
                      const std::string& architecture, const std::string& source = "") {
  return "Package: " + name + "\nStatus: install ok installed\nVersion: " + version +
         "\nArchitecture: " + architecture + "\n" +
         (source.empty() ? "" : "Source: " + source + "\n") + "\n";
}

TEST(DpkgStatus, OmitsDamagedParagraphs) {
  EXPECT_THAT(parse_dpkg_status(""), IsEmpty());
  EXPECT_THAT(parse_dpkg_status("\n\n\n"), IsEmpty());
  EXPECT_THAT(parse_dpkg_status(std::string(1000, '\0')), IsEmpty());
  EXPECT_THAT(parse_dpkg_status(": \n:\n::installed\n"), IsEmpty());
  for (const char* name : {"", ".", "..", "../../etc/passwd", "/etc", "a/b", "-a", "a b",
                           "a\x1b[2J", "\xff\xfe", "a\"b", "a%b", "a?b", "a:amd64"}) {
    EXPECT_THAT(parse_dpkg_status(paragraph(name, "1", "all")), IsEmpty()) << name;
  }
  for (const char* version : {"", "1\"", "1 2", "1?arch=x", "1/2", "<script>", "~1", "1\t2"}) {
    EXPECT_THAT(parse_dpkg_status(paragraph("a", version, "all")), IsEmpty()) << version;
  }
  for (const char* source : {"../x", "a (1", "a 1)", "a (1) (2)", "a ()", "(1)", "a\\"}) {
    EXPECT_THAT(parse_dpkg_status(paragraph("a", "1", "all", source)), IsEmpty()) << source;
  }
  EXPECT_THAT(parse_dpkg_status(paragraph("a", "1", "amd64&x=y")), IsEmpty());
  EXPECT_THAT(parse_dpkg_status(paragraph(std::string(257, 'a'), "1", "all")), IsEmpty());
  // What stands between damaged paragraphs is read, and the first of two fields counts.
  const auto packages = parse_dpkg_status(paragraph("..", "1", "all") + "Package: first\n" +
                                          paragraph("second", "1", "all") + "Package: cut");
  ASSERT_EQ(packages.size(), 1U);
  EXPECT_EQ(packages[0].name, "first");
}

TEST(PackageUrl, IsEncoded) {
  DebianPackage package =
      parse_dpkg_status(paragraph("libstdc++6", "1:12.2~rc1-14+b1", "amd64"))[0];
  EXPECT_EQ(package_url(package), "pkg:deb/debian/libstdc%2B%2B6@1:12.2~rc1-14%2Bb1?arch=amd64");
  package.distribution = distribution_of("NAME=Ubuntu\nID=ubuntu\n");
  EXPECT_EQ(package_url(package).substr(0, 15), "pkg:deb/ubuntu/");
  for (const char* other : {"", "ID=debian\n", "ID=../x\n", "ID_LIKE=ubuntu", "ID=\"ubuntu"}) {
    EXPECT_EQ(distribution_of(other), "debian") << other;
  }
  package.name = "a/b?c\n";  // no reader gives this
  EXPECT_EQ(package_url(package).substr(15, 11), "a%2Fb%3Fc%0");
}

TEST(DpkgList, FollowsTheAliasesOfMergedFolders) {
  const std::set<std::string> wanted = {"/usr/lib/x/libc.so.6", "/usr/lib64/y", "/lib/z"};
  const std::string list = "/.\n/lib\n/lib/x/libc.so.6\n/lib64/y\n/library/w";
  EXPECT_THAT(listed_paths(list, wanted, {"/lib", "/lib64"}),
              ElementsAre("/usr/lib/x/libc.so.6", "/usr/lib64/y"));
  EXPECT_THAT(listed_paths("/usr/lib64/y", wanted, {"/lib", "/lib64"}),
              ElementsAre("/usr/lib64/y"));
  EXPECT_THAT(listed_paths(list + "\n/lib/z", wanted, {}), ElementsAre("/lib/z"));
  EXPECT_THAT(listed_paths(std::string("/lib/z\0\n\xff\n", 9), wanted, {}), IsEmpty());
  EXPECT_THAT(listed_paths("", wanted, {"/lib"}), IsEmpty());
}

void write(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path) << text;
}

class DpkgFiles : public testing::Test {
 protected:
  DpkgFiles() {
    write(root_ / "var/lib/dpkg/status", kStatus);
    write(info_ / "libc6:amd64.list", "/lib/x86_64-linux-gnu/libc.so.6\n");
    write(info_ / "libc6:i386.list", "/lib/i386-linux-gnu/libc.so.6\n");
    write(info_ / "bash.list", "/bin/bash\n");
    write(root_ / "usr/share/doc/libc6/copyright", "");
    fs::create_directories(root_ / "usr/lib");
    fs::create_directory_symlink("usr/lib", root_ / "lib");
  }
  std::optional<DebianPackage> package_of(const std::string& path) const {
    return debian_packages_of({path}, root_).at(0);
  }

  const TempFolder folder_;
  const fs::path root_ = folder_.path();
  const fs::path info_ = root_ / "var/lib/dpkg/info";
  const std::string libc_ = "/usr/lib/x86_64-linux-gnu/libc.so.6";
};

TEST_F(DpkgFiles, NameThePackageOfAFile) {
  ASSERT_TRUE(package_of(libc_).has_value());
  EXPECT_EQ(package_of(libc_)->name, "libc6");
  EXPECT_EQ(package_of(libc_)->copyright, "/usr/share/doc/libc6/copyright");
  EXPECT_EQ(package_of(libc_)->distribution, "debian");
  ASSERT_TRUE(package_of("/bin/bash").has_value());
  EXPECT_EQ(package_of("/bin/bash")->copyright, "");
  EXPECT_FALSE(package_of("/usr/bin/bash").has_value()) << "/bin is no link here";
  EXPECT_FALSE(package_of("/usr/lib/i386-linux-gnu/libc.so.6").has_value()) << "not installed";
  EXPECT_FALSE(package_of("/opt/lib/libc.so.6").has_value());
  const auto both = debian_packages_of({"/opt/x", libc_}, root_);
  ASSERT_EQ(both.size(), 2U);
  EXPECT_FALSE(both[0].has_value());
  EXPECT_TRUE(both[1].has_value());
}

TEST_F(DpkgFiles, AreNotNeeded) {
  write(root_ / "var/lib/dpkg/status", "damaged");
  EXPECT_FALSE(package_of(libc_).has_value());
  fs::remove(root_ / "var/lib/dpkg/status");
  EXPECT_FALSE(package_of(libc_).has_value());
  fs::remove_all(info_);
  EXPECT_FALSE(package_of(libc_).has_value());
  fs::remove_all(root_ / "var");
  EXPECT_FALSE(package_of(libc_).has_value());
  write(root_ / "var", "a file where a folder should be");
  EXPECT_FALSE(package_of(libc_).has_value());
}

TEST_F(DpkgFiles, MayBeSpecialOrDangling) {
  ASSERT_EQ(::mkfifo((info_ / "a.list").c_str(), 0600), 0);
  fs::create_directory(info_ / "b.list");
  fs::create_symlink("nowhere", info_ / "c.list");
  write(info_ / ".list", libc_ + "\n");  // sorts first, and names no package
  EXPECT_TRUE(package_of("/bin/bash").has_value());
  fs::remove(root_ / "var/lib/dpkg/status");
  ASSERT_EQ(::mkfifo((root_ / "var/lib/dpkg/status").c_str(), 0600), 0);
  EXPECT_FALSE(package_of("/bin/bash").has_value());
}

}  // namespace
}  // namespace trireme
