#define PCRE2_CODE_UNIT_WIDTH 8
#include "text/pre_tokenizer.h"

#include <pcre2.h>

#include <algorithm>
#include <bitset>
#include <initializer_list>
#include <iterator>

#include "base/check.h"
#include "base/quoted.h"
#include "text/unicode.h"

namespace unisono::text {

namespace {

// White space as Hugging Face's regular expressions have it (Unicode's White_Space); PCRE2's \s has U+180E besides.
#define SPACES R"(\t-\r \x{85}\x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000})"
#define SPACE "[" SPACES "]"
#define LAST_SPACES SPACE "+(?![^" SPACES "])|" SPACE "+"
#define CONTRACTIONS "'s|'t|'re|'ve|'m|'ll|'d"
#define ANY_CASE_CONTRACTIONS "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define LINE_ENDS SPACE R"(*[\r\n]+)"

constexpr const char* kGpt2 = CONTRACTIONS R"(| ?\p{L}+| ?\p{N}+| ?[^)" SPACES R"(\p{L}\p{N}]+|)" LAST_SPACES;

// Digits one by one, then kGpt2 on what lies between them, in one expression: a digit ends the look-ahead as the end of
// the text does, and no space joins it.
constexpr const char* kGpt2SingleDigits =
    CONTRACTIONS R"(| ?\p{L}+|\p{N}| ?[^)" SPACES R"(\p{L}\p{N}]+|)" SPACE "+(?![^" SPACES R"(\p{N}])|)" SPACE "+";

#define AFTER_CONTRACTIONS(letters, digits) \
  R"(|[^\r\n\p{L}\p{N}]?[)" letters R"(]+|)" digits R"(| ?[^)" SPACES letters R"(\p{N}]+[\r\n]*|)" LINE_ENDS "|" LAST_SPACES

constexpr const char* kLlama3 = ANY_CASE_CONTRACTIONS AFTER_CONTRACTIONS(R"(\p{L})", R"(\p{N}{1,3})");
constexpr const char* kQwen2 = ANY_CASE_CONTRACTIONS AFTER_CONTRACTIONS(R"(\p{L})", R"(\p{N})");
constexpr const char* kQwen35 = ANY_CASE_CONTRACTIONS AFTER_CONTRACTIONS(R"(\p{L}\p{M})", R"(\p{N})");

#define UPPER R"([\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])"
#define LOWER R"([\p{Ll}\p{Lm}\p{Lo}\p{M}])"
#define CASED_WORDS(tail, digits)                                                                               \
  R"([^\r\n\p{L}\p{N}]?)" UPPER "*" LOWER "+" tail R"(|[^\r\n\p{L}\p{N}]?)" UPPER "+" LOWER "*" tail "|" digits \
  R"(| ?[^)" SPACES R"(\p{L}\p{N}]+[\r\n/]*|)" LINE_ENDS "|" LAST_SPACES

constexpr const char* kGpt4o = CASED_WORDS(ANY_CASE_CONTRACTIONS "?", R"(\p{N}{1,3})");
constexpr const char* kTekken = CASED_WORDS("", R"(\p{N})");

constexpr const char* kDeepseekV3 =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|)" LINE_ENDS
    "|" LAST_SPACES;

// The letters of alphabets with two cases, as DeepSeek's first tokenizer lists them.
// clang-format off
#define CASED_LETTERS \
  R"(A-Za-z\x{B5}\x{C0}-\x{D6}\x{D8}-\x{F6}\x{F8}-\x{1BA}\x{1BC}-\x{1BF}\x{1C4}-\x{293}\x{295}-\x{2AF})" \
  R"(\x{370}-\x{373}\x{376}\x{377}\x{37B}-\x{37D}\x{37F}\x{386}\x{388}-\x{38A}\x{38C}\x{38E}-\x{3A1})" \
  R"(\x{3A3}-\x{3F5}\x{3F7}-\x{481}\x{48A}-\x{52F}\x{531}-\x{556}\x{10A0}-\x{10C5}\x{13A0}-\x{13F5})" \
  R"(\x{13F8}-\x{13FD}\x{1C90}-\x{1CBA}\x{1CBD}-\x{1CBF}\x{1D00}-\x{1D2B}\x{1D6B}-\x{1D77}\x{1D79}-)" \
  R"(\x{1D9A}\x{1E00}-\x{1F15}\x{1F18}-\x{1F1D}\x{1F20}-\x{1F45}\x{1F48}-\x{1F4D}\x{1F50}-\x{1F57})" \
  R"(\x{1F59}\x{1F5B}\x{1F5D}\x{1F5F}-\x{1F7D}\x{1F80}-\x{1FB4}\x{1FB6}-\x{1FBC}\x{1FBE}\x{1FC2}-\x{1FC4})" \
  R"(\x{1FC6}-\x{1FCC}\x{1FD0}-\x{1FD3}\x{1FD6}-\x{1FDB}\x{1FE0}-\x{1FEC}\x{1FF2}-\x{1FF4}\x{1FF6}-)" \
  R"(\x{1FFC}\x{2102}\x{2107}\x{210A}-\x{2113}\x{2115}\x{2119}-\x{211D}\x{2124}\x{2126}\x{2128}\x{212A}-)" \
  R"(\x{212D}\x{212F}-\x{2134}\x{2139}\x{213C}-\x{213F}\x{2145}-\x{2149}\x{214E}\x{2183}\x{2184}\x{2C00}-)" \
  R"(\x{2C7B}\x{2C7E}-\x{2CE4}\x{2CEB}-\x{2CEE}\x{2CF2}\x{2CF3}\x{A640}-\x{A66D}\x{A680}-\x{A69B}\x{A722})" \
  R"(-\x{A76F}\x{A771}-\x{A787}\x{A78B}-\x{A78E}\x{AB70}-\x{ABBF}\x{FB00}-\x{FB06}\x{FB13}-\x{FB17})" \
  R"(\x{FF21}-\x{FF3A}\x{FF41}-\x{FF5A}\x{10400}-\x{1044F}\x{104B0}-\x{104D3}\x{104D8}-\x{104FB}\x{10C80})" \
  R"(-\x{10CB2}\x{10CC0}-\x{10CF2}\x{118A0}-\x{118DF}\x{1E900}-\x{1E943})"
// clang-format on

struct Family {
  std::initializer_list<std::string_view> names;
  std::initializer_list<const char*> expressions;
  PreTokenizer::Traits traits{};
  bool last_two_on_bytes = false;  // the last two expressions see bytes, not characters
};

// One row per way of cutting; the first name is the one we speak of. Expressions are the Hugging Face originals; so are
// the traits, of which a GGUF file says nothing.
const Family kFamilies[] = {
    {{"gpt-2", "phi-2", "roberta-bpe"}, {kGpt2}},
    {{"mpt", "olmo"}, {kGpt2}, {.nfc = true}},
    {{"smollm", "starcoder", "refact"}, {kGpt2SingleDigits}, {.digits_apart = true}},
    {{"command-r"}, {kGpt2SingleDigits}, {.nfc = true, .digits_apart = true}},
    {{"llama-bpe", "llama3", "llama-v3"}, {kLlama3}, {.ignore_merges = true, .add_bos = true}},
    {{"dbrx"}, {kLlama3}},
    {{"qwen2", "deepseek-r1-qwen"}, {kQwen2}, {.nfc = true}},
    {{"qwen35"}, {kQwen35}, {.nfc = true}},
    {{"gpt-4o"}, {kGpt4o}},
    {{"tekken"}, {kTekken}, {.ignore_merges = true, .add_bos = true}},
    {{"deepseek-v3"}, {R"(\p{N}{1,3})", R"([\x{4E00}-\x{9FA5}\x{3040}-\x{309F}\x{30A0}-\x{30FF}]+)", kDeepseekV3}},
    // A run of spaces at the end is found at its first space only: the others would be tried in vain, one after another.
    {{"deepseek-llm"},
     {R"([\r\n])", SPACE "?[" CASED_LETTERS "]+",
      SPACE R"(?[!-/:-~\x{FF01}-\x{FF0F}\x{FF1A}-\x{FF5E}\x{2018}-\x{201F}\x{3000}-\x{3002}]+)",
      "(?<!" SPACE ")" SPACE R"(+\z)", R"([\x{4E00}-\x{9FA5}\x{800}-\x{4E00}\x{AC00}-\x{D7FF}]+)", R"(\p{N})"},
     {.digits_apart = true}},
    {{"deepseek-coder"},
     {R"([\r\n])", SPACE R"(?\p{L}+)", SPACE R"(?\p{P}+)", R"([\x{4E00}-\x{9FA5}\x{800}-\x{4E00}\x{AC00}-\x{D7FF}]+)",
      R"(\p{N})"},
     {.digits_apart = true}},
    // Its splits into digits come after bytes have become GPT-2's characters, of which some count as digits: ²³¹¼½¾.
    // Hugging Face's punctuation is of an older Unicode: it cuts some 100 rare marks that came since otherwise.
    {{"falcon"}, {R"([\p{P}$+<=>^`|~]+)", kGpt2, R"([0-9\xB2\xB3\xB9\xBC-\xBE]+)", "[0-9][0-9][0-9]"}, {}, true},
};

struct NewerCharacters {
  char32_t first = 0, last = 0, stand_in = 0;
  bool digits_only = false;
};
constexpr NewerCharacters kNewer[] = {
#include "text/newer_characters.inc"
};

// Blocks of 256 code points that hold newer characters.
const std::bitset<0x1100>& newer_blocks() {
  static const std::bitset<0x1100> blocks = [] {
    std::bitset<0x1100> made;
    for (const NewerCharacters& range : kNewer)
      for (char32_t block = range.first >> 8; block <= range.last >> 8; block++) made.set(block);
    return made;
  }();
  return blocks;
}

// 0: none.
char32_t stand_in_of(char32_t code, bool digits_apart) {
  const auto* range = std::lower_bound(std::begin(kNewer), std::end(kNewer), code,
                                       [](const NewerCharacters& r, char32_t c) { return r.last < c; });
  if (range == std::end(kNewer) || code < range->first || (range->digits_only && !digits_apart)) return 0;
  return range->stand_in;
}

std::string known_names() {
  std::string list;
  for (const Family& family : kFamilies)
    for (const std::string_view name : family.names) list += (list.empty() ? "" : ", ") + std::string(name);
  return list;
}

constexpr size_t kJitStackBytes = 1 << 20;

struct FreeCode {
  void operator()(pcre2_code* code) const { pcre2_code_free(code); }
};

}  // namespace

