#include "grammar/formats.h"

namespace unisono::grammar {

namespace {

const std::string kDate =
    "(?!0000)(?:\\d{4}-(?:0[13578]|1[02])-(?:0[1-9]|[12]\\d|3[01])|\\d{4}-(?:0[469]|11)-(?:0[1-9]|[12]\\d|30)|"
    "\\d{4}-02-(?:0[1-9]|1\\d|2[0-8])|(?:\\d\\d(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)-02-29)";
const std::string kTime = "(?:[01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(?:\\.\\d+)?(?:[Zz]|[+-](?:[01]\\d|2[0-3]):[0-5]\\d)";
const std::string kDuration =
    "P(?:\\d+W|(?:\\d+Y(?:\\d+M(?:\\d+D)?)?|\\d+M(?:\\d+D)?|\\d+D)(?:T(?:\\d+H(?:\\d+M(?:\\d+S)?)?|\\d+M(?:\\d+S)?|\\d+S))?"
    "|"
    "T(?:\\d+H(?:\\d+M(?:\\d+S)?)?|\\d+M(?:\\d+S)?|\\d+S))";
const std::string kLabel = "[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?";
const std::string kHost = "(?=.{1,253}$)" + kLabel + "(?:\\." + kLabel + ")*";
const std::string kByte = "(?:25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)";
const std::string kIpv4 = kByte + "(?:\\." + kByte + "){3}";
const std::string kAtom = "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+";
const std::string kEmail =
    "(?=[^@]{1,64}@)" + kAtom + "(?:\\." + kAtom + ")*@(?:" + kLabel + "(?:\\." + kLabel + ")*|\\[" + kIpv4 + "\\])";

// RFC 4291: eight groups, a run of zeros left out once, the last two perhaps as IPv4.
std::string ipv6() {
  const std::string h = "[0-9A-Fa-f]{1,4}", last = "(?:" + h + ":" + h + "|" + kIpv4 + ")";
  std::string out = "(?:" + h + ":){6}" + last;
  // n groups and the last two behind the ::, at most 5 - n groups in front of it.
  for (int n = 5; n >= 0; --n) {
    out += n == 5 ? "|" : "|(?:(?:" + h + ":){0," + std::to_string(4 - n) + "}" + h + ")?";
    out += "::(?:" + h + ":){" + std::to_string(n) + "}" + last;
  }
  out += "|(?:(?:" + h + ":){0,5}" + h + ")?::" + h;
  out += "|(?:(?:" + h + ":){0,6}" + h + ")?::";
  return out;
}

// RFC 3986, and with `wide` RFC 3987.
std::string uri(bool reference, bool wide) {
  const std::string more =
      wide ? "\\u{A0}-\\u{D7FF}\\u{F900}-\\u{FDCF}\\u{FDF0}-\\u{FFEF}\\u{10000}-\\u{1FFFD}\\u{20000}-\\u{2FFFD}"
             "\\u{30000}-\\u{3FFFD}\\u{E1000}-\\u{EFFFD}"
           : "";
  const std::string escaped = "%[0-9A-Fa-f]{2}";
  const std::string plain = "A-Za-z0-9._~!$&'()*+,;=" + more + "-";
  const std::string pchar = "(?:[:@" + plain + "]|" + escaped + ")";
  const std::string query = "(?:\\?(?:[:@/?" + plain + (wide ? "\\u{E000}-\\u{F8FF}" : "") + "]|" + escaped + ")*)?";
  const std::string fragment = "(?:#(?:[:@/?" + plain + "]|" + escaped + ")*)?";
  const std::string host =
      "(?:\\[(?:" + ipv6() + "|v[0-9A-Fa-f]+\\.[:" + plain + "]+)\\]|(?:[" + plain + "]|" + escaped + ")*)";
  const std::string authority = "(?:(?:[:" + plain + "]|" + escaped + ")*@)?" + host + "(?::\\d*)?";
  const std::string segments = "(?:/" + pchar + "*)*";
  const std::string absolute = "/(?:" + pchar + "+" + segments + ")?";
  const std::string full =
      "[A-Za-z][A-Za-z0-9+.-]*:(?://" + authority + segments + "|" + absolute + "|" + pchar + "+" + segments + ")?";
  if (!reference) return full + query + fragment;
  const std::string no_colon = "(?:[@" + plain + "]|" + escaped + ")+";
  const std::string relative = "(?://" + authority + segments + "|" + absolute + "|" + no_colon + segments + ")?";
  return "(?:" + full + "|" + relative + ")" + query + fragment;
}

const std::string kPointer = "(?:/(?:[^~/]|~[01])*)*";

const std::string& uri_template() {
  static const std::string pattern = [] {
    const std::string name = "(?:[A-Za-z0-9_]|%[0-9A-Fa-f]{2})(?:\\.?(?:[A-Za-z0-9_]|%[0-9A-Fa-f]{2}))*";
    const std::string spec = name + "(?::[1-9]\\d{0,3}|\\*)?";
    return "(?:[^\\u0000-\\u0020\"'%<>\\\\^`{|}\\u007F]|%[0-9A-Fa-f]{2}|\\{[+#./;?&=,!@|]?" + spec + "(?:," + spec +
           ")*\\})*";
  }();
  return pattern;
}

}  // namespace

FormatKind find_format(std::string_view name, std::string* pattern) {
  if (name == "date")
    *pattern = kDate;
  else if (name == "time")
    *pattern = kTime;
  else if (name == "date-time")
    *pattern = kDate + "[Tt]" + kTime;
  else if (name == "duration")
    *pattern = kDuration;
  else if (name == "email")
    *pattern = kEmail;
  else if (name == "hostname")
    *pattern = kHost;
  else if (name == "ipv4")
    *pattern = kIpv4;
  else if (name == "ipv6")
    *pattern = ipv6();
  else if (name == "uuid")
    *pattern = "[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}";
  else if (name == "uri")
    *pattern = uri(false, false);
  else if (name == "uri-reference")
    *pattern = uri(true, false);
  else if (name == "iri")
    *pattern = uri(false, true);
  else if (name == "iri-reference")
    *pattern = uri(true, true);
  else if (name == "uri-template")
    *pattern = uri_template();
  else if (name == "json-pointer")
    *pattern = kPointer;
  else if (name == "relative-json-pointer")
    *pattern = "(?:0|[1-9]\\d*)(?:#|" + kPointer + ")";
  else if (name == "regex" || name == "idn-email" || name == "idn-hostname")
    return FormatKind::beyond_patterns;
  else
    return FormatKind::unknown;
  return FormatKind::enforced;
}

}  // namespace unisono::grammar
