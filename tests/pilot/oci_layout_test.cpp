// Images that are folders: layers laid over each other, and what layers say that mean harm.
#include "pilot/images/oci_layout.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/stat.h>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>

namespace hpcbatch::pilot {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::StartsWith;

/// A tar archive that says what no program would write.
class Tar {
 public:
  Tar& add(const std::string& name, char kind, const std::string& bytes = {},
           const std::string& link = {}, unsigned mode = 0644) {
    return add_sized(name, kind, bytes.size(), bytes, link, mode);
  }
  Tar& file(const std::string& name, const std::string& bytes) { return add(name, '0', bytes); }
  Tar& folder(const std::string& name) { return add(name, '5', {}, {}, 0755); }
  Tar& link(const std::string& name, const std::string& target) {
    return add(name, '2', {}, target);
  }
  Tar& hard_link(const std::string& name, const std::string& target) {
    return add(name, '1', {}, target);
  }
  Tar& mark(const std::string& name) { return file(name, ""); }

  Tar& add_sized(const std::string& name, char kind, std::uint64_t size, const std::string& bytes,
                 const std::string& link = {}, unsigned mode = 0644) {
    std::array<char, 512> header{};
    name.copy(header.data(), 100);
    std::snprintf(&header[100], 8, "%07o", mode);
    std::snprintf(&header[108], 8, "%07o", 0U);
    std::snprintf(&header[116], 8, "%07o", 0U);
    std::snprintf(&header[124], 12, "%011llo", static_cast<unsigned long long>(size));
    std::snprintf(&header[136], 12, "%011llo", 1'000'000'000ULL);
    header[156] = kind;
    link.copy(&header[157], 100);
    std::memcpy(&header[257],
                "ustar\0"
                "00",
                8);
    std::memset(&header[148], ' ', 8);
    unsigned sum = 0;
    for (const char byte : header) sum += static_cast<unsigned char>(byte);
    std::snprintf(&header[148], 8, "%06o", sum);
    text_.append(header.data(), header.size()).append(bytes);
    text_.append((512 - text_.size() % 512) % 512, '\0');
    return *this;
  }
  std::string text() const { return text_ + std::string(1024, '\0'); }

 private:
  std::string text_;
};

struct OciLayoutTest : testing::Test {
  OciLayoutTest() {
    char name[] = "/tmp/hpcbatch-layout-XXXXXX";
    root = ::mkdtemp(name);
    fs::create_directories(root + "/layout/blobs/sha256");
    fs::create_directory(root + "/out");
    write("out/safe", "safe");
    tree = root + "/tree";
  }
  ~OciLayoutTest() override { std::system(("rm -rf " + root).c_str()); }

