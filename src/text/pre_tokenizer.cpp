#define PCRE2_CODE_UNIT_WIDTH 8
#include "text/pre_tokenizer.h"

#include <pcre2.h>

#include <array>
#include <initializer_list>

#include "base/check.h"

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
#define CASED_LETTERS                                                                                                                                                                                                                              \
  "A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗὙὛὝὟ-ώᾀ-"                                         \
  "ᾴᾶ-ᾼ"                                                                                                                                                                                                                                     \
  "ιῂ-ῄῆ-ῌῐ-ΐῖ-Ίῠ-Ῥῲ-ῴῶ-ῼℂℇℊ-ℓℕℙ-ℝℤΩℨK-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-" \
  "𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃"

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
    {{"smollm", "starcoder", "refact", "codeshell"}, {kGpt2SingleDigits}},
    {{"command-r"}, {kGpt2SingleDigits}, {.nfc = true}},
    {{"llama-bpe", "llama3", "llama-v3"}, {kLlama3}, {.ignore_merges = true, .add_bos = true}},
    {{"smaug-bpe", "dbrx"}, {kLlama3}},
    {{"qwen2", "deepseek-r1-qwen"}, {kQwen2}, {.nfc = true}},
    {{"qwen35"}, {kQwen35}, {.nfc = true}},
    {{"gpt-4o", "llama4"}, {kGpt4o}},
    {{"tekken"}, {kTekken}, {.ignore_merges = true, .add_bos = true}},
    {{"deepseek-v3"}, {R"(\p{N}{1,3})", "[一-龥぀-ゟ゠-ヿ]+", kDeepseekV3}},
    // A run of spaces at the end is found at its first space only: the others would be tried in vain, one after another.
    {{"deepseek-llm"},
     {R"([\r\n])", SPACE "?[" CASED_LETTERS "]+", SPACE "?[!-/:-~！-／：-～‘-‟　-。]+", "(?<!" SPACE ")" SPACE R"(+\z)",
      R"([一-龥ࠀ-一가-\x{D7FF}]+)", R"(\p{N})"}},
    {{"deepseek-coder"}, {R"([\r\n])", SPACE R"(?\p{L}+)", SPACE R"(?\p{P}+)", R"([一-龥ࠀ-一가-\x{D7FF}]+)", R"(\p{N})"}},
    // Its splits into digits come after bytes have become GPT-2's characters, of which some count as digits: ²³¹¼½¾.
    {{"falcon"}, {R"([\p{P}$+<=>^`|~]+)", kGpt2, R"([0-9\xB2\xB3\xB9\xBC-\xBE]+)", "[0-9][0-9][0-9]"}, {}, true},
};

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
  return Error{"the pre-tokenizer \"" + std::string(name.substr(0, 64)) + "\" isn't known; known are " + known_names(),
               "tokenizer.ggml.pre"};
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