struct PreTokenizer::Expression {
  std::unique_ptr<pcre2_code, FreeCode> code{};
  bool jit = false;
};

struct PreTokenizer::Scratch::Parts {
  pcre2_match_data* data = pcre2_match_data_create(1, nullptr);
  pcre2_match_context* context = pcre2_match_context_create(nullptr);
  std::string subject{};  // a text with stand-ins
  pcre2_jit_stack* stack = pcre2_jit_stack_create(32 << 10, kJitStackBytes, nullptr);

  Parts() {
    check(data && context && stack, "memory for matching");
    pcre2_jit_stack_assign(context, nullptr, stack);
    // The expressions are ours and take linear time; texts of any length may be matched.
    pcre2_set_match_limit(context, UINT32_MAX);
    pcre2_set_depth_limit(context, UINT32_MAX);
  }
  ~Parts() {
    pcre2_jit_stack_free(stack);
    pcre2_match_context_free(context);
    pcre2_match_data_free(data);
  }
  Parts(const Parts&) = delete;
  Parts& operator=(const Parts&) = delete;
};

PreTokenizer::Scratch::Scratch() : parts_(std::make_unique<Parts>()) {}
PreTokenizer::Scratch::~Scratch() = default;
PreTokenizer::Scratch::Scratch(Scratch&&) noexcept = default;
PreTokenizer::Scratch& PreTokenizer::Scratch::operator=(Scratch&&) noexcept = default;

