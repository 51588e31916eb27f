// Sound files made by hand: what is there is found, with its type, shape and place, and typed reads keep their promises.
#include "checkpoint/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "checkpoint/gguf_writer.h"

namespace unisono::checkpoint {
namespace {

using ::testing::ElementsAre;
using testing::GgufWriter;
using ::testing::HasSubstr;

std::vector<std::byte> some_bytes(size_t n) {
  std::vector<std::byte> bytes(n);
  for (size_t i = 0; i < n; i++) bytes[i] = static_cast<std::byte>(i * 37 + 11);
  return bytes;
}

std::string numbered(int i) { return std::to_string(i).append(".weight"); }

template <class T>
const T& get(const Checkpoint& file, std::string_view key) {
  return std::get<T>(*file.value(key));
}
template <class T>
const std::vector<T>& get_array(const Checkpoint& file, std::string_view key) {
  return std::get<std::vector<T>>(get<Array>(file, key));
}

TEST(Checkpoint, HoldsEveryTypeOfValueWidened) {
  const auto bytes = GgufWriter()
                         .set("u8", uint8_t{200})
                         .set("i8", int8_t{-100})
                         .set("u16", uint16_t{60000})
                         .set("i16", int16_t{-30000})
                         .set("u32", uint32_t{4000000000})
                         .set("i32", int32_t{-2000000000})
                         .set("u64", uint64_t{1} << 63)
                         .set("u64.small", uint64_t{7})
                         .set("i64", std::numeric_limits<int64_t>::min())
                         .set("f32", 0.5f)
                         .set("f64", 1e-300)
                         .set("yes", true)
                         .set("text", "h\xC3\xA9llo")
                         .set("empty", "")
                         .bytes();
  const auto file = Checkpoint::parse(bytes);
  ASSERT_TRUE(file.ok()) << file.error().message;
  EXPECT_EQ(get<int64_t>(*file, "u8"), 200);
  EXPECT_EQ(get<int64_t>(*file, "i8"), -100);
  EXPECT_EQ(get<int64_t>(*file, "u16"), 60000);
  EXPECT_EQ(get<int64_t>(*file, "i16"), -30000);
  EXPECT_EQ(get<int64_t>(*file, "u32"), 4000000000);
  EXPECT_EQ(get<int64_t>(*file, "i32"), -2000000000);
  EXPECT_EQ(get<uint64_t>(*file, "u64"), uint64_t{1} << 63);
  EXPECT_EQ(get<int64_t>(*file, "u64.small"), 7);
  EXPECT_EQ(get<int64_t>(*file, "i64"), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(get<double>(*file, "f32"), 0.5);
  EXPECT_EQ(get<double>(*file, "f64"), 1e-300);
  EXPECT_EQ(get<bool>(*file, "yes"), true);
  EXPECT_EQ(get<std::string_view>(*file, "text"), "h\xC3\xA9llo");
  EXPECT_EQ(get<std::string_view>(*file, "empty"), "");
  EXPECT_EQ(file->value("absent"), nullptr);
  EXPECT_EQ(file->metadata().size(), 14u);
  EXPECT_EQ(file->metadata()[3].key, "i16");
}

TEST(Checkpoint, HoldsArraysOfEveryType) {
  const auto bytes = GgufWriter()
                         .set("u8", std::vector<uint8_t>{0, 255})
                         .set("i8", std::vector<int8_t>{-128, 127})
                         .set("u16", std::vector<uint16_t>{65535})
                         .set("i16", std::vector<int16_t>{-1})
                         .set("u32", std::vector<uint32_t>{4294967295u, 0})
                         .set("i32", std::vector<int32_t>{-5, 5})
                         .set("u64", std::vector<uint64_t>{1, ~uint64_t{0}})
                         .set("u64.small", std::vector<uint64_t>{1, 2})
                         .set("i64", std::vector<int64_t>{-1})
                         .set("f32", std::vector<float>{0.25f, -0.0f})
                         .set("f64", std::vector<double>{2.5})
                         .set("bool", std::vector<bool>{true, false, true})
                         .set("text", std::vector<std::string>{"a", "", "bc"})
                         .set("none", std::vector<float>{})
                         .bytes();
  const auto file = Checkpoint::parse(bytes);
  ASSERT_TRUE(file.ok()) << file.error().message;
  EXPECT_THAT(get_array<int64_t>(*file, "u8"), ElementsAre(0, 255));
  EXPECT_THAT(get_array<int64_t>(*file, "i8"), ElementsAre(-128, 127));
  EXPECT_THAT(get_array<int64_t>(*file, "u16"), ElementsAre(65535));
  EXPECT_THAT(get_array<int64_t>(*file, "i16"), ElementsAre(-1));
  EXPECT_THAT(get_array<int64_t>(*file, "u32"), ElementsAre(4294967295, 0));
  EXPECT_THAT(get_array<int64_t>(*file, "i32"), ElementsAre(-5, 5));
  EXPECT_THAT(get_array<uint64_t>(*file, "u64"), ElementsAre(1, ~uint64_t{0}));
  EXPECT_THAT(get_array<int64_t>(*file, "u64.small"), ElementsAre(1, 2));
  EXPECT_THAT(get_array<int64_t>(*file, "i64"), ElementsAre(-1));
  EXPECT_THAT(get_array<double>(*file, "f32"), ElementsAre(0.25, -0.0));
  EXPECT_THAT(get_array<double>(*file, "f64"), ElementsAre(2.5));
  EXPECT_THAT(get_array<bool>(*file, "bool"), ElementsAre(true, false, true));
  EXPECT_THAT(get_array<std::string_view>(*file, "text"), ElementsAre("a", "", "bc"));
  EXPECT_TRUE(get_array<double>(*file, "none").empty());
}

TEST(Checkpoint, StringsViewTheFile) {
  const auto bytes = GgufWriter().set("text", std::vector<std::string>{"abc"}).bytes();
  const auto file = Checkpoint::parse(bytes);
  ASSERT_TRUE(file.ok());
  const auto* at = reinterpret_cast<const std::byte*>(get_array<std::string_view>(*file, "text")[0].data());
  EXPECT_TRUE(at >= bytes.data() && at < bytes.data() + bytes.size());
}

TEST(Checkpoint, HoldsTensorsOfEveryTypeWithDimsOutermostFirst) {
  GgufWriter writer;
  for (int i = 0; i < kDTypes; i++) {
    const auto type = static_cast<DType>(i);
    writer.tensor(numbered(i), type, {3, 2, info(type).block_elems},
                  some_bytes(static_cast<size_t>(6 * info(type).block_bytes)));
  }
  const auto bytes = writer.bytes();
  const auto file = Checkpoint::parse(bytes);
  ASSERT_TRUE(file.ok()) << file.error().message;
  ASSERT_EQ(file->tensors().size(), static_cast<size_t>(kDTypes));
  for (int i = 0; i < kDTypes; i++) {
    const auto type = static_cast<DType>(i);
    const TensorView* view = file->find(numbered(i));
    ASSERT_NE(view, nullptr);
    EXPECT_EQ(view->type, type);
    EXPECT_EQ(view->n_dims, 3);
    EXPECT_EQ(view->dims, (std::array<int64_t, 4>{3, 2, info(type).block_elems, 0}));
    EXPECT_EQ((view->data - bytes.data()) % 32, 0);
    const auto wanted = some_bytes(static_cast<size_t>(6 * info(type).block_bytes));
    ASSERT_EQ(view->bytes(), wanted.size());
    EXPECT_EQ(std::memcmp(view->data, wanted.data(), wanted.size()), 0);
  }
  EXPECT_EQ(file->find("t"), nullptr);
}

TEST(Checkpoint, ReadsVersionTwoAnyAlignmentGapsAndTensorsOutOfOrder) {
  const auto data = some_bytes(256);
  const auto bytes = GgufWriter()
                         .version(2)
                         .align(8)
                         .describe("late", 0, {4}, 200)
                         .describe("early", 0, {2}, 16)
                         .tensor("first", DType::f32, {2}, data)
                         .bytes();
  const auto file = Checkpoint::parse(bytes);
  ASSERT_TRUE(file.ok()) << file.error().message;
  EXPECT_EQ(file->find("late")->data - file->find("early")->data, 184);
  EXPECT_EQ(file->find("early")->data - file->find("first")->data, 16);
}

TEST(Checkpoint, OpensFromDiskAndMoves) {
  const std::string path = ::testing::TempDir() + "unisono_checkpoint_" + std::to_string(::getpid()) + ".gguf";
  const std::vector<float> values = {1, 2, 3, 4};
  ASSERT_TRUE(GgufWriter().set("general.name", "tiny").tensor("w", {2, 2}, values).save(path));
  auto file = Checkpoint::open(path);
  ::unlink(path.c_str());
  ASSERT_TRUE(file.ok()) << file.error().message;
  const Checkpoint moved = std::move(*file);
  EXPECT_EQ(**moved.string("general.name"), "tiny");
  EXPECT_EQ(std::memcmp(moved.find("w")->data, values.data(), 16), 0);
}

TEST(Checkpoint, ForgetsItsMetadataButNotWhatWasRead) {
  const std::string path = ::testing::TempDir() + "unisono_forgetful_" + std::to_string(::getpid()) + ".gguf";
  const std::vector<float> values = {1, 2, 3, 4};
  const std::vector<std::string> words(10000, "word");
  ASSERT_TRUE(GgufWriter().set("general.name", "tiny").set("words", words).tensor("w", {2, 2}, values).save(path));
  auto file = Checkpoint::open(path);
  ::unlink(path.c_str());
  ASSERT_TRUE(file.ok()) << file.error().message;
  const std::string_view name = **file->string("general.name");
  const auto read = **file->strings("words");
  file->forget_metadata();
  EXPECT_TRUE(file->metadata().empty());
  EXPECT_EQ(file->value("general.name"), nullptr);
  EXPECT_EQ(name, "tiny");
  EXPECT_EQ(read.back(), "word");
  EXPECT_EQ(std::memcmp(file->find("w")->data, values.data(), 16), 0);
  const auto bytes = GgufWriter().set("general.name", "tiny").bytes();
  auto parsed = Checkpoint::parse(bytes);
  ASSERT_TRUE(parsed.ok());
  parsed->forget_metadata();  // no file to let go of
  EXPECT_TRUE(parsed->metadata().empty());
}

TEST(Checkpoint, WhatCannotBeOpenedIsNamed) {
  const auto absent = Checkpoint::open("/nowhere/model.gguf");
  ASSERT_FALSE(absent.ok());
  EXPECT_THAT(absent.error().message, HasSubstr("/nowhere/model.gguf"));
  EXPECT_FALSE(Checkpoint::open("/").ok());
  const auto text = Checkpoint::open("/proc/self/exe");
  ASSERT_FALSE(text.ok());
  EXPECT_EQ(text.error().message, "'/proc/self/exe': This is not a GGUF file: it doesn't begin with the letters GGUF.");
}

class TypedReads : public ::testing::Test {
 protected:
  std::vector<std::byte> bytes_ = GgufWriter()
                                      .set("int", int32_t{-3})
                                      .set("huge", ~uint64_t{0})
                                      .set("float", 0.5f)
                                      .set("nan", std::nan(""))
                                      .set("bool", false)
                                      .set("text", "x")
                                      .set("ints", std::vector<uint16_t>{1, 500})
                                      .set("huge_ints", std::vector<uint64_t>{1, ~uint64_t{0}})
                                      .set("floats", std::vector<float>{0.5f, 2.0f})
                                      .set("infinite", std::vector<float>{0.5f, INFINITY})
                                      .set("texts", std::vector<std::string>{"a", "b"})
                                      .set("no_ints", std::vector<int32_t>{})
                                      .bytes();
  Checkpoint file_ = std::move(Checkpoint::parse(bytes_)).value();
};

TEST_F(TypedReads, GiveTheValue) {
  EXPECT_EQ(**file_.integer("int", -3, 0), -3);
  EXPECT_EQ(**file_.number("int"), -3.0);
  EXPECT_EQ(**file_.number("huge"), 0x1p64);
  EXPECT_EQ(**file_.number("float"), 0.5);
  EXPECT_EQ(**file_.boolean("bool"), false);
  EXPECT_EQ(**file_.string("text"), "x");
  EXPECT_THAT(**file_.strings("texts"), ElementsAre("a", "b"));
  EXPECT_THAT(**file_.integers("ints", 1, 500), ElementsAre(1, 500));
  EXPECT_THAT(**file_.numbers("ints"), ElementsAre(1.0, 500.0));
  EXPECT_THAT(**file_.numbers("floats"), ElementsAre(0.5, 2.0));
  EXPECT_TRUE((**file_.integers("no_ints", 0, 1)).empty());
}

TEST_F(TypedReads, TellAbsentFromWrong) {
  EXPECT_FALSE(file_.integer("absent", 0, 1)->has_value());
  EXPECT_FALSE(file_.number("absent")->has_value());
  EXPECT_FALSE(file_.boolean("absent")->has_value());
  EXPECT_FALSE(file_.string("absent")->has_value());
  EXPECT_FALSE(file_.strings("absent")->has_value());
  EXPECT_FALSE(file_.numbers("absent")->has_value());
  EXPECT_FALSE(file_.integers("absent", 0, 1)->has_value());
}

TEST_F(TypedReads, RefuseByNameWhatIsOfAnotherTypeOrOutOfRange) {
  EXPECT_EQ(file_.integer("text", 0, 1).error().message, "Key 'text' is a string where an integer is expected.");
  EXPECT_EQ(file_.integer("text", 0, 1).error().subject, "text");
  EXPECT_EQ(file_.integer("float", 0, 1).error().message,
            "Key 'float' is a floating-point number where an integer is expected.");
  EXPECT_EQ(file_.integer("bool", 0, 1).error().message, "Key 'bool' is a truth value where an integer is expected.");
  EXPECT_EQ(file_.integer("int", 0, 7).error().message, "Key 'int' is -3 where 0 to 7 is expected.");
  EXPECT_EQ(file_.integer("huge", 0, 7).error().message, "Key 'huge' is 18446744073709551615 where 0 to 7 is expected.");
  EXPECT_EQ(file_.integer("ints", 0, 7).error().message,
            "Key 'ints' is an array of integers where an integer is expected.");
  EXPECT_EQ(file_.number("text").error().message, "Key 'text' is a string where a number is expected.");
  EXPECT_EQ(file_.number("nan").error().message, "Key 'nan' is not a finite number.");
  EXPECT_EQ(file_.boolean("int").error().message, "Key 'int' is an integer where a truth value is expected.");
  EXPECT_EQ(file_.string("texts").error().message, "Key 'texts' is an array of strings where a string is expected.");
  EXPECT_EQ(file_.strings("text").error().message, "Key 'text' is a string where an array of strings is expected.");
  EXPECT_EQ(file_.strings("no_ints").error().message,
            "Key 'no_ints' is an array of integers where an array of strings is expected.");
  EXPECT_EQ(file_.numbers("infinite").error().message, "Key 'infinite' holds no finite number at element 1.");
  EXPECT_EQ(file_.numbers("texts").error().message,
            "Key 'texts' is an array of strings where an array of numbers is expected.");
  EXPECT_EQ(file_.integers("ints", 0, 499).error().message,
            "Key 'ints' holds, at element 1, 500 where 0 to 499 is expected.");
  EXPECT_EQ(file_.integers("floats", 0, 1).error().message,
            "Key 'floats' is an array of floating-point numbers where an array of integers is expected.");
  EXPECT_FALSE(file_.integers("huge_ints", 0, 1).ok());
}

}  // namespace
}  // namespace unisono::checkpoint