  void write(const std::string& name, const std::string& text) const {
    std::ofstream(root + "/" + name) << text;
  }
  std::string contents(const std::string& name) const {
    std::ifstream file(root + "/" + name);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  bool is_there(const std::string& name) const {
    struct stat info {};
    return ::lstat((root + "/" + name).c_str(), &info) == 0;
  }
  static std::string printed(const std::string& command) {
    std::string text;
    std::FILE* out = ::popen(command.c_str(), "r");
    for (int byte = 0; (byte = std::fgetc(out)) != EOF;) text += static_cast<char>(byte);
    ::pclose(out);
    return text;
  }
  /// Its digest.
  std::string blob(const std::string& text) const {
    write("new", text);
    const std::string sum = printed("sha256sum < " + root + "/new").substr(0, 64);
    fs::rename(root + "/new", root + "/layout/blobs/sha256/" + sum);
    return "sha256:" + sum;
  }
  static std::string descriptor(const std::string& digest) {
    return R"({"digest": ")" + digest + R"("})";
  }
  /// Makes the index; `sums`: the diff_ids, as JSON.
  void image(const std::vector<std::string>& layers, const std::string& sums = "[]") const {
    std::string listed;
    for (const std::string& digest : layers)
      listed += (listed.empty() ? "" : ", ") + descriptor(digest);
    const std::string config =
        blob(R"({"config": {"Env": ["A=b c", "PATH=/x"]}, "rootfs": {"diff_ids": )" + sums + "}}");
    const std::string manifest =
        blob(R"({"config": )" + descriptor(config) + R"(, "layers": [)" + listed + "]}");
    write("layout/index.json", R"({"manifests": [)" + descriptor(manifest) + "]}");
  }
  std::string unpacked(const std::vector<Tar>& layers, const ImageBudget& budget = {}) const {
    std::vector<std::string> digests;
    digests.reserve(layers.size());
    for (const Tar& layer : layers) digests.push_back(blob(layer.text()));
    image(digests);
    return unpack_layout(root + "/layout", "", tree, budget);
  }

  std::string root;
  std::string tree;
};

TEST_F(OciLayoutTest, LayersTakeAwayWhatIsBelowThemAndNothingElse) {
  const Tar one = Tar()
                      .folder("kept")
                      .folder("emptied")
                      .file("gone", "")
                      .file("kept/a", "")
                      .file("kept/b", "")
                      .file("emptied/old", "");
  const Tar two = Tar()
                      .mark(".wh.gone")
                      .file("kept.new", "")
                      .mark("emptied/.wh..wh..opq")
                      .file("emptied/new", "")
                      .mark("kept/.wh.b");
  const Tar three = Tar().file("later/new", "").mark("later/.wh..wh..opq").mark("none/.wh.none");
  const Tar below = Tar().file("later/old", "").file("later/deep/old", "");
  EXPECT_EQ(unpacked({one, below, two, three}), "");
  for (const char* name : {"tree/kept/a", "tree/kept.new", "tree/emptied/new", "tree/later/new",
                           "tree/tmp", "tree/proc", "tree/etc/passwd"})
    EXPECT_TRUE(is_there(name)) << name;
  for (const char* name : {"tree/gone", "tree/kept/b", "tree/emptied/old", "tree/.wh.gone",
                           "tree/later/old", "tree/later/deep"})
    EXPECT_FALSE(is_there(name)) << name;
  EXPECT_EQ(contents("tree/ch/environment"), "A=b c\nPATH=/x\n");
  EXPECT_THAT(unpack_layout(root + "/layout", "other", root + "/tree2"),
              HasSubstr("has no image 'other'"));
}

TEST_F(OciLayoutTest, IsReadAsRealProgramsWriteIt) {
  ASSERT_EQ(std::system(("cd " + root +
                         R"sh( && mkdir -p in/usr/lib in/bin && printf 12345 > in/usr/lib/x &&
      ln -s usr/lib in/lib && ln in/usr/lib/x in/bin/y && chmod 4755 in/bin/y && mkfifo in/bin/fifo &&
      truncate -s 5M in/holes && printf end >> in/holes && printf ü > "in/$(printf 'n\303\274\377')" &&
      touch -d @1000000000 in/usr/lib in/usr/lib/x && mkdir in/dev && touch in/dev/null && chmod 777 in/bin &&
      tar -C in --format=pax -Scf plain.tar . && gzip -k plain.tar && zstd -q plain.tar -o plain.tar.zst)sh")
                            .c_str()),
            0);
  const std::string sum = printed("sha256sum < " + root + "/plain.tar").substr(0, 64);
  for (const char* name : {"plain.tar", "plain.tar.gz", "plain.tar.zst"}) {
    image({blob(contents(name))}, R"(["sha256:)" + sum + R"("])");
    fs::remove_all(tree);
    ASSERT_EQ(unpack_layout(root + "/layout", "", tree), "") << name;
    EXPECT_EQ(contents("tree/lib/x"), "12345");
    EXPECT_TRUE(fs::equivalent(tree + "/bin/y", tree + "/usr/lib/x"));
    EXPECT_EQ(contents("tree/n\303\274\377"), "ü");
    EXPECT_FALSE(is_there("tree/bin/fifo"));
    EXPECT_FALSE(is_there("tree/dev/null"));
    struct stat facts {};
    ASSERT_EQ(::stat((tree + "/holes").c_str(), &facts), 0);
    EXPECT_EQ(facts.st_size, (5 << 20) + 3);
    EXPECT_LT(facts.st_blocks, 1000) << "its holes are holes";
    ASSERT_EQ(::stat((tree + "/bin/y").c_str(), &facts), 0);
    EXPECT_EQ(facts.st_mode & 07777, 0755U) << "nothing starts as somebody else";
    EXPECT_EQ(facts.st_mtim.tv_sec, 1'000'000'000);
    ASSERT_EQ(::stat((tree + "/usr/lib").c_str(), &facts), 0);
    EXPECT_EQ(facts.st_mtim.tv_sec, 1'000'000'000);
    ASSERT_EQ(::stat((tree + "/bin").c_str(), &facts), 0);
    EXPECT_EQ(facts.st_mode & 07777, 0755U) << "others do not write in it";
  }
}

/// What each layer would like to do; `out/safe` is what it would do it to.
struct Hostile {
  const char* name;
  std::function<std::vector<Tar>(const std::string& out)> layers;
  const char* trouble;  // in what is said; empty: it is unpacked, within the tree
};

class HostileLayers : public OciLayoutTest, public testing::WithParamInterface<Hostile> {};

TEST_P(HostileLayers, WriteNothingOutside) {
  const std::string trouble = unpacked(GetParam().layers(root + "/out"));
  if (*GetParam().trouble == '\0') {
    EXPECT_EQ(trouble, "");
    EXPECT_EQ(contents("tree/ch/environment"), "A=b c\nPATH=/x\n");
  } else {
    EXPECT_THAT(trouble, StartsWith("cannot unpack the image sha256:"));
    EXPECT_THAT(trouble, HasSubstr(GetParam().trouble));
  }
  EXPECT_EQ(contents("out/safe"), "safe");
  EXPECT_EQ(std::distance(fs::directory_iterator(root + "/out"), {}), 1);
  EXPECT_EQ(std::distance(fs::directory_iterator(root), {}), 3) << "layout, out and the tree";
  struct stat facts {};
  ASSERT_EQ(::stat((root + "/out/safe").c_str(), &facts), 0);
  EXPECT_EQ(facts.st_nlink, 1U);
}

std::vector<Hostile> hostile_layers() {
  using Layers = std::vector<Tar>;
  return {
      {"FileThroughALinkOfTheLayerBelow",
       [](const std::string& out) -> Layers {
         return {Tar().link("a", out), Tar().file("a/safe", "not")};
       },
       ""},
      {"FileThroughALinkOfItsOwnLayer",
       [](const std::string& out) -> Layers {
         return {Tar().link("a", out).file("a/safe", "not").file("a/new", "not")};
       },
       ""},
      {"FileThroughALinkOfSteps",
       [](const std::string&) -> Layers {
         return {Tar().link("b/a", "../../../../../../out").file("b/a/safe", "not")};
       },
       ""},
      {"FileThroughALinkToALink",
       [](const std::string& out) -> Layers {
         return {Tar().link("a", out).link("b", "a").link("c", "b/../out").file("c/safe", "not")};
       },
       ""},
      {"FileOverALink",
       [](const std::string& out) -> Layers {
         return {Tar().link("a", out + "/safe"), Tar().file("a", "not")};
       },
       ""},
      {"FolderOverALink",
       [](const std::string& out) -> Layers {
         return {Tar().link("a", out), Tar().add("a", '5', {}, {}, 0700).file("a/safe", "not")};
       },
       ""},
      {"HardLinkThroughALink",
       [](const std::string& out) -> Layers {
         return {Tar().link("a", out).hard_link("b", "a/safe"), Tar().file("b", "not")};
       },
       "No such file"},
      {"HardLinkByItsWholeName",
       [](const std::string& out) -> Layers { return {Tar().hard_link("b", out + "/safe")}; },
       "No such file"},
      {"HardLinkBySteps",
       [](const std::string&) -> Layers { return {Tar().hard_link("b", "../out/safe")}; }, "'..'"},
      {"HardLinkToALinkThenWritten",
       [](const std::string& out) -> Layers {
         return {Tar().link("a", out + "/safe").hard_link("b", "a"), Tar().file("b", "not")};
       },
       ""},
      {"HardLinkToAFolder",
       [](const std::string&) -> Layers { return {Tar().folder("a").hard_link("b", "a")}; },
       "Is a directory"},
      {"HardLinkToItself",
       [](const std::string&) -> Layers { return {Tar().file("a", "").hard_link("a", "./a")}; },
       ""},
      {"NameWithSteps",
       [](const std::string&) -> Layers { return {Tar().file("../out/safe", "not")}; }, "'..'"},
      {"NameWithStepsInside",
       [](const std::string&) -> Layers { return {Tar().file("a/../../out/safe", "not")}; },
       "'..'"},
      {"WholeName",
       [](const std::string& out) -> Layers { return {Tar().file(out + "/safe", "not")}; }, ""},
      {"RootIsAFile", [](const std::string&) -> Layers { return {Tar().file("./", "not")}; },
       "Damaged"},
      {"RootIsALink",
       [](const std::string& out) -> Layers { return {Tar().link(".", out).file("safe", "not")}; },
       ""},
      {"MarkOfTwoDots", [](const std::string&) -> Layers { return {Tar().mark(".wh...")}; },
       "names nothing"},
      {"MarkOfADot", [](const std::string&) -> Layers { return {Tar().mark(".wh..")}; },
       "names nothing"},
      {"MarkOfNothing", [](const std::string&) -> Layers { return {Tar().mark("a/.wh.")}; },
       "names nothing"},
      {"MarkOfTwoDotsBelow",
       [](const std::string&) -> Layers { return {Tar().folder("a").mark("a/.wh...")}; },
       "names nothing"},
      {"MarkThatIsAFolder",
       [](const std::string&) -> Layers { return {Tar().file(".wh.a/b", "")}; }, "names nothing"},
      {"MarkWithSteps",
       [](const std::string&) -> Layers { return {Tar().mark(".wh.a/../../out")}; }, "'..'"},
      {"MarkThroughALink",
       [](const std::string& out) -> Layers {
         return {Tar().link("a", out), Tar().mark("a/.wh.safe")};
       },
       ""},
      {"EmptiedThroughALink",
       [](const std::string& out) -> Layers {
         return {Tar().link("a", out), Tar().mark("a/.wh..wh..opq")};
       },
       ""},
      {"EmptiedRoot",
       [](const std::string&) -> Layers {
         return {Tar().file("a", ""), Tar().mark(".wh..wh..opq")};
       },
       ""},
      {"EmptiedFile",
       [](const std::string&) -> Layers {
         return {Tar().file("a", ""), Tar().mark("a/.wh..wh..opq")};
       },
       ""},
      {"MarksOfAnotherFileSystem",
       [](const std::string&) -> Layers {
         return {Tar().file(".wh..wh.aufs", "").file(".wh..wh.plnk/1.2", "")};
       },
       ""},
      {"VariablesAreALink",
       [](const std::string& out) -> Layers {
         return {Tar().folder("ch").link("ch/environment", out + "/safe")};
       },
       ""},
      {"FolderOfVariablesIsALink",
       [](const std::string& out) -> Layers { return {Tar().link("ch", out)}; }, ""},
      {"FolderOfVariablesIsAFile",
       [](const std::string&) -> Layers { return {Tar().file("ch", "")}; }, ""},
      {"EtcIsALink", [](const std::string& out) -> Layers { return {Tar().link("etc", out)}; }, ""},
      {"LinksThatGoRound",
       [](const std::string&) -> Layers {
         return {Tar().link("a", "b").link("b", "a").file("a/c", "")};
       },
       "symbolic links"},
      {"AFileIsAFolder",
       [](const std::string&) -> Layers { return {Tar().file("a", "").file("a/b", "")}; },
       "Not a directory"},
      {"OneNameIsAllThings",
       [](const std::string& out) -> Layers {
         return {Tar().folder("a").file("a/b", "").link("a", out).file("a", "").folder("a").file(
             "a/c", "")};
       },
       ""},
      {"TooDeep",
       [](const std::string& out) -> Layers {
         Tar tar;
         std::string deep = "d";
         while (deep.size() < 90) deep += "/d";
         // Each goes on where the one before has ended.
         tar.link("out", out).link("l0", deep);
         for (int at = 1; at < 20; ++at)
           tar.link("l" + std::to_string(at), "l" + std::to_string(at - 1) + "/" + deep);
         return {tar.file("l19/x", "")};
       },
       "250 folders"},
      {"Device",
       [](const std::string&) -> Layers {
         return {Tar().add("a", '3').add("b", '4').add("c", '6').add("dev/null", '3')};
       },
       ""},
      {"MoreThanAllImagesMayHave",
       [](const std::string&) -> Layers {
         return {Tar()
                     .add_sized("a", '0', std::uint64_t{1} << 32, "x")
                     .add_sized("b", '0', (std::uint64_t{8} << 30) - 1, "x")};
       },
       "Truncated"},
      {"NoArchive",
       [](const std::string&) -> Layers {
         return {Tar().add_sized("a", '0', 10, std::string(2000, 'x'))};
       },
       "its layer sha256:"},
  };
}

INSTANTIATE_TEST_SUITE_P(All, HostileLayers, testing::ValuesIn(hostile_layers()),
                         [](const auto& info) { return info.param.name; });

TEST_F(OciLayoutTest, AnImageHasNoMoreThanWasSaid) {
  const Tar large = Tar().file("a", std::string(2000, 'x')).file("b", std::string(2000, 'x'));
  EXPECT_THAT(unpacked({large}, {.bytes = 3000}), HasSubstr("raise HPCBATCH_IMAGES_GB"));
  fs::remove_all(tree);
  EXPECT_THAT(unpacked({large, Tar().file("c", "x")}, {.bytes = 4000}),
              HasSubstr("raise HPCBATCH_IMAGES_GB"))
      << "of all its layers together";
  fs::remove_all(tree);
  EXPECT_THAT(unpacked({large, Tar().folder("c")}, {.bytes = 4000, .entries = 2}),
              HasSubstr("files and folders"));
  fs::remove_all(tree);
  EXPECT_EQ(unpacked({large}, {.bytes = 4000, .entries = 2}), "");
}

TEST_F(OciLayoutTest, ABombIsNotUnpacked) {
  // Much that is packed into little, and a hole of a terabyte.
  ASSERT_EQ(std::system(
                ("cd " + root +
                 R"( && mkdir in && truncate -s 64M in/zeros && tar -cf - in | gzip -1 > bomb.gz &&
      truncate -s 1T in/hole && tar -C in -Sczf holes.gz hole)")
                    .c_str()),
            0);
  image({blob(contents("bomb.gz"))});
  EXPECT_THAT(unpack_layout(root + "/layout", "", tree, {.bytes = 1U << 20, .entries = 10}),
              HasSubstr("raise HPCBATCH_IMAGES_GB"));
  fs::remove_all(tree);
  image({blob(contents("holes.gz"))});
  EXPECT_THAT(unpack_layout(root + "/layout", "", tree), HasSubstr("raise HPCBATCH_IMAGES_GB"));
  fs::remove_all(tree);
  // What stands behind the end of the archive, or in what is left out, has to be read for its sum.
  const Tar skipped = Tar().file("dev/x", std::string(2U << 20, 'x'));
  EXPECT_THAT(unpacked({skipped}, {.bytes = 1000, .entries = 10}), HasSubstr("far more"));
}

TEST_F(OciLayoutTest, DamageIsSaid) {
  const std::string text = Tar().file("a", std::string(5000, 'x')).text();
  const std::string digest = blob(text);
  image({digest});
  write("layout/blobs/sha256/" + digest.substr(7), std::string(text).replace(600, 1, "y"));
  EXPECT_THAT(unpack_layout(root + "/layout", "", tree), HasSubstr("not what its digest says"));
  fs::remove_all(tree);
  image({blob(text.substr(0, 3000))});
  EXPECT_THAT(unpack_layout(root + "/layout", "", tree), HasSubstr("runcated"));
  fs::remove_all(tree);
  write("whole", text);
  const std::string packed = printed("gzip -c " + root + "/whole");
  image({blob(packed.substr(0, packed.size() - 20))});
  EXPECT_THAT(unpack_layout(root + "/layout", "", tree), HasSubstr("truncated gzip input"));
  fs::remove_all(tree);
  image({blob(std::string(5000, 'x'))});
  EXPECT_THAT(unpack_layout(root + "/layout", "", tree), HasSubstr("archive format"));
  fs::remove_all(tree);
  image({digest}, R"(["sha256:)" + std::string(64, '0') + R"("])");
  write("layout/blobs/sha256/" + digest.substr(7), text);
  EXPECT_THAT(unpack_layout(root + "/layout", "", tree), HasSubstr("diff_id"));
}

TEST_F(OciLayoutTest, AFileIsItsDigestOrIsNotRead) {
  const std::string digest = blob(Tar().file("a", "").text());
  image({"sha256:../../../passwd"});
  EXPECT_THAT(unpack_layout(root + "/layout", "", tree), HasSubstr("cannot be named"));
  image({"md5:0123456789abcdef"});
  EXPECT_THAT(unpack_layout(root + "/layout", "", tree), HasSubstr("no digest that is known"));
  fs::remove_all(tree);
  image({digest, digest}, R"([")" + digest + R"("])");
  EXPECT_THAT(unpack_layout(root + "/layout", "", tree), HasSubstr("2 layers and sums of 1"));
  image({digest});
  const std::string index = contents("layout/index.json");
  const std::string manifest = index.substr(index.find("sha256:") + 7, 64);
  write("layout/blobs/sha256/" + manifest, R"({"layers": []})");
  EXPECT_THAT(unpack_layout(root + "/layout", "", tree), HasSubstr("its manifest is not what"));
  fs::remove(root + "/layout/blobs/sha256/" + manifest);
  ASSERT_EQ(::mkfifo((root + "/layout/blobs/sha256/" + manifest).c_str(), 0600), 0);
  EXPECT_THAT(unpack_layout(root + "/layout", "", tree), HasSubstr("no regular file"));
  fs::remove(root + "/layout/index.json");
  fs::create_symlink("/dev/zero", root + "/layout/index.json");
  EXPECT_THAT(unpack_layout(root + "/layout", "", tree), HasSubstr("has no image"));
}

TEST(ImageTreeTest, OurStepsAreTheKernels) {
  char name[] = "/tmp/hpcbatch-tree-XXXXXX";
  const std::string root = ::mkdtemp(name);
  const auto write = [&](ImageTree& tree) {
    tree.put_folder({"usr", "lib"}, 0755, {});
    for (const auto& [path, target] :
         std::vector<std::pair<std::string, std::string>>{{"lib", "usr/lib"},
                                                          {"up", "../../.."},
                                                          {"whole", "/usr/lib"},
                                                          {"usr/back", "../lib"},
                                                          {"proc", "/proc/self/root"},
                                                          {"two", "whole"}})
      tree.put_link(image_path(path), target);
    int count = 0;
    for (const char* folder :
         {"lib", "up", "whole", "usr/back", "two", "usr/back/../x", "up/up/lib"}) {
      ImagePath path;
      std::string step;
      for (const char letter : std::string(folder) + "/") {
        if (letter != '/') {
          step += letter;
        } else {
          path.push_back(std::exchange(step, {}));
        }
      }
      path.push_back("file" + std::to_string(count++));
      tree.put_file(path, 0644);
    }
  };
  ImageTree kernel(root + "/kernel", ImageTree::Walk::Kernel);
  ImageTree steps(root + "/steps", ImageTree::Walk::Steps);
  write(kernel);
  write(steps);
  EXPECT_EQ(std::system(("cd " + root +
                         " && find kernel -printf '%P %y %l\n' | sort > 1 && find steps -printf "
                         "'%P %y %l\n' | sort > 2 && cmp 1 2 && test $(grep -c file 1) = 7")
                            .c_str()),
            0);
  fs::remove_all(root);
}

}  // namespace
}  // namespace hpcbatch::pilot