PreTokenizer::PreTokenizer(const Traits& traits) : traits_(traits) {}
PreTokenizer::PreTokenizer(PreTokenizer&&) noexcept = default;
PreTokenizer& PreTokenizer::operator=(PreTokenizer&&) noexcept = default;
PreTokenizer::~PreTokenizer() = default;

Result<PreTokenizer> PreTokenizer::create(std::string_view name) {
  for (const Family& family : kFamilies)
    for (const std::string_view known : family.names) {
      if (known != name) continue;
      PreTokenizer made(family.traits);
      const size_t n = made.passes_ = family.expressions.size();
      for (size_t i = 0; i < n; i++) {
        const bool bytes = family.last_two_on_bytes && i + 2 >= n;
        const uint32_t options = bytes ? 0 : PCRE2_UTF | PCRE2_UCP | PCRE2_NO_UTF_CHECK;
        int error = 0;
        size_t offset = 0;
        Expression expression;
        expression.code.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(family.expressions.begin()[i]),
                                            PCRE2_ZERO_TERMINATED, options, &error, &offset, nullptr));
        check(expression.code != nullptr, "the table's expressions compile");
        expression.jit = pcre2_jit_compile(expression.code.get(), PCRE2_JIT_COMPLETE) == 0;
        made.expressions_.push_back(std::move(expression));
      }
      return made;
    }
  return Error{"The pre-tokenizer " + quoted(name) + " isn't known; known are " + known_names() + ".",
               "tokenizer.ggml.pre"};
}

std::string_view PreTokenizer::with_stand_ins(std::string_view text, Scratch& scratch) const {
  // All of them have at least three bytes.
  if (std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0xE0; })) return text;
  const std::bitset<0x1100>& blocks = newer_blocks();
  std::string& subject = scratch.parts_->subject;
  size_t copied = 0;
  subject.clear();
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    const char32_t code = decode_at(text, at);
    if (code < 0x800 || !blocks.test(code >> 8)) continue;
    const char32_t stand_in = stand_in_of(code, traits_.digits_apart);
    if (stand_in == 0) continue;
    subject.append(text, copied, begin - copied);
    append_utf8(subject, stand_in);
    copied = at;
  }
  if (copied == 0) return text;
  subject.append(text, copied);
  return subject;
}

PreTokenizer::Match PreTokenizer::find(size_t expression, std::string_view text, size_t from, Scratch& scratch) const {
  const Expression& e = expressions_[expression];
  const auto& parts = *scratch.parts_;
  const auto* subject = reinterpret_cast<PCRE2_SPTR>(text.data());
  int found = e.jit
                  ? pcre2_jit_match(e.code.get(), subject, text.size(), from, PCRE2_NO_UTF_CHECK, parts.data, parts.context)
                  : PCRE2_ERROR_JIT_BADOPTION;
  if (found < 0 && found != PCRE2_ERROR_NOMATCH)
    found =
        pcre2_match(e.code.get(), subject, text.size(), from, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, parts.data, parts.context);
  if (found < 0) return {text.size(), text.size()};
  const size_t* bounds = pcre2_get_ovector_pointer(parts.data);
  return {bounds[0], bounds[1]};
}

}  // namespace unisono::text
